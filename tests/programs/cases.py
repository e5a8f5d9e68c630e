# SPDX-License-Identifier: Apache-2.0
"""A test script of several cases: how a case fails or is skipped, and the command line that names one."""

import argparse
import sys
import tempfile

SKIPPED = 77  # as meson understands it


class Failed(Exception):
    pass


def require(holds, message):
    if not holds:
        raise Failed(message)


def main(cases, description, tester, **more):
    """CASE --softgpu DIR --shim FILE --programs DIR, and the options that `more` has, with a help text each. The exit
    status. `cases` are functions of what `tester` makes of the options and of a folder that lasts as long as the case;
    one that cannot run here returns a line that says why."""
    by_name = {case.__name__: case for case in cases}
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=sorted(by_name))
    parser.add_argument("--softgpu", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--programs", required=True, help="folder of the programs that the cases run")
    for name, text in more.items():
        parser.add_argument("--" + name, help=text)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            skipped = by_name[options.case](tester(options, folder))
        except Failed as failure:
            print(f"{options.case}: {failure}", file=sys.stderr)
            return 1
    if skipped:
        print(f"skipped: {skipped}")
        return SKIPPED
    return 0
