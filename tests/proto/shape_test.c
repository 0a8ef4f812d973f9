/*
 * The shape: the release's config.json, and a small one of the same form with every field taken
 * away, given another type, and given values that no model of ours can have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/shape.h"
#include "tests/proto/tiny.h"

#define TEXT   "text_config"
#define LINEAR "text_config.linear_attn_config"
#define QUANT  "text_config.quantization_config"
#define GROUP  "text_config.quantization_config.config_groups.group_0.weights"

/* Every field that is read. */
static const struct place {
    const char *object, *key;
} places[] = {
    {"", "eos_token_id"},
    {"", "text_config"},
    {TEXT, "model_type"},
    {TEXT, "hidden_size"},
    {TEXT, "num_hidden_layers"},
    {TEXT, "vocab_size"},
    {TEXT, "max_position_embeddings"},
    {TEXT, "first_k_dense_replace"},
    {TEXT, "intermediate_size"},
    {TEXT, "num_attention_heads"},
    {TEXT, "num_key_value_heads"},
    {TEXT, "q_lora_rank"},
    {TEXT, "kv_lora_rank"},
    {TEXT, "qk_nope_head_dim"},
    {TEXT, "qk_rope_head_dim"},
    {TEXT, "v_head_dim"},
    {TEXT, "mla_use_nope"},
    {TEXT, "mla_use_output_gate"},
    {TEXT, "rms_norm_eps"},
    {TEXT, "hidden_act"},
    {TEXT, "activation_situ_beta"},
    {TEXT, "activation_situ_linear_beta"},
    {TEXT, "attn_res_block_size"},
    {TEXT, "num_experts"},
    {TEXT, "num_experts_per_token"},
    {TEXT, "moe_intermediate_size"},
    {TEXT, "num_shared_experts"},
    {TEXT, "routed_expert_hidden_size"},
    {TEXT, "latent_moe_use_norm"},
    {TEXT, "moe_router_activation_func"},
    {TEXT, "moe_renormalize"},
    {TEXT, "moe_layer_freq"},
    {TEXT, "routed_scaling_factor"},
    {TEXT, "num_expert_group"},
    {TEXT, "topk_group"},
    {TEXT, "topk_method"},
    {TEXT, "num_nextn_predict_layers"},
    {TEXT, "tie_word_embeddings"},
    {TEXT, "linear_attn_config"},
    {TEXT, "quantization_config"},
    {LINEAR, "num_heads"},
    {LINEAR, "head_dim"},
    {LINEAR, "short_conv_kernel_size"},
    {LINEAR, "gate_lower_bound"},
    {LINEAR, "use_full_rank_gate"},
    {LINEAR, "full_attn_layers"},
    {LINEAR, "kda_layers"},
    {QUANT, "quant_method"},
    {QUANT, "format"},
    {QUANT, "config_groups"},
    {GROUP, "num_bits"},
    {GROUP, "type"},
    {GROUP, "strategy"},
    {GROUP, "group_size"},
    {GROUP, "symmetric"},
};

#define PLACES (sizeof places / sizeof places[0])

static json_t *tiny(void)
{
    return json_loads(tiny_config, 0, NULL);
}

/* The object at a path of keys with dots between. */
static json_t *object_at(json_t *root, const char *path)
{
    char copy[128], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *key = strtok_r(copy, ".", &rest); key; key = strtok_r(NULL, ".", &rest))
        root = json_object_get(root, key);
    assert_true(json_is_object(root));
    return root;
}

/* Takes the document. */
static int parse(json_t *document, struct shape *s, struct problems *p)
{
    char *text = json_dumps(document, JSON_ENCODE_ANY);
    problems_init(p);
    int r = shape_parse(s, "config.json", text, strlen(text), p);
    free(text);
    json_decref(document);
    return r;
}

/* It is refused and the key is named; nothing was written. */
static void refused(json_t *document, const char *key)
{
    struct shape s, untouched;
    struct problems p;
    memset(&s, 0x5a, sizeof s);
    untouched = s;
    if (parse(document, &s, &p) != -EINVAL)
        fail_msg("%s: was taken", key);
    if (!strstr(p.text, key))
        fail_msg("%s is not named in: %s", key, p.text);
    assert_memory_equal(&s, &untouched, sizeof s);
}

static void set(const char *object, const char *key, const char *value)
{
    json_t *document = tiny();
    json_t *v = json_loads(value, JSON_DECODE_ANY, NULL);
    assert_non_null(v);
    json_object_set_new(object_at(document, object), key, v);
    refused(document, key);
}

