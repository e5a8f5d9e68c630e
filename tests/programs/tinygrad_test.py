#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tinygrad (tinygrad_client.py) bare and with the preload library: every printed bit must be equal.
With tinygrad's own graphs off the library's replays are counted, with them on they must pass through.

    tinygrad_test.py --softgpu DIR [--shim FILE] --venv DIR [--steps N]

Exit status 77 (skipped) when tinygrad is neither in the environment DIR nor to be had from PyPI.
"""

import argparse
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays clean

from compare import LONG_DEADLINE_US, Runner, differences  # noqa: E402

VERSION = "0.14.0"
SKIPPED = 77
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tinygrad_client.py")
EXTRA = {"CAJETA_XPU_DEFER_DEADLINE_US": str(LONG_DEADLINE_US)}


def has_tinygrad(python):
    probe = f"import importlib.metadata as m; exit(m.version('tinygrad') != {VERSION!r})"
    try:
        return subprocess.run([python, "-c", probe], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def make_environment(folder):
    """The Python of an environment that has tinygrad, or None."""
    python = os.path.join(folder, "bin", "python3")
    if has_tinygrad(python):
        return python
    commands = [[python, "-m", "pip", "install", "-q", "--no-deps", f"tinygrad=={VERSION}"]]
    if not os.path.exists(python):
        commands.insert(0, [sys.executable, "-m", "venv", folder])
    for command in commands:
        done = subprocess.run(command, stdout=sys.stderr, check=False)
        if done.returncode != 0:
            print(f"skipped: {' '.join(command)} failed", file=sys.stderr)
            return None
    return python if has_tinygrad(python) else None


def client_environment(jit):
    """tinygrad's settings: the CUDA backend, its own PTX, no cache outside this run."""
    return {
        "DEV": "CUDA:PTX",
        "JIT": str(jit),
        "CACHELEVEL": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }


def check_bare(run, jit, steps):
    lines = run.stdout.decode().splitlines()
    found = []
    if run.status != 0:
        return [f"exit status {run.status}: {run.stderr.decode(errors='replace')[-2000:]}"]
    if len(lines) != steps + 1:
        return [f"{len(lines)} lines of output, expected {steps + 1}"]
    losses = [float.fromhex(line.split()[-1]) for line in lines[:-1]]
    # It learns: numbers that only look like losses would not fall.
    if not sum(losses[-3:]) < 0.7 * sum(losses[:3]):
        found.append(f"the loss does not fall: {losses}")
    graph_launches = run.counters.get("cuGraphLaunch", 0)
    if (jit == 1) != (graph_launches > 0):
        found.append(f"JIT={jit} made {graph_launches} graph launches")
    return found


def check(runner, python, jit, order, options):
    os.environ.update(client_environment(jit))
    command = [python, CLIENT, "--steps", str(options.steps)]
    bare = runner.run(command, shimmed=False, order=order)
    found = check_bare(bare, jit, options.steps)
    launches = bare.counters.get("cuLaunchKernel", 0)
    if found or not options.shim:
        return found, f"{launches} launches bare"
    shimmed = runner.run(command, shimmed=True, order=order, extra=EXTRA)
    found = differences(bare, shimmed, "none")
    added = shimmed.counters.get("cuGraphLaunch", 0) - bare.counters.get("cuGraphLaunch", 0)
    left = shimmed.counters.get("cuLaunchKernel", 0)
    if jit != 1 and added <= 0:
        found.append("no replays: the library launched no graph")
    if jit == 1 and added < 0:
        found.append(f"{-added} of the client's graph launches are missing")
    if found:
        found.append(shimmed.stderr.decode(errors="replace")[-2000:])
    return found, f"{launches} launches bare, {left} shimmed, {added} graph launches added"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--softgpu", required=True, help="folder of libcuda.so.1")
    parser.add_argument("--shim", help="libcajeta_xpu.so; without it only the bare run is checked")
    parser.add_argument("--venv", required=True, help="Python environment, made when missing")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--orders", default="early,late,random:1")
    options = parser.parse_args()
    python = make_environment(options.venv)
    if python is None:
        return SKIPPED
    runner = Runner(options.softgpu, options.shim or "", timeout=600)
    status = 0
    for jit in (2, 1):
        for order in options.orders.split(","):
            found, summary = check(runner, python, jit, order, options)
            print(f"JIT={jit} {order}: " + ("; ".join(found) if found else f"equal, {summary}"))
            status = status or (1 if found else 0)
    return status


if __name__ == "__main__":
    sys.exit(main())
