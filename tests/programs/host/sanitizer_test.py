#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs built with a sanitizer end under `cajeta-xpu run` as they do bare, and report what is wrong with them."""

import os
import shutil
import subprocess
import sys

from host_run import MODES, SHIMMED, main, require

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def build(host, compiler, sanitizer, *flags):
    """The program, or None where the compiler or its runtime is missing."""
    if shutil.which(compiler) is None or host.cli is None:
        return None
    program = host.path(f"sanitized_{compiler}_{sanitizer}{len(flags)}")
    toolkit = subprocess.run(
        [os.path.join(ROOT, "tools/find_cuda.sh")], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.strip()
    command = [compiler, "-std=c++20", "-g", "-O1", f"-fsanitize={sanitizer}", *flags, f"-I{ROOT}"]
    command += ["-isystem", f"{toolkit}/include", os.path.join(ROOT, "tests/programs/host/sanitized.cpp")]
    command += ["-o", program, f"-L{host.softgpu}", "-l:libcuda.so.1", "-pthread"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        print(built.stderr, file=sys.stderr)
        return None
    # As programs do on a machine that the runtime does not know.
    return program if host.run(steady(sanitizer, [program]), "bare").returncode == 0 else None


def steady(sanitizer, command):
    """The thread sanitizer finds no room in some layouts that the kernel chooses."""
    return ["setarch", "-R", *command] if sanitizer == "thread" else command


def summary(run):
    """What the sanitizer found, without the program's name."""
    words = (b"SUMMARY: ", b"runtime error: ")
    return [line.split(b"/")[0] for line in run.stderr.splitlines() if any(word in line for word in words)]


def run_with_tool(host, mode, command, **extra):
    """By `cajeta-xpu run`, with what `mode` sets."""
    environment = {name: value for name, value in (MODES[mode] or {}).items()}
    environment |= {"LD_PRELOAD": "", "ASAN_OPTIONS": "", "CAJETA_PROFILER_OUT": host.path("x.pftrace")}
    environment |= {"CAJETA_XPU_REPORT": host.path("x.json"), **extra}
    tool = [host.cli, "run", "-q", "--library", host.shim, "--", *command]
    return host.run(tool, "bare", environment)


def hold(host, compiler, sanitizer, faults, *flags):
    program = build(host, compiler, sanitizer, *flags)
    if program is None:
        return f"no {compiler} -fsanitize={sanitizer}"
    for fault, is_found in faults:
        command = steady(sanitizer, [program, fault])
        bare = host.run(command, "bare")
        if fault == "leak" and not summary(bare):
            print("leak: not found, as where the program must not be traced")
            continue
        require(bool(summary(bare)) == is_found, f"bare {fault}: {bare}")
        require(bare.stdout == b"200\ncaught\n", f"bare {fault}: {bare}")
        for mode in SHIMMED:
            run = run_with_tool(host, mode, command)
            end, wanted = (run.returncode, run.stdout, summary(run)), (bare.returncode, bare.stdout, summary(bare))
            require(end == wanted, f"{compiler} {sanitizer} {fault} {mode}: {end}, bare {wanted}\n{run.stderr.decode()}")
    return None


ADDRESS = (("none", False), ("overflow", True), ("leak", True))


def sanitizer_address(host):
    return hold(host, "g++", "address", ADDRESS)


def sanitizer_address_static(host):
    return hold(host, "g++", "address", ADDRESS, "-static-libasan")


def sanitizer_address_clang(host):
    return hold(host, "clang++", "address", ADDRESS)


def sanitizer_address_clang_shared(host):
    runtime = ["clang++", "-print-file-name=libclang_rt.asan-x86_64.so"]
    if shutil.which("clang++") is None:
        return "no clang++"
    folder = os.path.dirname(subprocess.run(runtime, check=True, capture_output=True, text=True).stdout.strip())
    return hold(host, "clang++", "address", ADDRESS, "-shared-libasan", f"-Wl,-rpath,{folder}")


def sanitizer_thread(host):
    return hold(host, "g++", "thread", (("none", False), ("race", True)))


def sanitizer_undefined(host):
    return hold(host, "g++", "undefined", (("none", False), ("shift", True)))


def sanitizer_behind_script(host):
    """The program is a script; only what it starts has the sanitizer, and what else it starts has none."""
    program = build(host, "g++", "address")
    if program is None:
        return "no g++ -fsanitize=address"
    script = host.path("wrapper")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\n/bin/ls / > /dev/null || exit 9\n"{program}" "$@"\nexit $?\n')
    os.chmod(script, 0o755)
    for fault, status in (("none", 0), ("overflow", 1)):
        for mode in SHIMMED:
            run = run_with_tool(host, mode, [script, fault])
            require((run.returncode, run.stdout) == (status, b"200\ncaught\n"), f"{fault} {mode}: {run}")
    # The user's own options stay, and win.
    run = run_with_tool(host, "preloaded", [script, "overflow"], ASAN_OPTIONS="exitcode=42")
    require(run.returncode == 42, f"exitcode=42: {run}")
    run = run_with_tool(host, "preloaded", [script, "none"], ASAN_OPTIONS="verify_asan_link_order=1")
    require(run.returncode == 1 and b"does not come first" in run.stderr, f"verify_asan_link_order=1: {run}")
    return None


def sanitizer_doctor(host):
    for compiler, sanitizer, flags, advice in (
        ("g++", "address", (), b"ASAN_OPTIONS=verify_asan_link_order=0"),
        ("g++", "address", ("-static-libasan",), None),
        ("clang++", "address", (), None),
        ("g++", "thread", (), b"TSAN_OPTIONS=ignore_noninstrumented_modules=1"),
        ("clang++", "thread", (), b"TSAN_OPTIONS=ignore_noninstrumented_modules=1"),
        ("g++", "undefined", (), None),
    ):
        program = build(host, compiler, sanitizer, *flags)
        if program is None:
            return f"no {compiler} -fsanitize={sanitizer}"
        tool = [host.cli, "doctor", "--library", host.shim, program]
        said = b" ".join(host.run(tool, "bare", {"ASAN_OPTIONS": ""}).stdout.split())
        require((advice in said) if advice else (b"Sanitizer" not in said), f"{compiler} {sanitizer}: {said}")
        if advice:
            name, _, option = advice.decode().partition("=")
            said = host.run(tool, "bare", {name: option}).stdout
            require(b"Sanitizer" not in said, f"{name}={option}: {said}")
    return None


if __name__ == "__main__":
    sys.exit(
        main(
            [
                sanitizer_address,
                sanitizer_address_static,
                sanitizer_address_clang,
                sanitizer_address_clang_shared,
                sanitizer_thread,
                sanitizer_undefined,
                sanitizer_behind_script,
                sanitizer_doctor,
            ],
            __doc__,
        )
    )
