#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of the public interface on softgpu and compares what it prints.

    program_test.py --softgpu DIR [--preload FILE] [--library FILE] [--pythonpath DIR] --prints TEXT -- PROGRAM [ARGUMENTS]

Of a program that should fail, --fails names a part of its stderr."""

import argparse
import os
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("softgpu", "preload", "library", "pythonpath", "prints", "fails"):
    parser.add_argument("--" + name)
parser.add_argument("command", nargs="+")
options = parser.parse_args()
env = {name: value for name, value in os.environ.items() if not name.startswith("CAJETA_")}
env.update(CAJETA_XPU_DEFER_DEADLINE_US="600000000", PYTHONDONTWRITEBYTECODE="1")
for name, value in (
    ("LD_LIBRARY_PATH", options.softgpu),
    ("LD_PRELOAD", options.preload),
    ("CAJETA_XPU_LIBRARY", options.library),
    ("PYTHONPATH", options.pythonpath),
):
    if value is not None:
        env[name] = value
done = subprocess.run(options.command, env=env, capture_output=True, text=True, timeout=60, check=False)
if options.fails is not None:
    is_right = done.returncode == 1 and options.fails in done.stderr and done.stdout == ""
else:
    is_right = done.returncode == 0 and done.stdout.strip() == options.prints and done.stderr == ""
if not is_right:
    print(f"status {done.returncode}\n{done.stdout}{done.stderr}")
sys.exit(0 if is_right else 1)
