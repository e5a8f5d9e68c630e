#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that polls gets what it launched, whatever threads it has and whatever it lets us have."""

import os
import re

from host_run import SHIMMED, SKIPPED, Host, main, require


def polls(host: Host, what, **options):
    """True unless the program says that it may not do that here."""
    command = [host.program("threads"), what]
    if host.run(command, "bare", **options).returncode == SKIPPED:
        return False
    host.same_as_bare(command, SHIMMED, **options)
    return True


def threads_cannot_be_made(host: Host):
    for what in ("none", "none-for-now"):
        # The profiler has a thread from the first call on.
        runs = host.same_as_bare([host.program("threads"), what], ("preloaded", "disabled", "deferred"))
        said = runs["deferred"].stderr.count(b"no thread could be made")
        require(said == 1, f"{what}: {runs['deferred'].stderr.decode()}")


def threads_real_time(host: Host):
    """Real-time before and after the first launches, on all cores and pinned by the program."""
    for policy in ("fifo", "rr"):
        for when in ("before", "after"):
            for where in ("free", "pinned"):
                if not polls(host, f"{policy}-{when}-{where}"):
                    return "no real-time policy may be set here"
    return None if polls(host, "made") else "no real-time policy may be set here"


def threads_real_time_on_one_core(host: Host):
    """Nothing else of the process can run while it polls."""
    one = {min(os.sched_getaffinity(0))}
    for what in ("fifo-before-free", "fifo-after-free", "rr-before-free", "rr-after-free", "made"):
        if not polls(host, what, preexec_fn=lambda: os.sched_setaffinity(0, one)):
            return "no real-time policy may be set here"
    return None


def threads_inherit_nothing(host: Host):
    """Policy and cores of the thread that made them, its signal mask, the stack that it gives its own."""
    cores = len(os.sched_getaffinity(0))
    done = host.run([host.program("threads"), "inherits"], "deferred", {"CAJETA_XPU_REPORT_EVERY": "9"})
    line = re.search(rb"cajeta-deadline policy (\d) nice (-?\d+) cores (\d+) blocked (\w+)", done.stdout)
    require(done.returncode == 0 and line, f"{done}")
    require(line[1] == b"0" and int(line[3]) == cores, done.stdout.decode())
    # All but KILL, STOP, and the two that libc keeps for itself.
    require(line[4] == b"fffffffe3ffbfeff"[:len(line[4])] or int(line[4], 16) & 0x7FFBFEFF == 0x7FFBFEFF, done.stdout.decode())


if __name__ == "__main__":
    raise SystemExit(main([threads_cannot_be_made, threads_real_time, threads_real_time_on_one_core, threads_inherit_nothing], __doc__))
