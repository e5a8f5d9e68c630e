#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A message of the library never ends, stops or changes the program, wherever its standard error leads."""

import fcntl
import os
import pty
import resource
import signal
import socket
import sys

from host_run import SHIMMED, main, require

# A setting that is not understood, for a message at the first CUDA call.
BAD = {"CAJETA_XPU_DEFER": "bogus"}
MODES = tuple(mode for mode in SHIMMED if mode != "disabled")
LINE = b'cajeta-xpu: CAJETA_XPU_DEFER=bogus is not understood'


def program(host, *arguments):
    return [host.program("messages"), *arguments]


def message_arrives(host):
    """In a pipe, in a file, behind what was in a file, in a terminal, in a socket; once."""
    for mode in MODES:
        run = host.run(program(host), mode, BAD)
        require(run.stderr.count(LINE) == 1, f"{mode} pipe: {run}")
        for flags in ("wb", "ab"):
            path = host.path("messages.txt")
            with open(path, flags) as file:
                host.run(program(host), mode, BAD, stderr=file)
            with open(path, "rb") as file:
                require(file.read().count(LINE) == (1 if flags == "wb" else 2), f"{mode} {flags}")
        ours, theirs = pty.openpty()
        host.run(program(host), mode, BAD, stderr=theirs)
        require(LINE in os.read(ours, 65536), f"{mode} terminal")
        os.close(ours), os.close(theirs)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            host.run(program(host), mode, BAD, stderr=theirs)
            require(LINE in ours.recv(65536), f"{mode} socket")


def message_without_reader(host):
    for mode in ("bare", *MODES):
        reader, writer = os.pipe()
        os.close(reader)
        run = host.run(program(host), mode, BAD if mode != "bare" else None, stderr=writer)
        os.close(writer)
        require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode} pipe: {run}")
        ours, theirs = socket.socketpair()
        with theirs:
            ours.close()
            run = host.run(program(host), mode, BAD if mode != "bare" else None, stderr=theirs)
        require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode} socket: {run}")


def fill(write):
    """Until it takes no more."""
    try:
        while True:
            write(b"x" * 4096)
    except BlockingIOError:
        pass
    try:
        while True:
            write(b"x")
    except BlockingIOError:
        pass


def message_into_full(host):
    """A pipe or a socket that nobody empties, one that blocks and one that does not."""
    for mode in MODES:
        for blocks in (True, False):
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            fill(lambda data: os.write(writer, data))
            os.set_blocking(writer, blocks)
            run = host.run(program(host), mode, BAD, timeout=20, stderr=writer)
            require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode} pipe, blocks {blocks}: {run}")
            is_blocking = fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK == 0
            require(is_blocking == blocks, f"{mode}: O_NONBLOCK of the program's pipe was changed")
            os.close(reader), os.close(writer)
            ours, theirs = socket.socketpair()
            with ours, theirs:
                theirs.setblocking(False)
                fill(theirs.send)
                theirs.setblocking(blocks)
                run = host.run(program(host), mode, BAD, timeout=20, stderr=theirs)
                require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode} socket, blocks {blocks}: {run}")


def message_nowhere(host):
    """No descriptor 2, a full disk, a file at its limit."""
    for mode in ("bare", *MODES):
        extra = BAD if mode != "bare" else None
        run = host.run(program(host), mode, extra, stderr=None, preexec_fn=lambda: os.close(2))
        require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode} closed: {run}")
        with open("/dev/full", "wb") as full:
            run = host.run(program(host), mode, extra, stderr=full)
        require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode} full: {run}")
    for mode in ("preloaded", "deferred"):  # a report or a trace would meet the limit too

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))

        with open(host.path("limited.txt"), "wb") as file:
            file.write(b"x" * 16)
            file.flush()
            run = host.run(program(host), mode, BAD, stderr=file, preexec_fn=limit)
        require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode} limit: {run}")


