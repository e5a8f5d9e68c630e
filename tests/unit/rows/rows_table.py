#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the rule texts of docs/driver-entries.tsv and docs/interop-entries.tsv into what rows_test expects of each row:
one ROW(symbol, demand, stream place, stream 0 is the thread's own, failure, tests) a line. Reads nothing but the texts, so that
it agrees with runtime/driver_entries.def only if both say the same. Exits 1 with one line per text it does not
understand."""
import argparse
import pathlib
import re
import sys

# Sentences that explain and demand nothing. Taken away before the rest is looked up.
REMARKS = [
    "(Older ABI of the name.)",
    "(No ordering need; may be relaxed after measuring.)",
    "(Free memory shrinks by what the shim's own graphs hold; that cannot be hidden, so bound it.)",
    "(Later option: forward without a flush, since no queued launch can use memory not yet allocated and an earlier "
    "stream position is safe.)",
    "(Later option: queue the free itself behind them so alloc/free pairs do not split a sequence.)",
    "(Migration is ordered in the stream.)",
    "Affects later launches of the executable graph only.",
    "Asynchronous to the host for device memory.",
    "Called between launches by some libraries, so it must not split sequences.",
    "Changes tile mappings in stream order.",
    "Cooperative launches of the per-thread twins stay direct.",
    "Managed-memory attachment takes effect in stream order.",
    "May synchronise.",
    "Pool choice affects later allocations, which are forwarded in order.",
    "Queued launches may use the memory.",
    "Remember the handle as a CUfunction of this context.",
    "Runs in the calling thread's own default stream.",
    "Sources marked for access during the call or in any order may be read before the stream gets there, as without "
    "the shim.",
    "The peer context needs no flush of its own: ordering is by the stream given.",
    # Liveness for pageable memory only, which no argument shows: the deadline thread gives it.
    "A copy to or from pageable memory may block the host: then FLUSH-ALL.",
    "By default it waits for prior work of every stream in its list and holds back later work in them; streams are "
    "fields of the list entries.",
]
# What remains may end in a reason, after `; ` or `: `; the reasons known.
REASONS = [
    "a graph in flight is freed after it completes",
    "a new event is empty",
    "a new or retained context has no queues yet",
    "a queued launch may use the memory, on any stream or device",
    "affects later launches of the application's executable graph only",
    "concerns writes by third parties, which order only work launched later",
    "earlier kernels ran with the lines still persisting",
    "earlier launches must not wait behind it",
    "edits a running capture",
    "edits or reads the application's own graph, submits nothing",
    "graphics work that follows must see the queued kernels done",
    "host-side encoding, the descriptor reaches kernels by value as an argument",
    "host-side work on compiler input",
    "no kernel carries this object",
    "other devices, APIs or processes act on the semaphore",
    "queued launches may carry the handle in their arguments",
    "queued launches may use the mapping",
    "reads or reserves addresses and handles only",
    "reads stream properties, not progress",
    "reference counts for graph objects",
    "remember the handle as a CUfunction of this context",
    "resets high-water marks only",
    "shares a handle, the other side synchronises by events or host waits that flush",
    "the application's own graph runs in stream order",
    "the host function must run after the queued launches",
    "the lock call already flushed",
    "the upload is ordered behind earlier work of the stream",
    "the write announces that earlier work is done",
    "work it captured was flushed at the record",
    "the frame's producer and consumer act on it in stream order",
]
REASON_END = re.compile("[;:] (" + "|".join(map(re.escape, REASONS)) + ")$")

DEMANDS = {
    # Nothing may be submitted.
    "NONE: forward": "Nothing",
    "No flush: both records already flushed": "Nothing",
    "No flush: the record already flushed what the event captures": "Nothing",
    "NONE: forward, then refresh the thread's cached current context: default-stream handles belong to (context, "
    "handle), and a queue keeps the context it was filled in": "Nothing",
    "Forward the table unchanged and log its UUID: private entries cannot be wrapped; whether any launches or "
    "waits past "
    "the shim must be measured": "Nothing",
    "Return the shim's own entry for every wrapped name, choosing version and legacy or per-thread variant exactly as "
    "asked (flags); other names: the driver's answer. Also answers for itself": "Nothing",
    "NONE: forward; remember the handle as a CUkernel (no context): resolve it per context before it goes into a graph":
        "Nothing",
    "Forward; nothing can be queued. Ask the capture status afterwards: wrong-thread errors do not end the "
    "capture; count "
    "it ended otherwise": "Nothing",
    # Nothing may be submitted, and no other driver entry called.
    "Forward untouched": "Untouched",
    "Forward untouched (thread-local). The shim itself sets relaxed mode around its own graph building and "
    "restores the "
    "application's mode": "Untouched",
    "Forward untouched; make no call of your own on the stream (returned arrays live until the next one)": "Untouched",
    # Nothing before the call; what is queued may go afterwards, before it can become a graph.
    "NONE: forward; mark every function of the module texture-tainted (graphs may not use texture or surface "
    "references): "
    "never queue them": "Taint",
    # Exactly what the stream must run behind.
    "ORD: FLUSH(stream), forward": "Stream",
    "LIFE: FLUSH(stream), forward": "Stream",
    "LIFE: FLUSH(stream), forward; forget its queue, caches and graphs at once: handle values are reused for "
    "new streams":
        "Stream",
    "ORD: FLUSH(stream), forward: the event captures what is in the stream now. On the legacy stream that means every "
    "blocking stream of the context": "Stream",
    "ORD: FLUSH(stream) if its queue is not empty, else forward at once (polled in loops); otherwise it would report "
    "finished too early": "Stream",
    "ORD: FLUSH(stream) so earlier launches do not wait for the event; the event itself needs no flush (its record "
    "already flushed)": "Stream",
    "ORD: legacy launch using per-function parameter state: FLUSH(stream), forward": "Stream",
    "STATE: applies to work submitted later only: FLUSH(stream), forward; a stream with a non-default attribute is no "
    "longer queued (nodes do not inherit it)": "Stream",
    "STATE: destination is the first argument: FLUSH(that stream), forward; treat it like a set attribute": "Stream",
    # The legacy queue and the blocking queues of the current context.
    "ORD: runs in the default stream: FLUSH(legacy group of the current context), forward": "LegacyGroup",
    "ORD: legacy launch on the default stream using per-function parameter state: FLUSH(legacy group), forward":
        "LegacyGroup",
    # What the thread's own default stream runs behind: the legacy queue.
    "ORD: runs in the calling thread's own default stream (blocking, never queued): flush the legacy queue of "
    "the context, "
    "forward": "OwnStream",
    # All queues of the context argument, else of the current context.
    "ORD: FLUSH all queues of the context (with its green contexts when it is the primary one); report an error found "
    "while flushing here": "Context",
    "ORD: FLUSH all queues of the context, forward": "Context",
    "ORD: all streams of the context are synchronised with the GL context: FLUSH all queues of the context, forward":
        "Context",
    "ORD: all later work of the context waits, earlier must not: FLUSH all its queues, forward": "Context",
    "ORD: captures all work of the context: FLUSH all its queues, forward": "Context",
    "STATE: FLUSH all queues of the context, forward": "Context",
    "STATE: legacy per-function state, and a later real launch of the function would wipe it: FLUSH queues that "
    "hold the "
    "function, forward": "Context",
    # The same, and a value that is set again needs no flush.
    "STATE: FLUSH queues that hold the function (skip if unchanged), forward, new cache epoch": "ContextIfChanged",
    "STATE: read at launch: FLUSH all queues of the context (skip if unchanged), forward, new cache epoch":
        "ContextIfChanged",
    "STATE: if the value differs from the last one set for this function and attribute, FLUSH the queues of the "
    "context "
    "that hold it, forward, and start a new cache epoch for it; same value: forward without a flush (GEMM "
    "libraries set it "
    "before every launch)": "Attribute",
    # Everything.
    "LIFE: FLUSH-ALL, forward": "All",
    "LIFE: FLUSH-ALL, forward; then drop queues, caches and graphs of that context (destroy graphs before it "
    "goes)": "All",
    "LIFE: FLUSH-ALL, forward; then purge every cached sequence and graph that names a function of it (handles are "
    "reused)": "All",
    "LIFE: changes what devices may access: FLUSH-ALL, forward": "All",
    "LIVE: a graph object of the application, but instantiation allocates, may load code and may upload: FLUSH-ALL, "
    "forward": "All",
    "LIVE: allocation or mapping may block in the driver: FLUSH-ALL, forward": "All",
    "LIVE: blocks later driver calls of that process: FLUSH-ALL before, and let no timer flush run until unlock": "All",
    "LIVE: creation may block behind a running kernel: FLUSH-ALL, forward; remember context, flags (blocking or "
    "not) and "
    "priority of the new handle": "All",
    "LIVE: gives memory back, may block: FLUSH-ALL, forward": "All",
    "LIVE: loading may wait for the device to drain while it holds the context lock: FLUSH-ALL, forward": "All",
    "LIVE: may finish a lazy load: FLUSH-ALL, forward": "All",
    "LIVE: may load the library into the current context: FLUSH-ALL, forward": "All",
    "ORD: FLUSH(stream) so a waiting stream does not hold back earlier launches; LIVE: FLUSH-ALL is better, since the "
    "value may be written by a queued kernel of another stream": "All",
    "ORD: FLUSH(stream); the host then blocks, so FLUSH-ALL (LIVE). On the legacy stream: the whole legacy "
    "group": "All",
    "ORD: FLUSH-ALL, forward": "All",
    "ORD: a profiling window opens or closes here: FLUSH-ALL, forward, so queued work falls on the right side": "All",
    "ORD: runs in the calling thread's own default stream (blocking, never queued): flush the legacy queue of "
    "the context; "
    "it mostly blocks the host, so FLUSH-ALL is the simple rule": "All",
    "ORD: runs in the default stream: FLUSH(legacy group of the current context). It mostly blocks the host, so "
    "FLUSH-ALL "
    "is the simple rule; needed anyway when the operands are on two devices": "All",
    "ORD: two contexts take part: FLUSH-ALL, forward": "All",
    "STATE: placement of later accesses: FLUSH-ALL, forward": "All",
    "STATE: texture references are read at launch and not allowed in graphs: FLUSH-ALL, forward; functions of "
    "the module "
    "stay direct": "All",
    # Everything, unless the same was asked for before.
    "LOOKUP: a name (kernel) already looked up in that module and context: forward, submit nothing; the first look-up "
    "may finish a lazy load: FLUSH-ALL, forward": "AllIfNew",
    "LOOKUP: of a library already loaded into the current context: forward, submit nothing; else it may load: "
    "FLUSH-ALL, forward": "AllIfNew",
    # Everything or nothing.
    "No flush for order: the record already flushed. The host blocks, so FLUSH-ALL (LIVE) or leave it to the timer":
        "AllOrTimer",
    "NONE: forward; only if the function was never launched FLUSH-ALL first (LIVE: may lazy-load)":
        "AllIfNeverLaunched",
    "Forward; may lazy-load the function: if it was never launched, FLUSH-ALL first (LIVE)": "AllMayLoad",
    # All queues of the stream's context.
    "FLUSH all queues of the context first (queued launches happened before the capture; a legacy-stream flush "
    "later would "
    "break it), forward; count the capture; until it ends queue nothing in this context and build no graph":
        "BeginCapture",
    # Queued, or sent on behind its stream.
    "Queue: copy arguments by value (kernelParams via the parameter layout, or the extra buffer) and return "
    "success only "
    "if function, context, block, shared size and limits were already proven by an earlier real launch; else "
    "FLUSH-ALL and "
    "forward (the first launch of a function may lazy-load). Before queueing on a blocking stream flush a "
    "non-empty legacy "
    "queue, and the reverse. Direct when the stream is a per-thread default stream or has a non-default attribute, any "
    "capture is active in the context, or the function is texture-tainted": "Launch",
    "Stream is field hStream of the config. As cuLaunchKernel, but queue only when every attribute is one the node "
    "carries and the sequence knows (cooperative, cluster dimension, each within what the device holds); "
    "attributes that "
    "record events, allow programmatic overlap, set a memory-sync domain, priority, access window or device-updatable "
    "node: FLUSH(stream) and forward":
        "Launch",
    "Queue: as cuLaunchKernel, the node carrying the cooperative attribute, but only when the device holds all "
    "blocks at "
    "once (occupancy times multiprocessors): larger ones are refused at launch, so they go direct. A node "
    "cannot switch "
    "between cooperative and plain, so the attribute belongs to the sequence": "Launch",
}

OWN_STREAM = re.compile(r" Stream 0 here is the calling thread's own stream"
                        r"( \(blocking, never queued\): flush the legacy queue instead|: direct, never queued)\.")
PLACES = {"-": "None", "0->hStream": "LaunchConfig", "0[i].hStream": "LaunchList", "2->hUploadStream": "InstantiateParams",
          "*2": "Pointer2"}
COLUMNS = ["symbol", "class", "stream-argument-index", "rule", "test", "failure"]
FAILURES = {"-": "kPlain", "tells": "kTells", "retries": "kRetries"}


def demand_of(rule):
    """The demand of a rule text, or None."""
    text = OWN_STREAM.sub("", rule)
    for remark in REMARKS:
        text = text.replace(" " + remark, "")
    text = text.removesuffix(".")
    return DEMANDS.get(text) or DEMANDS.get(REASON_END.sub("", text))


def own_stream_fault(symbol, demand, place, rule):
    """Twins must say what stream 0 is, and nothing else may."""
    is_twin = symbol.endswith(("_ptsz", "_ptds"))
    says_so = OWN_STREAM.search(rule) is not None
    observes = place != "None" and demand not in ("Nothing", "Untouched", "BeginCapture")
    if says_so and not is_twin:
        return "says that stream 0 is the thread's own, and is no twin"
    if is_twin and observes and not says_so:
        return "is a twin and does not say what stream 0 is"
    return None


def convert(line, where, problems):
    fields = line.split("\t")
    if len(fields) != len(COLUMNS):
        problems.append(f"{where}: {len(fields)} columns instead of {len(COLUMNS)}")
        return None
    symbol, _, stream, rule, tests, failure = fields
    place = PLACES.get(stream, f"Argument{stream}" if stream.isdigit() else None)
    if place is None:
        problems.append(f"{where}: {symbol}: stream argument '{stream}' is not understood")
        return None
    demand = demand_of(rule)
    if demand is None:
        problems.append(f"{where}: {symbol}: this rule is not understood: {rule}")
        return None
    fault = own_stream_fault(symbol, demand, place, rule)
    if fault:
        problems.append(f"{where}: {symbol} {fault}: {rule}")
    if failure not in FAILURES:
        problems.append(f"{where}: {symbol}: failure '{failure}' is none of {', '.join(FAILURES)}")
        return None
    if not tests:
        problems.append(f"{where}: {symbol}: no test named")
    is_own = "true" if symbol.endswith(("_ptsz", "_ptds")) else "false"
    return f'ROW({symbol}, {demand}, {place}, {is_own}, {FAILURES[failure]}, "{tests}")'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("tsv", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    rows, problems = [], []
    for path in arguments.tsv:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()[1:], 2):
            row = convert(line, f"{path.name}:{number}", problems)
            if row:
                rows.append(row)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems or not rows:
        return 1
    arguments.output.write_text("\n".join(sorted(rows)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
