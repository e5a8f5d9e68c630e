#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports and traces go where they were sent: into what is no plain file, and without harm to a plain one."""

import fcntl
import json
import os
import resource
import shutil
import socket
import stat
import subprocess
import threading

from host_run import main, require

OUT = b"50\n"


def run(host, report, mode="profiled", kind="plain", extra=None, **options):
    """A run whose report or trace goes to `report`; ended as bare."""
    name = "CAJETA_PROFILER_OUT" if mode == "traced" else "CAJETA_XPU_REPORT"
    done = host.run([host.program("dying"), kind], mode, {name: report, **(extra or {})}, **options)
    if "stdout" not in options:
        require((done.returncode, done.stdout) == (0, OUT), f"{report}: {done}")
    require(done.returncode == 0, f"{report}: {done}")
    return done


def is_report(data):
    return json.loads(data)["written_at"] == "exit"


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def only(host, *names):
    """The files of the test's folder are these."""
    require(sorted(os.listdir(host.folder)) == sorted(names), f"{os.listdir(host.folder)}")


def is_whole_trace(host, path):
    if host.cli is None:
        return True
    done = host.run([host.cli, "profile", "summary", path], "bare")
    return done.returncode == 0 and b"complete" in done.stdout


class Reader:
    """Reads a pipe to its end beside the run."""

    def __init__(self, path):
        self.data = b""
        self.thread = threading.Thread(target=self.read, args=(path,))
        self.thread.start()

    def read(self, path):
        self.data = read(path)

    def end(self):
        self.thread.join(60)
        require(not self.thread.is_alive(), "the pipe was never closed")
        return self.data


def output_fifo(host):
    path = host.path("pipe.json")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # so that the run finds one
    os.set_blocking(reader, True)
    collected = []
    thread = threading.Thread(target=lambda: collected.extend(iter(lambda: os.read(reader, 65536), b"")))
    run_thread = threading.Thread(target=lambda: run(host, path))
    writer = os.open(path, os.O_WRONLY)
    thread.start()
    run_thread.start()
    run_thread.join()
    os.close(writer)
    thread.join()
    os.close(reader)
    require(is_report(b"".join(collected)) and stat.S_ISFIFO(os.stat(path).st_mode), "report")
    only(host, "pipe.json")


def output_fifo_without_reader(host):
    path = host.path("pipe")
    os.mkfifo(path)
    for mode, setting in (("profiled", b"CAJETA_XPU_REPORT"), ("traced", b"CAJETA_PROFILER_OUT")):
        done = run(host, path, mode)
        lines = [line for line in done.stderr.split(b"\n") if setting in line]
        require(len(lines) == 1 and b"nobody reads it" in lines[0], f"{mode}: {done.stderr}")
    require(stat.S_ISFIFO(os.stat(path).st_mode), "the pipe was replaced")
    only(host, "pipe")


def output_fifo_not_read(host):
    """A reader that stopped, with the pipe full."""
    path = host.path("pipe")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    while True:
        try:
            os.write(writer, b"x" * 4096)
        except BlockingIOError:
            break
    for mode, setting in (("profiled", b"CAJETA_XPU_REPORT"), ("traced", b"CAJETA_PROFILER_OUT")):
        done = run(host, path, mode, timeout=30)
        require(done.stderr.count(setting + b": cannot write") == 1, f"{mode}: {done.stderr}")
    # The same for standard error, whose flags are everybody's.
    os.set_blocking(writer, True)
    for mode in ("bare", "preloaded", "deferred", "profiled", "traced"):
        done = host.run([host.program("dying"), "plain"], mode, None if mode == "bare" else {"CAJETA_XPU_REPORT": "stderr"},
                        stderr=writer, timeout=30)
        require((done.returncode, done.stdout) == (0, OUT), f"{mode}: {done}")
    require(fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK == 0, "O_NONBLOCK was set for all")
    os.close(reader), os.close(writer)


def output_trace_to_fifo(host):
    path = host.path("pipe")
    os.mkfifo(path)
    reader = Reader(path)
    writer = os.open(path, os.O_WRONLY)  # when this is open, the reader is there
    run(host, path, "traced")
    os.close(writer)
    write(host.path("copy.pftrace"), reader.end())
    require(is_whole_trace(host, host.path("copy.pftrace")), "trace")


