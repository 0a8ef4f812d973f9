"""`kapok up` with programs that only listen: order, ports kept over restarts, logs and pid files,
what is refused, how everything ends.

usage: supervision_test.py KAPOK
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

KAPOK = None
HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 60
CONFIG = {"eos_token_id": 9, "text_config": {
    "model_type": "kimi_linear", "hidden_size": 128, "num_hidden_layers": 7, "vocab_size": 512,
    "max_position_embeddings": 4096, "first_k_dense_replace": 1, "intermediate_size": 256,
    "num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 48, "kv_lora_rank": 32,
    "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32, "mla_use_nope": True,
    "mla_use_output_gate": True, "rms_norm_eps": 1e-5, "hidden_act": "situ",
    "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0, "attn_res_block_size": 3,
    "num_experts": 32, "num_experts_per_token": 4, "moe_intermediate_size": 384,
    "num_shared_experts": 2, "routed_expert_hidden_size": 64, "latent_moe_use_norm": True,
    "moe_router_activation_func": "sigmoid", "moe_renormalize": True, "moe_layer_freq": 1,
    "routed_scaling_factor": 1.0, "num_expert_group": 1, "topk_group": 1,
    "topk_method": "noaux_tc", "num_nextn_predict_layers": 0, "tie_word_embeddings": False,
    "linear_attn_config": {
        "num_heads": 4, "head_dim": 32, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0,
        "use_full_rank_gate": True, "full_attn_layers": [4, 7], "kda_layers": [1, 2, 3, 5, 6]},
    "quantization_config": {
        "quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized",
        "config_groups": {"group_0": {"weights": {
            "num_bits": 4, "type": "float", "strategy": "group", "group_size": 32,
            "symmetric": True}}}}}}


def wait_until(what):
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            raise AssertionError("it did not come about")
        time.sleep(0.02)


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Supervision(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kapok-test-")
        self.run_dir = os.path.join(self.folder, "run")
        self.kapok = os.path.join(self.folder, "kapok")
        shutil.copy(KAPOK, self.kapok)
        for program in ("kapok-expertd", "kapok-trunk", "kapok-coordinator"):
            shutil.copy(os.path.join(HERE, "fake_program.py"), os.path.join(self.folder, program))
            os.chmod(os.path.join(self.folder, program), 0o755)
        with open(os.path.join(self.folder, "config.json"), "w") as f:
            json.dump(CONFIG, f)
        self.children = []

    def tearDown(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
            child.stdout.close()
        shutil.rmtree(self.folder)

    def command(self, *more):
        return [self.kapok, "up", "--checkpoint", self.folder, "--run-dir", self.run_dir,
                "--listen", "127.0.0.1:0"] + list(more)

    def up(self, *more):
        with open(os.path.join(self.folder, "up.log"), "w") as log:
            child = subprocess.Popen(self.command(*more), stdout=subprocess.PIPE, stderr=log)
        self.children.append(child)
        return child

    def ready(self, *more):
        child = self.up(*more)
        line = child.stdout.readline().decode()
        self.assertRegex(line, r"^ready http://127\.0\.0\.1:\d+\n$", self.log())
        return child, line.split()[1]

    def refused(self, *more):
        done = subprocess.run(self.command(*more), capture_output=True, timeout=PATIENCE)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def touch(self, name):
        open(os.path.join(self.folder, name), "w").close()

    def log(self):
        with open(os.path.join(self.folder, "up.log")) as f:
            return f.read()

    def calls(self, program):
        with open(os.path.join(self.folder, "kapok-%s.calls" % program)) as f:
            return [json.loads(line) for line in f]

    def pid(self, name):
        try:
            with open(os.path.join(self.run_dir, name + ".pid")) as f:
                return int(f.read())
        except (FileNotFoundError, ValueError):
            return 0

    def pids(self, names=("expertd0", "expertd1", "trunk0", "trunk1", "coordinator")):
        return [self.pid(n) for n in names]

    def test_everything_is_started_and_stopped(self):
        for with_signal in (signal.SIGINT, signal.SIGTERM):
            child, url = self.ready("--expertds", "2", "--stages", "2")
            pids = self.pids()
            self.assertTrue(all(map(alive, pids)))
            with open(os.path.join(self.run_dir, "url")) as f:
                self.assertEqual(f.read(), url + "\n")
            self.assertEqual(urllib.request.urlopen(url + "/ready").status, 200)
            secret = os.stat(os.path.join(self.run_dir, "secret"))
            self.assertEqual((secret.st_mode & 0o7777, secret.st_size), (0o600, 32))
            child.send_signal(with_signal)
            self.assertEqual(child.wait(PATIENCE), 0, self.log())
            self.assertFalse(any(map(alive, pids)))
            left = sorted(os.listdir(self.run_dir))
            self.assertEqual([n for n in left if n.endswith(".pid") or n == "url"], [])
            for name in ("expertd1", "trunk0", "coordinator"):
                self.assertRegex(self.log(), r"memory of %s\n  ring of kapok-%s +4096 bytes" % (
                    name, name.rstrip("01")))
            self.assertNotIn("options", self.log())

    def test_each_is_told_where_the_others_are(self):
        self.ready("--expertds", "2", "--stages", "2", "--threads", "1", "--isa", "c")
        expertds, trunks = (sorted(self.calls(p), key=lambda c: int(
            c[c.index(f) + 1].split("-")[0])) for p, f in (("expertd", "--bands"),
                                                           ("trunk", "--layers")))
        coordinator = self.calls("coordinator")[0]
        self.assertEqual([c[c.index("--bands") + 1] for c in expertds], ["0-5", "6-11"])
        self.assertEqual([c[c.index("--layers") + 1] for c in trunks], ["0-2", "3-6"])
        peers = [v for f, v in zip(trunks[1], trunks[1][1:]) if f == "--expertd"]
        self.assertEqual(len(set(peers)), 2)
        stages = [v for f, v in zip(coordinator, coordinator[1:]) if f == "--trunk"]
        self.assertEqual(len(set(stages)), 2)
        for address in peers + stages:
            self.assertRegex(address, r"^tcp://127\.0\.0\.1:[1-9]\d*$")
        for call in expertds + trunks:
            self.assertEqual(call[call.index("--isa") + 1], "c")
            self.assertEqual(call[call.index("--secret") + 1], self.run_dir + "/secret")

    def test_what_dies_comes_back_where_it_was(self):
        child, url = self.ready("--expertds", "2", "--stages", "1")
        for name, program in (("expertd1", "expertd"), ("trunk0", "trunk"),
                              ("coordinator", "coordinator")):
            pid, before = self.pid(name), len(self.calls(program))
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: self.pid(name) not in (0, pid) and
                       len(self.calls(program)) > before)
            again = self.calls(program)[-1]
            self.assertRegex(again[1], r":[1-9]\d*$")
        self.assertEqual(self.calls("coordinator")[-1][1], url[len("http://"):])
        wait_until(lambda: self.log().count("listening name=") == 7)
        self.assertIn("a process died, it is started again name=expertd1", self.log())
        self.assertIn("Killed", self.log())
        self.assertIsNone(child.poll())

    def test_one_that_keeps_dying_is_tried_again_and_again(self):
        child, _ = self.ready("--expertds", "1", "--stages", "1")
        self.touch("kapok-trunk.fails")
        os.kill(self.pid("trunk0"), signal.SIGKILL)
        wait_until(lambda: len(self.calls("trunk")) >= 4)
        self.assertIsNone(child.poll())
        os.unlink(os.path.join(self.folder, "kapok-trunk.fails"))
        wait_until(lambda: self.log().count("listening name=trunk0") == 2)
        self.assertIn("exit code 1", self.log())

    def test_one_that_cannot_start_ends_it_with_its_own_words(self):
        self.touch("kapok-trunk.fails")
        code, out, err = self.refused("--expertds", "2")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("name=trunk0", err)
        self.assertIn("the memory budget is too small", err)

    def test_ready_is_said_only_when_it_is(self):
        self.touch("unready")
        child = self.up()
        wait_until(lambda: "listening name=coordinator" in self.log())
        time.sleep(0.2)
        self.assertFalse(os.path.exists(os.path.join(self.run_dir, "url")))
        os.unlink(os.path.join(self.folder, "unready"))
        self.assertTrue(child.stdout.readline().startswith(b"ready http://"))

    def test_a_second_one_is_refused(self):
        _, url = self.ready()
        code, out, err = self.refused()
        self.assertEqual((code, out), (1, ""))
        self.assertIn("another pipeline runs there", err)
        with open(os.path.join(self.run_dir, "url")) as f:
            self.assertEqual(f.read(), url + "\n")

    def test_children_end_with_a_killed_parent(self):
        child, _ = self.ready("--expertds", "2", "--stages", "2")
        pids = self.pids()
        child.kill()
        child.wait()
        wait_until(lambda: not any(map(alive, pids)))
        self.ready()  # and what it left is no obstacle

    def test_bad_options(self):
        for more, sentence in ((("--expertds", "13"), "expected 1 to 12"),
                               (("--stages", "8"), "expected 1 to 7"),
                               (("--listen", "nowhere"), "listen"),
                               (("--log", "loud"), "expected debug"),
                               (("--memory", "lots"), "memory"),
                               (("--checkpoint", "/nonexistent"), "/nonexistent/config.json"),
                               (("--run-dir", "/nonexistent/x"), "/nonexistent/x")):
            code, out, err = self.refused(*more)
            self.assertIn(code, (1, 2), more)
            self.assertEqual(out, "", more)
            self.assertIn(sentence, err)
        done = subprocess.run([self.kapok, "up"], capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--checkpoint DIR is missing", done.stderr)

    def test_a_dry_run_starts_nothing(self):
        code, out, err = self.refused("--expertds", "3", "--stages", "2", "--dry-run")
        self.assertEqual((code, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual([os.path.basename(line.split()[0]) for line in lines],
                         ["kapok-expertd"] * 3 + ["kapok-trunk"] * 2 + ["kapok-coordinator"])
        self.assertIn("--bands 4-7", lines[1])
        self.assertFalse(os.path.exists(self.run_dir))

    def test_a_missing_program_is_named(self):
        os.unlink(os.path.join(self.folder, "kapok-trunk"))
        code, _, err = self.refused()
        self.assertEqual(code, 1)
        self.assertIn("kapok-trunk: cannot be started", err)


if __name__ == "__main__":
    KAPOK = sys.argv.pop(1)
    unittest.main()
