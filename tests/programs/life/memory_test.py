#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does one thing very often under the preload library and compares the growth of the resident size with that of the same
program without it.

    memory_test.py WHAT COUNT --softgpu DIR --shim FILE PROGRAM

WHAT is launches, sequences (hardly any of which comes back, with a budget of 1 MiB for graphs) or objects.
"""

import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from compare import Runner  # noqa: E402  pylint: disable=wrong-import-position

# What allocators and page sizes make of nothing; 10 million lost launches of 40 bytes are 400,000 KiB.
TOLERANCE_KIB = 2048


def growth(runner, options, shimmed):
    settings = {"CAJETA_XPU_GRAPH_BYTES": "1M"} if options.what == "sequences" else {}
    env = runner.environment(shimmed, "early", settings)
    env["CAJETA_SOFTGPU_EXECUTOR"] = "null"
    command = [options.program, options.what, str(options.count)]
    done = subprocess.run(command, env=env, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{'shimmed' if shimmed else 'bare'}: status {done.returncode}\n{done.stderr.decode()}")
    early, late = (int(line) for line in done.stdout.split())
    return early, late - early


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["launches", "sequences", "objects"])
    parser.add_argument("count", type=int)
    parser.add_argument("--softgpu", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("program")
    options = parser.parse_args()
    runner = Runner(options.softgpu, options.shim)
    (bare_size, bare), (size, shimmed) = (growth(runner, options, on) for on in (False, True))
    print(
        f"{options.what} {options.count}: bare {bare_size} KiB and {bare} more, "
        f"shimmed {size} KiB and {shimmed} more"
    )
    return 0 if shimmed - bare <= TOLERANCE_KIB else 1


if __name__ == "__main__":
    sys.exit(main())
