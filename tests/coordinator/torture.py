"""By hand: many clients at once for a while, some of which vanish; idle and slow connections;
junk. Prints its figures.

usage: torture.py BUILD [SECONDS] [CLIENTS] [IDLE]
"""
import json
import os
import random
import resource
import socket
import sys
import threading
import time

from served import Served


def key(answer):
    return answer["kapok"]["token_ids"], answer["kapok"]["logits_digest"]


def resident(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


class Clients:
    def __init__(self, s, seconds, count):
        draw = random.Random(7)
        self.s, self.end = s, time.monotonic() + seconds
        self.asks = [dict(prompt=[draw.randrange(900) for _ in range(draw.randrange(1, 60))],
                          max_tokens=draw.randrange(1, 40), seed=i,
                          temperature=draw.choice([0, 1])) for i in range(40)]
        self.alone = [key(s.complete(**a)) for a in self.asks]
        self.good = self.left = 0
        self.bad = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]
        for t in self.threads:
            t.start()

    def run(self, seed):
        draw = random.Random(seed)
        while time.monotonic() < self.end:
            i = draw.randrange(len(self.asks))
            if draw.random() < 0.2:
                self.vanish(self.asks[i], draw)
                continue
            try:
                found = key(self.s.complete(**self.asks[i]))
            except Exception as e:
                self.bad.append(repr(e))
                continue
            with self.lock:
                if found == self.alone[i]:
                    self.good += 1
                else:
                    self.bad.append("another answer to %d" % i)

    def vanish(self, ask, draw):
        body = json.dumps(dict(ask, model="kimi-k3", max_tokens=1000, stream=draw.random() < 0.5))
        with socket.create_connection((self.s.host, self.s.port)) as k:
            k.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" %
                      len(body) + body.encode())
            time.sleep(draw.random() / 4)
        with self.lock:
            self.left += 1


def idle(s, count):
    socks = []
    for i in range(count):
        k = socket.create_connection((s.host, s.port))
        if i % 3 == 1:
            k.sendall(b"POST /v1/completions HTTP/1.1\r\nHost")
        elif i % 3 == 2:
            k.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        socks.append(k)
    return socks


def junk(s, seconds):
    """Requests with bytes turned, cut or repeated."""
    draw, end, n = random.Random(3), time.monotonic() + seconds, 0
    bodies = [b'{"model":"kimi-k3","prompt":[3,7,11],"max_tokens":3,"temperature":0.5,"n":2,'
              b'"stop":["a"],"logit_bias":{"5":-100},"stream":true,"seed":-9223372036854775808}',
              b'{"model":"kimi-k3","prompt":[3],"stream_options":{"include_usage":true}}']
    while time.monotonic() < end:
        body = bytearray(draw.choice(bodies))
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(body))
            what = draw.randrange(4)
            if what == 0:
                body[at] = draw.randrange(256)
            elif what == 1:
                del body[at:at + draw.randrange(1, 9)]
            elif what == 2:
                body[at:at] = body[at:at + draw.randrange(1, 30)]
            else:
                body[at:at] = draw.choice([b"{", b"[", b"1e999", b"-1", b"null", b"\xff", b'"'])
            if not body:
                body = bytearray(b"{")
        head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        data = bytearray(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        if draw.random() < 0.3:
            data[draw.randrange(len(data))] = draw.randrange(256)
        s.raw(bytes(data), 0.2)
        n += 1
    return n


def main(build, seconds=20, clients=64, idle_count=10000):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with Served(build, stages=2, options=["--log", "warn"]) as s:
        c = Clients(s, seconds, clients)
        time.sleep(seconds / 2)
        half = resident(s.child.pid)
        for t in c.threads:
            t.join()
        r = s.wait_idle()
        print("%d clients for %d s: %d answers, all as alone; %d left early, %d cancelled; resident"
              " %d KB at half time, %d KB at the end" % (clients, seconds, c.good, c.left,
                                                       r["cancelled"], half,
                                                       resident(s.child.pid)))
        assert not c.bad, c.bad[:5]
        socks = idle(s, idle_count)
        started = time.monotonic()
        s.complete(**c.asks[0])
        print("%d idle and half-sent connections: answer after %.0f ms, resident %d KB" % (
            len(socks), 1000 * (time.monotonic() - started), resident(s.child.pid)))
        for k in socks:
            k.close()
        print("%d damaged requests" % junk(s, seconds / 2))
        assert key(s.complete(**c.asks[0])) == c.alone[0]
        assert s.child.poll() is None


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
