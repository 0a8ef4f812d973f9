#!/usr/bin/env python3
"""Writes a random checkpoint that is laid out like the Kimi K3 release.

    make_checkpoint.py FOLDER [--shape tiny] [--seed 1] [--layers N] [--experts N] [--vocab N]
                       [--vocabulary] [--no-vision]

Names, dtypes, shard names, the order inside a shard and config.json are those of the release,
so that the programs cannot tell one from the other; only the sizes and the numbers differ. The
sizes are chosen to be awkward: no width is a power of two, hidden is no multiple of 32, the two
kinds of attention have different numbers of heads, A_log has padding, the last two layers are
both MLA. Every tensor draws from a generator of its own, keyed by seed and name, so that adding
layers or experts leaves the others as they were.

--vocabulary adds a toy tokenizer (vocabulary.py), so that text prompts work.
"""
import argparse
import json
import math
import os
import struct
import sys
import zlib

import numpy as np

import vocabulary

SHAPES = {
    "tiny": {
        "hidden": 176, "layers": 9, "vocab": 900, "dense": 272, "residual_block": 3,
        "heads": 3, "q_rank": 72, "kv_rank": 48, "nope": 40, "pe": 24, "v": 28,
        "kda_heads": 5, "kda_dim": 24, "taps": 4,
        "experts": 14, "chosen": 3, "latent": 96, "width": 384, "shared": 2,
    },
}
GROUP = 32  # elements that share one scale
SPECIALS = 256  # ids at the end of the vocabulary that are no text
MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)  # of the eight FP4 codes
BYTES = {"F32": 4, "BF16": 2, "U8": 1}


# ---- what the numbers look like ------------------------------------------------------------
# Each takes a generator and a shape and gives float32. Matrices keep the size of what they are
# applied to; gains and biases vary enough that forgetting one shows in the tokens.

def spread(deviation, middle=0.0):
    def draw(rng, shape):
        return (middle + deviation * rng.standard_normal(shape)).astype(np.float32)
    return draw


def matrix(strength=1.0):
    def draw(rng, shape):
        return spread(strength / math.sqrt(shape[-1]))(rng, shape)
    return draw


def decay(heads):
    """One value a head, zeros up to the head's width, as released."""
    def draw(rng, shape):
        values = np.zeros(shape, np.float32)
        values[:heads] = rng.uniform(-0.5, 1.3, heads)
        return values
    return draw


GAIN = spread(0.2, middle=1.0)


# ---- which tensors there are ---------------------------------------------------------------
# name -> (dtype, shape, draw). An expert's matrix is drawn once; its U8 pair is two entries.