def output_trace_of_exec(host):
    """exec() keeps the process and its number: both programs have a trace."""
    for count in (2, 3):  # a trace of an earlier run is replaced
        done = host.run([host.program("dying"), "exec"], "traced", {"CAJETA_PROFILER_OUT": host.path("t.pftrace")})
        require((done.returncode, done.stdout) == (0, OUT + OUT), f"{done}")
        names = sorted(os.listdir(host.folder))
        require(len(names) == count and "t.pftrace" in names, f"{names}")
        if host.cli:
            summary = host.run([host.cli, "profile", "summary", host.path("t.pftrace")], "bare").stdout
            require(b"not complete" in summary, f"{summary}")


def output_of_one_number(host):
    """Processes of two containers may have one number, and one folder for what they write."""
    if host.cli is None:
        return "a sanitizer looks at the process from outside, which a namespace forbids"
    prefix = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run(prefix + ["true"], capture_output=True, check=False).returncode:
        return "no namespaces here"
    extra = {"CAJETA_XPU_DRIVER_PROFILE": "1", "CAJETA_XPU_REPORT": host.path("r.json"),
             "CAJETA_PROFILER_OUT": host.path("t.pftrace")}
    running = [subprocess.Popen(prefix + [host.program("dying"), "waits"], env=host.environment("traced", extra),
                                cwd=host.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
               for _ in range(3)]
    require(all(each.stdout.readline() == OUT for each in running), "they do not run")
    for each in running:
        each.stdin.close()
    require(all(each.wait(60) == 0 for each in running), "a status")
    for each in running:
        each.stdout.close()
    only(host, "r.json", "t.pftrace", "t.1.pftrace", "t.1.2.pftrace")
    require(is_report(read(host.path("r.json"))), "report")
    require(all(is_whole_trace(host, host.path(name)) for name in os.listdir(host.folder) if name != "r.json"), "trace")
    return None


def output_devices(host):
    for device in ("/dev/null", host.path("null")):
        if device != "/dev/null":
            try:
                os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
                write(device, b"")
            except PermissionError:
                continue  # not for this user, or not in this file system
        for mode in ("profiled", "traced"):
            done = run(host, device, mode)
            require(b"cannot" not in done.stderr, f"{mode}: {done.stderr}")
        require(stat.S_ISCHR(os.stat(device).st_mode), f"{device} was replaced")
        if host.cli and device != "/dev/null":
            for options in (["--profile", "-o", device], ["--profiler=" + device]):
                done = host.run([host.cli, "run", *options, "--", host.program("dying"), "plain"], "bare")
                require((done.returncode, done.stdout) == (0, OUT), f"{options}: {done}")
            require(stat.S_ISCHR(os.stat(device).st_mode), f"{device} was replaced by run")
    done = run(host, "/dev/full")
    require(done.stderr.count(b"No space left on device") == 1, f"{done.stderr}")
    require(b"CALLS THAT OBSERVE" in done.stderr, f"{done.stderr}")


def output_socket(host):
    path = host.path("socket.json")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)
        run(host, path)
        with listener.accept()[0] as peer:
            require(is_report(b"".join(iter(lambda: peer.recv(65536), b""))), "report")
    require(stat.S_ISSOCK(os.stat(path).st_mode), "the socket was replaced")
    done = run(host, path)
    require(done.stderr.count(b"Connection refused") == 1, f"{done.stderr}")


def output_links(host):
    os.mkdir(host.path("far"))
    write(host.path("far/real.json"), b"old")
    os.symlink("far/real.json", host.path("one.json"))
    os.symlink(host.path("one.json"), host.path("two.json"))
    os.symlink("far/new.json", host.path("dangling.json"))
    os.symlink("/dev/null", host.path("null.json"))
    for link, target in (("two", "real"), ("dangling", "new")):
        run(host, host.path(link + ".json"))
        require(is_report(read(host.path(f"far/{target}.json"))), link)
        run(host, host.path(link + ".json"), "traced")
        require(is_whole_trace(host, host.path(f"far/{target}.json")), link)
    run(host, host.path("null.json"))
    only(host, "far", "one.json", "two.json", "dangling.json", "null.json")
    require(all(os.path.islink(host.path(name)) for name in os.listdir(host.folder) if name != "far"), "a link is gone")
    require(sorted(os.listdir(host.path("far"))) == ["new.json", "real.json"], f"{os.listdir(host.path('far'))}")
    os.symlink("loop", host.path("loop"))
    require(run(host, host.path("loop")).stderr.count(b"Too many levels of symbolic links") == 1, "loop")


