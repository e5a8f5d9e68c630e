#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a file as a zero-terminated C array: embed.py INPUT OUTPUT.cpp NAME."""

import sys


def main():
    source, target, name = sys.argv[1:]
    with open(source, "rb") as file:
        data = file.read() + b"\0"
    with open(target, "w", encoding="ascii") as file:
        file.write(f'extern "C" const char {name}[];\nextern "C" const char {name}[] = {{')
        for start in range(0, len(data), 32):
            file.write("\n    " + ", ".join(str(byte) for byte in data[start : start + 32]) + ",")
        file.write("\n};\n")


main()
