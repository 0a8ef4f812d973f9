"""Bad input of every kind, given to the running programs: each is refused with a sentence that
names the thing, what was expected and what was found; the exit code is right and nothing hangs.

usage: refusals_test.py BUILD
"""
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

import checkpoints
from harness import Pipeline

PROGRAM = {"expertd": "expertd/kapok-expertd", "trunk": "trunk/kapok-trunk",
           "coordinator": "coordinator/kapok-coordinator"}


class Bench:
    def __init__(self, build):
        self.build, self.good = build, checkpoints.own_checkpoint(build)
        self.folder = tempfile.mkdtemp(prefix="kapok-test-")
        self.secret = os.path.join(self.folder, "secret")
        with open(os.open(self.secret, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as f:
            f.write(os.urandom(32))
        self.checks = 0

    def copy(self, name):
        path = os.path.join(self.folder, name)
        shutil.copytree(self.good, path)
        return path

    def shard(self, checkpoint, number):
        return next(os.path.join(checkpoint, n) for n in sorted(os.listdir(checkpoint))
                    if n.startswith("model-%05d-" % number))

    def refused(self, program, arguments, *words, code=1):
        """The program ends by itself with `code` and a message that holds every word."""
        command = [os.path.join(self.build, PROGRAM[program])] + arguments
        done = subprocess.run(command, capture_output=True, timeout=60)
        text = (done.stdout + done.stderr).decode(errors="replace")
        assert done.returncode == code, "%s: exit %d, expected %d\n%s" % (
            command, done.returncode, code, text)
        for w in words:
            assert w in text, "%s: no %r in\n%s" % (command, w, text)
        self.checks += 1

    def arguments(self, program, checkpoint=None, listen="tcp://127.0.0.1:0"):
        more = {"expertd": [], "trunk": ["--expertd", "tcp://127.0.0.1:1"],
                "coordinator": ["--trunk", "tcp://127.0.0.1:1"]}[program]
        if program == "coordinator" and listen == "tcp://127.0.0.1:0":
            listen = "127.0.0.1:0"
        return ["--checkpoint", checkpoint or self.good, "--secret", self.secret, "--listen",
                listen] + more


def edit_header(path, change):
    """Rewrites a shard's JSON header."""
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        header, data = json.loads(f.read(n)), f.read()
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def hostile_checkpoints(b):
    for program in ("expertd", "trunk", "coordinator"):
        b.refused(program, b.arguments(program, "/nonexistent"), "/nonexistent")

    cut = b.copy("cut")
    os.truncate(b.shard(cut, 3), os.path.getsize(b.shard(cut, 3)) - 1)
    b.refused("expertd", b.arguments("expertd", cut), "model-00003")
    b.refused("trunk", b.arguments("trunk", cut), "model-00003")

    huge = b.copy("huge")
    with open(b.shard(huge, 2), "r+b") as f:
        f.write(struct.pack("<Q", 1 << 60))
    b.refused("trunk", b.arguments("trunk", huge), "model-00002")

    lost = b.copy("lost")
    name = "language_model.model.layers.2.block_sparse_moe.experts.5.w2.weight_scale"
    edit_header(b.shard(lost, 3), lambda h: h.update({"other": h.pop(name)}))
    b.refused("expertd", b.arguments("expertd", lost), name)

    wrong = b.copy("wrong")
    name = "language_model.model.layers.1.self_attn.o_proj.weight"
    edit_header(b.shard(wrong, 2), lambda h: h[name].update(shape=h[name]["shape"][::-1]))
    b.refused("trunk", b.arguments("trunk", wrong), name, "expected", "found")


def wrong_configs(b):
    bad = b.copy("config")
    path = os.path.join(bad, "config.json")
    with open(path) as f:
        config = json.load(f)
    del config["text_config"]["kv_lora_rank"]
    config["text_config"]["num_experts"] = "many"
    config["text_config"]["linear_attn_config"]["full_attn_layers"][0] = 0
    with open(path, "w") as f:
        json.dump(config, f)
    for program in ("expertd", "trunk", "coordinator"):
        b.refused(program, b.arguments(program, bad), "kv_lora_rank", "num_experts",
                  "full_attn_layers")
    with open(path, "w") as f:
        f.write("{\"text_config\": ")
    b.refused("trunk", b.arguments("trunk", bad), "config.json")


def wrong_flags(b):
    b.refused("expertd", b.arguments("expertd") + ["--bands", "0-99"], "band", "99")
    b.refused("expertd", b.arguments("expertd") + ["--layers", "0"], "layer", "0")
    b.refused("expertd", b.arguments("expertd") + ["--memory", "1K"], "memory")
    b.refused("expertd", b.arguments("expertd") + ["--memory", "lots"], "lots", code=2)
    b.refused("trunk", b.arguments("trunk") + ["--layers", "3-99"], "layer", "99")
    b.refused("trunk", b.arguments("trunk") + ["--isa", "mmx"], "mmx")
    b.refused("trunk", b.arguments("trunk") + ["--nonsense"], "nonsense", code=2)
    for program in ("expertd", "trunk"):
        b.refused(program, b.arguments(program, listen="tcp://0.0.0.0:0"), "0.0.0.0", "loopback")
    os.chmod(b.secret, 0o644)
    b.refused("trunk", b.arguments("trunk"), "secret")
    os.chmod(b.secret, 0o600)


def ports_in_use(b):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        for program in ("expertd", "trunk"):
            b.refused(program, b.arguments(program, listen="tcp://127.0.0.1:%d" % port),
                      str(port), "in use")
        b.refused("coordinator", b.arguments("coordinator", listen="127.0.0.1:%d" % port),
                  str(port), "in use")


def missing_tiles(b):
    with Pipeline(b.build, b.good, bands=["1-11"], start="unready") as p:
        for _ in range(200):
            status, body = p.get("/ready")
            assert status == 503, (status, body)
            if "band 0" in json.dumps(body):
                break
            time.sleep(0.05)
        assert "band 0" in json.dumps(body), body
    b.checks += 1


def stranger(b):
    """An expertd of another checkpoint is refused, by name, and its tiles do not count."""
    other = b.copy("other")
    edit_header(b.shard(other, 2), lambda h: h.setdefault("__metadata__", {}).update(a="b"))
    with Pipeline(b.build, b.good, start="never") as p:
        e = p.expertds[0]
        e.command[e.command.index(b.good)] = other
        e.start().listening()
        text = ""
        for _ in range(200):
            text = json.dumps(p.get("/v1/kapok/status")[1])
            if "refused" in text:
                break
            time.sleep(0.05)
        assert "refused" in text and "model" in text, text
        assert p.get("/ready")[0] == 503
    b.checks += 1


def junk_connections(b):
    """Random bytes, half messages and a wrong secret leave a pipeline as it was."""
    with Pipeline(b.build, b.good) as p:
        before = p.complete([3, 7, 11], 4)["logits_digest"]
        ports = [int(x.address.rsplit(":", 1)[1]) for x in p.trunks + p.expertds]
        ports.append(int(p.url.rsplit(":", 1)[1]))
        for port in ports * 20:
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(os.urandom(200))
        for port in ports[:-1] * 5:  # a good nng greeting (REQ), then a frame that is none
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(b"\0SP\0\0\x30\0\0" + struct.pack(">Q", 20) + os.urandom(20))
                s.settimeout(5)
                s.recv(100)
        assert p.complete([3, 7, 11], 4)["logits_digest"] == before
    b.checks += 1


def wrong_requests(b):
    with Pipeline(b.build, b.good) as p:
        vocab = p.shape["vocab_size"]
        for body, word in [
                ({"prompt": [vocab]}, str(vocab)), ({"prompt": []}, "prompt"), ({}, "prompt"),
                ({"prompt": [1], "max_tokens": -1}, "max_tokens"),
                ({"prompt": [1], "max_tokens": "x"}, "max_tokens"),
                ({"prompt": [1], "echo": True}, "echo"),
                ({"prompt": [1], "max_tokens": 1 << 40}, "max_tokens"),
                ({"prompt": {"a": 1}}, "prompt"), (b"{", "JSON"), (b"[]", "object"),
                (b"{\"prompt\":[1],\"prompt\":[2]}", "prompt")]:
            if isinstance(body, dict):
                body["model"] = "kimi-k3"
            status, answer = p.post("/v1/completions", body)
            assert status == 400, (body, status, answer)
            assert word in json.dumps(answer["error"]), (body, answer)
            b.checks += 1
        assert p.post("/v1/completions", {"prompt": [1], "model": "gpt-x"})[0] == 404
        assert p.get("/nothing")[0] == 404


def main(build):
    b = Bench(build)
    for part in (hostile_checkpoints, wrong_configs, wrong_flags, ports_in_use, missing_tiles,
                 stranger, junk_connections, wrong_requests):
        part(b)
        print(part.__name__, "ok", flush=True)
    shutil.rmtree(b.folder)
    print("%d refusals" % b.checks)


if __name__ == "__main__":
    main(sys.argv[1])