static void the_released_shape(void **state)
{
    struct shape s;
    struct problems p;
    struct stat st;
    if (stat(SOURCE_ROOT "/../shared/data/k3/config.json", &st))
        skip();
    problems_init(&p);
    assert_int_equal(shape_read(&s, SOURCE_ROOT "/../shared/data/k3", &p), 0);
    assert_int_equal(s.hidden, 7168);
    assert_int_equal(s.layers, 93);
    assert_int_equal(s.vocab, 163840);
    assert_int_equal(s.context, 1048576);
    assert_int_equal(s.dense_layers, 1);
    assert_int_equal(s.dense_width, 33792);
    assert_int_equal(s.heads, 96);
    assert_int_equal(s.q_rank, 1536);
    assert_int_equal(s.kv_rank, 512);
    assert_int_equal(s.nope, 128);
    assert_int_equal(s.pe, 64);
    assert_int_equal(s.v_dim, 128);
    assert_int_equal(s.kda_heads, 96);
    assert_int_equal(s.kda_dim, 128);
    assert_int_equal(s.kda_taps, 4);
    assert_true(s.kda_floor == -5.0F);
    assert_int_equal(s.residual_block, 12);
    assert_int_equal(s.experts, 896);
    assert_int_equal(s.chosen, 16);
    assert_int_equal(s.expert_width, 3072);
    assert_int_equal(s.shared_width, 6144);
    assert_int_equal(s.latent, 3584);
    assert_true(s.routed_scaling == 1.0F && s.situ[0] == 4.0F && s.situ[1] == 25.0F);
    assert_true(s.norm_eps == 1e-5);
    assert_int_equal(s.band, 256);
    assert_int_equal(s.bands, 12);
    assert_int_equal(s.end_token, 163586);
    assert_int_equal(shape_tiles(&s), 989184);
    for (uint32_t l = 0; l < 93; l++)
        assert_int_equal(s.is_mla[l], l % 4 == 3 || l == 92);
}

static void a_small_shape(void **state)
{
    struct shape s = tiny_shape();
    assert_int_equal(s.layers, 7);
    assert_int_equal(s.band, 32);
    assert_int_equal(s.bands, 12);
    assert_int_equal(s.is_mla[2], 0);
    assert_int_equal(s.is_mla[3], 1);
    assert_int_equal(shape_is_moe(&s, 0), 0);
    assert_int_equal(shape_is_moe(&s, 1), 1);
    assert_int_equal(shape_snapshots(&s, 0), 0);
    assert_int_equal(shape_snapshots(&s, 1), 1);
    assert_int_equal(shape_snapshots(&s, 3), 1);
    assert_int_equal(shape_snapshots(&s, 4), 2);
}

static void every_field_is_needed(void **state)
{
    for (size_t i = 0; i < PLACES; i++) {
        json_t *document = tiny();
        assert_int_equal(json_object_del(object_at(document, places[i].object), places[i].key),
                         0);
        refused(document, places[i].key);
    }
}

static void every_field_has_a_type(void **state)
{
    static const char *const wrong[] = {"null", "\"12 apples\"", "[[]]", "-1e9", "1e300"};
    for (size_t i = 0; i < PLACES; i++)
        for (size_t j = 0; j < sizeof wrong / sizeof wrong[0]; j++)
            set(places[i].object, places[i].key, wrong[j]);
}

static void all_that_is_missing_is_said_at_once(void **state)
{
    struct shape s;
    struct problems p;
    json_t *document = json_pack("{s:i, s:{}}", "eos_token_id", 1, "text_config");
    assert_int_equal(parse(document, &s, &p), -EINVAL);
    for (size_t i = 2; i < PLACES; i++)
        if (!strcmp(places[i].object, TEXT) && !strstr(p.text, places[i].key) &&
            strcmp(places[i].key, "num_key_value_heads"))
            fail_msg("%s is not named in: %s", places[i].key, p.text);
}

static void another_model_is_refused(void **state)
{
    set(TEXT, "model_type", "\"llama\"");
    set(TEXT, "hidden_act", "\"silu\"");
    set(TEXT, "mla_use_nope", "false");
    set(TEXT, "mla_use_output_gate", "false");
    set(TEXT, "moe_router_activation_func", "\"softmax\"");
    set(TEXT, "moe_renormalize", "false");
    set(TEXT, "moe_layer_freq", "2");
    set(TEXT, "latent_moe_use_norm", "false");
    set(TEXT, "num_expert_group", "4");
    set(TEXT, "topk_group", "2");
    set(TEXT, "topk_method", "\"greedy\"");
    set(TEXT, "num_nextn_predict_layers", "1");
    set(TEXT, "tie_word_embeddings", "true");
    set(LINEAR, "use_full_rank_gate", "false");
    set(LINEAR, "short_conv_kernel_size", "3");
    set(QUANT, "quant_method", "\"gptq\"");
    set(QUANT, "format", "\"nvfp4-pack-quantized\"");
    set(GROUP, "num_bits", "8");
    set(GROUP, "type", "\"int\"");
    set(GROUP, "strategy", "\"channel\"");
    set(GROUP, "group_size", "16");
    set(GROUP, "symmetric", "false");
}

