#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that README.md, docs/*.md and the manual tell a reader to type, as they stand there, in a copy of the
tree whose build/plain is the build under test. A page is one shell session, from the top of the copy.

    documented_test.py --build DIR [--root DIR] [PAGE...]

What is to be typed stands in a fenced block of the language sh, one command a line; in the manual between .nf and .fi.
Before each such block a comment (<!-- ... --> or .\\" ...) says what holds:

    run                     every command ends with status 0
    run: ITEM; ITEM ...     besides:
        status N            the last command ends with that status
        prints TEXT         their output has that text
        shows               their output has each line of the text block that follows, but for numbers; lines ... stand for others
        until TEXT          but not the line with TEXT, nor those behind it, which not every machine shows
        given NAME = PATH   a link NAME to the file PATH stands for what the reader has
        installed           the command cajeta-xpu is found without its folder
        on softgpu          softgpu stands for the driver that the reader has
    not run: REASON

Inline code that starts with a command of this tree only names it: that command and its options must exist, unless a comment
"no command: CODE" says otherwise. A block without such a comment is a fault, and so is a command that stands anywhere else,
or a link to a file that there is not.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT_S = 170
COMMENT = re.compile(r"(?:<!--|\.\\\") *(not run|run)\b(?:: *(.*?))? *(?:-->)?$")
# What a command line looks like where none may stand: in a block of output, or indented.
TYPED = re.compile(r"^\s*(?:\$ |(?:\w+=\S* )*(?:tools/|tests/\w+/run|meson |ninja |cd |export |LD_PRELOAD=|"
                   r"(?:\S*/)?cajeta-xpu (?:run|report|compare|merge|check|doctor|profile|export|env|completions) \S))")
INLINE = re.compile(r"`((?:\S+/)?cajeta-xpu [a-z][^`]*|tools/[^`]*|tests/\w+/run[^`]*)`")
ITEMS = ("status ", "prints ", "given ", "until ", "shows", "installed", "on softgpu")


class Fault(Exception):
    pass


@dataclasses.dataclass
class Block:
    line: int  # of its first command
    commands: list
    items: list  # None: not run
    text: list  # lines of the text block behind it


def commands_of(lines):
    """Lines joined where one goes on in the next; comments are for the reader."""
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line for line in joined.split("\n") if line.strip() and not line.lstrip().startswith("#")]


def block_of(number, lines, comment, text):
    if comment is None:
        raise Fault(f"line {number}: commands without a comment that says how they are checked")
    kind, rest = comment
    if kind == "not run":
        if not rest:
            raise Fault(f"line {number}: not run, but no reason")
        return Block(number, commands_of(lines), None, text)
    items = [item.strip() for item in (rest or "").split(";") if item.strip()]
    for item in items:
        if not item.startswith(ITEMS):
            raise Fault(f"line {number}: '{item}' is none of: {', '.join(item.strip() for item in ITEMS)}")
    if "shows" in items and not text:
        raise Fault(f"line {number}: no text block follows that could be shown")
    return Block(number, commands_of(lines), items, text)


def fences_of(lines):
    """(line number, language, lines, the comment before it), and None for each line outside."""
    comment, inside = None, None
    for number, line in enumerate(lines, 1):
        if inside is not None:
            if line.startswith("```"):
                yield inside
                inside, comment = None, None
            else:
                inside[2].append(line)
        elif line.startswith("```"):
            inside = (number + 1, line[3:].strip(), [], comment)
        else:
            found = COMMENT.match(line)
            if found:
                comment = (found[1], found[2])
            elif line.strip():
                comment = None
                if re.match(r" {4}\S", line) and TYPED.match(line):
                    raise Fault(f"line {number}: an indented command; use a block of the language sh")
    if inside is not None:
        raise Fault(f"line {inside[0]}: a block without an end")


