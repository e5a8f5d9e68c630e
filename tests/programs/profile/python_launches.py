# SPDX-License-Identifier: Apache-2.0
"""A Python program whose launches are known: the lines marked LAUNCH, with what each launches how often. The driver
by ctypes.

    python_launches.py [unreadable | many LINES]

unreadable: in a process that may not use process_vm_readv. many: besides, a launch from each of so many lines.
"""

import ctypes
import platform
import struct
import sys
import threading

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry count_up(.param .u64 out) {
  .reg .u64 %out;
  .reg .u32 %value;
  ld.param.u64 %out, [out];
  ld.global.u32 %value, [%out];
  add.u32 %value, %value, 1;
  st.global.u32 [%out], %value;
  ret;
}
.visible .entry clear(.param .u64 out) {
  .reg .u64 %out;
  ld.param.u64 %out, [out];
  st.global.u32 [%out], 0;
  ret;
}
"""

library = ctypes.CDLL("libcuda.so.1")
launch_kernel = library.cuLaunchKernel


def check(status):
    if status != 0:
        raise SystemExit(f"the driver's answer is {status}")


class Device:
    def __init__(self):
        self.context, module = ctypes.c_void_p(), ctypes.c_void_p()
        check(library.cuInit(0))
        check(library.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0))
        check(library.cuCtxSetCurrent(self.context))
        check(library.cuModuleLoadData(ctypes.byref(module), PTX))
        self.memory = ctypes.c_uint64()
        check(library.cuMemAlloc_v2(ctypes.byref(self.memory), ctypes.c_size_t(64)))
        self.kernels = {}
        for name in ("count_up", "clear"):
            self.kernels[name] = ctypes.c_void_p()
            check(library.cuModuleGetFunction(ctypes.byref(self.kernels[name]), module, name.encode()))
        self.arguments = (ctypes.c_void_p * 1)(ctypes.addressof(self.memory))

    def prepare(self):
        # The same native stack for all: only the line tells them apart.
        one, kernel = ctypes.c_uint(1), self.kernels["clear"]
        launch_kernel(kernel, one, one, one, one, one, one, 0, None, self.arguments, None)  # LAUNCH clear 1

    def step(self):
        one, kernel = ctypes.c_uint(1), self.kernels["count_up"]
        launch_kernel(kernel, one, one, one, one, one, one, 0, None, self.arguments, None)  # LAUNCH count_up 40
        launch_kernel(kernel, one, one, one, one, one, one, 0, None, self.arguments, None)  # LAUNCH count_up 40

    def in_thread(self):
        check(library.cuCtxSetCurrent(self.context))
        one, kernel = ctypes.c_uint(1), self.kernels["count_up"]
        for _ in range(10):
            launch_kernel(kernel, one, one, one, one, one, one, 0, None, self.arguments, None)  # LAUNCH count_up 30
            self.beside()
        compiled_cells(self)

    def beside(self):
        one, kernel = ctypes.c_uint(1), self.kernels["count_up"]
        launch_kernel(kernel, one, one, one, one, one, one, 0, None, self.arguments, None)  # LAUNCH count_up 30


def compiled_cells(device, count=5):
    """Code objects that come and go, as a notebook's cells do: often at one address."""
    one, names = ctypes.c_uint(1), {"launch_kernel": launch_kernel, "kernel": device.kernels["count_up"]}
    names |= {"one": one, "arguments": device.arguments}
    for number in range(count):
        text = "\n" * number + "launch_kernel(kernel, one, one, one, one, one, one, 0, None, arguments, None)\n"
        cell = compile(text, f"<cell {number}>", "exec")
        exec(cell, names)
        del cell


def forbid_memory_reads():
    """Ends every process_vm_readv of this process with EPERM, by a seccomp filter."""
    number = {"x86_64": 310, "aarch64": 270}[platform.machine()]
    load, is_equal, answer = 0x20, 0x15, 0x06  # of BPF: of a word, of a constant, of a constant
    program = b"".join(struct.pack("=HBBI", *step) for step in [
        (load, 0, 0, 0), (is_equal, 0, 1, number), (answer, 0, 0, 0x00050001), (answer, 0, 0, 0x7FFF0000)])
    code = ctypes.create_string_buffer(program)
    filter_ = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for arguments in ((38, 1, 0, 0, 0), (22, 2, ctypes.addressof(filter_), 0, 0)):  # NO_NEW_PRIVS, SECCOMP
        if prctl(*(ctypes.c_ulong(argument) for argument in arguments)) != 0:
            raise SystemExit(f"prctl: {ctypes.get_errno()}")


def main():
    if sys.argv[1:] == ["unreadable"]:
        forbid_memory_reads()
    device = Device()
    device.prepare()
    for _ in range(40):
        device.step()
    check(library.cuCtxSynchronize())
    for _ in range(3):
        thread = threading.Thread(target=device.in_thread)
        thread.start()
        thread.join()
    compiled_cells(device)
    if sys.argv[1:2] == ["many"]:
        compiled_cells(device, int(sys.argv[2]))
    result = ctypes.c_uint()
    check(library.cuMemcpyDtoH_v2(ctypes.byref(result), device.memory, ctypes.c_size_t(4)))
    print("counted", result.value)


main()
