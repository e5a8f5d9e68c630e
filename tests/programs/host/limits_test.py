#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose limits are at their lowest, from before their first CUDA call on or once it has been made: they end as
they would without the library, and a launch that waits is sent even where no thread of ours can be."""

import os
import resource
import sys

from host_run import SHIMMED, main, require


def run(host, *limits, then=()):
    os.chmod(host.folder, 0o777)  # as root the programs become nobody
    for name, value in limits:
        for moment in ("early", "late"):
            runs = host.same_as_bare([host.program("limits"), name, str(value), moment, *then], timeout=30)
            require(runs["bare"].returncode in (0, 90), f"{name} {value} {moment}: {runs['bare']}")


def no_descriptors_left(host):
    run(host, ("nofile", 0), ("nofile", 3), ("nofile", 4))


def no_threads_left(host):
    run(host, ("nproc", 0), ("nproc", 1))


def launches_are_sent_without_threads(host):
    run(host, ("nproc", 0), ("as", 0), then=["spin"])


def no_memory_left(host):
    """softgpu takes some GiB of addresses as CUDA starts: with less it refuses. With nothing on top, what a launch finds
    hangs on how many of them the device has not yet run: all of them run, or a call tells that memory is out."""
    run(host, ("as", 8 << 20), ("memlock", 0))
    os.chmod(host.folder, 0o777)
    for limit in (("as", "0"), ("as", "64"), ("as", "1024"), ("data", "0")):
        for moment in ("early", "late"):
            for mode in ("bare", *SHIMMED):
                ended = host.run([host.program("limits"), *limit, moment], mode, timeout=30)
                ran = ended.returncode == 0 and ended.stdout == b"300\n"
                told = ended.returncode == 90 and ended.stdout == b"" and b" -> 2\n" in ended.stderr
                require(ran or told, f"{limit} {moment}, {mode}: {ended}")


def no_files_may_grow(host):
    run(host, ("fsize", 0), ("fsize", 1), ("fsize", 4096), ("core", 0))


def no_signals_may_wait(host):
    run(host, ("sigpending", 0), ("msgqueue", 0))


def no_stack_to_speak_of(host):
    for kib in (64, 128, 1024):
        size = kib << 10
        host.same_as_bare(
            [host.program("one_kernel")],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (size, size)),
            timeout=30,
        )


if __name__ == "__main__":
    sys.exit(
        main(
            [
                no_descriptors_left,
                no_threads_left,
                launches_are_sent_without_threads,
                no_memory_left,
                no_files_may_grow,
                no_signals_may_wait,
                no_stack_to_speak_of,
            ],
            __doc__,
        )
    )
