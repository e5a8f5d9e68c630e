#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who submits what, who waits for whom, and who is told of a failure.

    submission_test.py CASE --softgpu DIR --shim FILE --programs DIR

  coupled  a stream whose launch queue is full holds up no other thread
  told     a queued launch that fails is told once, by a call that has no effect to repeat
  ages     the deadline submits the oldest launches first
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cases import Failed, main, require  # noqa: E402  pylint: disable=wrong-import-position
from compare import Runner  # noqa: E402  pylint: disable=wrong-import-position

ORDERS = ("early", "late", "random:1", "free")


class Tester:
    def __init__(self, options, _folder):
        self.options = options

    def both(self, command, order, device, extra=None):
        """The program's end and output are the same bare and shimmed; the shimmed run."""
        runner = Runner(self.options.softgpu, self.options.shim, device=device)
        command = [os.path.join(self.options.programs, command[0]), *command[1:]]
        bare = runner.run(command, shimmed=False, order=order)
        require(bare.status == 0, f"bare {command[1:]} {order}: {bare.status} {bare.stderr.decode()}")
        shimmed = runner.run(command, shimmed=True, order=order, extra=extra)
        what = f"{command[1:]} {order} {device}"
        require(
            (shimmed.status, shimmed.stdout) == (bare.status, bare.stdout),
            f"{what}: {shimmed.status} {shimmed.stdout!r}, bare {bare.stdout!r}\n{shimmed.stderr.decode()}",
        )
        return shimmed


def coupled(tester):
    for way in "synchronize", "poll", "query", "event", "copy", "allocate":
        for deadline in "200", "60000000":
            if way == "poll" and deadline != "200":
                continue  # the deadline is what ends it
            extra = {"CAJETA_XPU_DEFER_DEADLINE_US": deadline}
            tester.both(["coupled", way], "free", ["QUEUE_DEPTH=64"], extra)


def told(tester):
    # Memory that graphs of ours do not hold is no reason to try again: the failure is the program's.
    failures = (
        "cuLaunchKernel:3:CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "cuLaunchKernel:1:CUDA_ERROR_OUT_OF_MEMORY",
        "cuLaunchKernel:2:CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,cuLaunchKernel:3:CUDA_ERROR_INVALID_IMAGE",
    )
    for way in "query", "event", "graph", "fail", "copy", "destroy", "context", "wait":
        for failure in failures:
            for order in ORDERS:
                tester.both(["told", way, "4"], order, [f"FAIL={failure}"])


def ages(tester):
    """Whoever is held up loses its place to the next, so that a busy machine mixes streams: one run of many in exact order
    is enough, which no other rule reaches."""
    wanted = [f"1.{number}" for number in (3, 1, 5, 2, 4)] * 4
    for _ in range(40):
        log = tester.both(["ages"], "early", []).log
        streams = [line.split()[0] for line in log if " kernel " in line]
        require(sorted(streams) == sorted(wanted), f"submitted {streams}, launched {wanted}")
        if streams == wanted:
            return
    raise Failed(f"submitted {streams}, launched {wanted}")


if __name__ == "__main__":
    sys.exit(main((coupled, told, ages), __doc__, Tester))
