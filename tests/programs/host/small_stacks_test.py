#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program whose threads have little room for a signal runs as without us; a sampled run says whom it leaves out."""
import sys

import host_run


def holds(host, case):
    runs = host.same_as_bare([host.program("small_stacks"), case], timeout=120)
    host_run.require(runs["bare"].returncode == 0, f"bare: {runs['bare']}")
    return runs


def says(runs, is_said):
    said = b"their stacks have no room for a signal" in runs["traced"].stderr
    host_run.require(said == is_said, runs["traced"].stderr.decode())


def small_stacks_smallest(host):
    says(holds(host, "smallest"), True)


def small_stacks_deep(host):
    says(holds(host, "deep"), True)


def small_stacks_given(host):
    says(holds(host, "given"), True)


def small_stacks_alternative(host):
    says(holds(host, "alternative"), True)


def small_stacks_handler(host):
    holds(host, "handler")  # there is room or there is none, as the processor's registers are


def small_stacks_coroutine(host):
    says(holds(host, "coroutine"), False)


if __name__ == "__main__":
    sys.exit(host_run.main(
        [small_stacks_smallest, small_stacks_deep, small_stacks_given, small_stacks_alternative, small_stacks_handler,
         small_stacks_coroutine],
        __doc__))
