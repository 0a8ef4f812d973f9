#!/usr/bin/env python3
"""Runs one lint, or all: what docs say about the shape of the code, as tests.

    lint.py ROOT [--build BUILD] [--compiler CC] [NAME...]

Prints a line for every problem. Exit 0: none, 1: some, 77: the tool it needs is missing.
"""
import argparse
import shlex
import sys

import layering
import naming
import prose
import sizes
import tooling
from tree import Tree

LINTS = {}
for module in (layering, naming, sizes, prose, tooling):
    LINTS.update(module.LINTS)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("root")
    p.add_argument("--build", help="the build folder, for generated headers")
    p.add_argument("--compiler", default="cc")
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(LINTS))
    a = p.parse_intermixed_args()
    for name in a.names:
        if name not in LINTS:
            p.error("no lint %s" % name)
    tree, count = Tree(a.root, a.build, shlex.split(a.compiler)), 0
    try:
        for name in a.names or LINTS:
            for problem in LINTS[name](tree):
                print("%s: %s" % (name, problem))
                count += 1
    except tooling.Skipped as s:
        print("skipped: %s" % s)
        sys.exit(77)
    sys.exit(count > 0)


if __name__ == "__main__":
    main()
