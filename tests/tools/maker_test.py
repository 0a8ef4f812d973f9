#!/usr/bin/env python3
"""The maker makes what the release's layout says, and the reference is the oracle's equal.

usage: maker_test.py SCRATCH layout|seeds|vocabulary|oracle
"""
import base64
import filecmp
import glob
import json
import os
import shutil
import struct
import subprocess
import sys

import reference

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "shared")
SKIPPED = 77


def make(folder, *options, maker=os.path.join(HERE, "make_checkpoint.py")):
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, maker, folder, *options], check=True,
                   stderr=subprocess.DEVNULL)
    return folder


def header(path):
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        return length, json.loads(f.read(length)), os.path.getsize(path) - 8 - length


def check_layout(scratch):
    """Every shard is gap-free, F32 then BF16 then U8, by name; shard L+1 holds layer L."""
    folder = make(os.path.join(scratch, "layout"))
    seen = {}
    shards = sorted(glob.glob(folder + "/model-*.safetensors"))
    assert len(shards) == 9 + 3, shards
    for number, path in enumerate(shards):
        length, entries, size = header(path)
        assert length % 8 == 0, path
        at, last = 0, (0, "")
        for name, e in entries.items():
            assert e["data_offsets"][0] == at, (path, name, e)
            at = e["data_offsets"][1]
            key = (["F32", "BF16", "U8"].index(e["dtype"]), name)
            assert key > last, (path, last, key)
            last = key
            seen[name] = os.path.basename(path)
            if number < 9:
                assert name.startswith("language_model.model.layers.%d." % number), name
        assert at == size, (path, at, size)
    with open(folder + "/model.safetensors.index.json") as f:
        assert json.load(f)["weight_map"] == seen
    layer0, kda, mla = 23, 28 + 14 * 6, 22 + 14 * 6  # the counts of the release, 14 experts
    text = [n for n in seen if n.startswith("language_model")]
    assert len(text) == layer0 + 5 * kda + 3 * mla + 5, len(text)


def check_seeds(scratch):
    """One seed, one set of bytes; a layer's bytes do not depend on how many follow."""
    a = make(os.path.join(scratch, "a"), "--seed", "5")
    b = make(os.path.join(scratch, "b"), "--seed", "5")
    other = make(os.path.join(scratch, "other"), "--seed", "6")
    short = make(os.path.join(scratch, "short"), "--seed", "5", "--layers", "5", "--no-vision")
    names = os.listdir(a)
    assert filecmp.cmpfiles(a, b, names, shallow=False) == (names, [], []), "one seed, two results"
    first = "/model-00002-of-0000%s.safetensors"
    assert not filecmp.cmp(a + first % "12", other + first % "12", shallow=False)
    assert filecmp.cmp(a + first % "12", short + first % "06", shallow=False)
    generated, _ = reference.greedy(a, [1, 2, 3], 24)
    assert len(set(generated)) > 12, "greedy decoding collapses: %s" % generated


def check_vocabulary(scratch):
    """Ranks are contiguous and end where the special ids begin; all bytes are there."""
    folder = make(os.path.join(scratch, "vocabulary"), "--vocabulary")
    with open(folder + "/tiktoken.model", "rb") as f:
        pairs = [line.split() for line in f]
    tokens = [base64.b64decode(t, validate=True) for t, _ in pairs]
    assert [int(rank) for _, rank in pairs] == list(range(644))
    assert len(set(tokens)) == 644 and {bytes([b]) for b in range(256)} <= set(tokens)
    with open(folder + "/tokenizer_config.json") as f:
        added = json.load(f)["added_tokens_decoder"]
    assert added["646"]["content"] == "<|end_of_msg|>" and added["899"]["content"] == "[PAD]"
    assert min(map(int, added)) == 644 and len(added) == 16


def check_oracle(scratch):
    """This reference and the one beside the tree continue alike; skipped without it."""
    path = os.path.join(SHARED, "data", "oracle", "expected.json")
    maker = os.path.join(SHARED, "tools", "make_checkpoint.py")
    if not (os.path.exists(path) and os.path.exists(maker)):
        print("skipped: ../shared is not beside the tree")
        sys.exit(SKIPPED)
    with open(path) as f:
        cases = json.load(f)["cases"]
    folders = {}
    for c in cases:
        seed = str(c["checkpoint"]["seed"])
        if seed not in folders:
            folders[seed] = make(os.path.join(scratch, "oracle" + seed), "--shape", "tiny",
                                 "--seed", seed, maker=maker)
        generated, logits = reference.greedy(folders[seed], c["prompt"], len(c["generated"]))
        assert generated == c["generated"], (c["prompt"], generated)
        first = logits[-1][:8] - c["logits_first_8_last_position"]
        assert abs(first).max() < 1e-8, first


def main():
    scratch, what = sys.argv[1], sys.argv[2]
    scratch = os.path.join(scratch, what)
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    {"layout": check_layout, "seeds": check_seeds, "vocabulary": check_vocabulary,
     "oracle": check_oracle}[what](scratch)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
