#!/usr/bin/env python3
"""A pipeline on the project's own checkpoint continues prompts like the float64 reference: the
proof that needs nothing from outside the tree. Its shape is the awkward one.

usage: agreement_test.py BUILD SCRATCH
"""
import os
import subprocess
import sys

import reference

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "pipeline"))

from harness import Pipeline  # noqa: E402, from the folder beside this one

PROMPTS = [[3, 7, 11, 5, 9, 100, 200, 300], [899], [0, 643, 644] * 7]
COUNT = 12


def main(build, scratch):
    folder = os.path.join(scratch, "agreement")
    subprocess.run([sys.executable, os.path.join(HERE, "make_checkpoint.py"), folder,
                    "--seed", "11", "--no-vision"], check=True, stderr=subprocess.DEVNULL)
    with Pipeline(build, folder, expertds=2, stages=2, chunk=5) as p:
        for prompt in PROMPTS:
            expected, _ = reference.greedy(folder, prompt, COUNT)
            got = p.complete(prompt, COUNT)["token_ids"]
            assert got == expected, "prompt %s: expected %s, got %s" % (prompt, expected, got)
    print("%d continuations agree with the reference" % len(PROMPTS))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
