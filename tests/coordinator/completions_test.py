"""Completions over HTTP: answers, streams, batches, errors, limits, lost clients and stages.

usage: completions_test.py BUILD
"""
import json
import random
import re
import socket
import sys
import threading
import time

from served import Served

PROMPT = [3, 7, 11, 5, 9]


def key(answer):
    return answer["kapok"]["token_ids"], answer["kapok"]["logits_digest"]


def plain(s):
    answer = s.complete(PROMPT, 12)
    assert answer["object"] == "text_completion"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert len(answer["kapok"]["token_ids"]) == 12
    assert answer["usage"]["prompt_tokens"] == 5 and answer["usage"]["completion_tokens"] == 12
    assert answer["kapok"]["bytes_read"]["trunk"] > 0
    assert set(answer["kapok"]["seconds"]) == {"queue", "prefill", "decode"}
    return answer


def streamed(s, whole):
    chunks, _ = s.stream({"prompt": PROMPT, "max_tokens": 12, "temperature": 0,
                          "stream_options": {"include_usage": True}})
    last = chunks[-2]
    assert last["choices"][0]["finish_reason"] == "length" and key(last) == key(whole)
    ids = [i for c in chunks[:-2] for i in c["kapok"]["token_ids"]]
    assert ids == whole["kapok"]["token_ids"]
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"] == whole["usage"]
    assert len({c["id"] for c in chunks}) == 1


def together(s):
    """Everybody gets what he would get alone, sampled and greedy, long and short."""
    draw = random.Random(1)
    asks = [dict(prompt=[draw.randrange(900) for _ in range(draw.randrange(1, 200))],
                 max_tokens=draw.randrange(1, 30), temperature=draw.choice([0, 0.7, 1.3]),
                 seed=i, presence_penalty=draw.choice([0, 0.5])) for i in range(24)]
    alone = [key(s.complete(**a)) for a in asks]
    found = [None] * len(asks)

    def one(i):
        found[i] = key(s.complete(**asks[i]))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(asks))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == alone, [i for i in range(len(asks)) if found[i] != alone[i]]


def choices(s):
    answer = s.complete(PROMPT, 6, n=3, temperature=1, seed=5)
    assert [c["index"] for c in answer["choices"]] == [0, 1, 2]
    ids = [c["kapok"]["token_ids"] for c in answer["choices"]]
    assert ids[0] != ids[1] and ids[1] != ids[2], "choices draw the same numbers"
    assert answer["usage"]["completion_tokens"] == 18
    again = s.complete(PROMPT, 6, n=2, temperature=1, seed=5)
    assert [c["kapok"]["token_ids"] for c in again["choices"]] == ids[:2]


def ends_itself(s):
    """The end token, made likely, ends the answer with finish_reason stop."""
    with open(s.checkpoint + "/config.json") as f:
        end = json.load(f)["eos_token_id"]
    answer = s.complete(PROMPT, 20, logit_bias={str(end): 100})
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["kapok"]["token_ids"] == [end]


REFUSED = [
    (400, None, b"{"), (400, None, b"[]"), (400, None, b"\xff\xfe"),
    (400, None, b'{"model":"kimi-k3","model":"kimi-k3","prompt":[1]}'),
    (400, "model", {"prompt": [1]}), (404, "model", {"model": "gpt", "prompt": [1]}),
    (400, "prompt", {}), (400, "prompt", {"prompt": []}), (400, "prompt", {"prompt": 5}),
    (400, "prompt", {"prompt": [1, 900]}), (400, "prompt", {"prompt": [-1]}),
    (400, "prompt", {"prompt": [1.5]}), (400, "prompt", {"prompt": [[1], [2]]}),
    (400, "max_tokens", {"prompt": [1], "max_tokens": 0}),
    (400, "max_tokens", {"prompt": [1], "max_tokens": "many"}),
    (400, "max_tokens", {"prompt": [1], "max_tokens": 1000000}),
    (400, "temperature", {"prompt": [1], "temperature": 2.5}),
    (400, "temperature", {"prompt": [1], "temperature": "hot"}),
    (400, "top_p", {"prompt": [1], "top_p": -0.1}), (400, "n", {"prompt": [1], "n": 0}),
    (400, "n", {"prompt": [1], "n": 1000}), (400, "seed", {"prompt": [1], "seed": 1.5}),
    (400, "logit_bias", {"prompt": [1], "logit_bias": {"900": 1}}),
    (400, "logit_bias", {"prompt": [1], "logit_bias": {"1": 101}}),
    (400, "echo", {"prompt": [1], "echo": True}), (400, "suffix", {"prompt": [1], "suffix": "x"}),
    (400, "best_of", {"prompt": [1], "best_of": 2}),
    (400, "stop", {"prompt": [1], "stop": ""}), (400, "stop", {"prompt": [1], "stop": ["a"] * 99}),
    (400, "stream", {"prompt": [1], "stream": 1}),
    (400, "stream_options", {"prompt": [1], "stream_options": {"include_usage": True}}),
    (400, "verbosity", {"prompt": [1], "verbosity": "low"}),
]


