#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs under CAJETA_PROFILER=1 and holds the trace against what traced.cpp says of itself, read with the
definitions of PyPI's perfetto package; exit status 77 when that is not to be had.

    trace_test.py CASE --softgpu DIR --shim FILE --cli FILE --venv DIR PROGRAM

  whole      kernels, their launch sites, streams, waits, samples, under several orders; the command's own tables
  deferral   the device profiler keeps launches direct, CAJETA_PROFILER_GPU=0 does not; both beside the driver profile
  killed     SIGKILL: the file is readable and has what was drained before
  endings    _exit; a program that unloads its code and resets its context
  small      rings and a file too small for the program drop and say so
  python     (PROGRAM: python_launches.py) launches have the Python line, one for each distinct call
  python_many  (the same) more lines than there is room for: later launches are native, and the trace says so
  file       a file that cannot be had, one that another process writes, names with %p
  scenarios  (PROGRAM: the scenario program) behave as bare
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from perfetto_trace import Malformed, Trace, require, run_with_perfetto

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from compare import LONG_DEADLINE_US, Report, Runner, differences  # noqa: E402  pylint: disable=wrong-import-position

SOURCE = "traced.cpp"
SCENARIOS = """repeated interleaved_streams per_thread_stream capture_across_streams forbidden_in_another_thread
    broken_capture own_graph green_streams green_contexts_in_turn two_contexts primary_context_again context_again
    destroyed_by_another_thread exit_in_a_signal_handler module_reload trap fork_with_launches_pending interrupted_by_signals""".split()


class Profiled:
    """One finished run under the profiler: `trace`, what the program said (`truth`), `run`."""

    def __init__(self, options, settings=(), arguments=(), order="free", status=0):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.pftrace"
            extra = {"CAJETA_PROFILER": "1", "CAJETA_PROFILER_OUT": str(path), **dict(settings)}
            runner = Runner(options.softgpu, options.shim)
            self.run = runner.run([options.program, *arguments], True, order, extra)
            stderr = self.run.stderr.decode(errors="replace")
            require(self.run.status == status, f"exit status {self.run.status}, not {status}\n{stderr}")
            self.data = path.read_bytes()
            self.trace = Trace(self.data)
            self.said = subprocess.run([options.cli, "profile", "summary", path], capture_output=True, text=True,
                                       check=False)
        self.truth = truth_of(self.run.stdout)


def truth_of(stdout):
    found = {}
    for line in stdout.decode().splitlines():
        *name, count = line.split()
        found[" ".join(name)] = int(count)
    return found


def site_of(launch):
    """The nearest function of traced.cpp, inlined ones included."""
    for frame in launch.stack:
        for line in frame.lines:
            if line.file.endswith(SOURCE):
                return line.function.removeprefix("(anonymous namespace)::").split("(")[0]
    return None


def check_launches(trace, truth):
    runs = [launch for launch in trace.launches.values() if launch.run is not None]
    counts = collections.Counter((site_of(launch), launch.run.mangled) for launch in runs)
    for wanted in ("launch_long _Z9long_workPji", "launch_short short_work"):
        site, kernel = wanted.split()
        require(counts[site, kernel] == truth[wanted], f"{wanted}: {counts}")
    graphs = [launch for launch in runs if launch.entry == "cuGraphLaunch"]
    require(len(graphs) == truth["graphs"] and {site_of(one) for one in graphs} == {"replay"}, f"graphs: {counts}")
    require(len(runs) == sum(counts.values()) == trace.header["launches_kept"], f"{len(runs)} launches: {trace.header}")
    require(trace.header["launches_dropped"] == 0, f"dropped: {trace.header}")
    require(trace.header["launches_untimed"] == truth["untimed"], f"untimed: {trace.header}")
    for launch in runs:
        require(launch.end >= launch.start and launch.run.end >= launch.run.start >= launch.start, f"times of {launch}")
    names = {launch.run.kernel for launch in runs}
    require("long_work(unsigned int*, int)" in names, f"names: {names}")


def check_streams(trace):
    kinds = collections.Counter()
    for launch in trace.launches.values():
        kinds[launch.run.stream.name.split("(")[1].split(")")[0]] += 1
    require(kinds["legacy"] == 8 and kinds["per-thread"] == 12, f"streams: {kinds}")
    require(set(trace.contexts.values()) == {"device context 1"}, f"contexts: {trace.contexts}")


