"""A slice of the released widths (4 layers, 32 experts, 7 GB): the oracle's tokens, and bytes
read per token against the arithmetic, to the page.

usage: released_widths.py BUILD FOLDER      FOLDER keeps the checkpoint; delete it afterwards
"""
import json
import os
import struct
import sys
import time

import checkpoints
from harness import Pipeline

PROMPT = [3, 7, 11, 5, 9]
EXPECTED = [3980, 6471, 733, 3480, 2071, 1572, 2962, 1135]
EXPERT = 17547264
PAGE = 4096
RING = 256 << 20  # what the feeder has read ahead of the next token
BLOCK = 1 << 20  # no block of dense weights is smaller, but for the last of a tensor


def expert_bytes(shape, tokens):
    """An expert is one run of whole pages at an offset that is no multiple of a page: a read of
    it takes one page more. `tokens` tokens, none of which shares a read with another."""
    moe = shape["num_hidden_layers"] - shape["first_k_dense_replace"]
    return tokens * moe * shape["num_experts_per_token"] * (EXPERT + PAGE)


def dense_bytes(folder):
    """(bytes of the dense tensors but the embedding, how many reads they take)"""
    total = reads = 0
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".safetensors")):
        with open(os.path.join(folder, name), "rb") as f:
            header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        for tensor, about in header.items():
            if tensor == "__metadata__" or ".experts." in tensor or "embed_tokens" in tensor:
                continue
            size = about["data_offsets"][1] - about["data_offsets"][0]
            total += size
            reads += -(-size // BLOCK) + 1
    return total, reads


def weights_read(p):
    """Bytes of dense weights that the trunk has read since it started, once its feeder rests:
    what it reads before a step begins belongs to no step."""
    read = 0
    while True:
        stage = p.get("/v1/kapok/status")[1]["stages"][0]
        now = stage["stats"]["counters"]["weights_bytes_read"]
        if now == read > 0:
            return int(now)
        read = now
        time.sleep(1)


def main(build, folder):
    maker = checkpoints.shared("tools", "make_checkpoint.py")
    checkpoints.made(folder, maker, ["--shape", "slice", "--layers", "4", "--experts", "32"])
    with Pipeline(build, folder, threads=2, chunk=1, trunk=["--memory", "3G", "--ring", str(RING)],
                  expertd=["--memory", "600M"]) as p:
        first = p.complete([3], 1)["bytes_read"]
        want = expert_bytes(p.shape, 1)
        print("experts of one token: read %d, arithmetic %d" % (first["experts"], want))
        # A read that ends in the last page of its file is short of it.
        assert want - PAGE * p.shape["num_hidden_layers"] < first["experts"] <= want
        dense, reads = dense_bytes(folder)
        read = weights_read(p)
        print("dense weights of the first token: %d bytes in about %d reads, read %d" % (
            dense, reads, read))
        assert dense <= read <= dense + 2 * PAGE * (reads + 1) + RING
        answer = p.complete(PROMPT, len(EXPECTED))
        assert answer["token_ids"] == EXPECTED, answer["token_ids"]
        print("tokens agree with the oracle;", answer["seconds"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