def refusals(s):
    for status, param, body in REFUSED:
        if isinstance(body, dict) and param != "model":
            body = dict({"model": "kimi-k3"}, **body)
        got, answer, _ = s.post("/v1/completions", body)
        assert got == status, (body, got, answer)
        error = answer["error"]
        assert set(error) == {"message", "type", "param", "code"} and error["message"], error
        assert error["param"] == param, (body, error)
    assert s.get("/v1/nothing")[0] == 404 and s.get("/v1/completions")[0] == 405
    assert s.get("/v1/models/kimi-k3")[1]["id"] == "kimi-k3"
    assert s.get("/v1/models/other")[0] == 404


def texts(s):
    """Text in and out; stop strings wherever token borders lie; logprobs."""
    ask = dict(prompt="The thread and the pattern", max_tokens=40, temperature=1, seed=2)
    whole = s.complete(**ask)
    text = whole["choices"][0]["text"]
    assert len(text) > 40 and whole["usage"]["prompt_tokens"] > 3
    chunks, _ = s.stream(ask)
    assert "".join(c["choices"][0]["text"] for c in chunks) == text
    for at in range(5, len(text) - 6, 3):
        stop = text[at:at + 4]
        expected = text[:text.index(stop)]
        found = s.complete(stop=["never this", stop], **ask)
        assert found["choices"][0]["text"] == expected, (stop, found)
        assert found["choices"][0]["finish_reason"] == "stop"
        chunks, _ = s.stream(dict(ask, stop=stop))
        assert "".join(c["choices"][0]["text"] for c in chunks) == expected
        assert chunks[-1]["kapok"]["logits_digest"] == found["kapok"]["logits_digest"]
    probed = s.complete(logprobs=3, **ask)
    assert probed["choices"][0]["text"] == text
    lp = probed["choices"][0]["logprobs"]
    assert len(lp["tokens"]) == len(lp["token_logprobs"]) == 40
    assert all(v <= 0 for v in lp["token_logprobs"])
    assert all(len(t) <= 3 and max(t.values()) >= v - 1e-9
               for t, v in zip(lp["top_logprobs"], lp["token_logprobs"]))
    greedy = s.complete("thread", 5, logprobs=1)["choices"][0]["logprobs"]
    assert all(list(t.values()) == [v]
               for t, v in zip(greedy["top_logprobs"], greedy["token_logprobs"]))


def metrics(s):
    """Every line of /metrics is a comment or NAME{LABELS} VALUE, and the totals move."""
    def read():
        status, text, headers = s.get("/metrics")
        assert status == 200 and headers["Content-Type"].startswith("text/plain")
        values = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, value = re.fullmatch(r"([a-z_]+(?:\{[a-z]+=\"[^\"]*\"\})?) (\S+)", line).groups()
                assert name not in values, name
                values[name] = float(value)
        return values
    before = read()
    s.complete(PROMPT, 3)
    after = read()
    assert after["kapok_generated_tokens_total"] == before["kapok_generated_tokens_total"] + 3
    assert after["kapok_ready"] == 1 and after['kapok_link_up{stage="1"}'] == 1