def message_not_in_data(host):
    """Descriptor 2 is a file of the program's."""
    for mode in ("bare", *MODES):
        extra = BAD if mode != "bare" else None
        for how in ("r", "w", "a"):
            path = host.path("data")
            for closed in (False, True):  # by the program, or by its parent already
                start = (lambda: os.close(2)) if closed else None
                run = host.run(program(host, "reuse", how, path), mode, extra, stderr=None, preexec_fn=start)
                with open(path, "rb") as file:
                    data = file.read()
                require(
                    (run.returncode, data) == (0, b"header\nresult 100\n"), f"{mode} {how} {closed}: {run}\n{data}"
                )
        run = host.run(program(host, "replace", host.path("log")), mode, extra)
        require((run.returncode, os.path.getsize(host.path("log"))) == (0, 0), f"{mode} replace: {run}")


def message_on_small_stack(host):
    bare = host.run(program(host, "small"), "bare")
    if bare.returncode != 0:
        return f"the program needs more stack in this build: status {bare.returncode}"
    for mode in MODES:
        run = host.run(program(host, "small"), mode, BAD)
        require((run.returncode, run.stdout, run.stderr.count(LINE)) == (0, b"100\n", 1), f"{mode}: {run}")
    return None


def message_of_lookups(host):
    """The log of look-ups is in its own file, though the program closes every descriptor, or cannot be written."""
    data, log, fifo = host.path("data"), host.path("lookups"), host.path("fifo")
    os.mkfifo(fifo)
    for mode in ("bare", "preloaded", "deferred"):
        for where in (log, "stderr", "/dev/full", fifo, "/nowhere/log"):
            extra = {"CAJETA_XPU_LOG_LOOKUPS": where} if mode != "bare" else None
            run = host.run(program(host, "close", data), mode, extra)
            with open(data, "rb") as file:
                end = (run.returncode, run.stdout, file.read())
            require(end == (0, b"100\n", b"descriptor 3\n"), f"{mode} {where}: {end} {run.stderr}")
            if mode == "bare":
                break
            if where.startswith("/nowhere") or where == "/dev/full":
                require(run.stderr.count(b"cannot write CAJETA_XPU_LOG_LOOKUPS") == 1, f"{mode} {where}: {run}")
            if where == "stderr":
                require(run.stderr.count(b"name=cuNothing version=12000") == 1, f"{mode}: {run}")
        if mode != "bare":
            with open(log, "rb") as file:
                require(file.read().count(b"name=cuNothing version=12000") == 1, f"{mode}: the file")
            os.unlink(log)


# softgpu's own, bare and shimmed: a message at its first call, a log of operations.
TOLD = {"CAJETA_SOFTGPU_ORDER": "sideways"}
TOLD_LINE = b"softgpu: CAJETA_SOFTGPU_ORDER=sideways is not valid: use early (default), late, random:SEED or free\n"


def message_of_softgpu(host):
    for mode in ("bare", *SHIMMED):
        run = host.run(program(host), mode, TOLD)
        require((run.returncode, run.stdout) == (0, b"100\n") and run.stderr.count(TOLD_LINE) == 1, f"{mode}: {run}")
        reader, writer = os.pipe()
        os.close(reader)
        run = host.run(program(host), mode, TOLD, stderr=writer)
        os.close(writer)
        require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode}, no reader: {run}")
        with open("/dev/full", "wb") as full:
            run = host.run(program(host), mode, TOLD | {"CAJETA_SOFTGPU_LOG": "/dev/full"}, stderr=full)
        require((run.returncode, run.stdout) == (0, b"100\n"), f"{mode}, full: {run}")


def message_beside_spdlog(host):
    """The program's loggers and softgpu's know nothing of each other."""
    bare = None
    for mode in ("bare", *SHIMMED):
        log = host.path("operations")
        run = host.run([host.program("own_spdlog")], mode, TOLD | {"CAJETA_SOFTGPU_LOG": log})
        end = (run.returncode, run.stdout, run.stderr.count(TOLD_LINE))
        require(end == (0, b"program error result 100\n1 loggers\n", 1), f"{mode}: {run}")
        with open(log, encoding="utf-8") as file:
            operations = sorted(file)
        bare = bare or operations
        # A trace adds events around each launch.
        is_same = operations == bare or mode == "traced" and len(operations) > len(bare)
        require(len(bare) == 102 and is_same, f"{mode}: {len(operations)} operations, bare {len(bare)}")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                message_arrives,
                message_without_reader,
                message_into_full,
                message_nowhere,
                message_not_in_data,
                message_on_small_stack,
                message_of_lookups,
                message_of_softgpu,
                message_beside_spdlog,
            ],
            __doc__,
        )
    )
