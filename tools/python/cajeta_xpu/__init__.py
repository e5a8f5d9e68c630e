# SPDX-License-Identifier: Apache-2.0
"""Streams whose CUDA kernel launches are queued and replayed as graphs; ctypes over the C interface cajeta/xpu.h, which
says what each call does, which errors it has and which threads may make it.

Deferral needs the library in front of the driver: start Python with LD_PRELOAD=/path/to/libcajeta_xpu.so (the wheel's own
is cajeta_xpu.library_path()). Without it everything else works, and switching deferral on raises UnsupportedError."""

from ._library import library_path, version
from .errors import (
    CooperativeLaunchTooLargeError,
    Error,
    IllegalAddressError,
    InvalidArgumentError,
    InvalidDeviceError,
    InvalidImageError,
    InvalidResourceHandleError,
    InvalidValueError,
    LaunchFailureError,
    LaunchTimeoutError,
    LibraryNotFoundError,
    NoDeviceError,
    NotFoundError,
    NotReadyError,
    OutOfMemoryError,
    OutOfResourcesError,
    UnsupportedError,
)
from .objects import Buffer, Device, Event, EventFlags, Kernel, Module, Shape
from .streams import DeferStat, KernelStream, Stream, StreamFlags, defer_stat

__all__ = [
    "Buffer",
    "CooperativeLaunchTooLargeError",
    "DeferStat",
    "Device",
    "Error",
    "Event",
    "EventFlags",
    "IllegalAddressError",
    "InvalidArgumentError",
    "InvalidDeviceError",
    "InvalidImageError",
    "InvalidResourceHandleError",
    "InvalidValueError",
    "Kernel",
    "KernelStream",
    "LaunchFailureError",
    "LaunchTimeoutError",
    "LibraryNotFoundError",
    "Module",
    "NoDeviceError",
    "NotFoundError",
    "NotReadyError",
    "OutOfMemoryError",
    "OutOfResourcesError",
    "Shape",
    "Stream",
    "StreamFlags",
    "UnsupportedError",
    "defer_stat",
    "library_path",
    "version",
]