def limits(s):
    """The body limit, declared and chunked; the server goes on."""
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
    got = s.raw(head + b"Content-Length: 99999999999\r\n\r\n")
    assert b" 413 " in got.split(b"\r\n")[0], got[:200]
    piece = b"%x\r\n" % 65536 + b" " * 65536 + b"\r\n"
    got = s.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + piece * 300 + b"0\r\n\r\n", 20)
    assert b" 413 " in got.split(b"\r\n")[0], got[:200]
    s.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + piece * 700, 20)
    for junk in (b"\0" * 100, b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", b"\r\n" * 1000,
                 b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
                 head + b"Content-Length: -5\r\n\r\n", head + b"Content-Length: x\r\n\r\n{}"):
        s.raw(junk, 0.3)
    s.complete(PROMPT, 2)


def keep_alive(s):
    c = s.connect()
    for _ in range(3):
        c.request("POST", "/v1/completions", json.dumps(
            {"model": "kimi-k3", "prompt": PROMPT, "max_tokens": 2}))
        r = c.getresponse()
        assert r.status == 200
        r.read()
    c.close()


def stages_lost(s, whole):
    """Stages killed in the middle of a generation: the same answer."""
    for i in (0, 1, 0):
        answer = []
        t = threading.Thread(target=lambda: answer.append(s.complete(PROMPT, 150)))
        t.start()
        time.sleep(0.15)
        s.restart_trunk(i)
        t.join()
        assert answer[0]["kapok"]["token_ids"][:12] == whole["kapok"]["token_ids"]
        digests = {answer[0]["kapok"]["logits_digest"]}
        assert digests == {s.complete(PROMPT, 150)["kapok"]["logits_digest"]}
    assert s.status()["hub"]["replayed"] > 0


def gone(build):
    """Clients that leave, streaming or not, are noticed while a step takes long."""
    with Served(build, layer_seconds=0.4) as s:
        socks = []
        for stream in (True, False):
            k = socket.create_connection((s.host, s.port))
            body = json.dumps({"model": "kimi-k3", "prompt": PROMPT, "max_tokens": 500,
                               "stream": stream}).encode()
            k.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
                      % (len(body), body))
            socks.append(k)
        time.sleep(1.0)
        assert s.status()["requests"]["running"] == 2
        started = time.monotonic()
        for k in socks:
            k.close()
        r = s.wait_idle()
        took = time.monotonic() - started
        print("two clients gone, their rows free after %.2f s (a step takes 3.6 s)" % took)
        assert took < 2.5 and r["cancelled"] == 2
        assert s.status()["hub"]["cancelled"] >= 1


def deadlines(build):
    """A request that may take no longer ends by itself, running or waiting."""
    with Served(build, layer_seconds=0.05, options=["--requests", "4"]) as s:
        for stream in (False, True):
            started = time.monotonic()
            status, answer, _ = s.post("/v1/completions", {
                "model": "kimi-k3", "prompt": PROMPT, "max_tokens": 1000, "deadline": 1.0,
                "stream": stream})
            took = time.monotonic() - started
            assert 0.9 < took < 4, took
            if stream:
                assert "deadline_passed" in answer and "[DONE]" in answer
            else:
                assert status == 504 and answer["error"]["code"] == "deadline_passed", answer
        s.wait_idle()


def queue_full(build):
    with Served(build, layer_seconds=0.05, options=["--requests", "2"]) as s:
        threads = [threading.Thread(target=s.complete, args=(PROMPT, 10)) for _ in range(2)]
        for t in threads:
            t.start()
        time.sleep(0.3)
        status, answer, headers = s.post("/v1/completions",
                                         {"model": "kimi-k3", "prompt": [1], "max_tokens": 1})
        assert status == 429 and int(headers["Retry-After"]) > 0, (status, answer)
        for t in threads:
            t.join()
        s.complete(PROMPT, 1)


