#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the decoder must show under the shim: every output bit as bare, one graph launch a token
once the sequence is known, and exactly the patches that the changed arguments ask for.

    decode_test.py --softgpu DIR --shim FILE [--seeds N] [--tokens N] PROGRAM
"""

import argparse
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True  # the source tree stays clean

from compare import LONG_DEADLINE_US, Runner, differences, orders_of  # noqa: E402

WARM_UP = 3
LAUNCHES_PER_TOKEN = 356
LAUNCH_ENTRIES = [
    "cuLaunchKernel",
    "cuLaunchKernel_ptsz",
    "cuLaunchKernelEx",
    "cuLaunchKernelEx_ptsz",
]
PATCH_ENTRIES = ["cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2"]
EXTRA = {"CAJETA_XPU_DEFER_DEADLINE_US": str(LONG_DEADLINE_US)}


def total(run, entries):
    return sum(run.counters.get(entry, 0) for entry in entries)


def changes(run):
    match = re.search(rb"^changes (\d+)$", run.stdout, re.MULTILINE)
    return int(match.group(1)) if match else -1


def check_counts(runner, program, tokens):
    """The difference between a long and a short run is what the later tokens cost."""
    short = runner.run([program, "--changes", "--tokens", str(WARM_UP)], shimmed=True, extra=EXTRA)
    long = runner.run([program, "--changes", "--tokens", str(tokens)], shimmed=True, extra=EXTRA)
    bare = runner.run([program, "--changes", "--tokens", str(tokens)], shimmed=False)
    found = []
    if (short.status, long.status, bare.status) != (0, 0, 0):
        return [
            f"exit status {short.status}, {long.status}, {bare.status}: "
            f"{long.stderr.decode()[-500:]}"
        ]
    later = tokens - WARM_UP

    def expect(what, seen, wanted):
        if seen != wanted:
            found.append(f"{what}: {seen}, expected {wanted}")

    expect("launches of the bare run", total(bare, LAUNCH_ENTRIES), tokens * LAUNCHES_PER_TOKEN)
    expect(
        "graph launches of later tokens",
        total(long, ["cuGraphLaunch"]) - total(short, ["cuGraphLaunch"]),
        later,
    )
    expect(
        "direct launches of later tokens",
        total(long, LAUNCH_ENTRIES) - total(short, LAUNCH_ENTRIES),
        0,
    )
    patches = total(long, PATCH_ENTRIES) - total(short, PATCH_ENTRIES)
    expect("patches of later tokens", patches, changes(long) - changes(short))
    instantiated = [name for name in long.counters if name.startswith("cuGraphInstantiate")]
    expect(
        "graphs built by later tokens", total(long, instantiated) - total(short, instantiated), 0
    )
    if patches <= 0:
        found.append("no patches: the program's arguments should change every token")
    print(
        f"{later} later tokens: {later} graph launches, {patches} patches, no direct launch"
        if not found
        else "counts are wrong"
    )
    return found


def check_order(runner, program, order, tokens):
    with tempfile.TemporaryDirectory() as folder:
        outputs = [os.path.join(folder, name) for name in ("bare", "shimmed")]
        runs = [
            runner.run(
                [program, "--tokens", str(tokens), "--output", path],
                shimmed=path == outputs[1],
                order=order,
                extra=EXTRA,
            )
            for path in outputs
        ]
        found = differences(*runs, log="ordered")
        if runs[0].status != 0:
            found.append(f"exit status {runs[0].status} bare: {runs[0].stderr.decode()[-500:]}")
            return found
        contents = []
        for path in outputs:
            with open(path, "rb") as file:
                contents.append(file.read())
        if contents[0] != contents[1] or len(contents[0]) != tokens * 128 * 4:
            found.append("output bits differ")
        if total(runs[1], ["cuGraphLaunch"]) == 0:
            found.append("nothing was replayed")
        return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--softgpu", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument(
        "--seed-tokens", type=int, default=5, help="tokens of each run under another order"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("program")
    options = parser.parse_args()
    runner = Runner(options.softgpu, options.shim, timeout=300)
    found = check_counts(runner, options.program, options.tokens)
    found += [
        f"early, all tokens: {line}"
        for line in check_order(runner, options.program, "early", options.tokens)
    ]
    orders = orders_of(["late", "early", "free"], options.seeds)
    for order in orders:
        found += [
            f"{order}: {line}"
            for line in check_order(runner, options.program, order, options.seed_tokens)
        ]
    for line in found:
        print(line)
    print(f"{len(orders)} orders compared")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