def markdown_blocks(lines):
    fences = list(fences_of(lines))
    for place, (number, language, body, comment) in enumerate(fences):
        if language == "sh":
            is_next_text = place + 1 < len(fences) and fences[place + 1][1] == "text"
            yield block_of(number, body, comment, fences[place + 1][2] if is_next_text else [])
        elif language in ("", "bash", "shell", "console"):
            raise Fault(f"line {number}: a block of the language '{language}'; commands are sh, what they print is text")
        elif any(TYPED.match(line) for line in body):
            raise Fault(f"line {number}: a command in a block of the language {language}")


def manual_blocks(lines):
    comment, inside = None, None
    for number, line in enumerate(lines, 1):
        found = COMMENT.match(line)
        if found:
            comment = (found[1], found[2])
        elif line == ".nf":
            inside = (number + 1, [])
        elif line == ".fi":
            yield block_of(inside[0], inside[1], comment, [])
            comment, inside = None, None
        elif inside:
            inside[1].append(line.replace("\\-", "-"))


def blocks_of(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    return list(manual_blocks(lines) if page.suffix == ".in" else markdown_blocks(lines))


class Names:
    """Of inline code: that the command is there and knows the options."""

    def __init__(self, root, tool):
        self.root, self.tool, self.known = root, tool, {}

    def help_of(self, words):
        key = tuple(words)
        if key not in self.known:
            done = subprocess.run([self.tool, *words, "--help"], capture_output=True, text=True, check=False)
            self.known[key] = done.stdout if done.returncode == 0 else ""
        return self.known[key]

    def check(self, code):
        words = code.split()
        command = pathlib.PurePath(words[0])
        if command.name == "cajeta-xpu":
            depth = 2 if words[1] in ("profile",) and len(words) > 2 else 1
            words = words[:words.index("--")] if "--" in words else words
            text, options = self.help_of(words[1:1 + depth]), words[1 + depth:]
        else:
            path = self.root / words[0]
            text = path.read_text(encoding="utf-8") if path.is_file() else "" if not path.is_dir() else code
            options = words[1:]
        if not text:
            raise Fault(f"`{code}`: there is no such command")
        for option in options:
            name = option.split("=")[0].rstrip(",;")
            if re.match(r"--?[a-z]", name) and not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
                raise Fault(f"`{code}`: {words[0]} knows no {name}")


def shape(line):
    """A line without what differs from run to run: numbers, their units, the host, and the width of columns."""
    line = re.sub(r"\bhost \S+", "host H", line)
    line = re.sub(r"0x[0-9a-f]+|[-+]?\d[\d,.]*", "N", line)
    line = re.sub(r"N (?:ns|us|ms|s|B|KiB|MiB|GiB)\b", "N U", line)
    return " ".join(line.split())


class Session:
    """The shell of one page. It reads commands from files, so that what one sets holds for the next."""

    def __init__(self, options, folder):
        self.build, self.top, self.log = options.build.resolve(), folder / "tree", folder / "log"
        self.log.mkdir()
        skipped = shutil.ignore_patterns("build", "build-*", ".git", "__pycache__")
        shutil.copytree(options.root, self.top, ignore=skipped, symlinks=True)
        (self.top / "build").mkdir()
        (self.top / "build/plain").symlink_to(self.build)
        for name in ("toolkit", "venv", "python"):
            if (options.root / "build" / name).exists():
                (self.top / "build" / name).symlink_to((options.root / "build" / name).resolve())
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("CAJETA_", "MESON", "NINJA")) and name != "LD_LIBRARY_PATH"}
        self.environment.update(HOME=str(folder), PYTHONDONTWRITEBYTECODE="1", TMPDIR=str(folder))

    def prepare(self, block):
        """The shell lines that stand for what a reader has."""
        lines = []
        for item in block.items:
            if item.startswith("given "):
                name, path = (part.strip() for part in item[len("given "):].split("="))
                if not (self.top / path).exists():
                    raise Fault(f"line {block.line}: there is no {path}")
                lines.append(f"ln -sf '{self.top / path}' '{name}'")
            elif item == "on softgpu":
                lines.append(f"export LD_LIBRARY_PATH='{self.build}/tools/softgpu'")
            elif item == "installed":
                lines.append(f"export PATH='{self.build}/tools/cli':$PATH")
        return lines

    def script(self, blocks):
        """One script for the page: every command's output and status in files of their own."""
        lines = [f"cd '{self.top}'"]
        for place, block in enumerate(blocks):
            lines += self.prepare(block)
            for number, command in enumerate(block.commands):
                name = self.log / f"{place}.{number}"
                name.with_suffix(f"{name.suffix}.sh").write_text(command + "\n", encoding="utf-8")
                lines.append(f". '{name}.sh' >'{name}.out' 2>&1 </dev/null; echo $? >'{name}.status'")
        return "\n".join(lines) + "\n"

    def judge(self, place, block):
        output = ""
        for number, command in enumerate(block.commands):
            name = self.log / f"{place}.{number}"
            is_last = number + 1 == len(block.commands)
            expected = next((int(item[7:]) for item in block.items if item.startswith("status ") and is_last), 0)
            text = pathlib.Path(f"{name}.out").read_text(encoding="utf-8", errors="replace")
            status = pathlib.Path(f"{name}.status")
            found = int(status.read_text(encoding="utf-8")) if status.exists() else "none: the session ended"
            if found != expected:
                raise Fault(f"line {block.line}: {command}: status {found}, expected {expected}\n{text[-3000:]}")
            output += text
        # In one piece: where a line is broken depends on how long its numbers are.
        shapes = " ".join(shape(line) for line in output.splitlines())
        for item in block.items:
            if item.startswith("prints ") and item[7:] not in output:
                raise Fault(f"line {block.line}: '{item[7:]}' is not printed, but\n{output[-3000:]}")
            if item.startswith("until ") and not any(item[6:] in line for line in block.text):
                raise Fault(f"line {block.line}: the text block has no '{item[6:]}'")
        ends = [item[6:] for item in block.items if item.startswith("until ")]
        for line in block.text if "shows" in block.items else []:
            if any(end in line for end in ends):
                break
            if line.strip() not in ("", "...") and shape(line) not in shapes:
                raise Fault(f"line {block.line}: a line as '{line.strip()}' is not shown, but\n{output[-6000:]}")

    def run(self, blocks):
        """How many commands it ran; raises a Fault."""
        script = self.script(blocks)
        done = subprocess.run(["bash", "-c", script], env=self.environment, timeout=TIMEOUT_S, check=False)
        for place, block in enumerate(blocks):
            self.judge(place, block)
        if done.returncode != 0:
            raise Fault(f"the session ended with status {done.returncode}")
        return sum(len(block.commands) for block in blocks)


