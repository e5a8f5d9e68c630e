# SPDX-License-Identifier: Apache-2.0
"""Streams: the kernel streams whose launches may be deferred, and streams that are made or adopted."""

from __future__ import annotations

import contextlib
import ctypes
import enum
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64
from typing import Any, Iterator, Sequence, Union

from ._library import Argument, Handle, LaunchShape, ask, call
from .objects import Buffer, Device, Event, Kernel, _Owned

Dimensions = Union[int, Sequence[int]]


class StreamFlags(enum.IntFlag):
    DEFAULT = 0
    NON_BLOCKING = 1


class DeferStat(enum.IntEnum):
    """What deferral counts; at any quiet moment launches = REPLAYED + DIRECT + pending."""

    QUEUED = 0
    REPLAYED = 1
    DIRECT = 2
    GRAPHS_BUILT = 3
    GRAPH_LAUNCHES = 4
    PATCHES = 5
    FLUSHES = 6


def defer_stat(which: int) -> int:
    """A counter of the whole process."""
    return int(ask("defer_stat", c_uint64, int(which)))


def _three(size: Dimensions) -> tuple[int, int, int]:
    sizes = (size,) if isinstance(size, int) else tuple(size)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"a grid or block has 1 to 3 dimensions, not {len(sizes)}")
    return (*sizes, 1, 1)[:3]  # type: ignore[return-value]


def _arguments(values: Sequence[Any]) -> Any:
    """The C list, and what it points to stays alive with `values`."""
    made = (Argument * (len(values) + 1))()
    for place, value in zip(made, values):
        if isinstance(value, Buffer):
            place.buffer = value.handle
        elif isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array, ctypes.Union)):
            place.data, place.size = ctypes.addressof(value), ctypes.sizeof(value)
        else:
            raise TypeError(
                f"an argument is a Buffer or a ctypes value such as ctypes.c_int, not {type(value).__name__}"
            )
    return made


def _number(handle: Any) -> int:
    """The number of a foreign stream: an int, or an object that holds one as torch, CuPy, Numba and cuda-bindings do."""
    if hasattr(handle, "__cuda_stream__"):
        return int(handle.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr", "handle", "value"):
        if hasattr(handle, attribute):
            inner = getattr(handle, attribute)
            return 0 if inner is None else _number(inner)
    return int(handle)


class StreamBase(_Owned):
    """What all streams can do. Default and adopted streams survive the end of their object."""

    _END = "stream_destroy"

    @classmethod
    def _of(cls, handle: int) -> Any:
        stream = cls.__new__(cls)
        stream.handle = handle
        return stream

    @property
    def device(self) -> Device:
        return Device._of(ask("stream_device", Handle, self.handle))

    @property
    def native_handle(self) -> int:
        return int(ask("stream_native", c_size_t, self.handle))

    @property
    def is_default(self) -> bool:
        return bool(ask("stream_is_default", c_int, self.handle))

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which CUDA libraries take each other's streams."""
        return 0, self.native_handle

    def launch(
        self,
        kernel: Kernel,
        grid: Dimensions,
        block: Dimensions,
        arguments: Sequence[Any] = (),
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> None:
        """Launches the kernel; arguments are buffers or ctypes values of the size of the kernel's parameters."""
        shape = LaunchShape(_three(grid), _three(block), shared_bytes)
        name = "launch_cooperative" if cooperative else "launch"
        call(name, self.handle, kernel.handle, byref(shape), _arguments(arguments), len(arguments))

    def synchronize(self) -> None:
        call("stream_synchronize", self.handle)

    def wait_event(self, event: Event) -> None:
        call("stream_wait_event", self.handle, event.handle)

    def query_idle(self) -> bool:
        """A hint, not a barrier."""
        return bool(ask("stream_query_idle", c_int, self.handle))

    def destroy(self) -> None:
        self._end()

    def set_deferred(self, deferred: bool) -> None:
        call("stream_set_deferred", self.handle, int(bool(deferred)))

    @property
    def is_deferred(self) -> bool:
        return bool(ask("stream_is_deferred", c_int, self.handle))

    @contextlib.contextmanager
    def deferred(self) -> Iterator[Any]:
        """Defers inside the block; afterwards everything is submitted, and the switch as it was."""
        before = self.is_deferred
        self.set_deferred(True)
        try:
            yield self
        finally:
            self.flush()
            self.set_deferred(before)

    def flush(self) -> None:
        call("stream_flush", self.handle)

    def pending_launches(self) -> int:
        return int(ask("stream_pending_launches", c_uint64, self.handle))

    def stream_stat(self, which: int) -> int:
        """A counter of this stream alone."""
        return int(ask("stream_defer_stat", c_uint64, self.handle, int(which)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamBase) and self.handle == other.handle

    def __hash__(self) -> int:
        return hash(self.handle)


class KernelStream(StreamBase):
    """A stream whose launches may be deferred. The names of the cajeta language lead to the same methods."""

    @classmethod
    def current(cls) -> KernelStream:
        """The calling thread's stream: handle 0, the same stream for the same thread."""
        return cls._of(ask("stream_current", Handle))

    @classmethod
    def create(
        cls, device: Device | None = None, flags: int = StreamFlags.NON_BLOCKING, priority: int = 0
    ) -> KernelStream:
        where = device if device is not None else cls.current().device
        return cls._of(ask("stream_create", Handle, where.handle, int(flags), priority))

    def sync(self) -> None:
        self.synchronize()

    def defer_stat(self, which: int) -> int:
        """A counter of the whole process; stream_stat() counts this stream alone."""
        return defer_stat(which)

    def waitFor(self, event: Event) -> None:
        self.wait_event(event)

    def setDeferred(self, deferred: bool) -> None:
        self.set_deferred(deferred)

    def pendingLaunches(self) -> int:
        return self.pending_launches()

    def deferStat(self, which: int) -> int:
        return defer_stat(which)


class Stream(StreamBase):
    """A stream of a device: made, adopted, or the default one."""

    @classmethod
    def create(cls, device: Device, flags: int = StreamFlags.DEFAULT, priority: int = 0) -> Stream:
        return cls._of(ask("stream_create", Handle, device.handle, int(flags), priority))

    @classmethod
    def default_stream(cls, device: Device) -> Stream:
        return cls._of(ask("stream_default", Handle, device.handle))

    @classmethod
    def from_native_handle(cls, device: Device, handle: Any) -> Stream:
        """Adopts a stream that somebody else made and goes on owning: a number such as torch.cuda.Stream().cuda_stream,
        or an object of torch, CuPy, Numba or cuda-bindings. The same one gives an equal stream; 0 is an
        InvalidArgumentError, a backend that cannot adopt an UnsupportedError."""
        return cls._of(ask("stream_from_native", Handle, device.handle, _number(handle)))

    def _properties(self) -> tuple[int, int]:
        flags, priority = c_uint(), c_int()
        call("stream_properties", self.handle, byref(flags), byref(priority))
        return flags.value, priority.value

    @property
    def flags(self) -> StreamFlags:
        return StreamFlags(self._properties()[0])

    @property
    def priority(self) -> int:
        return self._properties()[1]