def check_spans(trace, truth, order):
    blocked = collections.Counter(span.entry for span in trace.spans if span.is_blocked)
    # Where the work is done by the time the program asks, the call is too short to be drawn.
    least = truth["waits"] if order == "late" else 0
    require(least <= blocked["cuStreamSynchronize"] <= truth["waits"], f"{order}: waits: {blocked}")
    require(blocked["cuMemcpyDtoH"] <= truth["copies"], f"{order}: copies: {blocked}")
    require(all(span.bytes == 4 for span in trace.spans if span.entry == "cuMemcpyDtoH"), "bytes of a copy")


def check_samples(trace):
    main = [sample for sample in trace.samples if sample.tid == trace.process.pid]
    require(len(main) > 20, f"{len(main)} samples of the main thread")
    functions = [[line.function for frame in sample.stack for line in frame.lines] for sample in main]
    burning = [names for names in functions if any("burn" in name for name in names)]
    require(len(burning) > 10, f"{len(burning)} of {len(main)} samples in burn(): {functions[:3]}")
    require(any("main" in names for names in burning), f"no sample reaches main(): {burning[:3]}")


def check_summary(said, truth):
    require(said.returncode == 0, f"profile summary: {said.stderr}")
    for word in ("long_work", "short_work", "launch_long", "launch_short", "burn"):
        require(word in said.stdout, f"the summary does not say {word}:\n{said.stdout}")
    require(str(truth["launch_long _Z9long_workPji"]) in said.stdout, f"no count of launches:\n{said.stdout}")


def whole(options):
    bare = Runner(options.softgpu, options.shim).run([options.program], False, "free")
    for order in ("late", "early", "free", "random:1"):
        done = Profiled(options, order=order)
        require(done.run.stdout == bare.stdout, f"{order}: the program prints something else")
        require(done.trace.header["is_complete"] == 1, f"{order}: {done.trace.header}")
        check_launches(done.trace, done.truth)
        check_streams(done.trace)
        check_spans(done.trace, done.truth, order)
        check_samples(done.trace)
        check_summary(done.said, done.truth)


