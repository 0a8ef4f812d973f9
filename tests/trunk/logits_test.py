"""The logits of every position, from trunk stages asked directly, against the float64 reference:
within 1e-4 of the largest logit; and the same bits however the prompt is cut into steps, with
drafts that are not accepted behind every chunk or without.

usage: logits_test.py BUILD STEPTOOL ROOT
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not there")
    sys.exit(77)

IDS = [3, 7, 11, 5, 9, 100, 200, 300, 401, 17, 2, 255] + [(i * 89 + 5) % 512 for i in range(40)]
CUTS = [(["--chunk", "64"], 1), (["--chunk", "1"], 1), (["--chunk", "5", "--draft", "3"], 2),
        (["--chunk", "17"], 3), (["--chunk", "20", "--draft", "9"], 2)]
TOLERANCE = 1e-4


def reference(root, checkpoint, ids, folder):
    out = os.path.join(folder, "reference.npy")
    subprocess.run([sys.executable, os.path.join(root, "tests", "tools", "reference.py"),
                    checkpoint, "--ids", ids, "--logits", out],
                   check=True, stdout=subprocess.DEVNULL)
    return np.load(out)


def logits(steptool, pipeline, ids, cut):
    out = os.path.join(pipeline.folder, "logits")
    stages = [a for t in pipeline.trunks for a in ("--stage", t.address)]
    subprocess.run([steptool, "--checkpoint", pipeline.checkpoint, "--secret",
                    os.path.join(pipeline.folder, "secret"), "--ids", ids, "--out", out]
                   + stages + cut, check=True)
    return np.fromfile(out, dtype=np.float32).reshape(len(IDS), -1)


def main(build, steptool, root):
    sys.path.insert(0, os.path.join(root, "tests", "pipeline"))
    from harness import Pipeline
    checkpoint = os.path.join(build, "tests", "tiny")
    ids = ",".join(map(str, IDS))
    with tempfile.TemporaryDirectory() as folder:
        exact = reference(root, checkpoint, ids, folder)
    first = None
    for cut, stages in CUTS:
        with Pipeline(build, checkpoint, expertds=2, stages=stages, threads=2) as p:
            found = logits(steptool, p, ids, cut)
        if first is None:
            first = found
            error = np.abs(found - exact).max(axis=1) / np.abs(exact).max()
            print("largest error %.2e of the largest logit" % error.max())
            assert error.max() < TOLERANCE, "position %d: %g" % (error.argmax(), error.max())
        same = (found.view(np.uint32) == first.view(np.uint32)).all(axis=1)
        assert same.all(), "%s in %d stages: position %d differs" % (cut, stages, same.argmin())
    print("%d positions, %d ways: one answer" % (len(IDS), len(CUTS)))


if __name__ == "__main__":
    main(*sys.argv[1:])
