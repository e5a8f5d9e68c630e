# SPDX-License-Identifier: Apache-2.0
"""Finds libcajeta_xpu.so and declares its functions: the one in this process (LD_PRELOAD), else the file that
CAJETA_XPU_LIBRARY names, else the one in this package, else where the loader looks. Opened at the first call."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any

from .errors import LibraryNotFoundError, make_error

Handle = c_void_p


class LaunchShape(ctypes.Structure):
    _fields_ = [("grid", c_uint * 3), ("block", c_uint * 3), ("shared_bytes", c_uint)]


class Argument(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("buffer", Handle)]


HostFunction = ctypes.CFUNCTYPE(c_int, POINTER(LaunchShape), POINTER(c_void_p), c_void_p)


class HostKernel(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("function", HostFunction), ("user", c_void_p)]


_OUT = POINTER(Handle)
_LAUNCH = [Handle, Handle, POINTER(LaunchShape), POINTER(Argument), c_size_t]
_STAT = POINTER(c_uint64)

# Name without cajeta_xpu_ -> types of the arguments; tests/programs/api holds the names against the header.
FUNCTIONS: dict[str, list[Any]] = {
    "version": [],
    "error_name": [c_int],
    "error_message": [],
    "device_count": [c_char_p, POINTER(c_int)],
    "device_open": [c_char_p, c_int, _OUT],
    "device_synchronize": [Handle],
    "device_priority_range": [Handle, POINTER(c_int), POINTER(c_int)],
    "device_identity": [Handle, POINTER(c_char_p), POINTER(c_int)],
    "stream_current": [_OUT],
    "stream_default": [Handle, _OUT],
    "stream_create": [Handle, c_uint, c_int, _OUT],
    "stream_from_native": [Handle, c_size_t, _OUT],
    "stream_destroy": [Handle],
    "stream_device": [Handle, _OUT],
    "stream_native": [Handle, POINTER(c_size_t)],
    "stream_is_default": [Handle, POINTER(c_int)],
    "stream_properties": [Handle, POINTER(c_uint), POINTER(c_int)],
    "stream_query_idle": [Handle, POINTER(c_int)],
    "stream_synchronize": [Handle],
    "stream_wait_event": [Handle, Handle],
    "stream_set_deferred": [Handle, c_int],
    "stream_is_deferred": [Handle, POINTER(c_int)],
    "stream_flush": [Handle],
    "stream_pending_launches": [Handle, _STAT],
    "defer_stat": [c_int, _STAT],
    "stream_defer_stat": [Handle, c_int, _STAT],
    "event_create": [Handle, c_uint, _OUT],
    "event_destroy": [Handle],
    "event_record": [Handle, Handle],
    "event_query": [Handle],
    "event_synchronize": [Handle],
    "event_elapsed_ms": [Handle, Handle, POINTER(c_float)],
    "buffer_create": [Handle, c_size_t, _OUT],
    "buffer_release": [Handle],
    "buffer_range": [Handle, POINTER(c_uint64), POINTER(c_size_t)],
    "buffer_is_borrowed": [Handle, POINTER(c_int)],
    "buffer_write": [Handle, c_size_t, c_void_p, c_size_t, Handle],
    "buffer_read": [Handle, c_size_t, c_void_p, c_size_t, Handle],
    "module_load": [Handle, c_void_p, _OUT],
    "module_from_functions": [Handle, POINTER(HostKernel), c_size_t, _OUT],
    "module_unload": [Handle],
    "module_kernel": [Handle, c_char_p, _OUT],
    "launch": _LAUNCH,
    "launch_cooperative": _LAUNCH,
    "max_active_blocks": [Handle, c_int, c_size_t, POINTER(c_int)],
    "max_potential_block_size": [Handle, c_size_t, c_int, POINTER(c_int), POINTER(c_int)],
}
_RESULTS: dict[str, Any] = {"version": c_uint32, "error_name": c_char_p, "error_message": c_char_p}

_BUNDLED = pathlib.Path(__file__).resolve().parent / "libcajeta_xpu.so"


def library_path() -> str | None:
    """The library that came with the package, for LD_PRELOAD; None in a package without one."""
    return str(_BUNDLED) if _BUNDLED.is_file() else None


def _open() -> ctypes.CDLL:
    process = ctypes.CDLL(None)
    if hasattr(process, "cajeta_xpu_version"):
        return process
    path = os.environ.get("CAJETA_XPU_LIBRARY") or library_path() or "libcajeta_xpu.so"
    try:
        return ctypes.CDLL(path)
    except OSError as why:
        raise LibraryNotFoundError(
            f"libcajeta_xpu.so is not there: preload it (LD_PRELOAD), or name it in CAJETA_XPU_LIBRARY ({why})"
        ) from None


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library, with all functions declared."""
    found = _open()
    for name, arguments in FUNCTIONS.items():
        try:
            function = getattr(found, "cajeta_xpu_" + name)
        except AttributeError:
            raise LibraryNotFoundError(f"libcajeta_xpu.so is too old: it lacks cajeta_xpu_{name}") from None
        function.argtypes = arguments
        function.restype = _RESULTS.get(name, c_int)
    return found


def version() -> int:
    """Of the C interface: 10000 * major + minor."""
    return int(library().cajeta_xpu_version())


def check(code: int) -> None:
    """Raises what a result other than success stands for."""
    if code != 0:
        raise make_error(code, library().cajeta_xpu_error_message().decode(errors="replace"))


def call(name: str, *arguments: Any) -> None:
    """One call of the C interface, checked."""
    check(getattr(library(), "cajeta_xpu_" + name)(*arguments))


def ask(name: str, kind: Any, *arguments: Any) -> Any:
    """A call with one output, its last argument."""
    answer = kind()
    call(name, *arguments, ctypes.byref(answer))
    return answer.value
