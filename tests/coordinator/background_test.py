"""Background generations: their id at once, their events and where to go on with them, the end
of the coordinator in the middle (SIGKILL, again and again), damaged journals.

usage: background_test.py BUILD
"""
import json
import os
import signal
import sys
import time

from served import Served, checkpoint

BODY = {"model": "kimi-k3", "prompt": [3, 7, 11, 5, 9], "max_tokens": 120, "temperature": 0.8,
        "n": 2, "background": True}


def begin(s, **more):
    status, answer, _ = s.post("/v1/completions", dict(BODY, **more))
    assert status == 202, (status, answer)
    assert answer["status"] == "running" and answer["object"] == "kapok.generation"
    return answer["id"]


def state(s, name):
    status, answer, _ = s.get("/v1/kapok/generations/" + name)
    assert status == 200, (status, answer)
    return answer


def finished(s, name):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        answer = state(s, name)
        if answer["status"] != "running":
            return answer
        time.sleep(0.05)
    raise AssertionError("it does not end: %s" % answer)


def events(s, name, after=None, most=None):
    """[(id, chunk)] from `after` on, until the end or `most` of them."""
    c = s.connect()
    c.request("GET", "/v1/kapok/generations/%s/events" % name, None,
              {} if after is None else {"Last-Event-ID": str(after)})
    r = c.getresponse()
    assert r.status == 200, r.status
    found, number = [], None
    while most is None or len(found) < most:
        line = r.readline().decode()
        if not line or line.startswith("data: [DONE]"):
            break
        if line.startswith("id: "):
            number = line[4:].strip()
        elif line.startswith("data: "):
            found.append((number, json.loads(line[6:])))
    c.close()
    return found


def told(found):
    """Token ids of each choice in these events."""
    ids = {}
    for _, chunk in found:
        for choice in chunk["choices"]:
            if not choice["finish_reason"]:
                ids.setdefault(choice["index"], []).extend(chunk["kapok"]["token_ids"])
    return ids


def plain(s):
    name = begin(s, seed=4)
    first = events(s, name, most=50)
    rest = events(s, name, after=first[-1][0])
    answer = finished(s, name)
    assert answer["status"] == "completed"
    ids = told(first + rest)
    assert [c["kapok"]["token_ids"] for c in answer["response"]["choices"]] == [ids[0], ids[1]]
    assert events(s, name) == first + rest
    status, direct, _ = s.post("/v1/completions", dict(BODY, seed=4, background=False))
    assert status == 200
    assert [c["kapok"]["logits_digest"] for c in direct["choices"]] == [
        c["kapok"]["logits_digest"] for c in answer["response"]["choices"]]


def streamed(s):
    """Background and streamed: a stream that breaks is taken up where it broke."""
    c, r = s.open_stream(dict(BODY, seed=5))
    seen = []
    while len(seen) < 20:
        line = r.readline().decode()
        if line.startswith("id: "):
            seen.append(line[4:].strip())
        elif line.startswith("data: "):
            name = json.loads(line[6:])["id"]
    c.close()
    rest = events(s, name, after=seen[-1])
    assert sum(map(int, rest[0][0].split("."))) == len(seen) + 1
    assert finished(s, name)["status"] == "completed"


def cancelled(s):
    name = begin(s, max_tokens=1500)
    status, _, _ = s.exchange("DELETE", "/v1/kapok/generations/" + name)
    assert status == 200
    assert finished(s, name)["status"] == "cancelled"
    assert s.get("/v1/kapok/generations/nothing")[0] == 404
    assert s.exchange("DELETE", "/v1/kapok/generations/nothing")[0] == 404
    assert s.get("/v1/kapok/generations/nothing/events")[0] == 404


def killed(build, journal):
    """The coordinator killed again and again: every token told stays told, the answer is the
    one of an undisturbed run."""
    with Served(build, stages=2, layer_seconds=0.0005, options=["--journal", journal]) as s:
        expected = finished(s, begin(s, seed=9))["response"]["choices"]
        done = begin(s, seed=10, max_tokens=3)
        before = finished(s, done)
        name, seen = begin(s, seed=9), []
        for _ in range(4):
            seen += events(s, name, after=seen[-1][0] if seen else None, most=25)
            s.stop_coordinator(signal.SIGKILL)
            s.start_coordinator()
            after = state(s, name)
        seen += events(s, name, after=seen[-1][0])
        answer = finished(s, name)
        ids = told(seen)
        for i, choice in enumerate(answer["response"]["choices"]):
            assert choice["kapok"]["token_ids"] == ids[i] == expected[i]["kapok"]["token_ids"]
            assert choice["kapok"]["logits_digest"] == expected[i]["kapok"]["logits_digest"]
        assert state(s, done) == before, "a finished generation changed over restarts"
        print("killed four times: %d events, none lost or twice, same digests" % len(seen))


def damaged(build, journal):
    with open(journal, "rb") as f:
        good = f.read()

    def opens(content):
        with open(journal, "wb") as f:
            f.write(content)
        try:
            with Served(build, options=["--journal", journal]):
                return True
        except RuntimeError as e:
            assert "damaged at byte" in str(e), e
            return False
    assert opens(good)
    for torn in (good[:-1], good[:-9], good + good[:11], good + bytes(200), good + good[:40]):
        assert opens(torn), "a torn tail is cut"
    for at in (0, 5, 20, len(good) // 2):
        assert not opens(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]), at


def main(build):
    checkpoint(build)
    journal = os.path.join(build, "tests", "coordinator", "journal")
    if os.path.exists(journal):
        os.remove(journal)
    with Served(build) as s:
        plain(s)
        streamed(s)
        cancelled(s)
    killed(build, journal)
    damaged(build, journal)
    os.remove(journal)


if __name__ == "__main__":
    main(sys.argv[1])
