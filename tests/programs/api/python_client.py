# SPDX-License-Identifier: Apache-2.0
"""Uses the Python package: what python_test.py runs on softgpu. The first argument is the part to run, the second a file
with the kernels' PTX. Fails by an exception."""

import contextlib
import ctypes
import gc
import pathlib
import struct
import sys
import threading

import cajeta_xpu as xpu
from cajeta_xpu import DeferStat, Device, Event, KernelStream, Stream


@contextlib.contextmanager
def raises(kind):
    try:
        yield
    except kind as error:
        assert str(error), "an error without a message"
        return
    raise AssertionError(f"no {kind.__name__}")


class Machine:
    """A device, its kernels, and one counter in device memory."""

    def __init__(self, backend, ptx):
        self.device = Device(backend)
        if backend == "cuda":
            self.module = xpu.Module(self.device, pathlib.Path(ptx).read_text(encoding="utf-8"))
        else:
            self.module = xpu.Module.from_functions(self.device, {"count_up": count_up, "fails": fails})
        self.kernel = self.module.kernel("count_up")
        self.counter = xpu.Buffer(self.device, 4)
        self.counter.write(struct.pack("I", 0), Stream.default_stream(self.device))

    def count_up(self, stream, amount=1):
        stream.launch(self.kernel, 1, (1,), [self.counter, ctypes.c_uint(amount)])

    def value(self, stream):
        return struct.unpack("I", self.counter.read(stream))[0]


def count_up(shape, arguments):
    assert shape == ((1, 1, 1), (1, 1, 1), 0)
    where = ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_uint64)).contents.value
    amount = ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_uint)).contents.value
    ctypes.cast(where, ctypes.POINTER(ctypes.c_uint)).contents.value += amount


def fails(_shape, _arguments):
    raise RuntimeError("on purpose")


def law(stream, launches):
    submitted = stream.stream_stat(DeferStat.REPLAYED) + stream.stream_stat(DeferStat.DIRECT)
    assert submitted + stream.pending_launches() == launches, (submitted, launches)


def check_streams(machine, queues):
    stream = KernelStream.create(machine.device)
    launches = 0
    for _ in range(4):
        with stream.deferred():
            for _ in range(6):
                machine.count_up(stream)
                launches += 1
                law(stream, launches)
            assert stream.pendingLaunches() == (6 if queues else 0)
            assert stream.is_deferred == queues
            assert machine.counter.is_borrowed
        assert stream.pendingLaunches() == 0
        stream.sync()
        assert not machine.counter.is_borrowed
    assert machine.value(stream) == 24
    assert stream.stream_stat(DeferStat.REPLAYED) == (18 if queues else 0)
    assert stream.deferStat(DeferStat.REPLAYED) >= stream.stream_stat(DeferStat.REPLAYED)
    stream.destroy()
    stream.destroy()
    with raises(xpu.InvalidResourceHandleError):
        stream.sync()


def check_contract(machine):
    device = machine.device
    assert Device(device.backend) == device and device.ordinal == 0
    assert Device.count(device.backend) == 1
    device.synchronize()
    current = KernelStream.current()
    assert current == KernelStream.current() and current.native_handle == 0 and current.is_default
    others = []
    thread = threading.Thread(target=lambda: others.append(KernelStream.current().handle))
    thread.start()
    thread.join()
    assert others[0] != current.handle
    current.destroy()
    current.sync()

    stream = Stream.create(device, priority=device.priority_range()[1])
    assert stream.device == device and stream.flags == 0 and not stream.is_default
    assert Stream.default_stream(device).is_default
    start, end = Event(device), Event(device, xpu.EventFlags.BLOCKING_SYNC)
    start.record(stream)
    machine.count_up(stream)
    end.record(stream)
    other = Stream.create(device)
    other.wait_event(end)
    other.synchronize()
    assert end.query() and end.elapsed_ms(start) >= 0 and stream.query_idle()
    with raises(xpu.InvalidArgumentError):
        Stream.from_native_handle(device, 0)
    with raises(ValueError):
        Event(device, 99)
    with raises(xpu.NotFoundError):
        machine.module.kernel("nothing")
    with raises(TypeError):
        stream.launch(machine.kernel, 1, 1, [machine.counter, 5])
    with raises(xpu.InvalidArgumentError):
        stream.launch(machine.kernel, 0, 1, [machine.counter, ctypes.c_uint(5)])
    assert machine.kernel.max_active_blocks(32) > 0
    assert machine.kernel.max_potential_block_size(block_limit=64)[1] <= 64
    with xpu.Buffer(device, 16) as buffer:
        buffer.write(b"0123456789abcdef", stream)
        assert buffer.read(stream, 4, 10) == b"abcd" and buffer.size == 16
        with raises(xpu.InvalidArgumentError):
            buffer.read(stream, 17)
    with raises(xpu.InvalidResourceHandleError):
        buffer.read(stream, 1)
    del stream, other, start, end
    gc.collect()
    device.synchronize()