def output_descriptors(host):
    """Paths that name a descriptor lead to it, behind what the program has written there itself."""
    for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        done = run(host, path, stdout=subprocess.PIPE)
        require(done.stdout.startswith(OUT) and b"CALLS THAT OBSERVE" in done.stdout, f"{path}: {done}")
        for flags in ("wb", "ab"):
            with open(host.path("out.txt"), flags) as file:
                run(host, path, stdout=file)
            text = read(host.path("out.txt"))
            require(text.startswith(OUT) and text.count(b"CALLS THAT OBSERVE") == (1 if flags == "wb" else 2), path)
    os.symlink("/dev/stdout", host.path("link"))
    # The file by its own name, and by a link to the descriptor.
    for name in ("out.txt", "link"):
        for mode, sign in (("profiled", b"CALLS THAT OBSERVE"), ("traced", b"cajeta-xpu profiler")):
            with open(host.path("out.txt"), "wb") as file:
                done = run(host, host.path(name), mode, stdout=file)
            text = read(host.path("out.txt"))
            require((OUT in text) and sign in text, f"{name} {mode}: {text[:300]} {done}")
    with open(host.path("seven.txt"), "wb") as file:
        run(host, f"/dev/fd/{file.fileno()}", pass_fds=(file.fileno(),))
    require(b"CALLS THAT OBSERVE" in read(host.path("seven.txt")), "a descriptor that was inherited")
    require(b"Bad file descriptor" in run(host, "/dev/fd/777").stderr, "a descriptor that is not open")


def output_long_name(host):
    for name in ("r" * 250 + ".json", "%e" + "r" * 245 + ".json"):
        run(host, host.path(name))
        require(is_report(read(host.path(name.replace("%e", "dying")))), name)
        run(host, host.path(name), "traced")
    only(host, "r" * 250 + ".json", "dying" + "r" * 245 + ".json")
    require(b"File name too long" in run(host, host.path("r" * 256)).stderr, "a name that is too long")


def output_keeps(host):
    """Mode, owner and other names of a file that is there; the mask for a new one."""
    path = host.path("r.json")

    def masked():
        os.umask(0o027)

    for mode in ("profiled", "traced"):
        run(host, path, mode, preexec_fn=masked)
        require(stat.S_IMODE(os.stat(path).st_mode) == 0o640, f"new: {os.stat(path)}")
        os.chmod(path, 0o606)
        run(host, path, mode, preexec_fn=masked)
        require(stat.S_IMODE(os.stat(path).st_mode) == 0o606, f"kept: {os.stat(path)}")
        if os.geteuid() == 0:
            os.chown(path, 12345, 23456)
            run(host, path, mode)
            require((os.stat(path).st_uid, os.stat(path).st_gid) == (12345, 23456), f"owner: {os.stat(path)}")
        os.link(path, host.path("other"))
        write(path, b"old" * 100000)
        run(host, path, mode)
        require(os.path.samefile(path, host.path("other")), "the other name has the old file")
        require(is_report(read(path)) if mode == "profiled" else is_whole_trace(host, path), mode)
        only(host, "r.json", "other")
        os.unlink(path), os.unlink(host.path("other"))
    if os.geteuid() != 0:
        write(path, b"kept")
        os.chmod(path, 0o444)
        require(b"Permission denied" in run(host, path).stderr and read(path) == b"kept", "an unwritable file")


def output_nowhere(host):
    """What cannot be written is said once; the report follows on standard error, once."""
    write(host.path("file"), b"")
    for path in (host.path("missing/r.json"), host.path("file/r.json"), host.folder, host.path("x" * 300)):
        for kind, extra in (("plain", {}), ("asks", {"CAJETA_XPU_REPORT_SIGNAL": "USR1"})):
            done = run(host, path, kind=kind, extra=extra)
            require(done.stderr.count(b"CAJETA_XPU_REPORT: cannot write") == 1, f"{path}: {done.stderr}")
            require(done.stderr.count(b"\n \"schema\":") + done.stderr.count(b"CALLS THAT OBSERVE") == 1, f"{done.stderr}")
        done = run(host, path, "traced")
        require(done.stderr.count(b"CAJETA_PROFILER_OUT: cannot write") == 1, f"{path}: {done.stderr}")
    only(host, "file")


def output_limits(host):
    """Files may be no larger than this, and the signal of that kills by default."""
    path = host.path("r.json")
    run(host, path)
    last = read(path)
    for most in (0, 1, 1000):
        def lower():
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        with open(host.path("stderr"), "wb") as file:
            run(host, path, preexec_fn=lower, stderr=file)
        require(read(path) == last, "the last whole report is gone")
        run(host, "stderr", preexec_fn=lower)
        with open(host.path("stderr"), "wb") as file:
            run(host, "stderr", preexec_fn=lower, stderr=file)
        done = run(host, host.path("t.pftrace"), "traced", preexec_fn=lower)
        require(done.stderr.count(b"CAJETA_PROFILER_OUT: cannot write") == 1, f"{most}: {done.stderr}")
    only(host, "r.json", "stderr", "t.pftrace")


