#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cajeta-xpu as its users do, on programs under softgpu: every command, its exit codes, its formats, and
what it says of files and arguments that are no good.

    cli_test.py --tool FILE --softgpu DIR --shim FILE --schema FILE --summary-schema FILE --planted FILE
                --traced FILE --plain FILE --decode FILE --static FILE
"""
import argparse
import base64
import csv
import hashlib
import html.parser
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import jsonschema

from cases import Failed, require

WIDTH = 100
HERE = pathlib.Path(__file__).resolve().parent
PYTHON_LAUNCHES = HERE / "profile/python_launches.py"


class Tool:
    """The tool under test, in a folder of its own, with an environment without settings."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("CAJETA_") and name not in ("LD_PRELOAD", "NO_COLOR")}
        self.environment["LD_LIBRARY_PATH"] = str(options.softgpu)
        self.environment["CAJETA_SOFTGPU_ORDER"] = "early"

    def command(self, arguments):
        arguments = [str(argument) for argument in arguments]
        if arguments[:1] in (["run"], ["doctor"]):
            arguments[1:1] = ["--library", str(self.options.shim)]
        return [str(self.options.tool)] + arguments

    def __call__(self, *arguments, status=0, settings=None):
        """Stdout and stderr; Failed when the exit status is another one."""
        run = subprocess.run(self.command(arguments), cwd=self.folder, env={**self.environment, **(settings or {})},
                             capture_output=True, text=True, timeout=60, check=False)
        words = " ".join(map(str, arguments))
        require(run.returncode == status,
                f"{words}: exit status {run.returncode}, not {status}\n{run.stdout}\n{run.stderr}")
        return run.stdout, run.stderr

    def refuses(self, *arguments, status=2, names=()):
        """The one line on stderr, which holds all of `names`."""
        out, err = self(*arguments, status=status)
        require(out == "" and err.count("\n") == 1 and err.startswith("cajeta-xpu: "),
                f"{arguments}: not one line\n{out}\n{err}")
        require(all(name in err for name in names), f"{arguments}: {err} lacks one of {names}")
        return err

    def load(self, name):
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def record(self, name, *command, options=("--sites",)):
        self("run", *options, "-o", name, "--", *command)
        report = self.load(name)
        validate(report, self.options.schema)
        return report

    def summary(self, name):
        summary = json.loads(self("profile", "summary", name, "-f", "json")[0])
        validate(summary, self.options.summary_schema)
        return summary


def validate(report, schema):
    jsonschema.validate(report, json.loads(schema.read_text(encoding="utf-8")), cls=jsonschema.Draft202012Validator)


def calls_of(report):
    return {entry["entry"]: entry["calls"] for entry in report["entries"]}


def case_run(tool):
    options = tool.options
    out, err = tool("run", "-q", "--", "env", settings={"LD_PRELOAD": "libm.so.6"})
    require(f"LD_PRELOAD=libm.so.6:{options.shim}\n" in out and err == "", f"LD_PRELOAD is not appended: {out}{err}")
    out, _ = tool("run", "-d", "all", "--sites=sync:50us", "--set", "GRAPH_BYTES=1M", "--every", "5", "--", "env")
    for line in ("DEFER=all", "DRIVER_SITES=sync:50us", "GRAPH_BYTES=1M", "REPORT_EVERY=5"):
        require(f"CAJETA_XPU_{line}\n" in out, f"{line} is not set: {out}")
    out, _ = tool("run", "--profiler=%p.pftrace", "--", "env")
    require("CAJETA_PROFILER=1\n" in out and "CAJETA_PROFILER_OUT=%p.pftrace\n" in out, f"--profiler=FILE: {out}")
    out, _ = tool("run", "--profiler", "--", "env")
    require("CAJETA_PROFILER=1\n" in out and "CAJETA_PROFILER_OUT" not in out, f"--profiler: {out}")
    _, err = tool("run", "true")
    require("asked for nothing" in err, f"nothing was asked for, and not said: {err}")
    # Exit codes: the program's, its signal, and those of env(1).
    tool("run", "-q", "--", "sh", "-c", "exit 41", status=41)
    tool("run", "-q", "--", "sh", "-c", "kill -TERM $$", status=-signal.SIGTERM)
    tool("run", "-q", "--exec", "--", "sh", "-c", "exit 41", status=41)
    tool.refuses("run", "-q", "--", tool.folder / "nowhere", status=127, names=["not found"])
    tool.refuses("run", "-q", "no-such-program", status=127, names=["not found in PATH"])
    tool.refuses("run", "-q", "--", options.schema, status=126, names=["cannot be executed"])
    tool.refuses("run", "-d", "some", "--", "true", status=125, names=["CAJETA_XPU_DEFER=some", "legal values: all"])
    tool.refuses("run", "--bogus", "--", "true", status=125, names=["--bogus", "--defer"])
    tool.refuses("run", status=125, names=["no program"])
    tool.refuses("run", "--set", "NO=1", "--", "true", status=125, names=["CAJETA_XPU_DEFER, "])
    # Arguments of the program are the program's.
    out, _ = tool("run", "-q", "echo", "-d", "--", "--help")
    require(out == "-d -- --help\n", f"the program's arguments: {out}")
    _, err = tool("run", "-p", "--", options.static, status=3)
    require("the library is not loaded" in err and "statically linked" in err, f"a static program: {err}")
    forward_signals(tool)


