#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUDA calls of a thread that a running constructor waits for, so that dlopen holds the loader's lock: the library must
not take it at any call, whichever entry is called first."""

import sys

from host_run import main, require


def run(host, how):
    runs = host.same_as_bare(
        [host.program("loader"), how, host.program("libloader_plugin.so")], timeout=20
    )
    require(b"plugin is ready\nloaded\n" in runs["bare"].stdout, f"bare: {runs['bare']}")


def loader_lock_used_entries(host):
    run(host, "used")


def loader_lock_first_call(host):
    run(host, "first")


def loader_lock_queried_entries(host):
    run(host, "queried")


if __name__ == "__main__":
    sys.exit(main([loader_lock_used_entries, loader_lock_first_call, loader_lock_queried_entries], __doc__))
