// SPDX-License-Identifier: Apache-2.0
// 256 thunks of 16 bytes: each pushes its number and goes to the common part, which saves all registers that can carry
// an argument (System V ABI: 6 integer, 8 vector, %al for varargs, %r10), asks shim_unknown_entry_called(number) for the
// driver's address, restores them and jumps there. Arguments on the stack are not touched.
// Another architecture: unknown_entry_<cpu>.S with the same two symbols; shim/meson.build picks it by name.

    .text
    .globl shim_unknown_thunks
    .hidden shim_unknown_thunks
    .type shim_unknown_thunks, @function
    .balign 16
shim_unknown_thunks:
    .set number, 0
    .rept 256
    .balign 16
    pushq $number
    jmp unknown_entry_common
    .set number, number + 1
    .endr
    .size shim_unknown_thunks, . - shim_unknown_thunks

    .type unknown_entry_common, @function
    .balign 16
unknown_entry_common:
    .cfi_startproc
    .cfi_adjust_cfa_offset 8
    pushq %rax
    .cfi_adjust_cfa_offset 8
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    pushq %r10
    .cfi_adjust_cfa_offset 8
    // 16-byte aligned here: return address, number and 8 registers are 80 bytes.
    subq $128, %rsp
    .cfi_adjust_cfa_offset 128
    movups %xmm0, 0(%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movq 192(%rsp), %rdi
    call shim_unknown_entry_called
    movq %rax, %r11
    movups 0(%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $128, %rsp
    .cfi_adjust_cfa_offset -128
    popq %r10
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    popq %rax
    .cfi_adjust_cfa_offset -8
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    jmp *%r11
    .cfi_endproc
    .size unknown_entry_common, . - unknown_entry_common

    .section .note.GNU-stack, "", @progbits
