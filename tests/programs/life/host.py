# SPDX-License-Identifier: Apache-2.0
"""A Python host: uses the driver by ctypes, then loads a C++ library that throws, then goes on.

host.py THROWER
"""

import ctypes
import sys

driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    print(name, getattr(driver, name)(*arguments))


version = ctypes.c_int()
context = ctypes.c_void_p()
memory = ctypes.c_uint64()
call("cuInit", 0)
call("cuDriverGetVersion", ctypes.byref(version))
call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(256))
thrower = ctypes.CDLL(sys.argv[1])
for depth in range(8):
    print("caught", thrower.throw_and_catch(depth))
call("cuMemsetD8_v2", memory, ctypes.c_ubyte(7), ctypes.c_size_t(256))
call("cuCtxSynchronize")
call("cuMemFree_v2", memory)
call("cuCtxDestroy_v2", context)
