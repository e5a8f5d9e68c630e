#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program bare and with the preload library on softgpu, under several orders, and compares
exit status, stdout and the per-stream log of executed operations. Also imported by the tests that
need more than that.

    compare.py --softgpu DIR --shim FILE [options] -- PROGRAM [ARGUMENTS]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

LONG_DEADLINE_US = 600_000_000  # no flush by time where counts are asserted


class Run:
    """One finished run: status, stdout, stderr, counters by entry, log lines."""

    def __init__(self, status, stdout, stderr, counters, log):
        self.status, self.stdout, self.stderr = status, stdout, stderr
        self.counters, self.log = counters, log


class Report:
    """What the library's exit report at `path`, which ends in .json, says of launches. Of a report
    that was not written all counts are 0 and `exists` is false."""

    def __init__(self, path):
        try:
            with open(path, encoding="utf-8") as file:
                launches = json.load(file)["launches"]
        except FileNotFoundError:
            launches = {}
        self.exists = bool(launches)
        self.total = launches.get("total", 0)
        self.queued = launches.get("queued", 0)
        self.replayed = launches.get("replayed", 0)
        self.graph_launches = launches.get("graphs", {}).get("launched", 0)
        self._reasons = {
            line["reason"]: line["launches"] for line in launches.get("one_by_one_reasons", [])
        }

    def count(self, reason):
        """Launches that went one by one for this reason."""
        return self._reasons.get(reason, 0)


class Runner:
    """Starts programs on softgpu, bare or shimmed."""

    def __init__(self, softgpu, shim, timeout=120, device=()):
        """`device` holds settings of softgpu, as CC=9.0."""
        self.softgpu, self.shim, self.timeout = (
            os.path.abspath(softgpu),
            os.path.abspath(shim),
            timeout,
        )
        self.device = [f"CAJETA_SOFTGPU_{setting}".split("=", 1) for setting in device]

    def environment(self, shimmed, order, extra):
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("CAJETA_") or name == "CAJETA_XPU_MUTANT"  # tools/mutants
        }
        env["LD_LIBRARY_PATH"] = ":".join(
            filter(None, [self.softgpu, env.get("LD_LIBRARY_PATH", "")])
        )
        env["CAJETA_SOFTGPU_ORDER"] = order
        env.update(self.device)
        # The preload library stands before the sanitizer's runtime, which is right: it forwards
        # what is not its own.
        env["ASAN_OPTIONS"] = ":".join(
            filter(None, [env.get("ASAN_OPTIONS", ""), "verify_asan_link_order=0"])
        )
        if shimmed:
            env["LD_PRELOAD"] = " ".join(filter(None, [env.get("LD_PRELOAD", ""), self.shim]))
            env["CAJETA_XPU_DEFER"] = "all"
            env.update(extra or {})
        return env

    def run(self, command, shimmed, order="early", extra=None, trace=None):
        """`trace` names a file for what softgpu-compare reads."""
        with tempfile.TemporaryDirectory() as folder:
            counters, log = os.path.join(folder, "counters"), os.path.join(folder, "log")
            env = self.environment(shimmed, order, extra)
            env["CAJETA_SOFTGPU_COUNTERS"], env["CAJETA_SOFTGPU_LOG"] = counters, log
            if trace is not None:
                env["CAJETA_SOFTGPU_TRACE"] = trace
            try:
                done = subprocess.run(
                    command,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    timeout=self.timeout,
                    check=False,
                )
            except subprocess.TimeoutExpired as stuck:
                return Run("timeout", stuck.stdout or b"", stuck.stderr or b"", {}, [])
            return Run(
                done.returncode, done.stdout, done.stderr, read_counters(counters), read_lines(log)
            )


def read_counters(path):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError):
        return {}
    return data.get("calls", data)