class Inventory(dict):
    def add(self, name, shape, draw, dtype="BF16"):
        self[name] = (dtype, shape, draw)

    def add_packed(self, name, rows, columns):
        self.add(name + ".weight_packed", (rows, columns // 2), packed_codes, "U8")
        self.add(name + ".weight_scale", (rows, columns // GROUP), packed_scales, "U8")


def is_mla(s, layer):
    return layer % 4 == 3 or layer == s["layers"] - 1


def add_kda(t, at, s):
    hidden, dim, wide = s["hidden"], s["kda_dim"], s["kda_heads"] * s["kda_dim"]
    for n in "qkv":
        t.add(at + n + "_proj.weight", (wide, hidden), matrix())
        t.add(at + n + "_conv1d.weight", (wide, 1, s["taps"]), spread(0.45), "F32")
    t.add(at + "A_log", (dim,), decay(s["kda_heads"]), "F32")
    t.add(at + "dt_bias", (wide,), spread(0.6), "F32")
    t.add(at + "f_a_proj.weight", (dim, hidden), matrix())
    t.add(at + "f_b_proj.weight", (wide, dim), matrix())
    t.add(at + "b_proj.weight", (s["kda_heads"], hidden), matrix())
    t.add(at + "o_norm.weight", (dim,), GAIN, "F32")
    t.add(at + "g_proj.weight", (wide, hidden), matrix())
    t.add(at + "o_proj.weight", (hidden, wide), matrix())


def add_mla(t, at, s):
    hidden, heads, wide = s["hidden"], s["heads"], s["heads"] * s["v"]
    t.add(at + "q_a_proj.weight", (s["q_rank"], hidden), matrix())
    t.add(at + "q_a_layernorm.weight", (s["q_rank"],), GAIN)
    t.add(at + "q_b_proj.weight", (heads * (s["nope"] + s["pe"]), s["q_rank"]), matrix(1.5))
    t.add(at + "kv_a_proj_with_mqa.weight", (s["kv_rank"] + s["pe"], hidden), matrix())
    t.add(at + "kv_a_layernorm.weight", (s["kv_rank"],), GAIN)
    t.add(at + "kv_b_proj.weight", (heads * (s["nope"] + s["v"]), s["kv_rank"]), matrix())
    t.add(at + "g_proj.weight", (wide, hidden), matrix())
    t.add(at + "o_proj.weight", (hidden, wide), matrix())


def add_gated(t, at, hidden, width):
    for n, shape in (("gate", (width, hidden)), ("up", (width, hidden)), ("down", (hidden, width))):
        t.add(at + n + "_proj.weight", shape, matrix(1.4))


def add_moe(t, at, s):
    hidden, latent, width = s["hidden"], s["latent"], s["width"]
    t.add(at + "gate.weight", (s["experts"], hidden), matrix(1.8))
    t.add(at + "gate.e_score_correction_bias", (s["experts"],), spread(0.12), "F32")
    t.add(at + "routed_expert_down_proj.weight", (latent, hidden), matrix())
    t.add(at + "routed_expert_norm.weight", (latent,), GAIN)
    t.add(at + "routed_expert_up_proj.weight", (hidden, latent), matrix())
    add_gated(t, at + "shared_experts.", hidden, s["shared"] * width)
    for e in range(s["experts"]):
        t.add_packed(at + "experts.%d.w1" % e, width, latent)
        t.add_packed(at + "experts.%d.w2" % e, latent, width)
        t.add_packed(at + "experts.%d.w3" % e, width, latent)


def layer(s, number):
    t, at, hidden = Inventory(), "language_model.model.layers.%d." % number, s["hidden"]
    t.add(at + "input_layernorm.weight", (hidden,), GAIN)
    t.add(at + "post_attention_layernorm.weight", (hidden,), GAIN)
    for n in ("self_attention_res", "mlp_res"):
        t.add(at + n + "_norm.weight", (hidden,), GAIN)
        t.add(at + n + "_proj.weight", (1, hidden), matrix(2))
    (add_mla if is_mla(s, number) else add_kda)(t, at + "self_attn.", s)
    if number == 0:
        add_gated(t, at + "mlp.", hidden, s["dense"])
    else:
        add_moe(t, at + "block_sparse_moe.", s)
    return t


def ends(s):
    t, hidden = Inventory(), s["hidden"]
    t.add("language_model.model.embed_tokens.weight", (s["vocab"], hidden), spread(0.7))
    t.add("language_model.lm_head.weight", (s["vocab"], hidden), matrix(1.3))
    t.add("language_model.model.norm.weight", (hidden,), GAIN)
    t.add("language_model.model.output_attn_res_norm.weight", (hidden,), GAIN)
    t.add("language_model.model.output_attn_res_proj.weight", (1, hidden), matrix(2))
    return t


def projector(s):
    t, v = Inventory(), vision(s)
    joined = v["vt_hidden_size"] * v["merge_kernel_size"][0] * v["merge_kernel_size"][1]
    t.add("mm_projector.proj.0.weight", (joined, joined), matrix())
    t.add("mm_projector.proj.2.weight", (s["hidden"], joined), matrix())
    t.add("mm_projector.post_norm.weight", (s["hidden"],), GAIN)
    return t


def tower(s):
    t, v = Inventory(), vision(s)
    hidden, wide, inner = v["vt_hidden_size"], v["vt_intermediate_size"], v["qkv_hidden_size"]
    t.add("vision_tower.patch_embed.proj.weight", (hidden, 3, 14, 14), spread(0.04))
    t.add("vision_tower.patch_embed.pos_emb.weight", (4, 4, hidden), spread(0.1))
    t.add("vision_tower.encoder.final_layernorm.weight", (hidden,), GAIN)
    for b in range(v["vt_num_hidden_layers"]):
        at = "vision_tower.encoder.blocks.%d." % b
        t.add(at + "norm0.weight", (hidden,), GAIN)
        t.add(at + "norm1.weight", (hidden,), GAIN)
        t.add(at + "wqkv.weight", (3 * inner, hidden), matrix())
        t.add(at + "wo.weight", (hidden, inner), matrix())
        t.add(at + "mlp.fc0.weight", (wide, hidden), matrix())
        t.add(at + "mlp.fc1.weight", (hidden, wide), matrix())
    return t


# ---- from numbers to bytes -----------------------------------------------------------------

def to_bf16(values):
    """Nearest, ties to even."""
    bits = values.view(np.uint32)
    half = np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (bits + half >> np.uint32(16)).astype(np.uint16)


def quantised(rng, rows, columns):
    """An expert's matrix as (FP4 codes, scale bytes): the smallest scale under which the largest
    value of a group of 32 still fits, every value to the nearest magnitude."""
    groups = matrix(1.4)(rng, (rows, columns)).reshape(rows, -1, GROUP)
    exponent = np.ceil(np.log2(np.abs(groups).max(axis=2) / MAGNITUDES[-1]))
    scaled = groups / np.exp2(exponent)[:, :, None]
    borders = (MAGNITUDES[:-1] + MAGNITUDES[1:]) / 2
    codes = np.digitize(np.abs(scaled), borders) + 8 * (scaled < 0)
    return codes.reshape(rows, columns).astype(np.uint8), (exponent + 127).astype(np.uint8)


def packed_codes(rng, shape):
    codes, _ = quantised(rng, shape[0], shape[1] * 2)
    return codes[:, 0::2] + 16 * codes[:, 1::2]  # the even column is the low nibble


def packed_scales(rng, shape):
    return quantised(rng, shape[0], shape[1] * GROUP)[1]


def generator(seed, name):
    """The same for both tensors of an expert's matrix, which belong together."""
    for end in (".weight_packed", ".weight_scale"):
        name = name[:-len(end)] if name.endswith(end) else name
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))


def header_of(tensors):
    """(names in the order of their bytes, header text): F32, BF16, U8, by name in each."""
    names = sorted(tensors, key=lambda n: (-BYTES[tensors[n][0]], n))
    entries, at = {}, 0
    for n in names:
        dtype, shape, _ = tensors[n]
        end = at + BYTES[dtype] * math.prod(shape)
        entries[n] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    return names, text + b" " * (-len(text) % 8), at


def write_shard(path, tensors, seed):
    names, header, size = header_of(tensors)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)))
        f.write(header)
        for n in names:
            dtype, shape, draw = tensors[n]
            values = draw(generator(seed, n), shape)
            f.write((to_bf16(values) if dtype == "BF16" else values).tobytes())
    return size


