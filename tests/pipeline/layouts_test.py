"""One logits digest over every layout of docs/numerics.md.

usage: layouts_test.py BUILD [--every]

The short form changes one thing at a time from a base layout and then mixes; --every runs the
whole product (an hour on two cores).
"""
import itertools
import sys

import checkpoints
from harness import Pipeline

PROMPT = [3, 7, 11, 5, 9, 100, 200, 300, 401, 17, 2, 255]
TOKENS = 10
OTHERS = [([1, 2, 3, 4, 5, 6, 7], 12), ([400], 15), (list(range(20, 61)), 8)]

EXPERTDS = {"1": None, "2": ["0-5", "6-11"], "3 uneven": ["0,7", "1-5", "6,8-11"],
            "12": [str(b) for b in range(12)]}
AXES = {
    "bands": list(EXPERTDS),
    "stages": [1, 2],
    "threads": [1, 2],
    "isa": ["c", "avx2", "avx512"],
    "chunk": [1, 5, 64],
    "company": [False, True],
    "start": ["before", "between", "after"],
    "memory": ["streamed", "half", "pinned"],
}
BASE = {k: v[0] for k, v in AXES.items()}


def machine_isas():
    with open("/proc/cpuinfo") as f:
        flags = next((l for l in f if l.startswith("flags")), "").split()
    return ["c", "avx2"] + (["avx512"] if "avx512f" in flags and "avx512bw" in flags else [])


def layouts(isas, every):
    axes = dict(AXES, isa=isas)
    if every:
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values))
        return
    for axis, values in axes.items():
        for v in values:
            if v != BASE[axis] or axis == "bands":
                yield dict(BASE, **{axis: v})
    mixes = zip(itertools.cycle(axes["bands"]), [2, 1, 2, 2, 1, 2], itertools.cycle([2, 1]),
                itertools.cycle(reversed(isas)), [5, 64, 1, 64, 5, 1],
                itertools.cycle([True, False]), itertools.cycle(axes["start"]),
                itertools.cycle(["half", "pinned", "streamed"]))
    for values in mixes:
        yield dict(zip(axes, values))


# Budgets of one of so many stages: nothing pinned, about half, everything.
MEMORY = {1: {"streamed": "10100K", "half": "15M", "pinned": "64M"},
          2: {"streamed": "7300K", "half": "9M", "pinned": "64M"}}
ROOM = ["--sequences", "4", "--context", "512", "--rows", "64", "--ring", "2M"]


def digest(build, folder, layout):
    bands = EXPERTDS[layout["bands"]] or None
    memory = MEMORY[layout["stages"]][layout["memory"]]
    with Pipeline(build, folder, bands=bands, stages=layout["stages"],
                  threads=layout["threads"], isa=layout["isa"], chunk=layout["chunk"],
                  start=layout["start"], trunk=["--memory", memory] + ROOM) as p:
        requests = [(PROMPT, TOKENS)] + (OTHERS if layout["company"] else [])
        answer = p.complete_together(requests)[0]
    return answer["logits_digest"], answer["token_ids"]


def main(build, every):
    folder = checkpoints.own_checkpoint(build)
    isas = machine_isas()
    if "avx512" not in isas:
        print("this machine has no AVX-512: its column of the matrix is left out")
    seen = {}
    for layout in layouts(isas, every):
        found = digest(build, folder, layout)
        seen.setdefault((found[0], tuple(found[1])), []).append(layout)
        print(found[0], layout, flush=True)
    assert len(seen) == 1, "%d different answers" % len(seen)
    print("one digest over %d layouts" % sum(map(len, seen.values())))


if __name__ == "__main__":
    main(sys.argv[1], "--every" in sys.argv[2:])