def read_lines(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def log_key(lines, ordered):
    """The log as something that compares equal when every stream did the same; without sequence
    numbers if the program's threads race for them."""
    if ordered:
        return Counter(lines)
    return Counter(" ".join(line.split(" ")[:1] + line.split(" ")[2:]) for line in lines)


def first_difference(left, right):
    for number, (one, other) in enumerate(zip(left, right), 1):
        if one != other:
            return f"line {number}: {one!r} against {other!r}"
    return f"{len(left)} lines against {len(right)}"


# Depends on what the device happens to have done at that moment.
TIMED_MISUSE = "misuse: gone with work pending"


def added_misuse(bare, shimmed):
    """Kinds of misuse that softgpu counts in the shimmed run only. A program that misuses handles
    is asked for no exact number: the library may ask the driver about them first."""
    for kind, count in shimmed.counters.items():
        is_new = count > 0 and bare.counters.get(kind, 0) == 0
        if kind.startswith("misuse: ") and kind != TIMED_MISUSE and is_new:
            yield f"{kind}: {count} times, never bare"


def differences(bare, shimmed, log, with_misuse=True):
    """What the shim changed, one line each. `log` is ordered, unordered or none."""
    found = list(added_misuse(bare, shimmed)) if with_misuse else []
    if bare.status != shimmed.status:
        found.append(f"exit status {bare.status} bare, {shimmed.status} shimmed")
    if bare.stdout != shimmed.stdout:
        left, right = (run.stdout.decode(errors="replace").splitlines() for run in (bare, shimmed))
        found.append("stdout differs, " + first_difference(left, right))
    if log != "none":
        left, right = (log_key(run.log, log == "ordered") for run in (bare, shimmed))
        if left != right:
            missing, added = sorted((left - right).elements()), sorted((right - left).elements())
            found.append(
                f"log differs: {len(missing)} operations missing, {len(added)} added; "
                f"first missing {missing[:1]}, first added {added[:1]}"
            )
    return found


def oracle_differences(oracle, bare_trace, shimmed_trace):
    """What softgpu-compare says against the shim, one line each."""
    done = subprocess.run(
        [oracle, bare_trace, shimmed_trace],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode == 0:
        return []
    return ["oracle: " + line for line in done.stdout.decode(errors="replace").splitlines()]


def orders_of(names, seeds):
    return names + [f"random:{seed}" for seed in range(1, seeds + 1)]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--softgpu", required=True, help="folder of libcuda.so.1")
    parser.add_argument("--shim", required=True, help="libcajeta_xpu.so")
    parser.add_argument(
        "--orders", default="early,late,free", help="policies to run under, comma separated"
    )
    parser.add_argument("--seeds", type=int, default=10, help="how many random orders")
    parser.add_argument("--log", choices=["ordered", "unordered", "none"], default="ordered")
    parser.add_argument(
        "--status", type=int, default=0, help="the exit status the program must have"
    )
    parser.add_argument("--deadline-us", type=int, help="CAJETA_XPU_DEFER_DEADLINE_US")
    parser.add_argument(
        "--min-graph-launches", type=int, default=0, help="graph launches the shim must add"
    )
    parser.add_argument(
        "--device", action="append", default=[], metavar="NAME=VALUE",
        help="a setting of softgpu, as CC=9.0 or DEVICES=2"
    )
    parser.add_argument(
        "--oracle", help="softgpu-compare: both runs must have the same order and observations too"
    )
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def check_order(runner, options, order):
    extra = {}
    if options.deadline_us is not None:
        extra["CAJETA_XPU_DEFER_DEADLINE_US"] = str(options.deadline_us)
    with tempfile.TemporaryDirectory() as folder:
        traces = [None, None]
        if options.oracle is not None:
            traces = [os.path.join(folder, name) for name in ("bare", "shimmed")]
        bare = runner.run(options.command, shimmed=False, order=order, trace=traces[0])
        shimmed = runner.run(
            options.command, shimmed=True, order=order, extra=extra, trace=traces[1]
        )
        found = differences(bare, shimmed, options.log)
        if options.oracle is not None and "timeout" not in (bare.status, shimmed.status):
            found += oracle_differences(options.oracle, *traces)
    if bare.status != options.status:
        found.append(f"exit status {bare.status} bare, expected {options.status}")
    added = shimmed.counters.get("cuGraphLaunch", 0) - bare.counters.get("cuGraphLaunch", 0)
    if added < options.min_graph_launches:
        found.append(
            f"{added} graph launches by the shim, at least {options.min_graph_launches} expected"
        )
    for line in found:
        print(f"{order}: {line}")
    if found:
        for name, run in (("bare", bare), ("shimmed", shimmed)):
            text = run.stderr.decode(errors="replace").strip()
            if text:
                print(f"--- stderr, {name}\n{text[-2000:]}")
    return not found, added


def main():
    options = parse_arguments()
    runner = Runner(options.softgpu, options.shim, options.timeout, options.device)
    orders = orders_of([name for name in options.orders.split(",") if name], options.seeds)
    passed, graph_launches = 0, []
    for order in orders:
        equal, added = check_order(runner, options, order)
        passed += equal
        graph_launches.append(added)
    print(
        f"{passed} of {len(orders)} orders equal; graph launches by the shim: "
        f"{min(graph_launches)} to {max(graph_launches)}"
    )
    return 0 if passed == len(orders) else 1


if __name__ == "__main__":
    sys.exit(main())