static void impossible_numbers_are_refused(void **state)
{
    set(TEXT, "num_hidden_layers", "0");
    set(TEXT, "num_hidden_layers", "257");
    set(TEXT, "hidden_size", "0");
    set(TEXT, "hidden_size", "9223372036854775807");
    set(TEXT, "num_experts_per_token", "33");
    set(TEXT, "num_experts", "65536");
    set(TEXT, "num_key_value_heads", "2");
    set(TEXT, "moe_intermediate_size", "400");
    set(TEXT, "moe_intermediate_size", "4128"); /* 129 bands of 32 */
    set(TEXT, "routed_expert_hidden_size", "72");
    set(TEXT, "first_k_dense_replace", "8");
    set(TEXT, "rms_norm_eps", "0");
    set(TEXT, "routed_scaling_factor", "-1");
    set(LINEAR, "num_heads", "64"); /* more than head_dim, the length of A_log */
    set(LINEAR, "gate_lower_bound", "5");
    set("", "eos_token_id", "512");
}

static void layer_lists_cover_all_layers_once(void **state)
{
    set(LINEAR, "full_attn_layers", "[4]");           /* 7 is in neither */
    set(LINEAR, "kda_layers", "[1, 2, 3, 4, 5, 6]");  /* 4 is in both */
    set(LINEAR, "full_attn_layers", "[4, 4, 7]");     /* twice */
    set(LINEAR, "full_attn_layers", "[4, 7, 8]");     /* too large */
    set(LINEAR, "full_attn_layers", "[0, 4, 7]");     /* they are one-based */
    set(LINEAR, "full_attn_layers", "[4, 7.0]");      /* no whole number */
    set(LINEAR, "full_attn_layers", "{\"4\": true}"); /* no list */
    set(LINEAR, "kda_layers", "[]");
}

static void many_snapshots_are_refused(void **state)
{
    json_t *document = tiny(), *linear = object_at(document, LINEAR), *kda = json_array();
    json_object_set_new(object_at(document, TEXT), "num_hidden_layers", json_integer(40));
    json_object_set_new(object_at(document, TEXT), "attn_res_block_size", json_integer(1));
    for (int i = 1; i <= 40; i++)
        if (i != 4 && i != 7)
            json_array_append_new(kda, json_integer(i));
    json_object_set_new(linear, "kda_layers", kda);
    refused(document, "attn_res_block_size");
}

static void what_is_no_json_is_refused(void **state)
{
    static const char *const bad[] = {"",      "{",
                                      "[]",    "{\"text_config\": {}, \"text_config\": 1}",
                                      "{} {}", "{\"a\": \"\xff\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct shape s;
        struct problems p;
        problems_init(&p);
        assert_int_equal(shape_parse(&s, "config.json", bad[i], strlen(bad[i]), &p), -EINVAL);
        assert_non_null(strstr(p.text, "config.json"));
    }
}

static void every_truncation_is_refused(void **state)
{
    for (size_t n = 0; n < strlen(tiny_config); n += 3) {
        struct shape s;
        struct problems p;
        problems_init(&p);
        assert_int_equal(shape_parse(&s, "config.json", tiny_config, n, &p), -EINVAL);
        assert_true(p.count > 0);
    }
}

static void a_folder_without_config_is_named(void **state)
{
    struct shape s;
    struct problems p;
    problems_init(&p);
    assert_int_equal(shape_read(&s, "/nonexistent", &p), -ENOENT);
    assert_non_null(strstr(p.text, "/nonexistent/config.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_released_shape),
        cmocka_unit_test(a_small_shape),
        cmocka_unit_test(every_field_is_needed),
        cmocka_unit_test(every_field_has_a_type),
        cmocka_unit_test(all_that_is_missing_is_said_at_once),
        cmocka_unit_test(another_model_is_refused),
        cmocka_unit_test(impossible_numbers_are_refused),
        cmocka_unit_test(layer_lists_cover_all_layers_once),
        cmocka_unit_test(many_snapshots_are_refused),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_folder_without_config_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
