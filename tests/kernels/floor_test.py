#!/usr/bin/env python3
"""kernelcheck on other CPUs than this one, by qemu: Haswell has AVX2 and FMA and no more, and must
pass; SandyBridge lacks them, and must be refused with a sentence.

usage: floor_test.py KERNELCHECK
"""
import shutil
import subprocess
import sys


def run(cpu):
    return subprocess.run(["qemu-x86_64", "-cpu", cpu, sys.argv[1], "--slack", "64",
                           "--every", "40"], capture_output=True, text=True)


def main():
    if not shutil.which("qemu-x86_64"):
        print("skipped: no qemu-x86_64 (package qemu-user)")
        return 77
    old = run("SandyBridge")
    if old.returncode != 2 or "lacks AVX2 or FMA" not in old.stderr:
        print("SandyBridge: status %d\n%s%s" % (old.returncode, old.stdout, old.stderr))
        return 1
    floor = run("Haswell")
    print(floor.stdout + floor.stderr)
    return floor.returncode != 0 or "avx2: " not in floor.stdout


if __name__ == "__main__":
    sys.exit(main())
