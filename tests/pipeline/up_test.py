"""`kapok up`, `run` and `status` as a person or a script uses them.

usage: up_test.py BUILD
"""
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import checkpoints
from harness import PATIENCE

PROMPT = "3,7,11,5,9"


class Up:
    """A running `kapok up`."""

    def __init__(self, build, arguments):
        self.kapok = os.path.join(build, "client", "kapok")
        self.run_dir = tempfile.mkdtemp(prefix="kapok-test-")
        self.log = open(os.path.join(self.run_dir, "up.log"), "w+")
        self.child = subprocess.Popen(
            [self.kapok, "up", "--run-dir", self.run_dir, "--listen", "127.0.0.1:0"] + arguments,
            stdout=subprocess.PIPE, stderr=self.log)
        atexit.register(self.child.kill)  # a failed test leaves nothing running
        line = self.child.stdout.readline().decode()
        assert line.startswith("ready http://127.0.0.1:"), (line, self.text())
        self.url = line.split()[1]

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def command(self, *arguments):
        done = subprocess.run([self.kapok] + list(arguments), capture_output=True,
                              timeout=5 * PATIENCE)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def run(self, *more):
        code, out, err = self.command("run", "--run-dir", self.run_dir, "--ids", PROMPT,
                                      "--max-tokens", "6", "--json", *more)
        assert code == 0, (code, out, err)
        return json.loads(out)

    def pids(self):
        """Of the programs that run now; a file may go while we look."""
        found = {}
        for name in os.listdir(self.run_dir):
            if name.endswith(".pid"):
                try:
                    with open(os.path.join(self.run_dir, name)) as f:
                        found[name[:-4]] = int(f.read())
                except FileNotFoundError:
                    continue
        return found

    def stop(self, with_signal=signal.SIGINT):
        pids = self.pids()
        self.child.send_signal(with_signal)
        code = self.child.wait(PATIENCE)
        left = [n for n, p in pids.items() if os.path.exists("/proc/%d" % p)]
        assert not left, "still running: %s" % left
        self.log.close()
        shutil.rmtree(self.run_dir)
        return code


def check_run(up):
    answer = up.run()
    assert len(answer["token_ids"]) == 6 and answer["finish_reason"] == "length", answer
    assert answer["usage"]["prompt_tokens"] == 5, answer
    assert set(answer["bytes_read"]) == {"trunk", "experts"}, answer
    assert set(answer["seconds"]) >= {"queue", "prefill", "decode"}, answer
    assert len(answer["logits_digest"]) == 32, answer
    code, out, _ = up.command("run", "--url", up.url, "--ids", PROMPT, "--max-tokens", "6")
    assert code == 0 and out.strip() == ",".join(map(str, answer["token_ids"])), out
    return answer


def check_usage_errors(up):
    for arguments, code, word in [
            (["run", "--url", up.url, "--ids", "3,,4"], 2, "3,,4"),
            (["run", "--url", up.url], 2, "prompt"),
            (["run", "--url", up.url, "--ids", "99999999"], 1, "99999999"),
            (["run", "--url", "http://127.0.0.1:9", "--ids", "3"], 3, "127.0.0.1:9"),
            (["status", "--url", "http://127.0.0.1:9"], 3, "127.0.0.1:9"),
            (["up"], 2, "--checkpoint"), (["nonsense"], 2, "nonsense"),
            (["up", "--checkpoint", "/nonexistent"], 1, "/nonexistent")]:
        got, out, err = up.command(*arguments)
        assert got == code and word in err, (arguments, got, out, err)


def check_status(up, tiles):
    code, out, err = up.command("status", "--url", up.url)
    assert code == 0 and "%d of %d tiles covered" % (tiles, tiles) in out, (out, err)
    code, out, _ = up.command("status", "--url", up.url, "--json")
    assert code == 0 and json.loads(out)["ready"] is True


def check_second_up(up, checkpoint):
    code, _, err = up.command("up", "--run-dir", up.run_dir, "--checkpoint", checkpoint)
    assert code == 1 and "another pipeline runs there" in err, (code, err)


def check_restart(up, expected):
    for name in sorted(up.pids()):
        old = up.pids()[name]
        os.kill(old, signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while up.pids().get(name, old) == old:
            assert time.monotonic() < end, "%s was not started again" % name
            time.sleep(0.05)
        while True:
            code, out, _ = up.command("run", "--url", up.url, "--ids", PROMPT, "--max-tokens",
                                      "6", "--json")
            if code == 0:
                break
            assert code == 3 and time.monotonic() < end, (name, code, out)
        assert json.loads(out)["logits_digest"] == expected["logits_digest"], name


def check_interrupt(up):
    child = subprocess.Popen([up.kapok, "run", "--url", up.url, "--ids", PROMPT, "--max-tokens",
                              "60000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.read(10)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130 and b"interrupted" in err, (child.returncode, err)
    end = time.monotonic() + PATIENCE
    while json.loads(up.command("status", "--url", up.url, "--json")[1])["requests"]["running"]:
        assert time.monotonic() < end, "the generation goes on"
        time.sleep(0.1)


def main(build):
    folder = checkpoints.own_checkpoint(build)
    up = Up(build, ["--checkpoint", folder, "--expertds", "2", "--stages", "2", "--threads", "1"])
    answer = check_run(up)
    check_usage_errors(up)
    check_status(up, checkpoints.tiles(folder))
    check_second_up(up, folder)
    check_interrupt(up)
    check_restart(up, answer)
    assert up.stop() == 0
    up = Up(build, ["--checkpoint", folder, "--expertds", "3", "--isa", "c"])
    assert up.run()["logits_digest"] == answer["logits_digest"]
    assert up.stop(signal.SIGTERM) == 0
    print("kapok up, run and status do what scripts rely on")


if __name__ == "__main__":
    main(sys.argv[1])
