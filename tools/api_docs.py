#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference part of docs/api.md from the comments of runtime/include/cajeta/xpu.h; with --check it changes
nothing, and exits 1 with one line per fault: when the part is not what the header says, when a function lacks one of
@errors, @threads and @cuda, or when a method of xpu.hpp or of the Python package is not named in the page, or when
xpu_loader.h lists other functions than the header."""
import argparse
import ast
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
HEADER = TOP / "runtime/include/cajeta/xpu.h"
PAGE = TOP / "docs/api.md"
PACKAGE = TOP / "tools/python/cajeta_xpu"
MARK = "<!-- From here on written by tools/api_docs.py. -->\n"
ITEM = re.compile(r"/\* ---- (?P<section>.+?) ---- \*/|/\*\*(?P<text>.*?)\*/\n(?P<code>.*?;)(?=\n\n|\n#)", re.S)
TAGS = ("errors", "threads", "cuda")
# Of xpu.hpp: keywords and what is no part of its surface.
NOT_METHODS = {"if", "switch", "check", "raise", "api", "end", "make", "argument", "submit", "pending", "properties", "range",
               "identity", "decltype", "what", "code", "get"}


def items():
    """(section, text, code) in order; text and code are None for a section's head."""
    for match in ITEM.finditer(HEADER.read_text(encoding="utf-8")):
        yield match["section"], match["text"], match["code"]


def paragraphs(text):
    """The description, and tag -> text."""
    words = re.sub(r"\s*\n(?:\s*\* )?\s*", " ", text).strip()
    parts = re.split(r"\s*@(\w+) ", words)
    return parts[0], dict(zip(parts[1::2], parts[2::2]))


def reference(problems):
    lines = []
    for section, text, code in items():
        if section is not None:
            lines += [f"## {section}", ""]
            continue
        about, tags = paragraphs(text)
        code = code.replace("CAJETA_XPU_API ", "")
        names = re.findall(r"\b(cajeta_xpu_\w+)\(", code) if "typedef" not in code else []
        for name in names:
            lines += [f"### {name}", ""]
            problems += [f"{HEADER.name}: {name} has no @{tag}" for tag in TAGS if tag not in tags]
        # The prototype loses the indentation that the macro in front of it gave it.
        code = re.sub(r"\n +", "\n    ", code) if names else code
        lines += ["```c", code, "```", "", about, ""]
        titles = {"errors": "Errors", "threads": "Threads", "cuda": "CUDA"}
        lines += [f"- {titles[tag]}: {tags[tag]}" for tag in TAGS if tag in tags]
        lines += [""] if tags else []
    return "\n".join(lines)


def functions_of(path, pattern):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    return set(re.findall(pattern, text))


def python_names():
    for path in sorted(PACKAGE.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and path.name in ("objects.py", "streams.py", "errors.py"):
                yield node.name
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        yield member.name


def check(page, problems):
    written = page.split(MARK)[0]
    declared = functions_of(HEADER, r"\bcajeta_xpu_(\w+)\(")
    listed = functions_of(HEADER.with_name("xpu_loader.h"), r"\bX\((\w+)\)") - {"name"}
    problems += [f"xpu_loader.h and xpu.h differ in {name}" for name in sorted(declared ^ listed)]
    cpp = re.sub(r"//[^\n]*", "", HEADER.with_name("xpu.hpp").read_text(encoding="utf-8"))
    named = set(re.findall(r"\b([a-zA-Z]\w*)\([^;{}]*\)\s*(?:const\s*)?(?:noexcept\s*)?(?:->\s*\w+\s*)?\{", cpp))
    named |= set(re.findall(r"(?:class|using) (\w+Error)\b", cpp)) | set(re.findall(r"^class (\w+)", cpp, re.M))
    for language, names in (("C++", named - NOT_METHODS), ("Python", set(python_names()))):
        problems += [f"{PAGE.name}: does not name {name} ({language})" for name in sorted(names)
                     if not name.startswith("_") and not re.search(rf"\b{name}\b", written)]
    problems += [f"{PAGE.name}: {name} is missing in the reference" for name in sorted(declared)
                 if f"### cajeta_xpu_{name}\n" not in page]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    problems = []
    page = PAGE.read_text(encoding="utf-8")
    wanted = page.split(MARK)[0] + MARK + "\n" + reference(problems)
    if parser.parse_args().check:
        if page != wanted:
            problems.append(f"{PAGE.name} is not what {HEADER.name} says: run tools/api_docs.py")
        check(page, problems)
    else:
        PAGE.write_text(wanted, encoding="utf-8")
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{PAGE.name} agrees with the headers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
