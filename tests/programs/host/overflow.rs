// SPDX-License-Identifier: Apache-2.0
// A thread of Rust's overflows its stack after CUDA work: the runtime's handler, on a small stack
// of its own, says so and aborts.
use std::ffi::c_void;
use std::os::raw::{c_char, c_int, c_uint};

#[link(name = "cuda")]
extern "C" {
    fn cuInit(flags: c_uint) -> c_int;
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int;
    fn cuCtxSetCurrent(context: *mut c_void) -> c_int;
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int;
    fn cuMemsetD32_v2(address: u64, value: c_uint, count: usize) -> c_int;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> c_int;
    fn cuGetErrorName(error: c_int, name: *mut *const c_char) -> c_int;
}

fn check(result: c_int) {
    let mut name = std::ptr::null();
    unsafe { cuGetErrorName(result, &mut name) };
    assert_eq!(result, 0);
}

fn overflow(depth: u64) -> u64 {
    let used = [depth; 64];
    if depth == u64::MAX {
        0
    } else {
        overflow(depth + 1) + std::hint::black_box(used)[3]
    }
}

fn main() {
    let (mut device, mut context) = (0, std::ptr::null_mut());
    let (mut cell, mut value) = (0u64, 0u32);
    unsafe {
        check(cuInit(0));
        check(cuDeviceGet(&mut device, 0));
        check(cuDevicePrimaryCtxRetain(&mut context, device));
        check(cuCtxSetCurrent(context));
        check(cuMemAlloc_v2(&mut cell, 4));
        check(cuMemsetD32_v2(cell, 7, 1));
        check(cuMemcpyDtoH_v2(&mut value as *mut _ as *mut c_void, cell, 4));
    }
    println!("{}", value);
    std::thread::spawn(|| println!("{}", overflow(0))).join().unwrap();
}