def run_cuda(ptx):
    check_streams(Machine("cuda", ptx), queues=True)
    check_contract(Machine("cuda", ptx))


def run_cpu(ptx):
    check_streams(Machine("cpu", ptx), queues=False)
    machine = Machine("cpu", ptx)
    check_contract(machine)
    with raises(xpu.UnsupportedError):
        Stream.from_native_handle(machine.device, 77)
    sys.excepthook = lambda kind, *_: print("the kernel raised", kind.__name__)
    with raises(xpu.LaunchFailureError):
        KernelStream.create(machine.device).launch(machine.module.kernel("fails"), 1, 1)


def run_late(ptx):
    """The library opened by Python itself, behind everything: no deferral, and it says so."""
    machine = Machine("cuda", ptx)
    stream = KernelStream.create(machine.device)
    with raises(xpu.UnsupportedError):
        stream.set_deferred(True)
    stream.set_deferred(False)
    machine.count_up(stream)
    law(stream, 1)
    assert machine.value(stream) == 1
    check_contract(machine)


def run_absent(_ptx):
    with raises(xpu.LibraryNotFoundError):
        Device("cpu")


def run_bindings(ptx):
    """Streams of NVIDIA's cuda-bindings, and launches on them by both."""
    from cuda.bindings import driver

    def ok(results):
        assert results[0] == driver.CUresult.CUDA_SUCCESS, results
        return results[1] if len(results) == 2 else None

    machine = Machine("cuda", ptx)
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))
    theirs = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    stream = Stream.from_native_handle(machine.device, theirs)
    assert stream == Stream.from_native_handle(machine.device, int(theirs))
    assert stream == Stream.from_native_handle(machine.device, ctypes.c_void_p(int(theirs)))
    assert stream.native_handle == int(theirs) and stream.flags == xpu.StreamFlags.NON_BLOCKING

    module = ok(driver.cuModuleLoadData(pathlib.Path(ptx).read_bytes() + b"\0"))
    function = ok(driver.cuModuleGetFunction(module, b"count_up"))
    arguments = ((machine.counter.address, 10), (ctypes.c_uint64, ctypes.c_uint))
    launches = 0
    for round_ in range(4):
        with stream.deferred():
            for _ in range(4):
                machine.count_up(stream)
                ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, theirs, arguments, 0))
                launches += 2
                law(stream, launches)
            # Their function is loaded at its first launch, and what was queued goes ahead of that.
            assert stream.pending_launches() == (7 if round_ == 0 else 8)
            ok(driver.cuStreamSynchronize(theirs))  # their call submits what ours has queued
            assert stream.pending_launches() == 0
    host = bytearray(4)
    ok(driver.cuMemcpyDtoH(host, machine.counter.address, 4))
    assert struct.unpack("I", host)[0] == launches // 2 * 11, host
    assert stream.stream_stat(DeferStat.REPLAYED) == 24
    del stream  # an adopted stream is its maker's
    gc.collect()
    ok(driver.cuStreamDestroy(theirs))