def check_page(options, names, page):
    """One line about the page; raises a Fault."""
    blocks = blocks_of(page)
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        if not (page.parent / link).exists():
            raise Fault(f"there is no {link}, which it links to")
    others = re.findall(r"<!-- no command: (.*?) -->", text)
    for code in {" ".join(code.split()) for code in INLINE.findall(text)} - set(others):
        names.check(code)
    ran = [block for block in blocks if block.items is not None]
    count = 0
    if ran:
        with tempfile.TemporaryDirectory() as folder:
            count = Session(options, pathlib.Path(folder)).run(ran)
    return count, len(blocks) - len(ran)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--root", type=pathlib.Path, default=TOP)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    root = options.root
    pages = options.pages or [root / "README.md", *sorted((root / "docs").glob("*.md")), *sorted((root / "docs/man").glob("*.in"))]
    names = Names(root, options.build.resolve() / "tools/cli/cajeta-xpu")
    faults, total = 0, 0
    for page in pages:
        try:
            count, left = check_page(options, names, page)
            total += count
            print(f"{page.name}: {count} commands ran, {left} blocks are not run", flush=True)
        except (Fault, subprocess.TimeoutExpired) as fault:
            faults += 1
            print(f"{page.name}: {fault}", flush=True)
    print(f"{total} commands, {faults} pages with faults")
    return 1 if faults or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
