#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs do with functions beside launching them.

    functions_test.py CASE --softgpu DIR --shim FILE --programs DIR

  reload      code that is unloaded, with all ways to its functions, and comes back with other parameters
  aliases     an attribute that is set through one handle of a function and counts for the other
  settings    attributes that are set ahead of each launch submit nothing of streams without the function
  lookups     a look-up that is made again submits nothing
  race        attributes that are changed beside launches
  old_driver  kernels of libraries are queued on CUDA 12.4, which cannot tell a kernel's library
  primary     a primary context that others hold keeps its recordings when it is released
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cases import main, require  # noqa: E402  pylint: disable=wrong-import-position
from compare import LONG_DEADLINE_US, Report, Runner  # noqa: E402  pylint: disable=wrong-import-position

ORDERS = ("early", "late", "random:1", "free")
WAYS = ("kernel", "made", "module", "parent", "listed", "own")


class Counted:
    """The launches of a shimmed run, and its flushes by entry."""

    def __init__(self, path):
        self.launches = Report(path)
        with open(path, encoding="utf-8") as file:
            by_entry = json.load(file)["flushes"]["by_entry"]
        self.flushes = {line["entry"]: line["flushes"] for line in by_entry}

    def share_replayed(self):
        return self.launches.replayed / self.launches.total


class Tester:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def both(self, command, order="early", device=(), deadline=LONG_DEADLINE_US):
        """End and output of the program are the same bare and shimmed; what the shimmed run counted."""
        runner = Runner(self.options.softgpu, self.options.shim, device=device)
        command = [os.path.join(self.options.programs, "functions_" + command[0]), *command[1:]]
        bare = runner.run(command, shimmed=False, order=order)
        what = f"{command[1:]} {order}"
        require(bare.status == 0 and bare.stdout, f"bare {what}: {bare.status} {bare.stderr.decode()}")
        path = os.path.join(self.folder, "report.json")
        extra = {
            "CAJETA_XPU_DEFER_DEADLINE_US": str(deadline),
            "CAJETA_XPU_DRIVER_PROFILE": "1",
            "CAJETA_XPU_REPORT": path,
        }
        shimmed = runner.run(command, shimmed=True, order=order, extra=extra)
        require(
            (shimmed.status, shimmed.stdout) == (bare.status, bare.stdout),
            f"{what}: {shimmed.status} {shimmed.stdout!r}, bare {bare.stdout!r}\n{shimmed.stderr.decode()}",
        )
        return Counted(path)


def reload(tester):
    for way in WAYS:
        for order in ORDERS:
            counted = tester.both(["reload", way], order)
            require(counted.launches.replayed > 0, f"{way}: nothing was replayed")


def aliases(tester):
    for set_by in ("kernel", "function"):
        for launched_by in ("kernel", "function"):
            for order in ORDERS:
                counted = tester.both(["aliases", set_by, launched_by], order)
                require(counted.launches.queued > 0, f"{set_by} {launched_by}: nothing was queued")


def settings(tester):
    for way in ("same", "other", "cache"):
        entry = "cuFuncSetCacheConfig" if way == "cache" else "cuFuncSetAttribute"
        for order in ORDERS:
            counted = tester.both(["settings", way], order)
            flushes = counted.flushes.get(entry, 0)
            require(flushes <= 1, f"{way}: {entry} submitted {flushes} times")
            replayed = counted.launches.replayed
            require(replayed >= 480, f"{way}: {replayed} of 500 launches replayed")


def lookups(tester):
    usual = tester.both(["lookups", "nothing"]).launches.replayed
    require(usual >= 390, f"without look-ups {usual} of 400 launches are replayed")
    for what in (
        "function", "missing", "kernel", "library_global", "attribute", "attribute_of_another",
        "attribute_of_a_kernel", "occupancy",
    ):
        for order in ORDERS:
            replayed = tester.both(["lookups", what], order).launches.replayed
            require(replayed == usual, f"{what}: {replayed} launches replayed, {usual} without look-ups")


def race(tester):
    for way in ("function", "kernel"):
        for order in ("early", "free"):
            tester.both(["race", way, "48"], order, deadline=200)


def old_driver(tester):
    for way in ("kernel", "made"):
        launches = tester.both(["reload", way], device=["VERSION=12.4"]).launches
        require(launches.queued == launches.total, f"{way}: {launches.queued} of {launches.total} queued")


def primary(tester):
    for order in ORDERS:
        counted = tester.both(["primary"], order)
        share = counted.share_replayed()
        require(share > 0.9, f"{share:.0%} replayed")


if __name__ == "__main__":
    sys.exit(main((reload, aliases, settings, lookups, race, old_driver, primary), __doc__, Tester))
