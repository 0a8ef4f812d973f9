"""A slice of the released widths (4 layers, 32 experts, 7 GB): the oracle's tokens, and bytes
read per token against the arithmetic, to the page.

usage: released_widths.py BUILD FOLDER      FOLDER keeps the checkpoint; delete it afterwards
"""
import sys

import checkpoints
from harness import Pipeline

PROMPT = [3, 7, 11, 5, 9]
EXPECTED = [3980, 6471, 733, 3480, 2071, 1572, 2962, 1135]
EXPERT = 17547264
PAGE = 4096


def expert_bytes(shape, tokens):
    """An expert is one run of whole pages at an offset that is no multiple of a page: a read of
    it takes one page more. `tokens` tokens, none of which shares a read with another."""
    moe = shape["num_hidden_layers"] - shape["first_k_dense_replace"]
    return tokens * moe * shape["num_experts_per_token"] * (EXPERT + PAGE)


def main(build, folder):
    maker = checkpoints.shared("tools", "make_checkpoint.py")
    checkpoints.made(folder, maker, ["--shape", "slice", "--layers", "4", "--experts", "32"])
    with Pipeline(build, folder, threads=2, chunk=1, trunk=["--memory", "3G"],
                  expertd=["--memory", "600M"]) as p:
        answer = p.complete(PROMPT, len(EXPECTED))
        assert answer["token_ids"] == EXPECTED, answer["token_ids"]
        print("tokens agree;", answer["seconds"], answer["bytes_read"])
        first = p.complete([3], 1)["bytes_read"]
        want = expert_bytes(p.shape, 1)
        print("experts of one token: read %d, arithmetic %d" % (first["experts"], want))
        print("dense weights of one token: read %d" % first["trunk"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
