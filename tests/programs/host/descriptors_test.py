#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that a program opens under numbers which were the library's hold what the program wrote, and nothing else."""

import fcntl
import glob
import os
import resource
import time

from host_run import SHIMMED, main, require


def data(host, prefix):
    """The files of a run, by number, without them afterwards."""
    found = {}
    for path in sorted(glob.glob(glob.escape(host.path(prefix)) + ".*")):
        with open(path, "rb") as file:
            found[path.rsplit(".", 1)[1]] = file.read()
        os.unlink(path)
    return found


def is_written(path):
    return os.path.exists(path) and os.path.getsize(path) > 0


def holds_data(host, kind, files, limit=1024, modes=SHIMMED, extra=None, wait_for=None):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    results = {}
    for mode in ("bare", *modes):
        run = host.run([host.program("descriptors"), kind, host.path("data")], mode, extra, preexec_fn=lower)
        while wait_for and not is_written(host.path(f"data.{wait_for}")):
            time.sleep(0.01)  # a daemon: the test's own limit ends this
        results[mode] = (run.returncode, run.stdout, data(host, "data"))
        require(run.returncode == 0 and len(results[mode][2]) == files, f"{mode}: {run}")
        require(results[mode] == results["bare"], f"{mode}: {results[mode]}\nbare: {results['bare']}")
    return results


def descriptors_looked_up(host):
    holds_data(host, "looked_up", 6)


def descriptors_started(host):
    """The trace goes on in its file, which is opened again."""
    for limit in (64, 1024, 20000):
        holds_data(host, "started", 6, limit)
        run = host.run([host.cli, "profile", "summary", host.path("traced.pftrace")], "bare") if host.cli else None
        require(run is None or (run.returncode == 0 and b"complete" in run.stdout), f"limit {limit}: {run}")


def descriptors_every(host):
    for limit in (64, 1024, 9000):
        holds_data(host, "every", 1, limit)


def descriptors_removed(host):
    """A lost trace that is not there any more is said once."""
    for way in ("looked_up", "started"):
        os.mkfifo(host.path("pipe"))
        reader = os.open(host.path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 1 << 20)  # room for two traces
        holds_data(host, way, 6, modes=("traced",), extra={"CAJETA_PROFILER_OUT": host.path("pipe")})
        run = host.run([host.program("descriptors"), way, host.path("data")], "traced",
                       {"CAJETA_PROFILER_OUT": host.path("pipe")})
        lines = [line for line in run.stderr.split(b"\n") if b"CAJETA_PROFILER_OUT" in line]
        require(len(lines) == 1 and b"the program has closed it" in lines[0], f"{way}: {run.stderr}")
        os.close(reader)
        os.unlink(host.path("pipe"))
        data(host, "data")


def descriptors_stderr(host):
    for report in (None, "/dev/stderr", "/dev/fd/2", "/nowhere/report"):
        extra = {"CAJETA_XPU_REPORT": report or "stderr", "CAJETA_PROFILER_OUT": "/nowhere/trace"}
        holds_data(host, "stderr", 1, extra=extra)


def descriptors_unwound(host):
    """libunwind keeps a pipe by number, into which it writes what it would read."""
    holds_data(host, "unwound", 2)


def descriptors_fork_server(host):
    holds_data(host, "fork_server", 3)


def descriptors_daemon(host):
    holds_data(host, "daemon", 7, wait_for="6")


if __name__ == "__main__":
    raise SystemExit(main(
        [descriptors_looked_up, descriptors_started, descriptors_every, descriptors_removed, descriptors_stderr,
         descriptors_unwound, descriptors_fork_server, descriptors_daemon], __doc__))
