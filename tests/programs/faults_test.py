#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library where its own driver calls fail, or the driver is older: every program must print and
execute what it does bare on a driver without faults, and the exit report must name the reason.

    faults_test.py --softgpu DIR --shim FILE --scenarios FILE --decode FILE --entries FILE
                   [--all] [CASE...]

Named cases set one fault each. Generated cases take every entry that a program calls under the
library and never calls itself, and let its first, middle and last call fail, and all of them. Two
more kinds may end the program: a submitted launch that fails must be reported by a later call, and
whatever call fails, no operation may run twice or be added.
"""

import argparse
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True  # the source tree stays clean

from compare import LONG_DEADLINE_US, Report, Runner, differences, log_key  # noqa: E402

ORDER = "late"  # nothing runs before it must: a submission that is missing shows
# For named cases: one and two streams with graphs, changing values, code that is reloaded.
DECODE = "decode"  # the decoder; all other names are scenarios
REPLAYING = ["repeated", "changing_shapes", "interleaved_streams", "module_reload", DECODE]
# Generated cases look for their entries in these, one after the other.
GENERATED = [
    "repeated",
    "module_reload",
    "library_reload",
    "two_contexts",
    "own_capture",
    "function_attributes",
    "legacy_only",
    DECODE,
]
# Entries that the library calls on its own behalf. A generated case must have failed each.
OWN_ENTRIES = [
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuDeviceGetAttribute",
    "cuFuncGetAttribute",
    "cuFuncGetModule",
    "cuFuncGetParamInfo",
    "cuFuncLoad",
    "cuGraphAddKernelNode_v2",
    "cuGraphCreate",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuKernelGetFunction",
    "cuKernelGetParamInfo",
    "cuStreamIsCapturing",
    "cuThreadExchangeStreamCaptureMode",
]


class Case:
    """One fault: what is set for the shimmed run, and what its report must say; of REPLAYING programs
    or of those that are named."""

    def __init__(self, name, environment, reasons=(), replays=None, version=None, programs=None):
        self.name, self.environment, self.reasons = name, environment, reasons
        self.replays, self.version, self.programs = replays, version, programs


def fail(spec):
    return {"CAJETA_SOFTGPU_FAIL": spec}


def older(version):
    return {"CAJETA_SOFTGPU_VERSION": version}


def missing(*entries):
    return {"CAJETA_SOFTGPU_MISSING": ",".join(entries)}


UNKNOWN, FAILED, NO_MEMORY = "parameter layout unknown", "graph failed", "no memory for a graph"
LOADS = "first launch loads code"
ADD, PATCH = "cuGraphAddKernelNode_v2", "cuGraphExecKernelNodeSetParams_v2"
INSTANTIATE = "cuGraphInstantiateWithFlags"
SMALL_DEVICE = {"CAJETA_SOFTGPU_MEMORY": "4M", "CAJETA_SOFTGPU_GRAPH_NODE_BYTES": "2M"}
NAMED = [
    Case("driver-12.9", older("12.9"), replays=True, version=12090),
    Case("driver-12.4", older("12.4"), replays=True, version=12040),
    Case("driver-12.3", older("12.3"), [UNKNOWN], replays=False, version=12030),
    Case("driver-12.0", older("12.0"), [UNKNOWN], replays=False, version=12000),
    Case("driver-11.8", older("11.8"), [UNKNOWN], replays=False, version=11080),
    Case("driver-11.4", older("11.4"), [UNKNOWN], replays=False, version=11040),
    Case("no-param-info", missing("cuFuncGetParamInfo"), [UNKNOWN], replays=False),
    Case("no-func-load", missing("cuFuncLoad"), [LOADS], replays=True),
    Case("no-node-v2", missing(ADD, PATCH), replays=True),
    Case("no-instantiate-with-flags", missing(INSTANTIATE), replays=True),
    Case("no-instantiate", missing(INSTANTIATE, "cuGraphInstantiate_v2"), [FAILED], replays=False),
    Case("no-graphs", missing("cuGraphCreate"), [FAILED], replays=False),
    Case("no-exchange-mode", missing("cuThreadExchangeStreamCaptureMode"), replays=True),
    Case("instantiate-once", fail(INSTANTIATE + ":1:OUT_OF_MEMORY"), [FAILED], replays=True),
    Case("instantiate-never", fail(INSTANTIATE + ":*:OUT_OF_MEMORY"), [FAILED], replays=False),
    Case("add-node-fails", fail(ADD + ":2"), [FAILED], replays=True),
    Case("add-node-never", fail(ADD + ":*"), [FAILED], replays=False),
    Case("patch-fails", fail(PATCH + ":3"), [FAILED], replays=True),
    Case("patch-never", fail(PATCH + ":*"), [FAILED]),
    Case("launch-once", fail("cuGraphLaunch:1"), [FAILED], replays=True),
    Case("launch-never", fail("cuGraphLaunch:*"), [FAILED], replays=False),
    Case("limits-unknown", fail("cuDeviceGetAttribute:1"), ["limits"]),
    Case("graph-memory", SMALL_DEVICE, [FAILED], replays=False),
    Case("no-budget", {"CAJETA_XPU_GRAPH_BYTES": "0"}, [NO_MEMORY], replays=False),
    Case("tiny-budget", {"CAJETA_XPU_GRAPH_BYTES": "70K"}, [NO_MEMORY], replays=False),
    Case("green-streams", {}, ["green context"], programs=["green_streams"]),
]


class Tester:
    """Runs programs and remembers their bare runs."""

    def __init__(self, options):
        self.runner = Runner(options.softgpu, options.shim)
        self.scenarios, self.decode = options.scenarios, options.decode
        self.since = read_entries(options.entries)
        self.bare_runs = {}

    def command(self, scenario):
        if scenario == DECODE:
            return [self.decode, "--tokens", "6"]
        return [self.scenarios, scenario]

    def bare(self, scenario):
        if scenario not in self.bare_runs:
            run = self.runner.run(self.command(scenario), shimmed=False, order=ORDER)
            if run.status != 0:
                sys.exit(f"{scenario}: exit status {run.status} bare: {run.stderr.decode()[-400:]}")
            self.bare_runs[scenario] = run
        return self.bare_runs[scenario]

    def shimmed(self, scenario, environment):
        """The run and its report."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            extra = {
                "CAJETA_XPU_DEFER_DEADLINE_US": str(LONG_DEADLINE_US),
                "CAJETA_XPU_DRIVER_PROFILE": "1",
                "CAJETA_XPU_REPORT": path,
                **environment,
            }
            run = self.runner.run(self.command(scenario), True, ORDER, extra)
            return run, Report(path)

    def runs_on(self, scenario, version):
        """Whether an older driver has all that the program itself calls."""
        calls = self.bare(scenario).counters
        return all(self.since.get(entry, 0) <= version for entry, count in calls.items() if count)

    def own_entries(self, scenario):
        """Entries called under the library only, with the number of calls."""
        bare = self.bare(scenario).counters
        shimmed = self.shimmed(scenario, {})[0].counters
        return {
            entry: count
            for entry, count in sorted(shimmed.items())
            if entry in self.since and count > 0 and bare.get(entry, 0) == 0
        }

    def check(self, scenario, environment):
        """What differs from the bare run, and the report."""
        run, report = self.shimmed(scenario, environment)
        # A graph that the driver refuses to destroy does outlive its code.
        found = differences(
            self.bare(scenario), run, "ordered", "cuGraphExecDestroy" not in str(environment)
        )
        if not report.exists:
            found.append("no report was written")
        if found and run.stderr:
            found.append("stderr: " + run.stderr.decode(errors="replace").strip()[-300:])
        return found, report


