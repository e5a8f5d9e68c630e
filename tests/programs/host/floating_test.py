#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program's floating-point environment is its own: neither felt by kernels and reports nor changed by a call."""

import sys

from host_run import SHIMMED, main, require

# See floating.cpp.
SETTINGS = ("z", "u", "d", "t", "i", "x", "X", "f", "zut", "zdifxX", "iT", "zuxT")


def hold(host, order):
    expected = host.run([host.program("floating")], "bare")
    require(expected.returncode == 0 and len(expected.stdout.splitlines()) == 18, f"bare: {expected}")
    for letters in SETTINGS:
        wanted = expected.stdout * (2 if "T" in letters else 1)
        for mode in ("bare", *SHIMMED):
            run = host.run([host.program("floating"), letters], mode, {"CAJETA_SOFTGPU_ORDER": order})
            require(
                (run.returncode, run.stdout) == (0, wanted),
                f"{letters} {order} {mode}: status {run.returncode}\n{run.stdout.decode()}{run.stderr.decode()}",
            )


def floating_early(host):
    hold(host, "early")


def floating_free(host):
    hold(host, "free")


def floating_late(host):
    hold(host, "late")


if __name__ == "__main__":
    sys.exit(main([floating_early, floating_free, floating_late], __doc__))