def output_full_disk(host):
    """The last whole report stays when there is no room for another, or the file system may not be written."""
    if host.cli is None:
        return "a sanitizer looks at the process from outside, which a namespace forbids"
    prefix = ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run(prefix + ["true"], capture_output=True, check=False).returncode:
        return "no namespaces here"
    disk = host.path("disk")
    os.mkdir(disk)
    script = """set -e
        mount -t tmpfs -o size=64k disk "$1"; export CAJETA_XPU_REPORT="$1/r.json" CAJETA_PROFILER_OUT="$1/t.pftrace"
        "$2" plain; cp "$CAJETA_XPU_REPORT" first; rm -f "$1/t.pftrace"
        dd if=/dev/zero of="$1/full" bs=4096 2> /dev/null || true
        "$2" plain; cmp first "$CAJETA_XPU_REPORT" || exit 20
        rm "$1/full"; mount -o remount,ro "$1"
        "$2" plain; cmp first "$CAJETA_XPU_REPORT" || exit 21
        ls -A "$1" | grep tmp && exit 22 || true"""
    for mode, reasons in (("profiled", ["No space left on device", "Read-only file system"]),
                          ("both", ["No space left on device", "Read-only file system"])):
        extra = {"CAJETA_PROFILER": "1"} if mode == "both" else {}
        done = host.run(prefix + ["sh", "-c", script, "sh", disk, host.program("dying")], "profiled", extra)
        require((done.returncode, done.stdout) == (0, OUT * 3), f"{mode}: {done}")
        settings = ["CAJETA_XPU_REPORT"] + (["CAJETA_PROFILER_OUT"] if mode == "both" else [])
        for setting in settings:
            lines = [line for line in done.stderr.decode().split("\n") if f"{setting}: cannot write" in line]
            require(len(lines) == 2 and all(reason in line for reason, line in zip(reasons, lines)), f"{lines}")
    return None


def output_closed(host):
    """Started without standard descriptors, with a reader of standard error that has gone, or none that takes more."""
    def close_all():
        for descriptor in (0, 1, 2):
            os.close(descriptor)

    for mode in ("profiled", "traced"):
        run(host, "stderr" if mode == "profiled" else host.path("t"), mode, stdin=None, stdout=None, stderr=None,
            preexec_fn=close_all)
        reader, writer = os.pipe()
        os.close(reader)
        run(host, "stderr" if mode == "profiled" else "/dev/stderr", mode, stderr=writer)
        os.close(writer)


def output_of_tools(host):
    """What the command line writes follows the same rules."""
    if host.cli is None:
        return "no command in a sanitizer build"
    run(host, host.path("r.json"))

    def merge(path):
        return host.run([host.cli, "merge", "-o", path, host.path("r.json"), host.path("r.json")], "bare")

    name = host.path("m" * 255)
    os.mkfifo(host.path("pipe"))
    write(host.path("real"), b"old")
    os.chmod(host.path("real"), 0o600)
    os.symlink("real", host.path("link"))
    for path in (name, host.path("link")):
        done = merge(path)
        require(done.returncode == 0 and json.loads(read(path))["schema"] == "cajeta-xpu.report", f"{path}: {done}")
    require(os.path.islink(host.path("link")), "the link was replaced")
    require(stat.S_IMODE(os.stat(host.path("real")).st_mode) == 0o600, "the mode was not kept")
    reader = Reader(host.path("pipe"))
    require(merge(host.path("pipe")).returncode == 0, "pipe")
    require(json.loads(reader.end())["schema"] == "cajeta-xpu.report", "pipe")
    require(merge("/dev/full").stderr.count(b"No space left on device") == 1, "full")
    require(merge(host.path("missing/m")).returncode != 0, "missing")
    only(host, "r.json", os.path.basename(name), "pipe", "real", "link")
    return None


if __name__ == "__main__":
    raise SystemExit(main(
        [output_fifo, output_fifo_without_reader, output_fifo_not_read, output_trace_to_fifo,
         output_trace_of_exec, output_of_one_number, output_devices,
         output_socket, output_links, output_descriptors, output_long_name, output_keeps, output_nowhere,
         output_limits, output_full_disk,
         output_closed, output_of_tools], __doc__))
