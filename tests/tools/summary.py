#!/usr/bin/env python3
"""Reads Meson's testlog.json: prints the log of every failure, the slowest tests, the skipped
ones, and at last "N passed, N failed". Exit 1 on a failure or when nothing passed.

usage: summary.py TESTLOG.JSON
"""
import json
import os
import sys

PASSED, SKIPPED = ("OK", "EXPECTEDFAIL"), ("SKIP",)


def read(path):
    """The tests of the last run; none when it did not come to write a log."""
    if not os.path.exists(path):
        return []
    with open(path, errors="replace") as f:
        return [json.loads(line) for line in f if line.strip()]


def printed(test):
    """What a test said, without the parts of the log that it did not use."""
    return "\n".join(test[k].rstrip() for k in ("stdout", "stderr") if test.get(k))


def main(path):
    tests = read(path)
    passed = [t for t in tests if t["result"] in PASSED]
    skipped = [t for t in tests if t["result"] in SKIPPED]
    failed = [t for t in tests if t not in passed and t not in skipped]
    for t in failed:
        print("\n==== %s: %s (exit %s, %.1f s)" % (
            t["name"], t["result"], t["returncode"], t["duration"]))
        print(printed(t))
    slowest = sorted(tests, key=lambda t: -t["duration"])[:5]
    print("\nslowest: " + ", ".join("%s %.1f s" % (t["name"], t["duration"]) for t in slowest))
    for t in skipped:
        print("skipped: %s: %s" % (t["name"], (printed(t).splitlines() or [""])[-1]))
    print("%d skipped" % len(skipped))
    print("%d passed, %d failed" % (len(passed), len(failed)))
    sys.exit(bool(failed) or not passed)


if __name__ == "__main__":
    main(sys.argv[1])
