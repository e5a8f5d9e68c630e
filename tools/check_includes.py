#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the include directions of the tree: shim -> graphs, profiler, runtime; graphs -> runtime; profiler -> runtime;
runtime -> CUDA headers and std; tools/softgpu -> itself and runtime/driver_entries.def; tools/cli -> itself, the format
of reports and the settings. Project files are included from the root, in quotes, without "../", and never in a circle.
Exits 0 and prints one line, or 1 with one line per fault."""
import argparse
import pathlib
import re
import sys

# Folder -> (folders its files may include, single files beyond that). The longest folder that matches is used;
# a folder with None may include everything.
LAYERS = {
    "runtime": (["runtime"], []),
    "graphs": (["graphs", "runtime"], []),
    "profiler": (["profiler", "runtime"], []),
    "shim": (["shim", "graphs", "profiler", "runtime"], []),
    "api": (["api", "shim", "runtime"], []),
    # For programs, which know nothing of the library's inside.
    "runtime/include": (["runtime/include"], []),
    "tools/softgpu": (["tools/softgpu"], ["runtime/driver_entries.def"]),
    # What the format of a report is made of, what is known of names, the table of settings, and writing without
    # signals, as `run` must while its program runs.
    "tools/cli": (["tools/cli"], ["profiler/call_stats.h", "profiler/function_name.h", "profiler/json_report.h",
                                  "profiler/json_writer.h", "profiler/module_list.h", "profiler/python_code.h",
                                  "profiler/output_file.h", "profiler/text_buffer.h", "runtime/options.h",
                                  "runtime/write_shield.h"]),
    "tests": (None, []),
}
# The libraries load into foreign processes: nothing but libc, std, CUDA headers and libunwind's declarations.
LIBRARY_FOLDERS = ("runtime", "graphs", "profiler", "shim", "api")
BANNED_IN_LIBRARIES = re.compile(
    r"^(iostream|sstream|fstream|iomanip|regex|locale|exception|stdexcept|spdlog/|fmt/|nlohmann/|CLI/|catch2/|benchmark/"
    r"|zstd|boost/)")
PUBLIC = "runtime/include/"
SOURCES = {".h", ".hpp", ".cpp", ".cu", ".def", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def sources_of(root):
    for top in ("runtime", "graphs", "profiler", "shim", "api", "tools", "tests"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path.relative_to(root).as_posix()


def layer_of(name):
    matches = [folder for folder in LAYERS if name.startswith(folder + "/")]
    return max(matches, key=len, default=None)


def includes_of(root, name):
    text = (root / name).read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def may_include(layer, target):
    folders, files = LAYERS[layer]
    if folders is None or target in files:
        return True
    return any(target.startswith(folder + "/") for folder in folders)


def check_quoted(root, name, target):
    if target.startswith(("../", "./", "/")) or "/../" in target:
        return f'"{target}" is not a path from the root'
    public = root / "runtime/include" / target
    if not (root / target).is_file() and not public.is_file():
        return f'"{target}" does not exist under the root'
    real = target if (root / target).is_file() else f"runtime/include/{target}"
    layer = layer_of(name)
    if layer is None:
        return "is in a folder without a rule (see LAYERS)"
    if not may_include(layer, real):
        return f'{layer} must not include "{target}"'
    return None


def check_angled(root, name, target):
    if (root / target).is_file():
        return f"<{target}> is a file of this project: use quotes"
    is_library = name.startswith(tuple(folder + "/" for folder in LIBRARY_FOLDERS)) and not name.startswith(PUBLIC)
    if is_library and BANNED_IN_LIBRARIES.match(target):
        return f"<{target}> has no place in the preload library"
    return None


def find_cycle(graph):
    """The first include cycle as a list of files, or None. Depth first, iterative: trees may be deep."""
    done = set()
    for start in sorted(graph):
        path, stack = [], [(start, iter(graph[start]))]
        if start in done:
            continue
        path.append(start)
        while stack:
            following = next(stack[-1][1], None)
            if following is None:
                done.add(stack.pop()[0])
                path.pop()
            elif following in path:
                return path[path.index(following):] + [following]
            elif following not in done and following in graph:
                path.append(following)
                stack.append((following, iter(graph[following])))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    problems, graph, count = [], {}, 0
    for name in sources_of(root):
        count += 1
        graph[name] = []
        for number, quoted, angled in includes_of(root, name):
            fault = check_quoted(root, name, quoted) if quoted else check_angled(root, name, angled)
            if fault:
                problems.append(f"{name}:{number}: {fault}")
            elif quoted and not quoted.endswith(".def"):  # tables are read several times on purpose
                graph[name].append(quoted)
    cycle = find_cycle(graph)
    if cycle:
        problems.append("include cycle: " + " -> ".join(cycle))
    for problem in problems:
        print(problem)
    if problems or not count:
        print(f"{len(problems)} faults in {count} files")
        return 1
    print(f"{count} files include in the right direction")
    return 0


if __name__ == "__main__":
    sys.exit(main())
