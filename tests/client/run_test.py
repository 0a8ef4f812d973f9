"""`kapok run`, `status` and `version` against a coordinator that says what it is told to: what is
asked, what is printed where, and every exit code.

usage: run_test.py KAPOK
"""
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import fakes

KAPOK = None
PATIENCE = 60


def kapok(*arguments):
    done = subprocess.run([KAPOK] + list(arguments), capture_output=True, timeout=PATIENCE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Run(unittest.TestCase):
    def ask(self, fake, *arguments):
        return kapok("run", "--url", fake.url, *arguments)

    def test_text_is_streamed_to_stdout(self):
        with fakes.Fake() as f:
            self.assertEqual(self.ask(f, "The capital"), (0, "Ab\n", ""))
            path, body, _ = f.asked[0]
            self.assertEqual(path, "/v1/completions")
            self.assertEqual(body["prompt"], "The capital")
            self.assertEqual((body["max_tokens"], body["temperature"], body["seed"]), (32, 0, 0))
            self.assertTrue(body["stream"])
            self.assertEqual(body["model"], "kimi-k3")

    def test_a_model_may_be_named(self):
        with fakes.Fake() as f:
            self.ask(f, "x", "--model", "other")
            self.assertEqual(f.asked[0][1]["model"], "other")

    def test_a_server_without_a_model(self):
        with fakes.Fake() as f:
            for text in ["", "{}", '{"data": []}', '{"data": [{"id": 7}]}', "nonsense"]:
                f.answers["/v1/models"] = (200, text)
                code, out, err = self.ask(f, "x")
                self.assertEqual((code, out), (1, ""))
                self.assertIn("names no model", err)
            f.answers["/v1/models"] = (401, '{"error": {"message": "no key"}}')
            self.assertEqual(self.ask(f, "x"), (1, "", "kapok run: HTTP 401: no key\n"))

    def test_text_comes_before_the_stream_ends(self):
        def slowly(body):
            pieces = list(fakes.completion(["A", "b"], [5, 6]))
            yield pieces[0] + pieces[1]
            while not told:
                time.sleep(0.01)
            yield "".join(pieces[2:])
        told = []
        with fakes.Fake(slowly) as f:
            child = subprocess.Popen([KAPOK, "run", "--url", f.url, "x"], stdout=subprocess.PIPE)
            self.assertEqual(child.stdout.read(1), b"A")
            told.append(True)
            self.assertEqual(child.communicate(timeout=PATIENCE)[0], b"b\n")
            self.assertEqual(child.returncode, 0)

    def test_ids_in_ids_out(self):
        with fakes.Fake(lambda body: fakes.completion(["", ""], [5, 6])) as f:
            self.assertEqual(self.ask(f, "--ids", "3,7,11"), (0, "5,6\n", ""))
            self.assertEqual(f.asked[0][1]["prompt"], [3, 7, 11])

    def test_flags_reach_the_request(self):
        with fakes.Fake() as f:
            self.ask(f, "x", "--max-tokens", "7", "--temperature", "0.5", "--seed", "42")
            body = f.asked[0][1]
            self.assertEqual((body["max_tokens"], body["temperature"], body["seed"]), (7, 0.5, 42))

    def test_json_is_one_object(self):
        with fakes.Fake() as f:
            code, out, err = self.ask(f, "x", "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(out), {
            "token_ids": [5, 6], "text": "Ab", "logits_digest": fakes.DIGEST,
            "finish_reason": "length",
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "cached_tokens": 1},
            "bytes_read": {"trunk": 4096, "experts": 8192},
            "seconds": {"queue": 0.5, "prefill": 1.5, "decode": 2.5}})

    def test_without_a_tokenizer_text_is_null(self):
        with fakes.Fake(lambda body: fakes.completion(["", ""], [5, 6])) as f:
            answer = json.loads(self.ask(f, "--ids", "3", "--json")[1])
        self.assertIsNone(answer["text"])
        self.assertEqual(answer["token_ids"], [5, 6])

    def test_a_refusal_is_told(self):
        with fakes.Fake() as f:
            f.refusal = (400, '{"error": {"message": "prompt is too long: 9 of 8"}}')
            self.assertEqual(self.ask(f, "x"),
                             (1, "", "kapok run: HTTP 400: prompt is too long: 9 of 8\n"))
            f.refusal = (502, "bad gateway")
            self.assertEqual(self.ask(f, "x"), (1, "", "kapok run: HTTP 502: bad gateway\n"))

    def test_an_error_within_the_stream(self):
        def failing(body):
            yield fakes.chunk("A", kapok={"token_ids": [5]})
            yield fakes.event({"error": {"message": "a disk failed"}})
            yield "data: [DONE]\n\n"
        with fakes.Fake(failing) as f:
            code, out, err = self.ask(f, "x")
        self.assertEqual((code, err), (1, "kapok run: a disk failed\n"))

    def test_a_stream_that_breaks_off(self):
        for text in ["", fakes.chunk("A", kapok={"token_ids": [5]}), "data: {nonsense\n\n"]:
            with fakes.Fake(lambda body: [text]) as f:
                code, _, err = self.ask(f, "x")
            self.assertEqual(code, 1)
            self.assertTrue(err.startswith("kapok run: "), err)

    def test_nobody_there(self):
        code, out, err = kapok("run", "--url", "http://127.0.0.1:1", "x")
        self.assertEqual((code, out), (3, ""))
        self.assertIn("http://127.0.0.1:1", err)

    def test_usage_errors(self):
        for arguments in [[], ["x", "--ids", "3"], ["a", "b"], ["--ids", ""], ["--ids", "3,"],
                          ["--ids", "3,x"], ["--ids", "-3"], ["--ids", "3 4"], ["--unknown"],
                          ["x", "--max-tokens", "0"], ["x", "--temperature", "hot"],
                          ["x", "--url", "ftp://x"]]:
            code, out, err = kapok("run", *arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn("kapok run", err)

    def test_interrupted(self):
        def for_ever(body):
            yield fakes.chunk("A", kapok={"token_ids": [5]})
            while True:
                time.sleep(0.05)
                yield ": waiting\n\n"
        for with_signal in (signal.SIGINT, signal.SIGTERM):
            with fakes.Fake(for_ever) as f:
                child = subprocess.Popen([KAPOK, "run", "--url", f.url, "x"],
                                         stdout=subprocess.PIPE)
                child.stdout.read(1)
                child.send_signal(with_signal)
                self.assertEqual(child.wait(PATIENCE), 130)
                child.stdout.close()
                self.assertTrue(f.left.wait(PATIENCE), "the request was not ended")

    def test_a_terminal_gets_figures_a_pipe_gets_none(self):
        with fakes.Fake() as f:
            ours, theirs = pty.openpty()
            child = subprocess.Popen([KAPOK, "run", "--url", f.url, "x"],
                                     stdout=subprocess.PIPE, stderr=theirs)
            os.close(theirs)
            self.assertEqual(child.communicate(timeout=PATIENCE)[0], b"Ab\n")
            told = os.read(ours, 4096).decode()
            os.close(ours)
        self.assertIn("2 tokens", told)
        self.assertIn("4.1 kB dense, 8.2 kB experts", told)

    def test_the_key_is_shown(self):
        with fakes.Fake() as f, tempfile.NamedTemporaryFile("w") as key:
            key.write("s3cret\n")
            key.flush()
            self.assertEqual(self.ask(f, "x", "--api-key-file", key.name)[0], 0)
            self.assertEqual(f.asked[0][2]["Authorization"], "Bearer s3cret")
            self.assertEqual(self.ask(f, "x", "--api-key-file", "/nonexistent")[0], 2)

    def test_the_run_directory_names_the_url(self):
        with fakes.Fake() as f, tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "url"), "w") as url:
                url.write(f.url + "\n")
            self.assertEqual(kapok("run", "--run-dir", folder, "x"), (0, "Ab\n", ""))