def forward_signals(tool):
    """A signal sent to the tool reaches the program, which decides about it."""
    script = "trap 'exit 9' USR1; echo ready; while :; do :; done"
    with subprocess.Popen(tool.command(["run", "-q", "--", "sh", "-c", script]), stdout=subprocess.PIPE,
                          env=tool.environment) as run:
        require(run.stdout.readline() == b"ready\n", "the program does not start")
        run.send_signal(signal.SIGUSR1)
        require(run.wait(timeout=60) == 9, f"exit status {run.returncode} after a signal, not 9")


def case_report(tool):
    report = tool.record("a.json", tool.options.planted)
    out, _ = tool("report", "a.json", "--format", "json")
    require(json.loads(out) == report, "JSON of a report is another report")
    both, _ = tool("report", "a.json", "a.json", "--format", "json")
    require(json.loads(both) == [report, report], "JSON of two reports is no list of them")
    for arguments in ((), ("--stacks",), ("--top", "2", "--sort", "calls")):
        out, _ = tool("report", "a.json", *arguments)
        wide = [line for line in out.splitlines() if len(line) > WIDTH]
        require(not wide and "\033" not in out, f"wide lines or colour in a pipe: {wide}")
        for entry in list(report["entries"])[:0 if arguments else None]:
            require(entry["entry"] in out, f"{entry['entry']} is not shown: {out}")
    require("the other entries" in out and "cuStreamQuery" in out, f"the most calls are not shown: {out}")
    rows = list(csv.DictReader(io.StringIO(tool("report", "a.json", "--format", "csv")[0])))
    found = {row["name"]: int(row["calls"]) for row in rows if row["table"] == "entries"}
    require(found == calls_of(report), f"calls in CSV: {found}")
    places = sum(int(row["total_ns"]) for row in rows if row["table"] == "places")
    require(places == sum(site["total_ns"] for site in report["sites"]["list"]), f"places in CSV hold {places} ns")
    require("| 200 |" in tool("report", "a.json", "--format", "markdown")[0], "no row of 200 polls in Markdown")
    _, err = tool("run", "--report", "--", "sh", "-c", f"{tool.options.planted}; {tool.options.planted}")
    require("2 processes" in err and "PROCESSES" in err and "planted" in err, f"the report of two processes: {err}")
    _, err = tool("run", "--report", "--", "true")
    require("no report" in err, f"a program without CUDA: {err}")


