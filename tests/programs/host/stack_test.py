#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUDA calls on threads with the smallest stacks that pthreads allows."""

import sys

from host_run import main, require


def first_call_on_a_small_stack(host):
    for kib in (16, 20, 32, 64):
        runs = host.same_as_bare([host.program("stack"), str(kib)], timeout=30)
        require(runs["bare"].returncode == 0, f"{kib} KiB: {runs['bare']}")


if __name__ == "__main__":
    sys.exit(main([first_call_on_a_small_stack], __doc__))
