#!/usr/bin/env python3
"""Kimi K3's text model in float64, one token after the other: what the programs are compared with.

    reference.py CHECKPOINT --ids 3,7,11 [--generate 8] [--logits FILE.npy]

Prints the greedy continuation as `generated 410,132,...`; --logits saves the logits of every
position, [positions][vocab] float64. It is slow, holds everything in memory, and shares nothing
with the programs: attention keeps every key and value of every head (no absorbed form), sums
run as numpy likes, experts are decoded to matrices. The formulas are those of docs/numerics.md
and of the technical report, arXiv 2607.24653.
"""
import argparse
import collections
import functools
import glob
import json
import math
import os
import struct

import numpy as np

FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
FP4 = np.array(FP4 + [-v for v in FP4])


class Tensors:
    """All tensors of a folder of shards, as float64."""

    def __init__(self, folder):
        self.entries = {}
        for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
            data = np.memmap(path, np.uint8, "r")
            (length,) = struct.unpack("<Q", data[:8].tobytes())
            for name, e in json.loads(data[8:8 + length].tobytes()).items():
                if name != "__metadata__":
                    begin, end = e["data_offsets"]
                    self.entries[name] = (data[8 + length + begin:8 + length + end], e)

    def bytes_of(self, name):
        data, e = self.entries[name]
        assert e["dtype"] == "U8", name
        return np.array(data).reshape(e["shape"])

    @functools.lru_cache(None)
    def __getitem__(self, name):
        data, e = self.entries[name]
        if e["dtype"] == "BF16":
            wide = np.zeros((len(data) // 2, 4), np.uint8)
            wide[:, 2:] = np.array(data).reshape(-1, 2)  # a bf16 is the upper half of a float
            data = wide.reshape(-1)
        else:
            assert e["dtype"] == "F32", name
        return np.frombuffer(data.tobytes(), "<f4").astype(float).reshape(e["shape"])

    @functools.lru_cache(None)
    def expert(self, name):
        codes, scales = self.bytes_of(name + ".weight_packed"), self.bytes_of(name + ".weight_scale")
        both = np.stack([codes & 15, codes >> 4], axis=2)
        values = FP4[both].reshape(*scales.shape, 32) * 2.0 ** (scales[:, :, None] - 127.0)
        return values.reshape(len(scales), -1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=0):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


class Reference:
    """`step` takes the next token and gives its logits; the state is that of one sequence."""

    def __init__(self, folder):
        self.t = Tensors(folder)
        with open(os.path.join(folder, "config.json")) as f:
            self.c = json.load(f)["text_config"]
        self.linear = self.c["linear_attn_config"]
        self.past = collections.defaultdict(list)  # layer -> what its attention remembers
        self.kda_state = {}

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.c["rms_norm_eps"]) * self.t[name]

    def mix(self, sources, name):
        """Attention residual: the raw sources, weighted by how their direction meets a query."""
        sources = np.array(sources)
        query = self.t[name + "_proj.weight"][0]
        return softmax(self.norm(sources, name + "_norm.weight") @ query) @ sources

    def gated(self, gate, up):
        a, b = self.c["activation_situ_beta"], self.c["activation_situ_linear_beta"]
        return a * np.tanh(gate / a) * sigmoid(gate) * (b * np.tanh(up / b))

    def mlp(self, x, at):
        gate, up = self.t[at + "gate_proj.weight"] @ x, self.t[at + "up_proj.weight"] @ x
        return self.t[at + "down_proj.weight"] @ self.gated(gate, up)

    def moe(self, x, at):
        t, c = self.t, self.c
        score = sigmoid(t[at + "gate.weight"] @ x)
        order = np.argsort(-(score + t[at + "gate.e_score_correction_bias"]), kind="stable")
        chosen = order[:c["num_experts_per_token"]]
        weight = score[chosen] / (score[chosen].sum() + 1e-20) * c["routed_scaling_factor"]
        z = t[at + "routed_expert_down_proj.weight"] @ x
        total = np.zeros(c["routed_expert_hidden_size"])
        for e, w in zip(chosen, weight):
            w1, w2, w3 = (t.expert("%sexperts.%d.%s" % (at, e, n)) for n in ("w1", "w2", "w3"))
            total += w * (w2 @ self.gated(w1 @ z, w3 @ z))
        routed = self.norm(total, at + "routed_expert_norm.weight")
        return t[at + "routed_expert_up_proj.weight"] @ routed + self.mlp(x, at + "shared_experts.")

    def kda(self, x, at, layer):
        t, heads, dim = self.t, self.linear["num_heads"], self.linear["head_dim"]
        taps = self.linear["short_conv_kernel_size"]
        projected = np.array([t[at + n + "_proj.weight"] @ x for n in "qkv"])
        history = self.past[layer]
        history.append(projected)
        kernels = np.array([t[at + n + "_conv1d.weight"][:, 0] for n in "qkv"])
        y = sum(kernels[:, :, taps - 1 - ago] * u for ago, u in enumerate(history[:-taps - 1:-1]))
        q, k, v = (y * sigmoid(y)).reshape(3, heads, dim)
        q = q / np.sqrt((q * q).sum(1, keepdims=True) + 1e-6) / math.sqrt(dim)
        k = k / np.sqrt((k * k).sum(1, keepdims=True) + 1e-6)
        z = t[at + "f_b_proj.weight"] @ (t[at + "f_a_proj.weight"] @ x) + t[at + "dt_bias"]
        rate = np.exp(t[at + "A_log"][:heads, None])
        keep = np.exp(self.linear["gate_lower_bound"] * sigmoid(rate * z.reshape(heads, dim)))
        beta = sigmoid(t[at + "b_proj.weight"] @ x)
        state = self.kda_state.setdefault(layer, np.zeros((heads, dim, dim)))
        out = np.zeros((heads, dim))
        for h in range(heads):
            state[h] *= keep[h][:, None]
            state[h] += np.outer(k[h], beta[h] * (v[h] - k[h] @ state[h]))
            out[h] = q[h] @ state[h]
        out = self.norm(out, at + "o_norm.weight").ravel() * sigmoid(t[at + "g_proj.weight"] @ x)
        return t[at + "o_proj.weight"] @ out

    def mla(self, x, at, layer):
        t, c, heads = self.t, self.c, self.c["num_attention_heads"]
        nope, rank = c["qk_nope_head_dim"], c["kv_lora_rank"]
        q = self.norm(t[at + "q_a_proj.weight"] @ x, at + "q_a_layernorm.weight")
        q = (t[at + "q_b_proj.weight"] @ q).reshape(heads, -1)
        both = t[at + "kv_a_proj_with_mqa.weight"] @ x
        latent = self.norm(both[:rank], at + "kv_a_layernorm.weight")
        kv = (t[at + "kv_b_proj.weight"] @ latent).reshape(heads, -1)
        shared = np.tile(both[rank:], (heads, 1))
        self.past[layer].append((np.hstack([kv[:, :nope], shared]), kv[:, nope:]))
        keys, values = (np.array(a) for a in zip(*self.past[layer]))
        score = np.einsum("hd,shd->sh", q, keys) / math.sqrt(q.shape[1])
        out = np.einsum("sh,shv->hv", softmax(score), values).ravel()
        return t[at + "o_proj.weight"] @ (out * sigmoid(t[at + "g_proj.weight"] @ x))

    def step(self, token):
        t, c, top = self.t, self.c, "language_model.model."
        total, snapshots = t[top + "embed_tokens.weight"][token], []
        for n in range(c["num_hidden_layers"]):
            at = top + "layers.%d." % n
            x = self.mix(snapshots + [total], at + "self_attention_res") if snapshots else total
            x = self.norm(x, at + "input_layernorm.weight")
            full = n + 1 in self.linear["full_attn_layers"]
            attended = (self.mla if full else self.kda)(x, at + "self_attn.", n)
            if n % c["attn_res_block_size"] == 0:
                snapshots.append(total)
                total = attended
            else:
                total = total + attended
            x = self.mix(snapshots + [total], at + "mlp_res")
            x = self.norm(x, at + "post_attention_layernorm.weight")
            dense = n < c["first_k_dense_replace"]
            total = total + (self.mlp(x, at + "mlp.") if dense
                             else self.moe(x, at + "block_sparse_moe."))
        x = self.mix(snapshots + [total], top + "output_attn_res")
        return t["language_model.lm_head.weight"] @ self.norm(x, top + "norm.weight")


def greedy(folder, ids, count):
    """(the `count` ids that follow, the logits of every position that was run)"""
    model, generated, logits = Reference(folder), [], []
    for i in range(len(ids) + count):
        logits.append(model.step(ids[i] if i < len(ids) else generated[i - len(ids)]))
        if i >= len(ids) - 1 and len(generated) < count:
            generated.append(int(np.argmax(logits[-1])))
    return generated, np.array(logits)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("checkpoint")
    p.add_argument("--ids", required=True, help="the prompt's token ids, with commas")
    p.add_argument("--generate", type=int, default=0, help="how many ids to add")
    p.add_argument("--logits", help="a .npy file to write")
    a = p.parse_args()
    generated, logits = greedy(a.checkpoint, [int(i) for i in a.ids.split(",")], a.generate)
    print("generated " + ",".join(map(str, generated)))
    if a.logits:
        np.save(a.logits, logits)


if __name__ == "__main__":
    main()
