# SPDX-License-Identifier: Apache-2.0
"""Devices, events, memory, modules and kernels."""

from __future__ import annotations

import ctypes
import enum
import sys
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple

from . import _library
from ._library import Handle, HostFunction, HostKernel, ask, call

if TYPE_CHECKING:
    from .streams import StreamBase


class Device:
    """A device of a backend, "cuda" or "cpu". Never closed; equal when it is the same one."""

    def __init__(self, backend: str = "cuda", ordinal: int = 0) -> None:
        self.handle: int = ask("device_open", Handle, backend.encode(), ordinal)

    @classmethod
    def _of(cls, handle: int) -> Device:
        device = cls.__new__(cls)
        device.handle = handle
        return device

    @staticmethod
    def count(backend: str) -> int:
        return int(ask("device_count", c_int, backend.encode()))

    def synchronize(self) -> None:
        call("device_synchronize", self.handle)

    def _identity(self) -> tuple[str, int]:
        backend, ordinal = c_char_p(), c_int()
        call("device_identity", self.handle, byref(backend), byref(ordinal))
        return (backend.value or b"").decode(), ordinal.value

    @property
    def backend(self) -> str:
        return self._identity()[0]

    @property
    def ordinal(self) -> int:
        return self._identity()[1]

    def priority_range(self) -> tuple[int, int]:
        """Least, greatest; the greatest priority has the smaller number."""
        least, greatest = c_int(), c_int()
        call("device_priority_range", self.handle, byref(least), byref(greatest))
        return least.value, greatest.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.handle == other.handle

    def __hash__(self) -> int:
        return hash(self.handle)

    def __repr__(self) -> str:
        return f"Device({self.backend!r}, {self.ordinal})"


class _Owned:
    """A handle that ends with the object, or with a `with` block, or by end(), as often as one likes."""

    _END: str
    handle: int | None = None

    def _end(self) -> None:
        if self.handle is not None:
            call(self._END, self.handle)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __del__(self) -> None:
        # As the interpreter shuts down the library may be gone already.
        if self.handle is not None and not sys.is_finalizing():
            getattr(_library.library(), "cajeta_xpu_" + self._END)(self.handle)


class EventFlags(enum.IntFlag):
    DEFAULT = 0
    BLOCKING_SYNC = 1
    DISABLE_TIMING = 2
    INTERPROCESS = 4


class Event(_Owned):
    """A point in the work of a stream."""

    _END = "event_destroy"

    def __init__(self, device: Device, flags: int = EventFlags.DEFAULT) -> None:
        self.handle = ask("event_create", Handle, device.handle, int(flags))

    def record(self, stream: StreamBase) -> None:
        call("event_record", self.handle, stream.handle)

    def query(self) -> bool:
        """True when the recorded work is done."""
        code = _library.library().cajeta_xpu_event_query(self.handle)
        if code == 600:
            return False
        _library.check(code)
        return True

    def synchronize(self) -> None:
        call("event_synchronize", self.handle)

    def elapsed_ms(self, start: Event) -> float:
        """Milliseconds since `start` was recorded."""
        return float(ask("event_elapsed_ms", c_float, start.handle, self.handle))

    def destroy(self) -> None:
        self._end()


class Buffer(_Owned):
    """Device memory, which launches borrow until a synchronisation ordered after them."""

    _END = "buffer_release"

    def __init__(self, device: Device, size: int) -> None:
        self.handle = ask("buffer_create", Handle, device.handle, size)

    def _range(self) -> tuple[int, int]:
        address, size = c_uint64(), c_size_t()
        call("buffer_range", self.handle, byref(address), byref(size))
        return address.value, size.value

    @property
    def address(self) -> int:
        return self._range()[0]

    @property
    def size(self) -> int:
        return self._range()[1]

    @property
    def is_borrowed(self) -> bool:
        return bool(ask("buffer_is_borrowed", c_int, self.handle))

    def write(self, data: Any, stream: StreamBase, offset: int = 0) -> None:
        """Copies a bytes-like object into the buffer, behind the stream's work; done on return."""
        view = memoryview(data).cast("B")
        source = (ctypes.c_char * len(view)).from_buffer_copy(view)
        call("buffer_write", self.handle, offset, source, len(view), stream.handle)

    def read(self, stream: StreamBase, size: int | None = None, offset: int = 0) -> bytes:
        """`size` bytes, or all from the offset on, behind the stream's work."""
        count = self.size - offset if size is None else size
        target = ctypes.create_string_buffer(max(count, 1))
        call("buffer_read", self.handle, offset, target, count, stream.handle)
        return target.raw[:count]

    def release(self) -> None:
        self._end()


class Shape(NamedTuple):
    """The threads of a launch, as a host function is told them."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int


class Kernel:
    """A kernel of a module, which must live as long as it."""

    def __init__(self, handle: int, module: Module) -> None:
        self.handle = handle
        self._module = module

    def max_active_blocks(self, block_size: int, shared_bytes: int = 0) -> int:
        return int(ask("max_active_blocks", c_int, self.handle, block_size, shared_bytes))

    def max_potential_block_size(self, shared_bytes: int = 0, block_limit: int = 0) -> tuple[int, int]:
        """Grid and block."""
        grid, block = c_int(), c_int()
        call("max_potential_block_size", self.handle, shared_bytes, block_limit, byref(grid), byref(block))
        return grid.value, block.value


HostKernels = Mapping[str, Callable[[Shape, Any], None]]


class Module(_Owned):
    """Device code: PTX as text or bytes, a cubin or a fatbin; or, on the cpu, host functions by from_functions()."""

    _END = "module_unload"

    def __init__(self, device: Device, image: str | bytes) -> None:
        # The C string that ctypes makes of it ends with a zero byte, as PTX must.
        data = image.encode() if isinstance(image, str) else bytes(image)
        self.handle = ask("module_load", Handle, device.handle, data)

    @classmethod
    def from_functions(cls, device: Device, functions: HostKernels) -> Module:
        """Each is called with the Shape and the arguments, a pointer each. One that raises fails its launch."""
        module = cls.__new__(cls)
        module._functions = [_host_function(function) for function in functions.values()]
        kernels = (HostKernel * len(functions))(
            *((name.encode(), function, None) for name, function in zip(functions, module._functions))
        )
        module.handle = ask("module_from_functions", Handle, device.handle, kernels, len(functions))
        return module

    def kernel(self, name: str) -> Kernel:
        return Kernel(ask("module_kernel", Handle, self.handle, name.encode()), self)

    def unload(self) -> None:
        self._end()


def _host_function(function: Callable[[Shape, Any], None]) -> Any:
    def run(shape: Any, arguments: Any, _user: c_void_p) -> int:
        try:
            told = shape.contents
            function(Shape(tuple(told.grid), tuple(told.block), told.shared_bytes), arguments)
        except Exception:  # it must not pass through C
            sys.excepthook(*sys.exc_info())
            return 719
        return 0

    return HostFunction(run)
