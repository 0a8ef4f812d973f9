"""The released geometry as sparse files (3.5 GB): how fast and in how much memory the programs
index it, and whether the pipeline sees all of its tiles.

usage: full_geometry.py BUILD FOLDER      FOLDER keeps the checkpoint; delete it afterwards
"""
import sys
import time

import checkpoints
from harness import Pipeline

TILES = 92 * 896 * 12


def main(build, folder):
    maker = checkpoints.shared("tools", "make_checkpoint.py")
    checkpoints.made(folder, maker, ["--shape", "full", "--sparse"])
    with Pipeline(build, folder, start="never", trunk=["--memory", "3G"]) as p:
        for e in p.expertds:  # once before, so that the headers are in the page cache
            e.start().listening()
            e.stop()
        for x in p.expertds + p.trunks:
            if x.child:
                x.stop()
            start = time.monotonic()
            x.start().listening()
            print("%-10s listens after %.2f s, %.1f MB resident" % (
                x.name, time.monotonic() - start, x.resident() / 1e6), flush=True)
        p.wait_ready()
        tiles = p.get("/v1/kapok/status")[1]["tiles"]
        print("tiles covered: %d of %d" % (tiles["covered"], tiles["needed"]))
        assert tiles["covered"] == tiles["needed"] == TILES


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
