# SPDX-License-Identifier: Apache-2.0
"""The demo's run and its summary; tools/demo builds first and calls this."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

TOKENS = 64
LOGITS_BYTES = 128 * 4  # of one token
PAIRS = 5


class Demo:
    def __init__(self, options):
        self.build = os.path.abspath(options.build)
        self.program = os.path.join(self.build, "tests", "programs", "decode_linked")
        self.shim = os.path.join(self.build, "shim", "libcajeta_xpu.so")
        self.tool = os.path.join(self.build, "tools", "cli", "cajeta-xpu")
        self.softgpu = os.path.join(self.build, "tools", "softgpu")
        self.on_gpu = False
        self.on_gpu = not options.softgpu and self.gpu_answers()

    def environment(self, shimmed, extra):
        env = {name: value for name, value in os.environ.items() if not name.startswith("CAJETA_")}
        if not self.on_gpu:
            env["LD_LIBRARY_PATH"] = self.softgpu
            env["CAJETA_SOFTGPU_ORDER"] = (
                "late"  # like a GPU: submitting and executing are different moments
            )
            env["CAJETA_SOFTGPU_COSTS"] = "linux"
        if shimmed:
            env["LD_PRELOAD"] = self.shim
            env["CAJETA_XPU_DEFER"] = "all"
        env.update(extra)
        return env

    def run(self, arguments, shimmed, **extra):
        return subprocess.run(
            [self.program] + arguments,
            env=self.environment(shimmed, extra),
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=300,
            text=True,
        )

    def gpu_answers(self):
        """Whether the system has a libcuda that can run one token."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("CAJETA_")}
        done = subprocess.run(
            [self.program, "--tokens", "1"],
            env=env,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
        )
        return done.returncode == 0


def fail(text):
    print(f"demo: {text}", file=sys.stderr)
    sys.exit(1)


def timed_run(demo, folder, shimmed):
    """(device, stdout, all output bits, submit time of a token in us)"""
    output = os.path.join(folder, "logits")
    done = demo.run(["--tokens", str(TOKENS), "--output", output, "--time"], shimmed)
    if done.returncode != 0:
        fail(
            f"the {'shimmed' if shimmed else 'bare'} run ended with status {done.returncode}:\n"
            f"{done.stderr}"
        )
    with open(output, "rb") as file:
        bits = file.read()
    device = re.search(r"^device (.*)$", done.stderr, re.MULTILINE)
    time = re.search(r"submit_us_per_token median ([\d.]+)", done.stderr)
    if not device or not time:
        fail(f"the program said nothing about its device and times:\n{done.stderr}")
    return device.group(1), done.stdout, bits, float(time.group(1))


def reported_run(demo, folder):
    """Path of the exit report, as JSON, of one more shimmed run."""
    report = os.path.join(folder, "report.json")
    done = demo.run(
        ["--tokens", str(TOKENS), "--quiet"],
        True,
        CAJETA_XPU_DRIVER_PROFILE="1",
        CAJETA_XPU_REPORT=report,
    )
    if done.returncode != 0:
        fail(f"the run with a report ended with status {done.returncode}:\n{done.stderr}")
    if not os.path.exists(report):
        fail("the run wrote no exit report")
    return report


def launches_of(report):
    """(replayed launches, graph launches, patched nodes)"""
    with open(report, encoding="utf-8") as file:
        launches = json.load(file)["launches"]
    return launches["replayed"], launches["graphs"]["launched"], launches["graphs"]["nodes_patched"]


def as_text(demo, report):
    """The report as `cajeta-xpu report` shows it."""
    return subprocess.run([demo.tool, "report", report], check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--softgpu", action="store_true")
    demo = Demo(parser.parse_args())
    bare, shimmed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(PAIRS):
            bare.append(timed_run(demo, folder, False))
            shimmed.append(timed_run(demo, folder, True))
        report = reported_run(demo, folder)
        replayed, graph_launches, patches = launches_of(report)
        text = as_text(demo, report)

    launches = int(re.search(r"launches (\d+)", bare[0][1]).group(1))
    equal = (
        all(run[1:3] == bare[0][1:3] for run in bare + shimmed)
        and len(bare[0][2]) == TOKENS * LOGITS_BYTES
    )
    bare_us, shimmed_us = min(run[3] for run in bare), min(run[3] for run in shimmed)
    ratios = sorted(one[3] / other[3] for one, other in zip(shimmed, bare))
    simulated = "" if demo.on_gpu else "   (the driver's host costs are simulated: profile linux)"

    print(
        f"device          {bare[0][0]}"
        f"{'' if demo.on_gpu else ' (softgpu: our own libcuda, on the CPU)'}"
    )
    print(f"tokens          {TOKENS}")
    print(
        f"output          {'equal' if equal else 'DIFFERENT'}: "
        f"{8 * len(bare[0][2]):,} bits of logits, bare and "
        f"shimmed, {PAIRS} runs each"
    )
    print(
        f"launches        {launches:,} ({launches // TOKENS} a token), "
        f"{replayed:,} of them replayed in graphs"
    )
    print(f"graph launches  {graph_launches:,}")
    print(f"patches         {patches:,}")
    print(f"host time spent submitting a token{simulated}")
    print(f"  bare          {bare_us:,.1f} us")
    print(f"  shimmed       {shimmed_us:,.1f} us")
    print(
        f"  ratio         {ratios[len(ratios) // 2]:.3f} median, {ratios[0]:.3f} minimum of "
        f"{PAIRS} pairs"
        f"   ({1 / ratios[len(ratios) // 2]:.1f} times less)"
    )
    print(f"\nThe exit report of the shimmed run (CAJETA_XPU_DRIVER_PROFILE=1):\n\n{text}")
    if not equal:
        fail("outputs differ")
    if replayed == 0 or graph_launches == 0:
        fail("nothing was replayed")


main()
