/*
 * config.json to struct shape. Three tables say which fields are counts, which are reals and
 * which must have the one value this engine computes with; then come the layer lists and the
 * conditions that hold between fields. Every check adds its own sentence and goes on.
 */
#include "proto/shape.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/jsontext.h"

#define SHAPE_FILE_MOST ((size_t)1 << 20)
#define MXFP4_GROUP     32

/* One object of the file and how sentences call it. */
struct object {
    const char *file;
    const char *path; /* "text_config." */
    json_t *json;     /* NULL: it is missing, which was said */
    struct problems *problems;
};

struct count_field {
    const char *key;
    size_t at; /* of a uint32_t in struct shape */
    uint32_t least, most;
};

#define AT(field) offsetof(struct shape, field)

static const struct count_field text_counts[] = {
    {"hidden_size", AT(hidden), 32, 1 << 20},
    {"num_hidden_layers", AT(layers), 1, SHAPE_LAYERS},
    {"vocab_size", AT(vocab), 2, 1 << 24},
    {"max_position_embeddings", AT(context), 1, 1 << 30},
    {"first_k_dense_replace", AT(dense_layers), 0, SHAPE_LAYERS},
    {"intermediate_size", AT(dense_width), 1, 1 << 20},
    {"num_attention_heads", AT(heads), 1, 4096},
    {"q_lora_rank", AT(q_rank), 1, 1 << 20},
    {"kv_lora_rank", AT(kv_rank), 1, 1 << 16},
    {"qk_nope_head_dim", AT(nope), 1, 4096},
    {"qk_rope_head_dim", AT(pe), 1, 4096},
    {"v_head_dim", AT(v_dim), 1, 4096},
    {"attn_res_block_size", AT(residual_block), 1, SHAPE_LAYERS},
    {"num_experts", AT(experts), 1, 65535},
    {"num_experts_per_token", AT(chosen), 1, 1024},
    {"moe_intermediate_size", AT(expert_width), MXFP4_GROUP, 1 << 20},
    {"routed_expert_hidden_size", AT(latent), MXFP4_GROUP, 1 << 20},
};

static const struct count_field linear_counts[] = {
    {"num_heads", AT(kda_heads), 1, 4096},
    {"head_dim", AT(kda_dim), 1, 4096},
    {"short_conv_kernel_size", AT(kda_taps), 4, 4},
};

/* Fields that name a computation: anything else than what is written here is another model. */
struct demand {
    const char *key, *value; /* as JSON */
};

static const struct demand text_demands[] = {
    {"model_type", "\"kimi_linear\""},
    {"mla_use_nope", "true"},
    {"mla_use_output_gate", "true"},
    {"hidden_act", "\"situ\""},
    {"moe_layer_freq", "1"},
    {"latent_moe_use_norm", "true"},
    {"moe_router_activation_func", "\"sigmoid\""},
    {"moe_renormalize", "true"},
    {"num_expert_group", "1"},
    {"topk_group", "1"},
    {"topk_method", "\"noaux_tc\""},
    {"num_nextn_predict_layers", "0"},
    {"tie_word_embeddings", "false"},
};

static const struct demand linear_demands[] = {{"use_full_rank_gate", "true"}};

static const struct demand quantization_demands[] = {
    {"quant_method", "\"compressed-tensors\""},
    {"format", "\"mxfp4-pack-quantized\""},
};