def read_entries(path):
    with open(path, encoding="utf-8") as file:
        rows = re.findall(r"^DRIVER_ENTRY\((\w+), \w+, (\d+),", file.read(), re.MULTILINE)
    return {symbol: int(since) for symbol, since in rows}


def check_named(tester, case):
    found, programs = [], case.programs or REPLAYING
    if case.version is not None:
        programs = [name for name in programs if tester.runs_on(name, case.version)]
        if not programs:
            return ["no program runs on this driver"]
    counts = dict.fromkeys(case.reasons, 0)
    replayed = 0
    for scenario in programs:
        differs, report = tester.check(scenario, case.environment)
        found += [f"{scenario}: {line}" for line in differs]
        replayed += report.replayed
        for reason in counts:
            counts[reason] += report.count(reason)
    found += [f"the reports never say '{reason}'" for reason, count in counts.items() if count == 0]
    if case.replays is not None and case.replays != (replayed > 0):
        found.append(f"{replayed} launches replayed")
    return found


def generate(tester, every):
    """(scenario, entry, calls) of the generated cases; an entry in its first two programs only."""
    uses = {}
    for scenario in GENERATED:
        for entry, count in tester.own_entries(scenario).items():
            uses.setdefault(entry, []).append((scenario, count))
    for entry, found in uses.items():
        for scenario, count in found if every else found[:2]:
            numbers = range(1, count + 1) if every else sorted({1, (count + 1) // 2, count})
            for calls in [*map(str, numbers), "*"]:
                yield scenario, entry, calls


def check_generated(tester, case):
    scenario, entry, calls = case
    found, _ = tester.check(scenario, fail(f"{entry}:{calls}"))
    return [f"{scenario} with {entry}:{calls}: {line}" for line in found]


def added_operations(tester, scenario, run):
    """Operations that the bare run does not have, or has less often."""
    extra = log_key(run.log, False) - log_key(tester.bare(scenario).log, False)
    return [f"{sum(extra.values())} operations added, first {next(iter(extra))}"] if extra else []


def check_surfaces(tester, case):
    """A launch that is submitted and refused: the program's own check must see the error."""
    scenario, environment = case
    run, _ = tester.shimmed(scenario, environment)
    found = added_operations(tester, scenario, run)
    if run.status != 2 or b"CUDA_ERROR_LAUNCH_TIMEOUT" not in run.stderr:
        found.append(f"exit status {run.status}, stderr {run.stderr.decode()[-200:]!r}")
    return [f"{scenario} with {environment}: {line}" for line in found]


def surfacing_cases(tester):
    for scenario in ("repeated", "interleaved_streams", "legacy_only"):
        for calls in (1, 5, 20):
            environment = fail(f"cuLaunchKernel:{calls}:LAUNCH_TIMEOUT")
            yield scenario, {**environment, "CAJETA_XPU_GRAPH_BYTES": "0"}
    # The graph is refused, and then the launches that go one by one in its stead.
    direct = tester.shimmed("repeated", {})[0].counters["cuLaunchKernel"]
    yield "repeated", fail(f"cuGraphLaunch:2,cuLaunchKernel:{direct + 1}+:LAUNCH_TIMEOUT")


def check_any(tester, case):
    """The n-th call of all fails: the program notices, or nothing has changed."""
    scenario, number = case
    run, _ = tester.shimmed(scenario, fail(f"any:{number}"))
    if run.status == 0:
        found = differences(tester.bare(scenario), run, "ordered", with_misuse=False)
    else:
        found = added_operations(tester, scenario, run)
    if run.status not in (0, 2, 3):  # scenarios end with 2 or 3 when a call or a claim fails
        found.append(f"exit status {run.status}")
    return [f"{scenario} with any:{number}: {line}" for line in found]


def any_cases(tester, every):
    for scenario in REPLAYING + ["capture_across_streams"]:
        counters = tester.shimmed(scenario, {})[0].counters
        calls = sum(count for entry, count in counters.items() if entry in tester.since)
        step = 1 if every else max(1, calls // 12)
        for number in range(1, calls + 1, step):
            yield scenario, number


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--softgpu", required=True, help="folder of libcuda.so.1")
    parser.add_argument("--shim", required=True, help="libcajeta_xpu.so")
    parser.add_argument("--scenarios", required=True, help="the scenario program")
    parser.add_argument("--decode", required=True, help="the decoder")
    parser.add_argument("--entries", required=True, help="runtime/driver_entries.def")
    parser.add_argument("--all", action="store_true", help="fail every single call, not a few")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("cases", nargs="*", help="names of cases, generated, surfaces, any")
    return parser.parse_args()


def main():
    options = parse_arguments()
    tester = Tester(options)
    named = [case for case in NAMED if not options.cases or case.name in options.cases]
    failures, generated, others = [], [], []
    if not options.cases or "generated" in options.cases:
        generated = list(generate(tester, options.all))
    if not options.cases or "surfaces" in options.cases:
        others += [(check_surfaces, case) for case in surfacing_cases(tester)]
    if not options.cases or "any" in options.cases:
        others += [(check_any, case) for case in any_cases(tester, options.all)]
    with ThreadPoolExecutor(options.jobs) as pool:
        for case, found in zip(named, pool.map(lambda case: check_named(tester, case), named)):
            failures += [f"{case.name}: {line}" for line in found]
        for found in pool.map(lambda case: check_generated(tester, case), generated):
            failures += found
        for found in pool.map(lambda other: other[0](tester, other[1]), others):
            failures += found
    if generated:
        tested = {entry for _, entry, _ in generated}
        failures += [f"{entry}: no case fails it" for entry in OWN_ENTRIES if entry not in tested]
        print("failed in generated cases: " + " ".join(sorted(tested)))
    for line in failures:
        print(line)
    counts = f"{len(named)} named, {len(generated)} generated, {len(others)} other cases"
    print(f"{counts}, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
