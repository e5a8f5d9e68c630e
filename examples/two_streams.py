# SPDX-License-Identifier: Apache-2.0
"""Two deferred streams and an event between them, from Python:

pip install the wheel of tools/python, then LD_PRELOAD=libcajeta_xpu.so python3 two_streams.py
"""

import ctypes
import struct

from cajeta_xpu import Buffer, DeferStat, Device, Event, KernelStream, Module

PTX = """.version 7.0
.target sm_52
.address_size 64
.visible .entry step(.param .u64 x, .param .u32 factor) {
  .reg .u64 %p; .reg .u32 %r<3>;
  ld.param.u64 %p, [x]; ld.param.u32 %r0, [factor];
  ld.global.u32 %r1, [%p]; mad.lo.u32 %r2, %r1, %r0, 1; st.global.u32 [%p], %r2; ret;
}"""

device = Device("cuda")
step = Module(device, PTX).kernel("step")
x = Buffer(device, 4)
first, second = KernelStream.create(device), KernelStream.create(device)
x.write(struct.pack("I", 0), first)

expected = 0
done = Event(device)
for _ in range(5):
    for stream, factor in ((first, 3), (second, 5)):
        stream.waitFor(done)
        with stream.deferred():  # submits at its end
            for _ in range(4):
                stream.launch(step, grid=1, block=1, arguments=[x, ctypes.c_uint(factor)])
                expected = (expected * factor + 1) % 2**32
        done.record(stream)

value = struct.unpack("I", x.read(second))[0]
assert value == expected, (value, expected)
replayed = sum(stream.stream_stat(DeferStat.REPLAYED) for stream in (first, second))
print(f"x = {value}, {replayed} of 40 launches replayed")
