# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel with nothing but Python: the package's files and the library, which CAJETA_XPU_LIBRARY names or the
build in build/plain has made. Called by pip (PEP 517)."""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parent.parent / "build/plain/shim/libcajeta_xpu.so"


def _project(field):
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(rf'^{field} = "(.+)"$', text, re.M).group(1)


def _library():
    path = pathlib.Path(os.environ.get("CAJETA_XPU_LIBRARY", BUILT))
    if not path.is_file():
        raise SystemExit(f"{path} is not there: build the library first, or name it in CAJETA_XPU_LIBRARY")
    strip = shutil.which("strip")
    if strip is None:
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:  # debug information is nine tenths of it
        stripped = pathlib.Path(folder) / path.name
        subprocess.run([strip, "--strip-debug", "-o", stripped, path], check=True)
        return stripped.read_bytes()


def _contents(info):
    """Name in the wheel -> bytes."""
    files = {
        f"cajeta_xpu/{path.name}": path.read_bytes()
        for path in sorted((HERE / "cajeta_xpu").iterdir())
        if path.suffix == ".py" or path.name == "py.typed"
    }
    files["cajeta_xpu/libcajeta_xpu.so"] = _library()
    metadata = ["Metadata-Version: 2.1"]
    for header, field in (
        ("Name", "name"),
        ("Version", "version"),
        ("Summary", "description"),
        ("Requires-Python", "requires-python"),
    ):
        metadata.append(f"{header}: {_project(field)}")
    files[f"{info}/METADATA"] = ("\n".join([*metadata, "License: Apache-2.0", ""])).encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: cajeta-xpu\nRoot-Is-Purelib: false\nTag: py3-none-{_platform()}\n"
    files[f"{info}/WHEEL"] = wheel.encode()
    return files


def _platform():
    return re.sub(r"[-.]", "_", sysconfig.get_platform())


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"cajeta_xpu-{_project('version')}"
    info = f"{name}.dist-info"
    files = _contents(info)
    record = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    wheel = f"{name}-py3-none-{_platform()}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path)  # of a fixed date: the same files give the same wheel
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            archive.writestr(entry, data)
    return wheel
