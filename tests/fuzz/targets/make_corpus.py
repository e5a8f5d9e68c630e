#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what the libFuzzer targets start from, out of files the build has anyway.

    make_corpus.py --out DIR --files FILE...

Writes DIR/ptx (every entry of the PTX files as a module of its own), DIR/ptx.dict (their words),
DIR/fatbin (the images), DIR/report (the JSON reports), DIR/settings (one legal value per variable),
and lists of them."""

import argparse
import os
import re
import shutil

# By the order of the names in settings_target.cpp: the library's, softgpu's, a path pattern.
LIBRARY = ["all", "200", "1", "256M", "report.%p", "1", "1", "stderr"]
SOFTGPU = [
    "random:1",
    "linux",
    "null",
    "8.0",
    "2",
    "12.4",
    "cuFuncLoad,cuFuncGetParamInfo",
    "cuGraphLaunch:2+:OUT_OF_MEMORY,any:7,cuInit:*",
    "4G",
    "report",
    "counters.%p",
    "10K",
    "log.%p",
]


def head_of(text):
    """The directives that every module starts with."""
    lines = re.findall(r"^\.(?:version|target|address_size)\b.*$", text, re.MULTILINE)
    return "\n".join(lines) + "\n"


def entries_of(text):
    """Each kernel, as text. Some name variables or functions that are left behind: bad PTX is as
    good a start."""
    pattern = r"^(?:\.visible |\.weak )?\.entry (\w+)\(.*?^}\n"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        yield match.group(1), match.group(0)


def write_ptx(files, out):
    folder = os.path.join(out, "ptx")
    os.makedirs(folder, exist_ok=True)
    words = set()
    for path in files:
        with open(path, encoding="ascii") as file:
            text = file.read()
        text = re.sub(r"^\s*//.*\n", "", text, flags=re.MULTILINE)
        words.update(re.findall(r"(?:^|\s)(\.?[a-z][a-z0-9_]*(?:[.:]{1,2}[a-z0-9_]+)*)", text))
        name = os.path.basename(path)
        if len(text) < 16384:
            write(os.path.join(folder, name), text.encode())
        for entry, body in entries_of(text):
            if len(body) < 4096:
                write(os.path.join(folder, f"{name}.{entry[:60]}"), (head_of(text) + body).encode())
    lines = sorted(f'"{word}"\n' for word in words if 2 < len(word) < 48)
    write(os.path.join(out, "ptx.dict"), "".join(lines).encode())


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def list_seeds(out):
    """DIR/<target>.seeds, for -seed_inputs: a folder would be written to."""
    for target in ("ptx", "fatbin", "report", "settings"):
        folder = os.path.join(out, target)
        seeds = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        write(os.path.join(out, target + ".seeds"), ",".join(seeds).encode())


def write_settings(out):
    folder = os.path.join(out, "settings")
    os.makedirs(folder, exist_ok=True)
    for index, value in enumerate(LIBRARY + SOFTGPU + ["%h.%r.%e.%p.%%"]):
        write(os.path.join(folder, f"{index:02}"), bytes([index]) + value.encode())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", required=True)
    parser.add_argument("--files", nargs="+", help="PTX and JSON by their suffixes, anything else is an image")
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    shutil.rmtree(options.out, ignore_errors=True)
    for folder in ("fatbin", "report"):
        os.makedirs(os.path.join(options.out, folder))
    write_ptx([path for path in options.files if path.endswith(".ptx")], options.out)
    for path in options.files:
        folder = "report" if path.endswith(".json") else "fatbin"
        shutil.copy(path, os.path.join(options.out, folder))
    write_settings(options.out)
    list_seeds(options.out)


if __name__ == "__main__":
    main()
