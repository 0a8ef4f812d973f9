"""A pipeline on this machine for the tests: starts its processes one by one, asks it over HTTP,
kills and restarts parts of it, stops it. Only the standard library.

    with Pipeline(programs, checkpoint, expertds=3, stages=2) as p:
        answer = p.complete([3, 7, 11], max_tokens=8)

`programs` is the build folder. Every process's log lies in a temporary folder that is kept when
a test fails.
"""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

PATIENCE = 60  # seconds anything may take here; sanitizers and valgrind are slow


def free_port():
    """Below the kernel's range for outgoing connections: see client/port.h."""
    while True:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", random.randrange(10000, 32000)))
                return s.getsockname()[1]
            except OSError:
                continue


def split_bands(bands, parts):
    """The bands 0..bands-1 as `parts` texts for --bands, as evenly as they go."""
    cuts = [bands * i // parts for i in range(parts + 1)]
    return ["%d-%d" % (a, b - 1) for a, b in zip(cuts, cuts[1:])]


def split_layers(layers, parts):
    cuts = [layers * i // parts for i in range(parts + 1)]
    return ["%d-%d" % (a, b - 1) for a, b in zip(cuts, cuts[1:])]


def shape_of(checkpoint):
    with open(os.path.join(checkpoint, "config.json")) as f:
        c = json.load(f)["text_config"]
    width = c["moe_intermediate_size"]
    band = width // 12 if width % 12 == 0 and width // 12 % 32 == 0 else 32
    c["bands"] = width // band
    return c


class Process:
    """One program, its command line and its log; may be killed and started again."""

    def __init__(self, name, command, folder, wrapper=()):
        self.name, self.command = name, list(wrapper) + command
        self.log = os.path.join(folder, name + ".log")
        self.child = None

    def start(self):
        log = open(self.log, "ab")
        self.child = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=log)
        log.close()
        return self

    def listening(self):
        """Waits for the line that says the address."""
        line = self.child.stdout.readline().decode()
        if not line.startswith("listening "):
            self.child.wait(PATIENCE)
            raise RuntimeError("%s did not start (exit %s): %s\n%s" % (
                self.name, self.child.returncode, line, self.text()))
        return line.split()[1]

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def kill(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()

    def stop(self):
        """SIGTERM; gives the exit code."""
        if self.child is None:
            return 0
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
                raise RuntimeError("%s did not stop within %d s" % (self.name, PATIENCE))
        self.child.stdout.close()
        code, self.child = self.child.returncode, None
        return code

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.child.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self):
        with open("/proc/%d/status" % self.child.pid) as f:
            return next(int(l.split()[1]) << 10 for l in f if l.startswith("VmRSS"))


class Pipeline:
    def __init__(self, programs, checkpoint, expertds=1, stages=1, threads=1, isa=None,
                 chunk=None, bands=None, trunk=(), expertd=(), coordinator=(), wrapper=(),
                 start="before"):
        self.programs, self.checkpoint, self.wrapper = programs, checkpoint, wrapper
        self.folder = tempfile.mkdtemp(prefix="kapok-test-")
        self.shape = shape_of(checkpoint)
        self.bands = bands or split_bands(self.shape["bands"], expertds)
        self.start_order = start
        self.common = ["--secret", os.path.join(self.folder, "secret"), "--checkpoint", checkpoint]
        if isa:
            isa = ["--isa", isa]
        self.make_secret()
        compute = ["--threads", str(threads)] + (isa or [])
        self.expertds = self.make_expertds(compute + list(expertd))
        self.trunks = self.make_trunks(stages, compute + list(trunk))
        chunk = ["--prefill-chunk", str(chunk)] if chunk else []
        trunks = [a for t in self.trunks for a in ("--trunk", t.address)]
        self.coordinator = self.process("coordinator", "kapok-coordinator", ["--listen",
                                        "127.0.0.1:0"] + trunks + chunk + list(coordinator))
        self.url = None

    def make_secret(self):
        path = os.path.join(self.folder, "secret")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as f:
            f.write(os.urandom(32))

    def process(self, name, program, arguments):
        folder = {"kapok-expertd": "expertd", "kapok-trunk": "trunk",
                  "kapok-coordinator": "coordinator"}[program]
        command = [os.path.join(self.programs, folder, program)] + self.common + arguments
        return Process(name, command, self.folder, self.wrapper)

    def listener(self, name, program, arguments):
        address = "tcp://127.0.0.1:%d" % free_port()
        p = self.process(name, program, ["--listen", address] + arguments)
        p.address = address
        return p

    def make_expertds(self, arguments):
        return [self.listener("expertd%d" % i, "kapok-expertd", ["--bands", b] + arguments)
                for i, b in enumerate(self.bands)]

    def make_trunks(self, stages, arguments):
        peers = [a for e in self.expertds for a in ("--expertd", e.address)]
        layers = split_layers(self.shape["num_hidden_layers"], stages)
        return [self.listener("trunk%d" % i, "kapok-trunk", ["--layers", l] + peers + arguments)
                for i, l in enumerate(layers)]

    def start_expertds(self):
        for e in self.expertds:
            e.start()
        for e in self.expertds:
            e.listening()

    def __enter__(self):
        try:
            if self.start_order in ("before", "unready"):
                self.start_expertds()
            for t in self.trunks:
                t.start().listening()
            if self.start_order == "between":
                self.start_expertds()
            self.url = self.coordinator.start().listening()
            if self.start_order == "after":
                self.start_expertds()
            if self.start_order not in ("never", "unready"):
                self.wait_ready()
        except BaseException:
            self.kill_all()
            raise
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.kill_all()
            print("logs are kept in", self.folder)
            return
        codes = {p.name: p.stop() for p in [self.coordinator] + self.trunks + self.expertds}
        bad = {n: c for n, c in codes.items() if c}
        if bad:
            raise AssertionError("exit codes %s, logs in %s" % (bad, self.folder))
        shutil.rmtree(self.folder)

    def kill_all(self):
        for p in [self.coordinator] + self.trunks + self.expertds:
            if p.child and p.child.poll() is None:
                p.child.kill()
                p.child.wait()

    # ---- asking it -------------------------------------------------------------------------

    def get(self, path):
        """(status, parsed JSON or text)"""
        return self.exchange(urllib.request.Request(self.url + path))

    def post(self, path, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.exchange(urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}))

    @staticmethod
    def exchange(request):
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE * 5) as r:
                status, text = r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            status, text = e.code, e.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def wait_ready(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if self.get("/ready")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError("not ready after %d s: %s" % (PATIENCE, self.get("/ready")))

    def complete(self, prompt, max_tokens, **more):
        """The `kapok` object of a greedy completion."""
        status, answer = self.post("/v1/completions", dict(
            {"model": "kimi-k3", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0},
            **more))
        if status != 200:
            raise AssertionError("HTTP %d: %s" % (status, answer))
        return dict(answer["kapok"], answer=answer)

    def complete_together(self, requests):
        """Several (prompt, max_tokens) at once, answers in order."""
        answers = [None] * len(requests)

        def one(i):
            answers[i] = self.complete(*requests[i])
        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(requests))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if None in answers:
            raise AssertionError("a request failed: %s" % answers)
        return answers
