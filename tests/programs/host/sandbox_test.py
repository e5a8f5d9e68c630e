#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Children of a fork load libraries, and a filter that kills for reading memory through the kernel kills nobody."""
import sys

import host_run


def sandbox_fork(host):
    runs = host.same_as_bare([host.program("sandbox"), "fork"], timeout=150)
    host_run.require(runs["bare"].returncode == 0, f"bare: {runs['bare']}")


def sandbox_filter(host):
    bare = host.run([host.program("sandbox"), "filter"], "bare")
    if bare.returncode == 77:
        return "no filter of system calls can be set"
    host.same_as_bare([host.program("sandbox"), "filter"])
    return None


if __name__ == "__main__":
    sys.exit(host_run.main([sandbox_fork, sandbox_filter], __doc__))
