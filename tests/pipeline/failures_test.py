"""Plugs pulled in the middle of generations: same tokens, nothing else restarted, no busy wait.

usage: failures_test.py BUILD
"""
import sys
import threading
import time

import checkpoints
from harness import Pipeline

PROMPT, TOKENS = [3, 7, 11, 5, 9], 60


class Generation(threading.Thread):
    def __init__(self, pipeline):
        super().__init__()
        self.pipeline, self.answer = pipeline, None
        self.start()

    def run(self):
        self.answer = self.pipeline.complete(PROMPT, TOKENS)

    def finished(self):
        self.join(120)
        assert self.answer, "the generation did not end"
        return self.answer


def key(answer):
    return answer["token_ids"], answer["logits_digest"]


def pids(p):
    return [x.child.pid for x in [p.coordinator] + p.trunks]


def expertd_killed(p, expected, delay):
    before = pids(p)
    g = Generation(p)
    time.sleep(delay)
    p.expertds[1].kill()
    time.sleep(0.3)
    assert p.get("/ready")[0] in (200, 503)
    p.expertds[1].start().listening()
    assert key(g.finished()) == expected, "another answer after the kill at %g s" % delay
    assert pids(p) == before and all(x.child.poll() is None for x in p.trunks)


def waiting_costs_nothing(p, expected):
    """While an expertd is away for seconds, the others sleep."""
    p.expertds[0].kill()
    g = Generation(p)
    time.sleep(0.5)
    others = [p.coordinator] + p.trunks + p.expertds[1:]
    start, used = time.monotonic(), sum(x.cpu_seconds() for x in others)
    time.sleep(4)
    share = (sum(x.cpu_seconds() for x in others) - used) / (time.monotonic() - start)
    print("CPU while an expertd is away: %.1f %% of a core" % (100 * share))
    assert not g.answer
    p.expertds[0].start().listening()
    assert key(g.finished()) == expected
    return share


def trunk_killed(p, expected):
    g = Generation(p)
    time.sleep(0.3)
    p.trunks[0].kill()
    time.sleep(0.2)
    p.trunks[0].start().listening()
    assert key(g.finished()) == expected, "another answer after the trunk was killed"


def main(build):
    folder = checkpoints.own_checkpoint(build)
    with Pipeline(build, folder, expertds=3) as p:
        expected = key(p.complete(PROMPT, TOKENS))
        for delay in (0.0, 0.05, 0.15, 0.3):
            expertd_killed(p, expected, delay)
        share = waiting_costs_nothing(p, expected)
        trunk_killed(p, expected)
        assert share < 0.25, "busy waiting: %.0f %% of a core" % (100 * share)
    print("killed expertds and a killed trunk: same tokens")


if __name__ == "__main__":
    main(sys.argv[1])