# ---- the files beside the shards -----------------------------------------------------------

def vision(s):
    return {
        "_attn_implementation": "flash_attention_2", "activation_func": "gelu_pytorch_tanh",
        "attn_bias": False, "init_pos_emb_height": 4, "init_pos_emb_time": 4,
        "init_pos_emb_width": 4, "linear_bias": False, "merge_kernel_size": [2, 2],
        "merge_type": "sd2_tpool", "mlp_type": "mlp2", "mm_hidden_size": 24,
        "mm_projector_type": "patchmergerv2", "norm_type": "rmsnorm",
        "patch_embed_proj_bias": False, "patch_size": 14,
        "pos_emb_interpolation_mode": "bilinear", "pos_emb_type": "divided_fixed",
        "projector_hidden_act": "gelu", "projector_ln_eps": 1e-05, "qkv_hidden_size": 36,
        "text_hidden_size": s["hidden"], "vt_hidden_size": 24, "vt_intermediate_size": 40,
        "vt_num_attention_heads": 3, "vt_num_hidden_layers": 2,
    }


def quantisation():
    name = "mxfp4-pack-quantized"
    return {
        "config_groups": {"group_0": {
            "format": name, "input_activations": None, "output_activations": None,
            "targets": ["Linear"],
            "weights": {
                "actorder": None, "block_structure": None, "dynamic": False,
                "group_size": GROUP, "num_bits": 4, "observer": "minmax", "observer_kwargs": {},
                "scale_dtype": "torch.uint8", "strategy": "group", "symmetric": True,
                "type": "float", "zp_dtype": None}}},
        "format": name, "global_compression_ratio": None,
        "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*",
                   "re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "re:.*lm_head.*",
                   "re:.*vision_tower.*", "re:.*mm_projector.*"],
        "kv_cache_scheme": None, "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
    }


def linear_attention(s):
    full = [n + 1 for n in range(s["layers"]) if is_mla(s, n)]  # one-based, as released
    return {
        "full_attn_layers": full, "gate_lower_bound": -5.0, "head_dim": s["kda_dim"],
        "kda_layers": sorted(set(range(1, s["layers"] + 1)) - set(full)),
        "num_heads": s["kda_heads"], "short_conv_kernel_size": s["taps"],
        "use_full_rank_gate": True,
    }


