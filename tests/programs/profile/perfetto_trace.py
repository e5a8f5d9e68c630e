# SPDX-License-Identifier: Apache-2.0
"""A trace of CAJETA_PROFILER=1 as plain Python objects, read with the protobuf definitions that PyPI's perfetto
package ships. Strict: what a packet refers to must stand before it, and slices must nest as Perfetto nests them.
docs/trace-format.md is what is held here."""
import collections
import dataclasses
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import SKIPPED  # noqa: E402  pylint: disable=wrong-import-position
from client_runs import python_with  # noqa: E402  pylint: disable=wrong-import-position

PERFETTO = "0.59.1"
MONOTONIC = 3


def run_with_perfetto(folder):
    """Goes on in a Python that has the definitions; ends the process as skipped where they cannot be had."""
    python = python_with(folder, "perfetto", PERFETTO)
    if python is None:
        sys.exit(SKIPPED)
    if os.path.realpath(sys.prefix) != os.path.realpath(folder):
        os.execv(python, [python, *sys.argv])


class Malformed(Exception):
    pass


def require(claim, message):
    if not claim:
        raise Malformed(message)


@dataclasses.dataclass(frozen=True)
class Line:
    function: str
    file: str  # "" where not known
    line: int


@dataclasses.dataclass
class Frame:
    path: str
    build_id: bytes
    rel_pc: int
    function: str  # that the frame itself has: "(table full)"
    lines: list = dataclasses.field(default_factory=list)  # inlined calls first, [] where not known


@dataclasses.dataclass
class Thread:
    tid: int
    name: str


@dataclasses.dataclass
class Stream:
    name: str
    context: str


@dataclasses.dataclass
class Span:
    tid: int
    entry: str
    start: int
    end: int
    bytes: int
    is_blocked: bool


@dataclasses.dataclass
class Launch:
    number: int
    tid: int
    entry: str
    kernel: str
    start: int  # of the call
    end: int
    stack: list  # of Frame, innermost first
    flow: int
    run: "Run" = None


@dataclasses.dataclass
class Run:
    """Of a kernel on the device."""
    stream: Stream
    kernel: str
    mangled: str
    start: int
    end: int
    grid: str
    block: str
    shared_bytes: int


@dataclasses.dataclass
class Sample:
    tid: int
    time: int
    stack: list


def read_varint(data, at):
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    return None, at


def whole_packets(data):
    """The packets of a file that may end anywhere."""
    at = 0
    while at < len(data):
        require(data[at] == 0x0A, f"byte {at} begins no packet")
        size, start = read_varint(data, at + 1)
        if size is None or start + size > len(data):
            return
        yield data[start:start + size]
        at = start + size


INTERNED = ("event_categories", "event_names", "debug_annotation_names", "debug_annotation_string_values", "build_ids",
            "mapping_paths", "function_names", "mappings", "frames", "callstacks")