class Document(html.parser.HTMLParser):
    """What an HTML report holds: its text, its script, whatever it refers to, tags left open."""

    def __init__(self, text):
        super().__init__()
        self.text, self.script, self.policy, self.links, self.open, self.faults = "", "", "", [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.links += [attributes[name] for name in ("src", "href", "srcset", "data") if name in attributes]
        self.links += [tag] if tag in ("link", "img", "iframe", "object", "base") else []
        if tag == "meta":
            self.policy += attributes["content"] if "http-equiv" in attributes else ""
        else:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.script += data
        else:
            self.text += data


def case_html(tool):
    program = shutil.copy(tool.options.decode, tool.folder / "a'<b>\"&amp;")
    report = tool.record("a.json", program, options=("--sites", "-d", "all"))
    out, _ = tool("report", "a.json", "--format", "html")
    page = Document(out)
    require(not page.open and not page.faults, f"tags: {page.open} {page.faults}")
    require(not page.links and "http:" not in out and "https:" not in out and "url(" not in out, f"{page.links}")
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    require(f"script-src 'sha256-{digest}'" in page.policy and "default-src 'none'" in page.policy,
            f"the script's hash is {digest}, the policy {page.policy}")
    require("a'<b>\"&amp;" in page.text, "the name of the program is not shown as it is")
    names = [entry["entry"] for entry in report["entries"]] + [site["place"] for site in report["sites"]["list"]]
    require(all(name in page.text for name in names), f"not all of {names} are shown")


def case_broken(tool):
    tool.record("a.json", tool.options.planted)
    text = (tool.folder / "a.json").read_bytes()
    (tool.folder / "cut.json").write_bytes(text[:len(text) // 2])
    (tool.folder / "later.json").write_bytes(text.replace(b'"1.0.0"', b'"2.1.0"', 1))
    (tool.folder / "key.json").write_bytes(text.replace(b'"wall_ns"', b'"Wall_ns"', 1))
    (tool.folder / "empty.json").write_bytes(b"")
    tool.refuses("report", "cut.json", names=["cut.json: byte ", "broken JSON"])
    tool.refuses("report", "later.json", names=["later.json: schema_version: expected 1.x.x, found 2.1.0"])
    tool.refuses("report", "key.json", names=['key.json: process: the key "wall_ns" is missing'])
    tool.refuses("report", "empty.json", names=["empty.json: the file is empty"])
    tool.refuses("report", "none.json", names=["none.json: cannot open"])
    tool.refuses("report", ".", names=[".: cannot read"])
    out, err = tool("report", "cut.json", "a.json", status=2)
    require("CALLS THAT OBSERVE" in out and err.count("\n") == 1, f"the good file is not shown: {out}{err}")
    _, err = tool("merge", "a.json", "cut.json", "-o", "sum.json", status=2)
    require("sum.json is not written" in err and not (tool.folder / "sum.json").exists(), f"a partial sum: {err}")
    tool.refuses("compare", "a.json", "later.json", names=["expected 1.x.x"])
    tool.refuses(names=["run, report, compare, merge, check, doctor, profile, export, env"])
    tool.refuses("bogus", names=["run, report, compare, merge, check, doctor, profile, export, env"])
    tool.refuses("report", "a.json", "--format", "xml", names=["text", "json", "csv", "markdown", "html"])
    tool.refuses("report", "a.json", "--bogus", names=["--bogus", "--sort"])
    tool.refuses("export", "a.json", "-f", "xml", names=["folded", "speedscope", "csv"])
    tool.refuses("completions", "tcsh", names=["bash", "zsh", "fish"])


def case_compare(tool):
    planted = tool.options.planted
    one = tool.record("one.json", planted)
    tool.record("two.json", planted)
    # Counts are the program's; times are the machine's.
    counts = ("--fail-on", "calls,launches,failed")
    tool("compare", "one.json", "two.json", *counts)
    tool("compare", "one.json", "one.json")
    tool("merge", "one.json", "two.json", "-o", "sum.json")
    total = tool.load("sum.json")
    validate(total, tool.options.schema)
    require(calls_of(total) == {name: 2 * calls for name, calls in calls_of(one).items()}, "calls are not added up")
    require(len(total["merged_from"]) == 2, "a merged report does not say of what")
    out, _ = tool("compare", "one.json", "sum.json", *counts, "--format", "json", status=1)
    worse = {item["subject"]: (item["before"], item["after"]) for item in json.loads(out)["worse"]}
    for name, calls in calls_of(one).items():
        require(worse.get(name) == (calls, 2 * calls), f"{name} is not worse: {worse}")
    require(any("read" in subject and " at planted.cpp:" in subject for subject in worse), f"no place is worse: {worse}")
    tool("compare", "sum.json", "one.json", *counts)
    tool("compare", "one.json", "sum.json", *counts, "--threshold", "101%")
    tool("compare", "one.json", "sum.json", "--fail-on", "none")
    # The same launches, replayed and not.
    decode = tool.options.decode
    deadline = ("--set", "DEFER_DEADLINE_US=600000000")
    tool.record("replayed.json", decode, options=("-d", "all", *deadline))
    tool.record("direct.json", decode, options=("-d", "0"))
    out, _ = tool("compare", "replayed.json", "direct.json", "--fail-on", "launches", status=1)
    require("launches sent one by one " in out, f"launches that went directly are not worse: {out}")
    tool("compare", "direct.json", "replayed.json", "--fail-on", "launches")
    tool("check", "replayed.json", "--max-one-by-one", "50%")
    tool("check", "direct.json", "--max-one-by-one", "50%", status=1)


def case_check(tool):
    tool.record("planted.json", tool.options.planted)
    tool.record("plain.json", *tool.options.plain)
    out, _ = tool("check", "planted.json", "--max-blocked", "1000s", "--max-calls", "cuStreamQuery:200",
                  "--max-failed", "0", "--baseline", "planted.json", "--no-new-sites")
    require(out == "planted.json: ok, 4 limits hold\n", f"limits that hold: {out}")
    out, _ = tool("check", "planted.json", "--max-calls", "cuStreamQuery:199", "--max-calls", "cuMemFree:9",
                  "--max-blocked", "0.001%", status=1)
    lines = out.splitlines()
    require(len(lines) == 2 and "200 calls of cuStreamQuery, the limit is 199" in out, f"broken limits: {lines}")
    out, _ = tool("check", "planted.json", "--baseline", "plain.json", "--no-new-sites", status=1)
    require("new site: cuStreamQuery at planted.cpp:" in out, f"new sites: {out}")
    (tool.folder / "allowed").write_text("# known\nplanted.cpp\nhidden.cpp\n", encoding="utf-8")
    tool("check", "planted.json", "--baseline", "plain.json", "--no-new-sites", "--allow", "allowed")
    tool.refuses("check", "planted.json", names=["--max-blocked", "--no-new-sites"])
    tool.refuses("check", "planted.json", "--no-new-sites", names=["--baseline FILE"])
    tool.refuses("check", "planted.json", "--max-blocked", "10", names=["100ms", "20%"])


def case_export(tool):
    report = tool.record("a.json", tool.options.planted)
    total = sum(site["total_ns"] for site in report["sites"]["list"])
    folded = tool("export", "a.json", "-f", "folded")[0].splitlines()
    require(sum(int(line.rsplit(" ", 1)[1]) for line in folded) == total, f"folded stacks: {folded}")
    require(any("main" in line and line.split(" ")[-2].endswith("cuStreamQuery") for line in folded), f"{folded}")
    tool("export", "a.json", "-f", "speedscope", "-o", "speedscope.json")
    profile = tool.load("speedscope.json")
    frames, sampled = profile["shared"]["frames"], profile["profiles"][0]
    require(sum(sampled["weights"]) == sampled["endValue"] == total, f"speedscope weights: {sampled}")
    require(all(0 <= frame < len(frames) for sample in sampled["samples"] for frame in sample), "speedscope frames")
    rows = list(csv.DictReader(io.StringIO(tool("export", "a.json", "-f", "csv")[0])))
    require(sum(int(row["total_ns"]) for row in rows) == total, f"sites in CSV: {rows}")


def case_trace(tool):
    """The known program of trace tests: its kernels, the functions that launch them, and what takes its CPU time."""
    tool("run", "-q", "--profiler=a.pftrace", "--", tool.options.traced)
    summary = tool.summary("a.pftrace")
    header, kernels = summary["header"], {kernel["kernel"]: kernel for kernel in summary["kernels"]}
    require(header["is_complete"] and summary["remarks"] == [] and header["launches_untimed"] == 3, f"header: {header}")
    for name, launches, place in (("long_work(unsigned int*, int)", 120, "launch_long"),
                                  ("short_work", 200, "launch_short")):
        kernel = kernels.get(name, {})
        require(kernel.get("launches") == launches == kernel["place_launches"] and kernel["place"].endswith(place),
                f"{name}: {kernel}, not {launches} from {place}")
    require(sum(stream["kernels"] for stream in summary["streams"]) == sum(
        kernel["launches"] for kernel in kernels.values()) == header["launches_kept"], f"streams: {summary['streams']}")
    require(all(stream["busy_ns"] + stream["idle_ns"] == stream["span_ns"] for stream in summary["streams"]), "idle")
    require("burn" in summary["functions"][0]["function"], f"hottest function: {summary['functions'][0]}")
    show_trace(tool, summary)
    export_trace(tool, summary)
    # A part of the file, and files that are something else.
    whole = (tool.folder / "a.pftrace").read_bytes()
    (tool.folder / "cut.pftrace").write_bytes(whole[:len(whole) // 2])
    require("the last packet is cut" in tool("profile", "summary", "cut.pftrace")[0], "a cut file")
    require(any("the last packet is cut" in remark for remark in tool.summary("cut.pftrace")["remarks"]), "cut, as JSON")
    require("the last packet is cut" in tool("export", "-f", "csv", "cut.pftrace")[1], "a cut file, exported")
    for command in (["report"], ["compare", "a.pftrace"], ["check", "--max-failed", "1"]):
        out, err = tool(*command, "a.pftrace", status=2)
        require(out == "" and "see cajeta-xpu profile summary" in err, f"{command} of a trace: {err}")
    tool.refuses("profile", "summary", tool.options.schema, names=["no trace"])
    tool.refuses("profile", "total", "a.pftrace", names=["summary"])
    # Without samples, without launches, of a program in Python.
    tool("run", "-q", "--profiler=host.pftrace", "--set", "PROFILER_GPU=0", "--", tool.options.traced, "quick")
    require(tool.summary("host.pftrace")["kernels"] == [], "kernels without device timing")
    tool("run", "-q", "--profiler=p.pftrace", "--set", "PROFILER_HZ=0", "--", sys.executable, PYTHON_LAUNCHES)
    summary = tool.summary("p.pftrace")
    require(summary["header"]["python"]["is_read"] and summary["functions"] == [], f"{summary['header']}")
    require(summary["kernels"][-1]["place"].startswith(PYTHON_LAUNCHES.name + ":"), f"places: {summary['kernels']}")


def show_trace(tool, summary):
    text = tool("profile", "summary", "a.pftrace", "--top", "1")[0]
    for title in ("KERNELS", "DEVICE STREAMS", "HOST BLOCKED ON THE DEVICE", "HOT HOST FUNCTIONS", "the other kernels"):
        require(title in text, f"{title} is missing: {text}")
    require(all(len(line) <= WIDTH for line in text.splitlines()), f"a line is too long: {text}")
    rows = list(csv.DictReader(io.StringIO(tool("profile", "summary", "a.pftrace", "-f", "csv")[0])))
    require([row["name"] for row in rows if row["table"] == "kernels"] == [
        kernel["kernel"] for kernel in summary["kernels"]], f"kernels in CSV: {rows}")
    require("### KERNELS" in tool("profile", "summary", "a.pftrace", "-f", "markdown")[0], "Markdown")


def export_trace(tool, summary):
    periods = sum(function["self_samples"] for function in summary["functions"])
    folded = tool("export", "-f", "folded", "a.pftrace")[0].splitlines()
    require(sum(int(line.rsplit(" ", 1)[1]) for line in folded) == periods * 1_000_000, f"folded stacks: {folded}")
    tool("export", "-f", "speedscope", "-o", "speedscope.json", "a.pftrace")
    profile = tool.load("speedscope.json")
    sampled = [one for one in profile["profiles"] if one["type"] == "sampled"]
    require(sum(sum(one["weights"]) for one in sampled) == periods * 1_000_000, "speedscope weights")
    for one in profile["profiles"]:
        if one["type"] == "sampled":
            require(sum(one["weights"]) == one["endValue"] and len(one["weights"]) == len(one["samples"]), f"{one}")
            continue
        times = [event["at"] for event in one["events"]]
        require(times == sorted(times) and times[-1] <= one["endValue"], f"{one['name']} is out of order")
        require([event["type"] for event in one["events"]] == ["O", "C"] * (len(times) // 2), f"{one['name']}")
    _, err = tool("export", "-f", "csv", "--limit", "10", "a.pftrace")
    require("records are left out" in err, f"nothing is left out of an export with a limit: {err}")


def case_doctor(tool):
    out, _ = tool("doctor", tool.options.planted)
    require("softgpu" in out and "0 failures" in out, f"all is well here: {out}")
    findings = json.loads(tool("doctor", "--format", "json")[0])
    require({finding["subject"] for finding in findings} >= {"library", "driver", "settings"}, f"{findings}")
    out, _ = tool("doctor", tool.options.static, status=1)
    require("statically linked" in out, f"a static program: {out}")
    out, _ = tool("doctor", status=1, settings={"CAJETA_XPU_DEFER": "some", "CAJETA_XPU_NO": "1",
                                               "CAJETA_XPU_REPORT": "/no/where/%p.json"})
    for part in ("CAJETA_XPU_DEFER=some", "legal values", "CAJETA_XPU_NO is no setting", "/no/where/", "3 failures"):
        require(part in out, f"doctor does not say {part}: {out}")


def case_shells(tool):
    variables = json.loads(tool("env", "--format", "json")[0])
    require("CAJETA_XPU_DEFER" in [variable["name"] for variable in variables], f"{variables}")
    require(all(variable[key] for variable in variables for key in ("purpose", "values", "default")), f"{variables}")
    out, _ = tool("env", "--preload", "--library", tool.options.shim)
    require(out == f"LD_PRELOAD={tool.options.shim}\n", f"env --preload: {out}")
    require(tool("version")[0].startswith("cajeta-xpu "), "no version")
    full = pathlib.Path("/dev/full")
    with full.open("w", encoding="utf-8") as device:
        run = subprocess.run(tool.command(["env"]), stdout=device, stderr=subprocess.PIPE, text=True, check=False)
    require(run.returncode == 2 and "cannot write" in run.stderr, f"a full device: {run}")


# What is offered at the end of a line.
OFFERS = {
    "cajeta-xpu comp": {"compare", "completions"},
    "cajeta-xpu report --format ": {"text", "json", "csv", "markdown", "html"},
    "cajeta-xpu check --no": {"--no-new-sites"},
    "cajeta-xpu completions z": {"zsh"},
    "cajeta-xpu report --log": {"--log-level"},
    "cajeta-xpu doctor --log-level ": {"trace", "debug", "info", "warn", "error", "off"},
    "cajeta-xpu merge -o one.p": {"one.pftrace"},
    "cajeta-xpu profile sum": {"summary"},
    "cajeta-xpu profile summary o": {"one.pftrace"},
    "cajeta-xpu run -d ": {"all", "0"},
    "cajeta-xpu run -d all -- cajeta-xp": {"cajeta-xpu"},
    "cajeta-xpu run -- cat o": {"one.pftrace"},
}


def bash_offers(tool, line):
    words = line.split(" ")
    script = f""". ./bash
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}; _cajeta_xpu
        echo "${{COMPREPLY[@]}}"""
    return ["bash", "-c", script + '"'], tool.environment


def zsh_offers(tool, line):
    functions = tool.folder / "functions"
    functions.mkdir(exist_ok=True)
    shutil.copy(tool.folder / "zsh", functions / "_cajeta-xpu")
    return ["zsh", "-f", HERE / "offers.zsh", functions, line], tool.environment


def fish_offers(tool, line):
    script = f"source fish; complete -C '{line}' | string replace -r '\\t.*' ''; or true"
    return ["fish", "-N", "-c", script], {**tool.environment, "HOME": str(tool.folder)}


def case_diagnostics(tool):
    """-v and --log-level: what is found, set and read, on standard error alone."""
    planted, shim = tool.options.planted, tool.options.shim
    plain, quiet = tool("run", "-q", "--report", "--", planted)
    out, err = tool("run", "-q", "-v", "--report", "--", planted)
    require(out == plain and quiet.count("cajeta-xpu: ") == 0, f"without -v: {quiet}")
    for part in (f"the library is {shim}, found by --library", "set CAJETA_XPU_DRIVER_PROFILE=1", f"set LD_PRELOAD={shim}",
                 f"start {planted}", f"{planted} ended with status 0", " bytes\n", "is a report of process "):
        require(part in err, f"-v does not say {part}: {err}")
    said = [line for line in err.splitlines() if line.startswith("cajeta-xpu: ")]
    require(all(" ms later: " in line for line in said), f"-v: a line without its time: {err}")
    require("trace, " not in err and "the library was opened" in err, f"-v: {err}")
    require("asked for nothing" in tool("run", "--", "true")[1], "the note is gone by default")
    require(tool("run", "--log-level", "error", "--", "true")[1] == "", "a note at level error")
    require(tool("-v", "run", "-q", "--", "true")[1] != "", "-v before the command")
    _, err = tool("--log-level=trace", "env", "--preload")
    require("no library beside this tool: " in err or "found beside this tool" in err, f"--log-level=trace: {err}")
    _, err = tool("run", "-q", "--log-level=info", "--", "sh", "-c", "kill -9 $$", status=-signal.SIGKILL)
    require("sh was ended by signal 9" in err, f"a killed program: {err}")
    # A program's name may hold anything.
    _, err = tool("run", "-q", "-v", "--", "echo", "\033[2J")
    require("\033" not in err, f"control characters: {err!r}")
    # What ends a command stays one line, as it was.
    missing = tool.folder / "missing.json"
    for options in ((), ("--log-level", "error"), ("-v",)):
        require(tool.refuses("report", *options, missing).startswith(f"cajeta-xpu: {missing}: cannot open"), f"{options}")
    require(tool("report", "--log-level", "off", missing, status=2)[1] == "", "a line at level off")
    tool.refuses("report", "--log-level", "loud", missing, names=["--log-level", "trace", "debug", "info", "warn", "error", "off"])
    tool.refuses("run", "--log-level", "loud", "--", "true", status=125, names=["trace"])
    tool.refuses("-v", names=["no command is given"])
    for words in (["run", "-v", "--", "sh", "-c", "exit 41"], ["run", "--report", "--", planted, "-"]):
        status = 41 if "sh" in words else 0
        reader, writer = os.pipe()
        os.close(reader)
        with pathlib.Path("/dev/full").open("w", encoding="utf-8") as full:
            for where in (writer, full):
                run = subprocess.run(tool.command(words), stdout=subprocess.DEVNULL, stderr=where, env=tool.environment,
                                     check=False)
                require(run.returncode == status, f"{words}: {run.returncode} where nobody reads what is said")
        os.close(writer)


def case_completions(tool):
    """What the shells themselves offer; those that are not installed are skipped."""
    (tool.folder / "one.pftrace").touch()
    commands = tool.folder / "bin"
    commands.mkdir()
    (commands / "cajeta-xpu").symlink_to(tool.options.tool)
    tool.environment["PATH"] = f"{commands}:{tool.environment['PATH']}"
    for shell, ask in (("bash", bash_offers), ("zsh", zsh_offers), ("fish", fish_offers)):
        (tool.folder / shell).write_text(tool("completions", shell)[0], encoding="utf-8")
        if not shutil.which(shell):
            print(f"completions: {shell} is skipped: it is not installed")
            continue
        for line, offers in OFFERS.items():
            command, environment = ask(tool, line)
            try:
                run = subprocess.run(command, cwd=tool.folder, env=environment, capture_output=True, text=True,
                                     timeout=30, check=False)
            except subprocess.TimeoutExpired as late:
                raise Failed(f"{shell}: {line!r}: no answer") from late
            require(run.returncode == 0 and not run.stderr and set(run.stdout.split()) == offers,
                    f"{shell}: {line!r}: {run.stdout}{run.stderr}, not {offers}")


CASES = {name[5:]: function for name, function in list(globals().items()) if name.startswith("case_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tool", "softgpu", "shim", "schema", "summary-schema", "planted", "traced", "decode", "static"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--plain", nargs="+", required=True, help="a program and its arguments")
    options = parser.parse_args()
    for name in ("tool", "softgpu", "shim", "schema", "summary_schema", "planted", "traced", "decode", "static"):
        setattr(options, name, getattr(options, name).resolve())
    options.plain = [str(pathlib.Path(word).resolve()) for word in options.plain]
    failures = 0
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Tool(options, pathlib.Path(folder)))
            except Failed as failure:
                print(f"{name}: {failure}")
                failures += 1
    print(f"{len(CASES) - failures} of {len(CASES)} cases as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
