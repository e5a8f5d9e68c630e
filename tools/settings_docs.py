#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/settings.md: the library's is what `cajeta-xpu env --format markdown` prints, softgpu's is
tools/softgpu/driver/settings.def. With --check it changes nothing, and exits 1 with one line per fault: when the page is
not what the tables say, or when README.md, a page of docs/ or of the manual names a setting that there is not.

    settings_docs.py --tool FILE [--check]        FILE is the command cajeta-xpu
"""
import argparse
import pathlib
import re
import subprocess
import sys

MARK = "<!-- From here on written by tools/settings_docs.py. -->\n"
ROW = re.compile(r'^SOFTGPU_SETTING\((\w+), "([^"]*)", "([^"]*)", \w+\)$', re.M)
NAMED = re.compile(r"\bCAJETA_(?:XPU|SOFTGPU|PROFILER)(?:_[A-Z_]*[A-Z])?\b")
# Variables that are no settings of the running library or of softgpu.
OTHERS = {"CAJETA_XPU_LIBRARY"}
# The reference of the API has constants of these names.
NOT_READ = {"api.md"}


def library_table(tool):
    return subprocess.run([tool, "env", "--format", "markdown"], capture_output=True, text=True, check=True).stdout


def softgpu_table(path):
    text = path.read_text(encoding="utf-8")
    rows = ROW.findall(text)
    if len(rows) != text.count("\nSOFTGPU_SETTING("):
        sys.exit(f"{path.name}: a row is not understood")
    lines = [f"| `CAJETA_SOFTGPU_{name}` | {values} | {purpose} |\n" for name, values, purpose in rows]
    return "| variable | values | |\n|---|---|---|\n" + "".join(lines)


def tables(tool, root):
    library, softgpu = library_table(tool), softgpu_table(root / "tools/softgpu/driver/settings.def")
    return f"\n## The library\n\n{library}\n## softgpu\n\nRead where softgpu is the driver in use.\n\n{softgpu}"


def unknown_names(root, known):
    pages = [root / "README.md", *(root / "docs").glob("*.md"), *(root / "docs/man").glob("*.in")]
    for page in sorted(pages):
        if page.name in NOT_READ:
            continue
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for name in NAMED.findall(line):
                if name not in known and name not in ("CAJETA_XPU", "CAJETA_SOFTGPU"):
                    yield f"{page.name}:{number}: there is no setting {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--tool", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    path = options.root / "docs/settings.md"
    page = path.read_text(encoding="utf-8")
    wanted = page.split(MARK)[0] + MARK + tables(options.tool.resolve(), options.root)
    if not options.check:
        path.write_text(wanted, encoding="utf-8")
        return 0
    faults = [] if page == wanted else [f"{path.name} is not what the tables say: run tools/settings_docs.py"]
    faults += unknown_names(options.root, OTHERS | set(NAMED.findall(wanted)))
    for fault in faults:
        print(fault)
    print(f"{len(NAMED.findall(wanted))} names of settings, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
