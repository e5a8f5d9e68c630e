#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose clock stands still, goes backwards or leaps: the library measures by the system's own, and waits for
no time that never comes."""

import os
import sys

from host_run import SHIMMED, main, require


def run(host, how):
    for preload in ("{fake} {shim}", "{shim} {fake}"):
        names = {"fake": host.program("libodd_clock.so"), "shim": host.shim}
        extra = {"ODD_CLOCK": how, "LD_PRELOAD": preload.format(**names)}
        for mode in SHIMMED:
            run = host.run([host.program("one_kernel")], mode, extra, timeout=30)
            require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode}, {preload}: {run}")
        for name in ("profiled.report", "traced.pftrace"):
            require(os.path.getsize(host.path(name)) > 0, f"{name} is empty")


def clock_stands_still(host):
    run(host, "still")


def clock_goes_back(host):
    run(host, "back")


def clock_leaps(host):
    run(host, "leap")


if __name__ == "__main__":
    sys.exit(main([clock_stands_still, clock_goes_back, clock_leaps], __doc__))
