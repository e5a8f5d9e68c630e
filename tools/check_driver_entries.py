#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that runtime/driver_entries.def says what docs/driver-entries.tsv says, and its INTEROP_ENTRY rows what
docs/interop-entries.tsv says: the same symbols, sorted, each with the same class and stream argument, and a rule at
least as strong as the text of its row asks for.
Exits 0 and prints one line, or 1 with one line per difference."""
import argparse
import pathlib
import re
import sys

# Rules from weakest to strongest where they are comparable: what a stronger rule flushes contains what a weaker does.
STRONGER = {
    "Pass": {"Pass"},
    "FlushStream": {"FlushStream", "FlushContext", "FlushAll", "FlushStreamWait"},
    "FlushLegacy": {"FlushLegacy", "FlushContext", "FlushAll", "FlushDefaultStreams"},
    "FlushContext": {"FlushContext", "FlushAll"},
    "FlushIfUnloaded": {"FlushIfUnloaded", "FlushAll"},
    "FlushIfNew": {"FlushIfNew", "FlushAll"},
    "FlushAll": {"FlushAll"},
    # All is on its way, and what the row's order asks for is in the driver.
    "FlushStreamWait": {"FlushStreamWait", "FlushAll"},
    "FlushDefaultStreams": {"FlushDefaultStreams", "FlushAll"},
    "FlushForLiveness": {"FlushForLiveness", "FlushAll"},
    "Launch": {"Launch"},
    "Lookup": {"Lookup"},
}

# First match wins; the texts are regular (one phrase per rule).
PHRASES = [
    (r"^Queue:|^Stream is field hStream of the config\. As cuLaunchKernel", "Launch"),
    (r"^Return the shim's own entry", "Lookup"),
    (r"^LOOKUP: .*: FLUSH-ALL", "FlushIfNew"),
    # A kernel has no context and a function may be of another than the current one. A hook skips what does not change.
    (r"if the value differs|FLUSH queues that hold the function", "FlushAll"),
    (r"if (the function|it) was never launched,? FLUSH-ALL", "FlushIfUnloaded"),
    # Only liveness, and only for pageable memory: the deadline thread gives it where the rule does not.
    (r"FLUSH\(stream\).*may block the host: then FLUSH-ALL", "FlushStream"),
    (r"mostly blocks the host, so FLUSH-ALL", "FlushDefaultStreams"),
    (r"the host then blocks, so FLUSH-ALL \(LIVE\)|LIVE: FLUSH-ALL is better", "FlushStreamWait"),
    (r"blocks later driver calls of that process: FLUSH-ALL", "FlushAll"),
    (r"^LIVE: .*FLUSH-ALL|^No flush for order: .*FLUSH-ALL", "FlushForLiveness"),
    (r"FLUSH-ALL", "FlushAll"),
    (r"FLUSH all (its queues|queues of the context)", "FlushContext"),
    (r"FLUSH\((that )?stream\)", "FlushStream"),
    (r"FLUSH\(legacy group|flush the legacy queue", "FlushLegacy"),
]

STREAMS = {"-": "None", "0->hStream": "LaunchConfig", "0[i].hStream": "LaunchList",
           "2->hUploadStream": "InstantiateParams", "*2": "Pointer2"}
ROW = re.compile(r"(?:DRIVER|INTEROP)_ENTRY\((\w+), (\w+), (\d+), (\w*), (\w+), (\w+), (\w+), (\w+)\)$")


def rule_of(text):
    for pattern, rule in PHRASES:
        if re.search(pattern, text):
            return rule
    return "Pass"


def class_of(text):
    return "".join(word.capitalize() for word in text.split("-"))


def stream_of(text):
    return STREAMS.get(text, "Arg" + text)


def read_table(path, problems):
    rows, interop = {}, set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith(("DRIVER_ENTRY(", "INTEROP_ENTRY(")):
            continue
        match = ROW.match(line)
        if not match:
            problems.append(f"{path.name}:{number}: not a row of eight columns: {line}")
        elif match[1] in rows:
            problems.append(f"{path.name}:{number}: {match[1]} appears twice")
        else:
            rows[match[1]] = match.groups()
            if line.startswith("INTEROP_ENTRY("):
                interop.add(match[1])
    return rows, interop


def read_tsv(path, problems):
    rows = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines[1:], 2):
        columns = line.split("\t")
        if len(columns) != 6:
            problems.append(f"{path.name}:{number}: {len(columns)} columns instead of 6")
        elif columns[0] in rows:
            problems.append(f"{path.name}:{number}: {columns[0]} appears twice")
        else:
            rows[columns[0]] = columns[1:4] + columns[5:]
    return rows


def compare_symbols(table, wanted, name, problems):
    problems += [f"{symbol}: in {name}, not in the table" for symbol in sorted(wanted - table)]
    problems += [f"{symbol}: in the table, not in {name}" for symbol in sorted(table - wanted)]


def compare_row(symbol, row, wanted, problems):
    _, api, since, flavour, entry_class, rule, stream, failure = row
    tsv_class, tsv_stream, text, tsv_failure = wanted
    if entry_class != class_of(tsv_class):
        problems.append(f"{symbol}: class {entry_class}, the tsv says {tsv_class}")
    if stream != stream_of(tsv_stream):
        problems.append(f"{symbol}: stream {stream}, the tsv says {tsv_stream}")
    if failure != {"-": "Plain"}.get(tsv_failure, tsv_failure.capitalize()):
        problems.append(f"{symbol}: failure {failure}, the tsv says {tsv_failure}")
    if rule not in STRONGER[rule_of(text)]:
        problems.append(f"{symbol}: rule {rule}, the tsv asks for {rule_of(text)}: {text}")
    if api != re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", symbol):
        problems.append(f"{symbol}: its api name {api} does not fit")
    found = re.search(r"(_ptsz|_ptds)$", symbol)
    if flavour != (found[1] if found else ""):
        problems.append(f"{symbol}: flavour '{flavour}' does not fit its name")
    if int(since) < 2000:
        problems.append(f"{symbol}: since {since} is before CUDA 2.0")


def main():
    top = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=pathlib.Path, default=top / "runtime/driver_entries.def")
    parser.add_argument("--tsv", type=pathlib.Path, default=top / "docs/driver-entries.tsv")
    parser.add_argument("--interop", type=pathlib.Path, default=top / "docs/interop-entries.tsv")
    arguments = parser.parse_args()
    problems = []
    table, interop = read_table(arguments.table, problems)
    tsv = read_tsv(arguments.tsv, problems)
    interop_tsv = read_tsv(arguments.interop, problems)
    compare_symbols(table.keys() - interop, tsv.keys(), "the tsv", problems)
    compare_symbols(interop, interop_tsv.keys(), "the interop tsv", problems)
    tsv.update(interop_tsv)
    if list(table) != sorted(table):
        problems.append(f"{arguments.table.name}: rows are not sorted by symbol")
    for symbol in sorted(table.keys() & tsv.keys()):
        compare_row(symbol, table[symbol], tsv[symbol], problems)
    for problem in problems:
        print(problem)
    if problems or not table:
        print(f"{len(problems)} differences over {len(table)} rows")
        return 1
    print(f"{len(table) - len(interop)} rows and {len(interop)} of interop agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