class Trace:
    """`header` (a dict), `process`, `threads` by tid, `streams` and `contexts` (by track), `spans`, `launches` by
    number, `samples`; `packets` counts what was read."""

    def __init__(self, data):
        # Here, so that run_with_perfetto() can be called with this module imported.
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # pylint: disable=import-outside-toplevel
        self.protos = perfetto_trace_pb2
        self.header, self.process, self.clocks = {}, None, {}
        self.threads, self.contexts, self.streams = {}, {}, {}
        self.spans, self.launches, self.samples = [], {}, []
        self.packets = 0
        self._interned = {kind: {} for kind in INTERNED}
        self._tracks, self._frames, self._names = {}, {}, {}
        self._events = collections.defaultdict(list)  # by track: (time, type, category, name)
        self._begin = None
        for bytes_ in whole_packets(data):
            self._take(self.protos.TracePacket.FromString(bytes_))
        self._name_frames()
        self._check_nesting()

    @classmethod
    def of_file(cls, path):
        return cls(pathlib.Path(path).read_bytes())

    def _take(self, packet):
        require(packet.trusted_packet_sequence_id == 1, f"packet {self.packets} is of another sequence")
        require(packet.sequence_flags == (2 if self.packets else 1), f"flags of packet {self.packets}")
        self._intern(packet.interned_data)
        kind = packet.WhichOneof("data")
        if self.packets == 0:
            require(kind == "track_event", "the first packet is not the header")
            self._take_header(packet)
        elif kind is not None:
            require(kind in ("clock_snapshot", "track_descriptor", "track_event", "perf_sample", "module_symbols"),
                    f"packet {self.packets} is a {kind}")
            getattr(self, "_take_" + kind)(packet)
        self.packets += 1

    def _intern(self, data):
        for kind in INTERNED:
            known = self._interned[kind]
            for entry in getattr(data, kind):
                require(entry.iid not in known, f"{kind} {entry.iid} is defined again")
                known[entry.iid] = entry
        for mapping in data.mappings:
            if mapping.build_id:
                self._find("build_ids", mapping.build_id)
            self._path(mapping)
        for frame in data.frames:
            self._frame(frame.iid)
        for stack in data.callstacks:
            self._stack(stack.iid)

    def _find(self, kind, iid):
        require(iid in self._interned[kind], f"packet {self.packets} refers to {kind} {iid} before it is there")
        return self._interned[kind][iid]

    def _take_header(self, packet):
        event = packet.track_event
        require(event.name == "cajeta-xpu profiler", f"the first packet is {event.name!r}")
        for item in event.debug_annotations:
            self.header[item.name] = getattr(item, item.WhichOneof("value"))

    def _take_clock_snapshot(self, packet):
        require(packet.clock_snapshot.primary_trace_clock == MONOTONIC, "another clock")
        self.clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}

    def _take_track_descriptor(self, packet):
        track = packet.track_descriptor
        if packet.HasField("trace_packet_defaults"):
            require(packet.trace_packet_defaults.timestamp_clock_id == MONOTONIC, "another clock")
        if track.HasField("process"):
            self.process = track.process
        else:
            require(track.parent_uuid in self._tracks, f"track {track.name!r} before its parent")
        parent = self._tracks.get(track.parent_uuid)
        if track.HasField("thread"):
            require(track.thread.pid == self.process.pid, "a thread of another process")
            known = self.threads.setdefault(track.thread.tid, Thread(track.thread.tid, ""))
            known.name = track.thread.thread_name
            require(self._tracks.get(track.uuid, known) is known, "two threads on a track")
            self._tracks[track.uuid] = known
            return
        require(track.uuid not in self._tracks, f"track {track.name!r} is described again")
        if track.name.startswith("stream "):
            require(isinstance(parent, str) and parent.startswith("device context "), "a stream without a context")
            self._tracks[track.uuid] = self.streams[track.uuid] = Stream(track.name, parent)
        else:
            self._tracks[track.uuid] = track.name
            if track.name.startswith("device context "):
                self.contexts[track.uuid] = track.name

    def _take_track_event(self, packet):
        event = packet.track_event
        require(len(event.category_iids) == 1, f"{len(event.category_iids)} categories")
        category = self._find("event_categories", event.category_iids[0]).name
        name = self._find("event_names", event.name_iid).name
        require(event.track_uuid in self._tracks, "an event on no track")
        self._events[event.track_uuid].append((packet.timestamp, event.type, category, name))
        types = self.protos.TrackEvent
        if event.type == types.TYPE_SLICE_BEGIN:
            require(self._begin is None, "a slice in a slice")
            self._begin = (packet, category, name)
            return
        require(event.type == types.TYPE_SLICE_END and self._begin is not None, "an end without a beginning")
        begin, *same = self._begin
        self._begin = None
        is_same = same == [category, name] and begin.track_event.track_uuid == event.track_uuid
        require(is_same, "an end of another slice")
        require(packet.timestamp >= begin.timestamp, f"{name} ends before it begins")
        self._take_slice(begin.track_event, category, name, begin.timestamp, packet.timestamp)

    def _annotations(self, event):
        found = {}
        for item in event.debug_annotations:
            value = getattr(item, item.WhichOneof("value"))
            if item.WhichOneof("value") == "string_value_iid":
                value = self._find("debug_annotation_string_values", value).str.decode()
            found[self._find("debug_annotation_names", item.name_iid).name] = value
        return found

    def _take_slice(self, event, category, name, start, end):
        track, notes = self._tracks[event.track_uuid], self._annotations(event)
        if category in ("call", "blocked"):
            self.spans.append(Span(track.tid, name, start, end, notes.get("bytes", 0), category == "blocked"))
        elif category == "launch":
            number = notes["launch"]
            require(number not in self.launches, f"launch {number} twice")
            stack = self._stack(event.callstack_iid) if event.callstack_iid else []
            self.launches[number] = Launch(number, track.tid, name, notes["kernel"], start, end, stack,
                                           event.flow_ids[0])
        elif category == "kernel":
            launch = self.launches[notes["launch"]]
            require(list(event.terminating_flow_ids) == [launch.flow], "the arrow leads elsewhere")
            require(launch.kernel == name, f"{launch.kernel} was launched, {name} ran")
            launch.run = Run(track, name, notes.get("mangled", name), start, end, notes["grid"], notes["block"],
                             notes.get("shared_bytes", 0))
        else:
            raise Malformed(f"category {category!r}")

    def _take_perf_sample(self, packet):
        sample = packet.perf_sample
        require(sample.pid == self.process.pid and sample.tid in self.threads, "a sample of no known thread")
        stack = self._stack(sample.callstack_iid) if sample.HasField("callstack_iid") else []
        self.samples.append(Sample(sample.tid, packet.timestamp, stack))

    def _take_module_symbols(self, packet):
        module = packet.module_symbols
        build_id = module.build_id.encode() if isinstance(module.build_id, str) else module.build_id
        for symbol in module.address_symbols:
            require(len(symbol.lines) > 0, f"no name for {module.path}+{symbol.address:#x}")
            self._names[module.path, build_id, symbol.address] = [
                Line(line.function_name, line.source_file_name, line.line_number) for line in symbol.lines]

    def _path(self, mapping):
        require(len(mapping.path_string_ids) == 1, "a path in pieces")
        return "/" + self._find("mapping_paths", mapping.path_string_ids[0]).str.decode()

    def _frame(self, iid):
        if iid not in self._frames:
            frame = self._find("frames", iid)
            mapping = self._find("mappings", frame.mapping_id)
            build_id = self._find("build_ids", mapping.build_id).str if mapping.build_id else b""
            function = self._find("function_names", frame.function_name_id).str if frame.function_name_id else b""
            self._frames[iid] = Frame(self._path(mapping), build_id, frame.rel_pc, function.decode())
        return self._frames[iid]

    def _stack(self, iid):
        return [self._frame(frame) for frame in reversed(self._find("callstacks", iid).frame_ids)]

    def _name_frames(self):
        for frame in self._frames.values():
            frame.lines = self._names.get((frame.path, frame.build_id, frame.rel_pc), [])

    def _check_nesting(self):
        """What Perfetto makes of the events of a track: sorted by time, else in the order of the file, an end closes
        the innermost open slice of its name. Every slice must come out as it was written."""
        for track, events in self._events.items():
            if len(events) % 2:
                events = events[:-1]  # a trace cut between the two
            pairs = [(begin[0], end[0], begin[3]) for begin, end in zip(events[::2], events[1::2])]
            stack, slices = [], []
            for time, kind, category, name in sorted(events, key=lambda event: event[0]):
                if kind == self.protos.TrackEvent.TYPE_SLICE_BEGIN:
                    stack.append((time, category, name))
                    continue
                at = max(i for i, begun in enumerate(stack) if begun[1:] == (category, name))
                require(at == len(stack) - 1, f"{name} at {time} overlaps {stack[-1][2]}")
                slices.append((stack.pop()[0], time, name))
            require(sorted(slices) == sorted(pairs), f"slices of {self._tracks[track]} come out otherwise")