STATUS = {
    "ready": False, "missing": "nobody holds band 3", "model": "kimi-k3", "layers": 93,
    "tiles": {"model": 989184, "needed": 989184, "covered": 494592},
    "requests": {"running": 1, "waiting": 2, "finished": 3, "cancelled": 4, "failed": 5,
                 "prompt_tokens": 66, "generated_tokens": 77},
    "stages": [{
        "address": "tcp://127.0.0.1:7001", "link": {"state": "up", "reason": ""},
        "serves": {"layer_first": 0, "layer_end": 93, "tiles_needed": 989184,
                   "tiles_covered": 494592, "missing": "nobody holds band 3"},
        "stats": {"now": "step 81, layer 37 of 93",
                  "areas": [{"name": "ring", "bytes": 268435456}],
                  "peers": [{"address": "tcp://127.0.0.1:7101", "state": "silent",
                             "reason": "the connection broke", "tiles": 494592,
                             "bytes_sent": 1500, "bytes_received": 2500000,
                             "straggler_seconds": 1.5}]}}],
}


class Status(unittest.TestCase):
    def test_tables(self):
        with fakes.Fake() as f:
            f.answers["/v1/kapok/status"] = (200, json.dumps(STATUS))
            code, out, err = kapok("status", "--url", f.url)
        self.assertEqual((code, err), (0, ""))
        for words in ["kimi-k3: not ready (nobody holds band 3)", "494592 of 989184 tiles",
                      "tcp://127.0.0.1:7001", "layers 0-92", "step 81, layer 37 of 93",
                      "tcp://127.0.0.1:7101", "silent", "the connection broke", "ring", "268 MB",
                      "1 running, 2 waiting"]:
            self.assertIn(words, out)

    def test_json_is_what_the_coordinator_said(self):
        with fakes.Fake() as f:
            f.answers["/v1/kapok/status"] = (200, json.dumps(STATUS))
            code, out, _ = kapok("status", "--url", f.url + "/", "--json")
        self.assertEqual((code, json.loads(out)), (0, STATUS))

    def test_what_does_not_fit_is_left_out(self):
        for text in ["{}", '{"stages": 7}', '{"stages": [7, null, {}, {"stats": [1]}]}',
                     '{"tiles": "many", "requests": [], "model": 5}']:
            with fakes.Fake() as f:
                f.answers["/v1/kapok/status"] = (200, text)
                self.assertEqual(kapok("status", "--url", f.url)[0], 0, text)

    def test_strangers(self):
        with fakes.Fake() as f:
            self.assertEqual(kapok("status", "--url", f.url)[0], 1)  # 404
            for text in ["", "hello", "[1]", "{"]:
                f.answers["/v1/kapok/status"] = (200, text)
                code, _, err = kapok("status", "--url", f.url)
                self.assertEqual(code, 1, text)
                self.assertIn("does not answer like a coordinator", err)
        self.assertEqual(kapok("status", "--url", "http://127.0.0.1:1")[0], 3)


class Command(unittest.TestCase):
    def test_version(self):
        self.assertRegex(kapok("version")[1], r"^kapok \d+\.\d+\.\d+\n$")
        self.assertEqual(kapok("--version"), kapok("version"))

    def test_help(self):
        code, out, err = kapok("--help")
        self.assertEqual((code, err), (0, ""))
        for command in ["up", "run", "status", "version"]:
            self.assertIn(command, out)
            self.assertEqual(kapok(command, "--help")[0], 0)

    def test_unknown_commands(self):
        self.assertEqual(kapok()[0], 2)
        code, _, err = kapok("dance")
        self.assertEqual(code, 2)
        self.assertIn("'dance'", err)


if __name__ == "__main__":
    KAPOK = sys.argv.pop(1)
    unittest.main()
