"""What the fake trunk cannot show: kept prefixes, shared prompts, drafts and a coordinator killed
in a generation, on a real pipeline; every digest against one without any of it.

usage: real_test.py BUILD
"""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pipeline"))
import checkpoints  # noqa: E402
from harness import Pipeline  # noqa: E402

TURN = [(i * 13) % 640 for i in range(50)]
LOOP = [7, 3, 2, 6] * 6


def digests(p, prompt, tokens, **more):
    a = p.complete(prompt, tokens, **more)
    each = [c.get("kapok", a) for c in a["answer"]["choices"]]
    return [(c["token_ids"], c["logits_digest"]) for c in each], a["cached_tokens"], a["steps"]


def questions(p, turn):
    """Answers, how many tokens were kept, steps taken."""
    longer = TURN + turn + [5, 6, 7]
    return [digests(p, longer, 6), digests(p, TURN + [8, 9], 6),
            digests(p, LOOP, 24, n=3, temperature=0.7, seed=4),
            digests(p, LOOP, 40, logit_bias={str(i): 60 for i in LOOP[:4]})]


def background(p, journal):
    """Killed while it generates; goes on where it was."""
    body = {"model": "kimi-k3", "prompt": LOOP, "max_tokens": 60, "temperature": 0.9, "seed": 2}
    whole = p.complete(LOOP, 60, temperature=0.9, seed=2)
    status, answer = p.post("/v1/completions", dict(body, background=True))
    assert status == 202
    path = "/v1/kapok/generations/" + answer["id"]
    while p.get(path)[1]["tokens"] < 15:
        time.sleep(0.01)
    p.coordinator.child.send_signal(signal.SIGKILL)
    p.coordinator.child.wait()
    p.coordinator.child.stdout.close()
    p.url = p.coordinator.start().listening()
    while p.get(path)[1]["status"] == "running":
        time.sleep(0.05)
    found = p.get(path)[1]["response"]["kapok"]
    assert found["token_ids"] == whole["token_ids"]
    assert found["logits_digest"] == whole["logits_digest"]


def main(build):
    folder = checkpoints.own_checkpoint(build)
    with Pipeline(build, folder, coordinator=["--no-drafts"]) as p:
        turn = p.complete(TURN, 8)["token_ids"]
    bare = []
    for i in range(4):
        with Pipeline(build, folder, coordinator=["--no-drafts"]) as p:
            bare.append(questions(p, turn)[i] if i > 1 else digests(
                p, TURN + (turn + [5, 6, 7] if i == 0 else [8, 9]), 6))
    assert bare[0][1] == bare[1][1] == 0
    journal = os.path.join(build, "tests", "coordinator", "real-journal")
    with Pipeline(build, folder, stages=2, expertds=2,
                  coordinator=["--journal", journal]) as p:
        assert p.complete(TURN, 8)["token_ids"] == turn
        found = questions(p, turn)
        for f, b in zip(found, bare):
            assert f[0] == b[0], "another answer"
        print("kept tokens: %s; steps for 40 tokens: %d with drafts, %d without" % (
            [f[1] for f in found[:2]], found[3][2], bare[3][2]))
        assert found[0][1] == len(TURN) + 7 and found[1][1] == len(TURN)
        background(p, journal)
        replayed = p.get("/v1/kapok/status")[1]["hub"]["replayed"]
        print("sequences replayed: %d" % replayed)
        assert replayed == 0
    os.remove(journal)


if __name__ == "__main__":
    main(sys.argv[1])
