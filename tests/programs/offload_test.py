#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that GCC compiled for nvptx (offload_openmp.c, offload_openacc.c) bare and with the
preload library: the program's own checks must pass, and every printed bit must be equal. libgomp
links some 40 modules of PTX at run time, and waits for a lock on the device.

    offload_test.py --softgpu DIR --shim FILE --work DIR [--oracle FILE] [--orders LIST]

Exit status 77 (skipped) without Debian's gcc-12-offload-nvptx and libgomp-plugin-nvptx1
(tools/setup.sh installs both).
"""

import argparse
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays clean

from cases import SKIPPED  # noqa: E402
from client_runs import Trial, tail_of  # noqa: E402
from compare import Runner  # noqa: E402

COMPILER = "gcc-12"
HERE = os.path.dirname(os.path.abspath(__file__))
# Without a device the programs would run on the host, and say so.
PROGRAMS = {
    "openmp": (["-fopenmp"], {"OMP_TARGET_OFFLOAD": "MANDATORY"}),
    "openacc": (["-fopenacc"], {"ACC_DEVICE_TYPE": "nvidia"}),
}
# What Trial.compare() may look at, in other orders and early. libgomp asks whether a queue of OpenACC
# is idle, and records no event or does not wait if so. Early, where no kernel is ever pending, the
# events are certain, not the waits: callbacks run in a thread of their own.
COMPARED = {"openmp": ("all", "all"), "openacc": ("none", "shapes")}
# The same sums on both sides need the same roundings.
EXACT = "-ffp-contract=off"


def compile_program(name, work):
    """The program, or None. GCC's nvptx assembler takes a ptxas on the path to check PTX for sm_35,
    which CUDA 13 has dropped: none must be there."""
    os.makedirs(work, exist_ok=True)
    program = os.path.join(work, f"offload_{name}")
    source = os.path.join(HERE, f"offload_{name}.c")
    folders = [f for f in os.get_exec_path() if not os.path.exists(os.path.join(f, "ptxas"))]
    command = [COMPILER, "-O2", "-Wall", EXACT, *PROGRAMS[name][0], "-foffload=nvptx-none"]
    command += [f"-foffload-options={EXACT} -lm", source, "-lm", "-o", program]
    environment = {**os.environ, "PATH": os.pathsep.join(folders)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        print(f"skipped: {COMPILER}: {error.strerror}", file=sys.stderr)
        return None
    if done.returncode != 0:
        print(f"failed: {' '.join(command)}\n{done.stderr}", file=sys.stderr)
        return None
    return program


def has_offloading():
    """Whether the compiler knows the target, and libgomp the device."""
    files = ("-print-file-name=libgomp-plugin-nvptx.so.1", "-print-prog-name=accel/nvptx-none/lto1")
    for file in files:
        try:
            answer = subprocess.run([COMPILER, file], capture_output=True, text=True, check=False)
        except OSError:
            return False
        if not os.path.isabs(answer.stdout.strip()):
            return False
    return True


def check(runner, name, program, order, oracle):
    trial = Trial(runner, [program], order, oracle)
    made = trial.bare.counters.get("cuLaunchKernel", 0)
    summary = f"{made} launches"
    if trial.bare.status != 0 or b"runs on the device" not in trial.bare.stdout:
        output = trial.bare.stdout.decode(errors="replace")[-1000:]
        trial.found = [f"exit status {trial.bare.status} bare: {output}{tail_of(trial.bare)}"]
    else:
        trial.compare(COMPARED[name][order == "early"])
        summary += f", {trial.launches.queued} queued, {trial.launches.replayed} replayed"
        # It waits for every OpenMP region; those of OpenACC follow each other.
        if name == "openacc" and trial.launches.replayed <= made // 2:
            trial.found.append(f"not replayed: {summary}")
    trial.close()
    return trial.report(name, summary)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--softgpu", required=True, help="folder of libcuda.so.1")
    parser.add_argument("--shim", required=True, help="libcajeta_xpu.so")
    parser.add_argument("--work", required=True, help="folder for the compiled programs")
    parser.add_argument("--oracle", help="softgpu-compare, to compare the order of all work too")
    parser.add_argument("--orders", default="early,late,random:1,random:2")
    options = parser.parse_args()
    if not has_offloading():
        print(f"skipped: {COMPILER} does not offload to nvptx here", file=sys.stderr)
        return SKIPPED
    runner = Runner(options.softgpu, options.shim, timeout=300)
    status = 0
    for name, (_, settings) in PROGRAMS.items():
        program = compile_program(name, options.work)
        if program is None:
            return 1
        os.environ.update(settings)
        for order in options.orders.split(","):
            status |= check(runner, name, program, order, options.oracle)
    return status


if __name__ == "__main__":
    sys.exit(main())