def deferral(options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.json")
        both = {"CAJETA_XPU_DEFER": "all", "CAJETA_XPU_DRIVER_PROFILE": "1", "CAJETA_XPU_REPORT": path,
                "CAJETA_XPU_DEFER_DEADLINE_US": str(LONG_DEADLINE_US)}
        armed = Profiled(options, both, ["quick"])
        report = Report(path)
        require(report.queued == 0 and report.count("profiler armed") > 300, f"queued {report.queued}")
        require(len(armed.trace.launches) > 300, f"{len(armed.trace.launches)} launches")
        os.unlink(path)
        host = Profiled(options, {**both, "CAJETA_PROFILER_GPU": "0"})
        report = Report(path)
        require(report.replayed > 0 and report.count("profiler armed") == 0, f"replayed {report.replayed}")
        require(not host.trace.launches and host.trace.header["device_ring_launches"] == 0, "launches were timed")
        check_samples(host.trace)
    none = Profiled(options, {"CAJETA_PROFILER_HZ": "0"}, ["quick"])
    require(not none.trace.samples and none.trace.header["sample_hz"] == 0, "samples at 0 Hz")
    off = Runner(options.softgpu, options.shim).run(
        [options.program, "quick"], True, "free", {"CAJETA_PROFILER": "0", "CAJETA_PROFILER_OUT": "/nowhere/t"})
    require(off.status == 0 and not off.stderr, f"off: {off.stderr}")


def killed(options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "t.pftrace"
        runner = Runner(options.softgpu, options.shim)
        env = runner.environment(True, "free", {"CAJETA_PROFILER": "1", "CAJETA_PROFILER_OUT": str(path)})
        with subprocess.Popen([options.program, "killed"], env=env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            truth = truth_of(read_truth(process.stdout))
            wanted = sum(truth[name] for name in truth if name.startswith("launch_")) + truth["graphs"]
            deadline = time.monotonic() + 60
            while len(Trace.of_file(path).launches) < wanted and time.monotonic() < deadline:
                pass  # drained twenty times a second
            process.stdin.write(b"\n")
            process.stdin.close()
            process.wait()
        trace = Trace.of_file(path)
        said = subprocess.run([options.cli, "profile", "summary", path], capture_output=True, text=True, check=False)
    require(process.returncode == -9, f"exit status {process.returncode}")
    require(trace.header["is_complete"] == 0 and len(trace.launches) == wanted, f"{len(trace.launches)}: {trace.header}")
    require(said.returncode == 0 and "long_work" in said.stdout, f"summary of a killed run: {said.stdout}{said.stderr}")


def read_truth(stdout):
    """Up to the last line that the program prints before it waits."""
    lines = b""
    while b"value" not in lines:
        line = stdout.readline()
        require(line, "the program ended early")
        lines += line
    return lines


def endings(options):
    left = Profiled(options, arguments=["_exit"])
    require(left.trace.header["is_complete"] == 1, f"_exit: {left.trace.header}")
    check_launches(left.trace, left.truth)
    unloaded = Profiled(options, arguments=["unloaded"])
    check_launches(unloaded.trace, unloaded.truth)


def small(options):
    rings = Profiled(options, {"CAJETA_PROFILER_GPU_RING": "16", "CAJETA_PROFILER_RING": "16"}, order="late")
    header = rings.trace.header
    total = header["launches_kept"] + header["launches_dropped"] + header["launches_untimed"]
    truth = rings.truth
    launches = sum(truth[name] for name in truth if name.startswith("launch_")) + truth["graphs"] + truth["untimed"]
    require(header["launches_dropped"] > 0 and total == launches, f"{launches} launches: {header}")
    require(len(rings.trace.launches) == header["launches_kept"], f"{len(rings.trace.launches)}: {header}")
    wrong = Runner(options.softgpu, options.shim).run(
        [options.program, "quick"], True, "free", {"CAJETA_PROFILER_HZ": "fast", "CAJETA_PROFILER_RING": "1"})
    lines = wrong.stderr.decode().splitlines()
    require(len([line for line in lines if "legal values" in line]) == 2 and wrong.status == 0, f"{lines}")


def file(options):
    runner = Runner(options.softgpu, options.shim)
    with tempfile.TemporaryDirectory() as folder:
        lost = runner.run([options.program, "quick"], True, "free",
                          {"CAJETA_PROFILER": "1", "CAJETA_PROFILER_OUT": folder + "/no/t.pftrace"})
        lines = lost.stderr.decode().splitlines()
        require(lost.status == 0 and len(lines) == 1 and "No such file" in lines[0], f"{lines}")
        full = runner.run([options.program, "quick"], True, "free",
                          {"CAJETA_PROFILER": "1", "CAJETA_PROFILER_OUT": "/dev/full"})
        require(full.status == 0 and "No space left" in full.stderr.decode(), f"{full.stderr}")
        path = pathlib.Path(folder) / "t.pftrace"
        env = runner.environment(True, "free", {"CAJETA_PROFILER": "1", "CAJETA_PROFILER_OUT": str(path)})
        with subprocess.Popen([options.program, "paused"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
            read_truth(first.stdout)
            second = runner.run([options.program, "quick"], True, "free",
                                {"CAJETA_PROFILER": "1", "CAJETA_PROFILER_OUT": str(path)})
            first.stdin.close()
            first.wait()
        names = sorted(name.name for name in pathlib.Path(folder).iterdir())
        require(second.status == 0 and len(names) == 2 and f"t.{first.pid}.pftrace" not in names, f"{names}")
        traces = [Trace.of_file(pathlib.Path(folder) / name) for name in names]
        require(all(trace.header["is_complete"] == 1 for trace in traces), "one was overwritten")
        require(Trace.of_file(path).process.pid == first.pid, "the first is not in its own file")


def python_marks(path):
    """(line, kernel, launches) of the lines marked LAUNCH."""
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        mark = re.search(r"# LAUNCH (\w+) (\d+)$", line)
        if mark:
            yield number, mark[1], int(mark[2])


def python(options):
    script = pathlib.Path(options.program).resolve()
    options.program, arguments = sys.executable, [str(script)]
    done = Profiled(options, arguments=arguments)
    require(done.run.stdout == b"counted 160\n", f"{done.run.stdout}")
    header, launches = done.trace.header, done.trace.launches.values()
    require(header["python"].strip() == sys.version.split()[0] and not header["python_unread"].strip(), f"{header}")
    found = collections.Counter()
    for launch in launches:
        innermost, *others = launch.stack
        require(innermost.path == "/[python]" and len(innermost.lines) == 1, f"no Python line: {launch}")
        require(others and all(frame.path != "/[python]" for frame in others), f"native frames: {launch.stack}")
        line = innermost.lines[0]
        found[line.file, line.line, line.function, launch.kernel] += 1
    functions = {"clear": ["Device.prepare"], "count_up": ["Device.step", "Device.step", "Device.in_thread", "Device.beside"]}
    wanted = {(str(script), line, functions[kernel].pop(0), kernel): count
              for line, kernel, count in python_marks(script)}
    wanted |= {(f"<cell {number}>", number + 1, "<module>", "count_up"): 4 for number in range(5)}
    require(found == wanted, f"{found}, not {wanted}")
    require(len({launch.stack[0].rel_pc for launch in launches}) == len(wanted), "places are not told apart")
    said = done.said.stdout
    line = next(line for line, kernel, _ in python_marks(script) if kernel == "clear")
    require(f"from {script.name}:{line} Device.prepare\n" in said, f"the summary does not name the line:\n{said}")
    require(re.search(rf"25\.0 % from {re.escape(script.name)}:\d+ Device\.step\n", said), f"the share:\n{said}")
    # Frames that are not to be read: the trace and the summary say why, places are native.
    hidden = Profiled(options, arguments=[str(script), "unreadable"])
    require(hidden.trace.header["python_unread"].strip() == "process_vm_readv is not allowed here", f"{hidden.trace.header}")
    require(not any(frame.path == "/[python]" for launch in hidden.trace.launches.values() for frame in launch.stack),
            "places without frames")
    require(f"python    {sys.version.split()[0]}: no lines of it: process_vm_readv is not allowed here\n" in hidden.said.stdout, f"{hidden.said.stdout}")


def python_many(options):
    script = pathlib.Path(options.program).resolve()
    options.program = sys.executable
    done = Profiled(options, {"CAJETA_PROFILER_GPU_RING": "16384"}, [str(script), "many", "4200"])
    # Of the first lines all are there, of the last none.
    innermost = [launch.stack[0] for launch in done.trace.launches.values()]
    lines = {frame.lines[0].file for frame in innermost if frame.path == "/[python]"}
    require(len(lines) == 4096 - 4, f"{len(lines)} files")  # one of them has five lines
    require({frame.path for frame in innermost[-50:]}.isdisjoint({"/[python]"}), "more places than there is room for")
    require(done.trace.header["python_unread"].startswith("too many different ones: "), f"{done.trace.header}")


def without_numbers(line):
    """Of streams and events: the profiler has some of its own."""
    return re.sub(r" e\d+", " e", re.sub(r"^(\d+)\.\d+ ", r"\1.x ", line))


def scenarios(options):
    runner = Runner(options.softgpu, options.shim)
    with tempfile.TemporaryDirectory() as folder:
        for name in SCENARIOS:
            extra = {"CAJETA_PROFILER": "1", "CAJETA_PROFILER_OUT": f"{folder}/{name}.%p", "CAJETA_XPU_DEFER": "all"}
            for order in ("early",) if name == "exit_in_a_signal_handler" else ("early", "late"):
                bare = runner.run([options.program, name], False, order)
                profiled = runner.run([options.program, name], True, order, extra)
                for run in (bare, profiled):
                    run.log = [without_numbers(line) for line in run.log if " record e" not in line]
                # How far the program comes before its signal is chance.
                log = "none" if name == "exit_in_a_signal_handler" else "unordered"
                found = differences(bare, profiled, log)
                require(bare.status == 0 and not found, f"{name}, {order}: {found}")
        paths = list(pathlib.Path(folder).iterdir())
        require(len(paths) >= len(SCENARIOS), f"{len(paths)} traces of {len(SCENARIOS)} programs")
        for path in paths:
            # The thread that left may have held a lock of the driver, and then its trace ends early.
            is_complete = Trace.of_file(path).header["is_complete"] == 1
            require(is_complete or path.name.startswith("exit_in_a_signal_handler"), f"{path.name} is not complete")


CASES = {case.__name__: case for case in (whole, deferral, killed, endings, small, python, python_many, file, scenarios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    for name in ("softgpu", "shim", "cli", "venv"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("program")
    options = parser.parse_args()
    run_with_perfetto(options.venv)
    try:
        CASES[options.case](options)
    except Malformed as broken:
        print(f"{options.case}: {broken}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