def text_model(s):
    first_special = s["vocab"] - SPECIALS
    return {
        "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
        "architectures": ["KimiLinearForCausalLM"], "attn_res_block_size": s["residual_block"],
        "bos_token_id": first_special, "dtype": "bfloat16", "eos_token_id": first_special + 2,
        "first_k_dense_replace": 1, "hidden_act": "situ", "hidden_size": s["hidden"],
        "initializer_range": 0.02, "intermediate_size": s["dense"],
        "kv_lora_rank": s["kv_rank"], "latent_moe_use_norm": True,
        "linear_attn_config": linear_attention(s), "max_position_embeddings": 1048576,
        "mla_use_nope": True, "mla_use_output_gate": True, "model_type": "kimi_linear",
        "moe_intermediate_size": s["width"], "moe_layer_freq": 1, "moe_renormalize": True,
        "moe_router_activation_func": "sigmoid", "num_attention_heads": s["heads"],
        "num_expert_group": 1, "num_experts": s["experts"],
        "num_experts_per_token": s["chosen"], "num_hidden_layers": s["layers"],
        "num_key_value_heads": s["heads"], "num_nextn_predict_layers": 0,
        "num_shared_experts": s["shared"], "pad_token_id": s["vocab"] - 1,
        "q_lora_rank": s["q_rank"], "qk_nope_head_dim": s["nope"], "qk_rope_head_dim": s["pe"],
        "quantization_config": quantisation(), "rms_norm_eps": 1e-05,
        "routed_expert_hidden_size": s["latent"], "routed_scaling_factor": 1.0,
        "tie_word_embeddings": False, "topk_group": 1, "topk_method": "noaux_tc",
        "transformers_version": "4.56.2", "use_cache": True, "use_grouped_topk": True,
        "v_head_dim": s["v"], "vocab_size": s["vocab"],
    }


def config(s):
    first_special = s["vocab"] - SPECIALS
    model = "modeling_kimi_k3.KimiK3ForConditionalGeneration"
    return {
        "architectures": ["KimiK3ForConditionalGeneration"],
        "auto_map": {"AutoConfig": "configuration_kimi_k3.KimiK3Config", "AutoModel": model,
                     "AutoModelForCausalLM": model},
        "bos_token_id": first_special, "dtype": "bfloat16", "eos_token_id": first_special + 2,
        "ignore_index": -100, "image_placeholder": "<|kimi_image_placeholder|>",
        "media_placeholder_token_id": first_special + 21, "model_type": "kimi_k3",
        "pad_token_id": s["vocab"] - 1, "text_config": text_model(s),
        "tie_word_embeddings": False, "vision_config": vision(s),
    }


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


def write_checkpoint(folder, s, seed, with_vision):
    shards = [layer(s, n) for n in range(s["layers"])] + [ends(s)]
    if with_vision:
        shards += [projector(s), tower(s)]
    where, total = {}, 0
    for i, tensors in enumerate(shards):
        name = "model-%05d-of-%06d.safetensors" % (i + 1, len(shards))
        total += write_shard(os.path.join(folder, name), tensors, seed)
        where.update(dict.fromkeys(tensors, name))
    write_json(folder, "config.json", config(s))
    write_json(folder, "generation_config.json",
               {"eos_token_id": s["vocab"] - SPECIALS + 2, "max_length": 1048576})
    write_json(folder, "model.safetensors.index.json",
               {"metadata": {"total_size": total}, "weight_map": where})
    return len(shards), total


def arguments():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--shape", choices=sorted(SHAPES), default="tiny")
    p.add_argument("--seed", type=int, default=1)
    for name in ("layers", "experts", "vocab"):
        p.add_argument("--" + name, type=int, help="instead of the shape's")
    p.add_argument("--vocabulary", action="store_true", help="add a toy tokenizer")
    p.add_argument("--no-vision", action="store_true", help="leave out the vision shards")
    p.add_argument("--stamp", help="file written once the checkpoint is complete")
    a = p.parse_args()
    s = dict(SHAPES[a.shape])
    for name, least in (("layers", 1), ("experts", s["chosen"]), ("vocab", SPECIALS + 2)):
        given = getattr(a, name)
        if given is not None and given < least:
            p.error("--%s: expected at least %d, found %d" % (name, least, given))
        s[name] = given if given is not None else s[name]
    if a.seed < 0:
        p.error("--seed: expected 0 or more, found %d" % a.seed)
    return a, s


def main():
    a, s = arguments()
    os.makedirs(a.folder, exist_ok=True)
    count, total = write_checkpoint(a.folder, s, a.seed, not a.no_vision)
    if a.vocabulary:
        vocabulary.write(a.folder, s["vocab"] - SPECIALS)
    print("%s: %d shards, %.1f MB" % (a.folder, count, total / 1e6), file=sys.stderr)
    if a.stamp:
        with open(a.stamp, "w"):
            pass


if __name__ == "__main__":
    main()