static const struct demand group_demands[] = {
    {"num_bits", "4"},    {"type", "\"float\""}, {"strategy", "\"group\""},
    {"group_size", "32"}, {"symmetric", "true"},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* A field of the object; says so when it is missing. NULL also when the object itself is. */
static json_t *field(const struct object *o, const char *key)
{
    json_t *v = o->json ? json_object_get(o->json, key) : NULL;
    if (o->json && !v)
        problems_add(o->problems, "%s: %s%s is missing", o->file, o->path, key);
    return v;
}

/* Adds "path key: expected ..., found <the value>". */
static void unexpected(const struct object *o, const char *key, const char *expected, json_t *v)
{
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    problems_add(o->problems, "%s: %s%s: expected %s, found %.60s", o->file, o->path, key,
                 expected, text ? text : "something unprintable");
    free(text);
}

static struct object child(const struct object *o, const char *key, const char *path)
{
    struct object c = {o->file, path, field(o, key), o->problems};
    if (c.json && !json_is_object(c.json)) {
        unexpected(o, key, "an object", c.json);
        c.json = NULL;
    }
    return c;
}

static bool read_count(const struct object *o, const char *key, uint32_t least, uint32_t most,
                       uint32_t *ret_count)
{
    json_t *v = field(o, key);
    if (!v)
        return false;
    json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
    if (!json_is_integer(v) || n < (json_int_t)least || n > (json_int_t)most) {
        char expected[80];
        snprintf(expected, sizeof expected, "a whole number from %u to %u", least, most);
        unexpected(o, key, expected, v);
        return false;
    }
    *ret_count = (uint32_t)n;
    return true;
}

static void read_counts(struct shape *s, const struct object *o, const struct count_field *f,
                        size_t fields)
{
    for (size_t i = 0; i < fields; i++) {
        uint32_t n;
        if (read_count(o, f[i].key, f[i].least, f[i].most, &n))
            memcpy((char *)s + f[i].at, &n, sizeof n);
    }
}

static void check_demands(const struct object *o, const struct demand *d, size_t demands)
{
    for (size_t i = 0; i < demands; i++) {
        json_t *found = field(o, d[i].key);
        json_t *wanted = json_loads(d[i].value, JSON_DECODE_ANY, NULL);
        if (found && !json_equal(found, wanted))
            unexpected(o, d[i].key, d[i].value, found);
        json_decref(wanted);
    }
}

/* A number in [least, most]; 0 when it is not one. */
static double read_real(const struct object *o, const char *key, double least, double most)
{
    json_t *v = field(o, key);
    if (!v)
        return 0;
    double x = json_is_number(v) ? json_number_value(v) : NAN;
    if (x >= least && x <= most)
        return x;
    char expected[80];
    snprintf(expected, sizeof expected, "a number from %g to %g", least, most);
    unexpected(o, key, expected, v);
    return 0;
}

/* Marks the layers of one list; the numbers in the file count from 1. */
static void read_layers(const struct shape *s, const struct object *o, const char *key,
                        uint8_t *marks, uint8_t mark)
{
    json_t *list = field(o, key), *v;
    size_t i;
    if (!list)
        return;
    if (!json_is_array(list)) {
        unexpected(o, key, "a list of layer numbers", list);
        return;
    }
    json_array_foreach(list, i, v)
    {
        json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;
        if (n < 1 || n > (json_int_t)s->layers)
            problems_add(o->problems,
                         "%s: %s%s[%zu]: expected a layer number from 1 to %u (one-based)",
                         o->file, o->path, key, i, s->layers);
        else if (marks[n - 1])
            problems_add(o->problems, "%s: %s%s[%zu]: layer %d is listed twice", o->file,
                         o->path, key, i, (int)n);
        else
            marks[n - 1] = mark;
    }
}

static void read_layer_kinds(struct shape *s, const struct object *linear)
{
    enum { NONE, KDA, MLA };
    uint8_t marks[SHAPE_LAYERS] = {NONE};
    size_t before = linear->problems->count;
    if (!s->layers || !linear->json)
        return;
    read_layers(s, linear, "full_attn_layers", marks, MLA);
    read_layers(s, linear, "kda_layers", marks, KDA);
    for (uint32_t i = 0; i < s->layers; i++) {
        s->is_mla[i] = marks[i] == MLA;
        if (marks[i] == NONE && linear->problems->count == before)
            problems_add(linear->problems,
                         "%s: layer %u (one-based) is neither in %sfull_attn_layers nor in "
                         "kda_layers",
                         linear->file, i + 1, linear->path);
    }
}

static void check_quantization(const struct object *text)
{
    struct object q = child(text, "quantization_config", "text_config.quantization_config.");
    struct object groups = child(&q, "config_groups", "quantization_config.config_groups.");
    struct object group = child(&groups, "group_0", "config_groups.group_0.");
    struct object weights = child(&group, "weights", "config_groups.group_0.weights.");
    check_demands(&q, quantization_demands, COUNT(quantization_demands));
    check_demands(&weights, group_demands, COUNT(group_demands));
}

/* Bands of an expert (docs/numerics.md). */
static void cut_bands(struct shape *s)
{
    bool twelfths = s->expert_width % (12 * MXFP4_GROUP) == 0;
    s->band = twelfths ? s->expert_width / 12 : MXFP4_GROUP;
    s->bands = s->expert_width / s->band;
}

static void demand_that(bool holds, const struct object *o, const char *sentence)
{
    if (!holds)
        problems_add(o->problems, "%s: %s%s", o->file, o->path, sentence);
}

/* Conditions between fields; only looked at when every field was read. */
static void check_together(struct shape *s, const struct object *text)
{
    uint32_t kv_heads = 0, groups = MXFP4_GROUP;
    read_count(text, "num_key_value_heads", 1, 4096, &kv_heads);
    demand_that(kv_heads == s->heads, text,
                "num_key_value_heads must equal num_attention_heads");
    demand_that(s->chosen <= s->experts, text, "num_experts_per_token exceeds num_experts");
    demand_that(s->dense_layers <= s->layers, text,
                "first_k_dense_replace exceeds num_hidden_layers");
    demand_that(s->latent % groups == 0, text,
                "routed_expert_hidden_size must be a multiple of 32 (MXFP4 groups)");
    demand_that(s->expert_width % groups == 0, text,
                "moe_intermediate_size must be a multiple of 32 (MXFP4 groups)");
    demand_that(s->kda_heads <= s->kda_dim, text,
                "linear_attn_config: num_heads exceeds head_dim, the length of A_log");
    demand_that((s->layers - 1) / s->residual_block + 2 <= SHAPE_SOURCES, text,
                "attn_res_block_size: more than 31 snapshots");
    if (s->expert_width % groups == 0) {
        cut_bands(s);
        demand_that(s->bands <= SHAPE_BANDS, text, "moe_intermediate_size: more than 64 bands");
    }
}

static void read_text(struct shape *s, const struct object *text)
{
    struct problems *p = text->problems;
    size_t before = p->count;
    struct object linear = child(text, "linear_attn_config", "text_config.linear_attn_config.");
    uint32_t shared = 0;
    read_counts(s, text, text_counts, COUNT(text_counts));
    read_counts(s, &linear, linear_counts, COUNT(linear_counts));
    check_demands(text, text_demands, COUNT(text_demands));
    check_demands(&linear, linear_demands, COUNT(linear_demands));
    read_count(text, "num_shared_experts", 1, 64, &shared);
    s->shared_width = shared * s->expert_width;
    s->kda_floor = (float)read_real(&linear, "gate_lower_bound", -80, -1e-6);
    s->routed_scaling = (float)read_real(text, "routed_scaling_factor", 1e-6, 1e6);
    s->situ[0] = (float)read_real(text, "activation_situ_beta", 1e-6, 1e6);
    s->situ[1] = (float)read_real(text, "activation_situ_linear_beta", 1e-6, 1e6);
    s->norm_eps = read_real(text, "rms_norm_eps", 1e-12, 1e-2);
    read_layer_kinds(s, &linear);
    check_quantization(text);
    if (p->count == before)
        check_together(s, text);
}

int shape_parse(struct shape *s, const char *name, const char *text, size_t length,
                struct problems *p)
{
    size_t before = p->count;
    struct shape made = {0};
    json_t *json = jsontext_parse(name, text, length, p);
    if (!json)
        return -EINVAL;
    struct object root = {name, "", json, p};
    if (!json_is_object(json)) {
        problems_add(p, "%s: expected an object at the top", name);
        root.json = NULL;
    }
    struct object text_config = child(&root, "text_config", "text_config.");
    uint32_t end = 0;
    if (text_config.json)
        read_text(&made, &text_config);
    if (read_count(&root, "eos_token_id", 0, made.vocab ? made.vocab - 1 : 1 << 24, &end))
        made.end_token = (int32_t)end;
    json_decref(json);
    if (p->count > before)
        return -EINVAL;
    *s = made;
    return 0;
}

int shape_read(struct shape *s, const char *folder, struct problems *p)
{
    char path[4096], *text = NULL;
    size_t length = 0;
    if (snprintf(path, sizeof path, "%s/config.json", folder) >= (int)sizeof path) {
        problems_add(p, "%.200s...: the path is too long", folder);
        return -ENAMETOOLONG;
    }
    int r = file_read(path, SHAPE_FILE_MOST, &text, &length);
    if (r) {
        problems_add(p, "%s: %s", path, strerror(-r));
        return r;
    }
    r = shape_parse(s, path, text, length, p);
    free(text);
    return r;
}
