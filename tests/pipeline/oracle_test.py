"""Greedy continuations of random checkpoints against those of the float64 reference.

usage: oracle_test.py BUILD
"""
import json
import sys

import checkpoints
from harness import Pipeline


def main(build):
    with open(checkpoints.shared("data", "oracle", "expected.json")) as f:
        cases = json.load(f)["cases"]
    by_seed = {}
    for c in cases:
        assert c["checkpoint"]["shape"] == "tiny", c["checkpoint"]
        by_seed.setdefault(c["checkpoint"]["seed"], []).append(c)
    for seed, group in sorted(by_seed.items()):
        folder = checkpoints.oracle_checkpoint(build, seed)
        with Pipeline(build, folder, expertds=2) as p:
            for c in group:
                got = p.complete(c["prompt"], len(c["generated"]))["token_ids"]
                assert got == c["generated"], "seed %d, prompt %s: expected %s, got %s" % (
                    seed, c["prompt"], c["generated"], got)
    print("%d continuations agree with the oracle" % len(cases))


if __name__ == "__main__":
    main(sys.argv[1])
