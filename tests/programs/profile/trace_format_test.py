#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trace that the program writes has in it what the program put there, read with Perfetto's own definitions; cut
anywhere it is readable up to the last whole packet."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from perfetto_trace import Malformed, Trace, require, run_with_perfetto, whole_packets

SOURCE = pathlib.Path(__file__).resolve().parent / "write_trace.cpp"
START = 1_000_000_000_000  # of at_us()


def mark(name):
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"// mark: {name}"))


def written_by(program):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "t.pftrace"
        subprocess.run([program, path], check=True)
        return path.read_bytes()


def check_header(trace):
    expected = {
        "command": "write_trace", "format": 1, "sample_hz": 1000, "ring_samples": 4096, "device_ring_launches": 8192,
        "samples_kept": 7, "samples_dropped": 0, "threads_left_out": 0, "launches_kept": 6, "launches_dropped": 0, "launches_untimed": 3,
        "spans_kept": 4, "spans_dropped": 0, "bytes_dropped": 0, "own_cost_ns": 123456789, "is_complete": 1}
    for key, value in expected.items():
        require(trace.header.get(key) == value, f"{key}: {trace.header.get(key)}, not {value}")
    require(trace.header["pid"] == trace.process.pid and trace.header["version"], "pid or version")
    require(sorted(trace.clocks) == [1, 3, 6] and all(trace.clocks.values()), f"clocks: {trace.clocks}")
    require(trace.process.process_name == "write_trace" and len(trace.process.cmdline) == 2, "the process's name")


def check_tracks(trace):
    pid = trace.process.pid
    require(sorted(trace.threads) == [pid, pid + 1], f"threads: {sorted(trace.threads)}")
    require(trace.threads[pid].name == "write_trace", f"main thread: {trace.threads[pid]}")
    streams = sorted((stream.name, stream.context) for stream in trace.streams.values())
    require(streams == [("stream 1 (legacy)", "device context 1"), ("stream 2 (0x7f00)", "device context 1"),
                        ("stream 3 (per-thread)", "device context 2")], f"streams: {streams}")


def check_spans(trace):
    pid = trace.process.pid
    # A host slice ends 1 ns early.
    spans = sorted((span.tid - pid, span.start - START, span.end - START, span.entry, span.bytes, span.is_blocked)
                   for span in trace.spans)
    require(spans == [(0, 100_000, 199_999, "cuMemAlloc", 1024, False), (0, 200_000, 289_999, "cuMemcpyDtoH", 8, True),
                      (0, 300_000, 399_999, "cuMemcpyDtoH", 4, True),
                      (1, 100_000, 100_000, "cuCtxSynchronize", 0, True)],
            f"spans: {spans}")


def check_launches(trace):
    template = "void saxpy<float>(int, float, float const*, float*)"
    require(sorted(trace.launches) == list(range(1, 7)), f"launches: {sorted(trace.launches)}")
    ends = {}
    for number, launch in sorted(trace.launches.items()):
        run, called = launch.run, START + (1000 + 10 * number) * 1000
        names = ("plain_kernel", "plain_kernel") if number % 2 else (template, "_Z5saxpyIfEviT_PKS0_PS0_")
        require((run.kernel, run.mangled) == names, f"{number}: {run.kernel}, {run.mangled}")
        require((launch.entry, launch.start, launch.end) == ("cuLaunchKernel", called, called + 3999),
                f"{number}: {launch}")
        require((run.grid, run.block, run.shared_bytes) == (f"{number}x1x1", "128x1x1", 48 if number == 1 else 0),
                f"{number}: {run}")
        begun = called if number == 6 else called + 1000
        expected = max(begun, ends.get(run.stream.name, 0)), begun + 40_000
        require((run.start, run.end) == expected, f"{number} ran {run.start} to {run.end}, not {expected}")
        ends[run.stream.name] = run.end
        require([frame.lines[-1].line for frame in launch.stack] == [mark("outer"), mark("main")],
                f"{number} was launched at {launch.stack}")


def check_samples(trace):
    pid = trace.process.pid
    times = [(sample.tid - pid, (sample.time - START) // 1000) for sample in trace.samples]
    require(times == [(0, 2000)] + 2 * [(0, 2001)] + 3 * [(0, 2002)] + [(1, 2000)], f"samples: {times}")
    require(trace.samples[-1].stack == [], "a stack from nowhere")
    inner, outer, caller, nowhere = trace.samples[0].stack
    lines = [(line.function.split("::")[-1].split("(")[0], pathlib.Path(line.file).name, line.line)
             for frame in (inner, outer, caller) for line in frame.lines]
    require(lines == [("inlined_function", SOURCE.name, mark("inlined")),
                      ("inner_function", SOURCE.name, mark("inner")),
                      ("outer_function", SOURCE.name, mark("outer")), ("main", SOURCE.name, mark("main"))],
            f"names: {lines}")
    require((nowhere.path, nowhere.rel_pc, nowhere.lines) == ("/[anonymous]", 0xF, []), f"nowhere: {nowhere}")


def check_cuts(data):
    """At every byte: the packets before it, and nothing else. Every tenth is read to the end."""
    sizes, count = [], len(list(whole_packets(data)))
    for size in range(len(data) + 1):
        sizes.append(len(list(whole_packets(data[:size]))))
        if size % 10 == 0:
            require(Trace(data[:size]).packets == sizes[-1], f"cut at {size}")
    require(sizes == sorted(sizes) and set(sizes) == set(range(count + 1)), "packets are missing")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", required=True, help="Python environment, made when missing")
    parser.add_argument("program")
    options = parser.parse_args()
    run_with_perfetto(options.venv)
    data = written_by(options.program)
    try:
        trace = Trace(data)
        for check in (check_header, check_tracks, check_spans, check_launches, check_samples):
            check(trace)
        check_cuts(data)
    except Malformed as failure:
        print(failure)
        return 1
    print(f"{trace.packets} packets, as written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
