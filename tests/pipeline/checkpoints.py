"""Checkpoints for the pipeline tests, made once per build folder and kept there."""
import os
import subprocess
import sys

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.path.join(os.path.dirname(ROOT), "shared")
SKIPPED = 77


def shared(*parts):
    """A file beside the source tree; ends the test as skipped when it is not there."""
    path = os.path.join(SHARED, *parts)
    if not os.path.exists(path):
        print("skipped: %s is not there" % os.path.relpath(path, ROOT))
        sys.exit(SKIPPED)
    return path


def made(folder, maker, arguments):
    """Runs a maker into `folder` unless it has done so before."""
    if not os.path.exists(os.path.join(folder, "complete")):
        subprocess.run([sys.executable, maker, folder] + arguments, check=True,
                       stderr=subprocess.DEVNULL)
        with open(os.path.join(folder, "complete"), "w"):
            pass
    return folder


def oracle_checkpoint(build, seed):
    maker = shared("tools", "make_checkpoint.py")
    return made(os.path.join(build, "tests", "oracle-tiny-%d" % seed), maker,
                ["--shape", "tiny", "--seed", str(seed)])


def own_checkpoint(build):
    """The one that the build makes for all tests."""
    return os.path.join(build, "tests", "tiny")


def tiles(folder):
    """Tiles of a whole checkpoint."""
    shape = harness.shape_of(folder)
    moe = shape["num_hidden_layers"] - shape["first_k_dense_replace"]
    return moe * shape["num_experts"] * shape["bands"]