def comments(build):
    """First byte at once, a comment at least every ten seconds, though a step takes 22."""
    with Served(build, layer_seconds=2.4) as s:
        started = time.monotonic()
        c, r = s.open_stream({"prompt": [1], "max_tokens": 1})
        first = r.readline()
        print("first byte after %.0f ms" % (1000 * (time.monotonic() - started)))
        assert time.monotonic() - started < 0.5 and first
        last, gaps, data = time.monotonic(), [], b""
        while b"[DONE]" not in data:
            data = r.readline()
            gaps.append(time.monotonic() - last)
            last = time.monotonic()
            assert data
        print("longest silence %.1f s" % max(gaps))
        assert max(gaps) < 10 and len(gaps) > 4, gaps
        c.close()


def keys(build):
    with Served(build) as probe:
        path = probe.folder + "/key"
        with open(path, "w") as f:
            f.write("sesame\n")
        with Served(build, options=["--api-key-file", path]) as s:
            for headers in ({}, {"Authorization": "Bearer wrong!"},
                            {"Authorization": "Basic sesame"}):
                status, answer, _ = s.get("/v1/models", headers)
                assert status == 401 and answer["error"]["code"] == "invalid_api_key", answer
            assert s.get("/v1/models", {"Authorization": "Bearer sesame"})[0] == 200
            assert s.get("/health")[0] == 200


def continued(s):
    """A prompt that goes on from an earlier one's end: fewer tokens run, the same answer."""
    first = [(i * 13) % 900 for i in range(70)]
    turn = s.complete(first, 20)
    longer = first + turn["kapok"]["token_ids"] + [5, 6, 7]
    other = first + [8, 9]
    found = [s.complete(longer, 10), s.complete(other, 10)]
    cached = [a["usage"]["prompt_tokens_details"]["cached_tokens"] for a in found]
    assert cached == [89, 70], cached
    assert all(a["kapok"]["cached_tokens"] == c for a, c in zip(found, cached))
    return [(longer, found[0]), (other, found[1])]


def continued_alike(s, cases):
    """The same from a coordinator that has nothing kept."""
    for prompt, answer in cases:
        fresh = s.complete(prompt, 10)
        assert fresh["kapok"]["cached_tokens"] == 0 and key(fresh) == key(answer)


def drafts(build):
    """With and without drafts: the same answers; with them fewer steps."""
    asks = [dict(prompt=[7, 3, 2, 6] * 10, max_tokens=120, temperature=t, seed=1, n=n,
                 frequency_penalty=f) for t in (0, 0.3, 1.2) for n in (1, 3) for f in (0, 0.2)]
    seen, steps = [], []
    for options in ([], ["--no-drafts"]):
        with Served(build, repeats=True, options=options) as s:
            answers = [s.complete(**a) for a in asks]
            seen.append([[c.get("kapok", a["kapok"])["logits_digest"] for c in a["choices"]]
                         for a in answers])
            steps.append(answers[0]["kapok"]["steps"])
            print("drafts %s" % {k: s.status()["requests"][k] for k in ("drafted", "accepted")})
    assert seen[0] == seen[1], "drafts changed an answer"
    print("steps for 120 tokens: %d with drafts, %d without" % tuple(steps))
    assert steps[0] < 40 and steps[1] == 120


def crowded(build):
    """More requests than the stages have room for: they wait, what is kept gives way."""
    with Served(build) as s:
        prompts = [[i + 1] * 300 for i in range(100)]
        found = [None] * len(prompts)

        def one(i):
            found[i] = key(s.complete(prompts[i], 900))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(prompts))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for i in (0, 50, 99):
            assert key(s.complete(prompts[i], 900)) == found[i]
        assert None not in found


def main(build):
    with Served(build, stages=2) as s:
        whole = plain(s)
        streamed(s, whole)
        together(s)
        choices(s)
        ends_itself(s)
        refusals(s)
        texts(s)
        metrics(s)
        limits(s)
        keep_alive(s)
        cases = continued(s)
        stages_lost(s, whole)
        s.wait_idle()
    with Served(build) as s:
        continued_alike(s, cases)
    drafts(build)
    crowded(build)
    gone(build)
    deadlines(build)
    queue_full(build)
    keys(build)
    comments(build)


if __name__ == "__main__":
    main(sys.argv[1])
