#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the tests which a document names exist: after "unit:" the title of a Catch2 test case under tests/unit,
after "test:" a test of the build. Exits 0 and prints one line, or 1 with one line per name that is nowhere.

    check_named_tests.py --build DIR DOCUMENT...
"""
import argparse
import json
import pathlib
import re
import sys

NAMED = re.compile(r"\b(unit|test): `([^`]+)`")
# The title may stand on the line after the bracket, and in pieces.
TITLE = re.compile(r'(?:TEST_CASE|SCENARIO)\(\s*((?:"[^"]*"\s*)+)')


def unit_titles(root):
    found = set()
    for source in (root / "tests/unit").rglob("*_test.cpp"):
        for pieces in TITLE.findall(source.read_text(encoding="utf-8")):
            found.add("".join(re.findall(r'"([^"]*)"', pieces)))
    return found


def build_tests(build):
    with open(build / "meson-info/intro-tests.json", encoding="utf-8") as file:
        return {test["name"] for test in json.load(file)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a configured build directory")
    parser.add_argument("documents", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    known = {"unit": unit_titles(options.root), "test": build_tests(options.build)}
    named, faults = 0, 0
    for document in options.documents:
        for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
            for kind, name in NAMED.findall(line):
                named += 1
                if name not in known[kind]:
                    faults += 1
                    print(f"{document.name}:{number}: there is no {kind} `{name}`")
    print(f"{named} tests named, {faults} faults")
    return 1 if faults or named == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
