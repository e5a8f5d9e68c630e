#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills a page of the manual: make_man.py TOOL VERSION IN OUT. A line @COMMANDS@ becomes what `TOOL man` prints,
a line @ENVIRONMENT@ what `TOOL env --format man` prints."""
import pathlib
import subprocess
import sys


def main():
    tool, version, source, target = sys.argv[1:]

    def ask(*arguments):
        return subprocess.run([tool, *arguments], capture_output=True, text=True, check=True).stdout.rstrip("\n")

    text = pathlib.Path(source).read_text(encoding="utf-8")
    text = text.replace("@VERSION@", version.replace("-", "\\-"))
    text = text.replace("@COMMANDS@", ask("man")).replace("@ENVIRONMENT@", ask("env", "--format", "man"))
    pathlib.Path(target).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
