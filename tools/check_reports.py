#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no script reads the library's text report: its layout is for people and changes, the JSON has a schema.
Wherever a Python script of tests/ and tools/ sets CAJETA_XPU_REPORT, the value must be none, stderr, or a path whose
last part, as far as the script spells it, ends in .json. A test of the text itself says so on that line: "# text report".
Exits 0 and prints one line, or 1 with one line per fault."""
import argparse
import ast
import pathlib
import sys

NAME = "CAJETA_XPU_REPORT"
NO_FILE = ("none", "stderr")
ALLOWED = "# text report"


def scripts_of(root):
    for top in ("tests", "tools"):
        for path in sorted((root / top).rglob("*")):
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            if path.suffix == ".py" or path.suffix == "" and path.read_bytes()[:64].split(b"\n")[0].endswith(b"python3"):
                yield path


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def nodes_of(scope):
    """What stands in a module or function itself, not in the functions inside it."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, FUNCTIONS):
            waiting.extend(ast.iter_child_nodes(node))


def is_setting(node):
    return isinstance(node, ast.Constant) and node.value == NAME


def settings_of(scope):
    """The expressions that become the setting: in a dictionary, by keyword, by subscript, in a pair."""
    for node in nodes_of(scope):
        if isinstance(node, ast.Dict):
            yield from (value for key, value in zip(node.keys, node.values) if is_setting(key))
        elif isinstance(node, ast.keyword) and node.arg == NAME:
            yield node.value
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and is_setting(node.elts[0]):
            yield node.elts[1]
        elif isinstance(node, ast.Assign):
            if any(isinstance(target, ast.Subscript) and is_setting(target.slice) for target in node.targets):
                yield node.value


def assigned_in(scope):
    names = {}
    for node in nodes_of(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, []).append(node.value)
    return names


def is_json(value, names):
    """Whether the last text that an expression spells, or each that was assigned to a name, ends in .json."""
    if isinstance(value, ast.Name):
        return bool(names.get(value.id)) and all(is_json(one, {}) for one in names[value.id])
    texts = [part for part in ast.walk(value) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    last = max(texts, key=lambda part: (part.lineno, part.col_offset), default=None)
    return last is not None and (last.value in NO_FILE or last.value.endswith(".json"))


def findings_of(path):
    """For each setting its line, and whether it is as it must be."""
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))]:
        names = assigned_in(scope)
        for value in settings_of(scope):
            yield value.lineno, is_json(value, names) or ALLOWED in lines[value.lineno - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    root = parser.parse_args().root
    settings, faults = 0, 0
    for path in scripts_of(root):
        for line, is_right in findings_of(path):
            settings += 1
            if not is_right:
                faults += 1
                print(f"{path.relative_to(root)}:{line}: {NAME} is given a file that is not JSON")
    print(f"{settings} reports asked for, {faults} faults")
    return 1 if faults or settings == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