def run_numba(ptx):
    """Streams of Numba and of cuda.core, which it is made with; launches on one stream by both; a stream of ours lent to
    them."""
    import cuda.core
    import numpy
    from numba import cuda as numba

    @numba.jit
    def add(values, amount):
        numba.atomic.add(values, numba.threadIdx.x, amount)

    machine = Machine("cuda", ptx)
    device = machine.device
    theirs = numba.stream()
    values = numba.to_device(numpy.zeros(32, dtype=numpy.int32), stream=theirs)
    add[1, 32, theirs](values, numpy.int32(0))  # compiles it
    stream = Stream.from_native_handle(device, theirs)
    assert stream == Stream.from_native_handle(device, theirs.handle)
    assert stream == Stream.from_native_handle(device, int(theirs)) and stream.native_handle == int(theirs)
    assert not stream.is_default and stream.device == device
    with raises(xpu.InvalidArgumentError):
        Stream.from_native_handle(device, numba.default_stream())

    machine.count_up(stream, 0)
    stream.synchronize()
    assert stream.query_idle()
    before = stream.stream_stat(DeferStat.DIRECT)
    launches = 0
    for amount in range(1, 5):
        with stream.deferred():
            for _ in range(4):
                machine.count_up(stream, amount)
                add[1, 32, theirs](values, numpy.int32(10 * amount))
                launches += 2
                law(stream, before + launches)
            # What was queued goes ahead of the first launch of theirs that may be queued: the driver might load code.
            assert stream.pending_launches() == (7 if amount == 1 else 8)
            if amount % 2 == 0:
                theirs.synchronize()  # their call submits what ours has queued
                assert stream.pending_launches() == 0
        assert stream.pending_launches() == 0 and not stream.is_deferred
    assert (values.copy_to_host(stream=theirs) == 400).all()
    assert machine.value(stream) == 40
    assert stream.stream_stat(DeferStat.REPLAYED) == 24, stream.stream_stat(DeferStat.REPLAYED)

    for theirs, queued in ((numba.legacy_default_stream(), 1), (numba.per_thread_default_stream(), 0)):
        stream = Stream.from_native_handle(device, theirs)
        with stream.deferred():
            add[1, 32, theirs](values, numpy.int32(0))
            assert stream.pending_launches() == queued and stream.is_deferred == bool(queued)
    check_lent(machine, add, values)
    check_core(machine, ptx)


def check_core(machine, ptx):
    """A stream of cuda.core, and launches on it by both."""
    import cuda.core
    import numpy

    core = cuda.core.Device(0)
    core.set_current()
    theirs = core.create_stream()
    stream = Stream.from_native_handle(machine.device, theirs)
    assert stream.native_handle == int(theirs.handle)
    kernel = cuda.core.ObjectCode.from_ptx(pathlib.Path(ptx).read_bytes()).get_kernel("count_up")
    config = cuda.core.LaunchConfig(grid=1, block=1)
    start = machine.value(stream)
    for round_ in range(4):
        with stream.deferred():
            for _ in range(3):
                machine.count_up(stream)
                cuda.core.launch(theirs, config, kernel, machine.counter.address, numpy.uint32(10))
            assert stream.pending_launches() == (5 if round_ == 0 else 6)
            law(stream, 6 * (round_ + 1))
    assert machine.value(stream) - start == 12 * 11
    assert stream.stream_stat(DeferStat.REPLAYED) == 18


def check_lent(machine, add, values):
    """A stream of ours, which other libraries take by its number or by the protocol."""
    import cuda.core
    import numpy
    from numba import cuda as numba

    ours = KernelStream.create(machine.device)
    lent = numba.external_stream(ours.native_handle)
    assert Stream.from_native_handle(machine.device, lent).native_handle == ours.native_handle
    with ours.deferred():
        for _ in range(3):
            add[1, 32, lent](values, numpy.int32(1))
        assert ours.pending_launches() == 3
        core = cuda.core.Device(0)
        core.set_current()
        assert int(core.create_stream(ours).handle) == ours.native_handle
        assert ours.pending_launches() == 3
        assert (values.copy_to_host(stream=lent) == 403).all() and ours.pending_launches() == 0


def run_cupy(ptx):
    """Streams of ours in CuPy's objects and back. Its own streams and kernels need NVIDIA's runtime library, which runs on
    NVIDIA's driver alone."""
    import cupy

    machine = Machine("cuda", ptx)
    ours = KernelStream.create(machine.device)
    for theirs in (cupy.cuda.ExternalStream(ours.native_handle), cupy.cuda.Stream.from_external(ours)):
        assert theirs.ptr == ours.native_handle
        stream = Stream.from_native_handle(machine.device, theirs)
        assert stream == Stream.from_native_handle(machine.device, theirs.ptr)
        with stream.deferred():
            for _ in range(5):
                machine.count_up(stream)
            assert stream.pending_launches() == ours.pending_launches() == 5
        stream.synchronize()
    assert machine.value(ours) == 10


if __name__ == "__main__":
    assert sys.argv[1] == "absent" or xpu.version() == 10000
    globals()["run_" + sys.argv[1]](sys.argv[2])
    print("done", sys.argv[1])
