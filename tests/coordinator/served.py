"""A coordinator on fake trunks, for the tests of what clients see: starts the processes, asks
over HTTP, stops them. Only the standard library.

    with Served(build, stages=2) as s:
        answer = s.complete([3, 7, 11], max_tokens=8)
"""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE = 60  # seconds anything may take; sanitizers are slow
LAYERS = 9


def checkpoint(build):
    """The tiny checkpoint with a tokenizer that the build makes for all tests."""
    return os.path.join(build, "tests", "tiny")


class Served:
    def __init__(self, build, stages=1, layer_seconds=0.0, repeats=False, options=(),
                 folder=None, scripts=None):
        self.build, self.stages, self.options = build, stages, list(options)
        self.layer_seconds, self.repeats, self.scripts = layer_seconds, repeats, scripts
        self.checkpoint = folder or checkpoint(build)
        self.folder = tempfile.mkdtemp(prefix="kapok-coordinator-")
        self.secret = os.path.join(self.folder, "secret")
        with open(os.open(self.secret, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as f:
            f.write(os.urandom(32))
        self.trunks, self.addresses, self.child = [], [], None

    def log(self, name):
        return open(os.path.join(self.folder, name), "ab")

    def spawn(self, name, command):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log(name))
        line = child.stdout.readline().decode()
        if not line.startswith("listening "):
            child.wait(PATIENCE)
            raise RuntimeError("%s did not start: %s" % (name, self.text(name)))
        return child, line.split()[1]

    def text(self, name="coordinator"):
        with open(os.path.join(self.folder, name), errors="replace") as f:
            return f.read()

    def script_file(self):
        """What the fake trunk is to say after what; see fake_trunk_main.c."""
        if not self.scripts:
            return []
        path = os.path.join(self.folder, "scripts")
        with open(path, "w") as f:
            f.writelines(line + "\n" for line in self.scripts)
        return [path]

    def start_trunk(self, i, address="tcp://127.0.0.1:0"):
        layers = "%d-%d" % (LAYERS * i // self.stages, LAYERS * (i + 1) // self.stages)
        return self.spawn("trunk%d" % i, [
            os.path.join(self.build, "tests", "coordinator", "fake_trunk"), self.checkpoint,
            self.secret, address, layers, str(self.layer_seconds)] +
            (["repeats"] if self.repeats else []) + self.script_file())

    def restart_trunk(self, i):
        self.trunks[i].kill()
        self.trunks[i].wait()
        self.trunks[i].stdout.close()
        self.trunks[i], _ = self.start_trunk(i, self.addresses[i])

    def start_coordinator(self, listen="127.0.0.1:0"):
        command = [os.path.join(self.build, "coordinator", "kapok-coordinator"), "--checkpoint",
                   self.checkpoint, "--secret", self.secret, "--listen", listen]
        for a in self.addresses:
            command += ["--trunk", a]
        self.child, self.url = self.spawn("coordinator", command + self.options)
        self.host, port = self.url[len("http://"):].rsplit(":", 1)
        self.port = int(port)

    def __enter__(self):
        try:
            for i in range(self.stages):
                child, address = self.start_trunk(i)
                self.trunks.append(child)
                self.addresses.append(address)
            self.start_coordinator()
        except BaseException:
            self.stop_trunks()
            shutil.rmtree(self.folder)
            raise
        end = time.monotonic() + PATIENCE
        while self.get("/ready")[0] != 200 and time.monotonic() < end:
            time.sleep(0.02)
        return self

    def stop_coordinator(self, how=signal.SIGTERM):
        self.child.send_signal(how)
        code = self.child.wait(PATIENCE)
        self.child.stdout.close()
        return code

    def stop_trunks(self):
        for t in self.trunks:
            t.terminate()
            t.wait(PATIENCE)
            t.stdout.close()

    def __exit__(self, kind, value, trace):
        code = self.stop_coordinator() if self.child.poll() is None else -1
        self.stop_trunks()
        if kind or code != 0:
            print(self.text()[-4000:])
            print("logs are kept in", self.folder)
            if not kind:
                raise AssertionError("the coordinator ended with %s" % code)
        else:
            shutil.rmtree(self.folder)

    # ---- asking ------------------------------------------------------------------------------

    def connect(self, timeout=PATIENCE):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def exchange(self, method, path, body=None, headers=None):
        """(status, parsed JSON or text, headers)"""
        c = self.connect()
        c.request(method, path, body, headers or {})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        try:
            return r.status, json.loads(text), r.headers
        except ValueError:
            return r.status, text, r.headers

    def get(self, path, headers=None):
        return self.exchange("GET", path, None, headers)

    def post(self, path, body, headers=None):
        data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        return self.exchange("POST", path, data, headers)

    def complete(self, prompt, max_tokens=8, path="/v1/completions", **more):
        body = dict({"model": "kimi-k3", "prompt": prompt, "max_tokens": max_tokens,
                     "temperature": 0}, **more)
        status, answer, _ = self.post(path, body)
        if status != 200:
            raise AssertionError("HTTP %d: %s" % (status, answer))
        return answer

    def open_stream(self, body, path="/v1/completions", headers=None):
        c = self.connect()
        c.request("POST", path, json.dumps(dict({"model": "kimi-k3", "stream": True}, **body)),
                  headers or {})
        return c, c.getresponse()

    def stream(self, body, path="/v1/completions"):
        """(chunks, comments) of a whole stream, which must end with [DONE]."""
        c, r = self.open_stream(body, path)
        assert r.status == 200, (r.status, r.read())
        assert r.headers["Content-Type"].startswith("text/event-stream")
        chunks, comments, done = [], 0, False
        for line in r.read().decode().split("\n"):
            if line.startswith(":"):
                comments += 1
            elif line == "data: [DONE]":
                done = True
            elif line.startswith("data: "):
                chunks.append(json.loads(line[6:]))
        c.close()
        assert done, "no [DONE]"
        return chunks, comments

    def raw(self, data, wait=2.0):
        """What comes back for these bytes, until the server closes or nothing comes."""
        with socket.create_connection((self.host, self.port), timeout=wait) as s:
            got = b""
            try:
                s.sendall(data)
                while True:
                    more = s.recv(65536)
                    if not more:
                        break
                    got += more
            except OSError:
                pass
            return got

    def status(self):
        return self.get("/v1/kapok/status")[1]

    def wait_idle(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            r = self.status()["requests"]
            if r["waiting"] + r["running"] == 0:
                return r
            time.sleep(0.02)
        raise AssertionError("requests are still held: %s" % r)
