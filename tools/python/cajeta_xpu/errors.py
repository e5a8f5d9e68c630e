# SPDX-License-Identifier: Apache-2.0
"""One exception for each result of cajeta/xpu.h that programs handle; any other is an Error with its code."""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """A call failed. `code` is the result of the C interface."""

    CODE: ClassVar[int] = 0

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = self.CODE if code is None else code


class InvalidArgumentError(Error, ValueError):
    CODE = 1


InvalidValueError = InvalidArgumentError


class OutOfMemoryError(Error, MemoryError):
    CODE = 2


class NoDeviceError(Error):
    CODE = 100


class InvalidDeviceError(Error):
    CODE = 101


class InvalidImageError(Error):
    CODE = 200


class InvalidResourceHandleError(Error):
    CODE = 400


class NotFoundError(Error, LookupError):
    CODE = 500


class NotReadyError(Error):
    CODE = 600


class IllegalAddressError(Error):
    CODE = 700


class OutOfResourcesError(Error):
    CODE = 701


class LaunchTimeoutError(Error):
    CODE = 702


class LaunchFailureError(Error):
    CODE = 719


class CooperativeLaunchTooLargeError(Error):
    CODE = 720


class UnsupportedError(Error, NotImplementedError):
    CODE = 801


class LibraryNotFoundError(Error, ImportError):
    CODE = 10000


_BY_CODE = {
    value.CODE: value
    for value in list(globals().values())
    if isinstance(value, type) and issubclass(value, Error) and value is not Error
}


def make_error(code: int, message: str) -> Error:
    """The exception for a result."""
    return _BY_CODE.get(code, Error)(message, code)
