/* The small model: see the header. */
#include "tests/proto/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

const char tiny_config[] =
    "{\"model_type\": \"kimi_k3\", \"eos_token_id\": 499, \"text_config\": {"
    " \"model_type\": \"kimi_linear\", \"hidden_size\": 128, \"num_hidden_layers\": 7,"
    " \"vocab_size\": 512, \"max_position_embeddings\": 4096, \"first_k_dense_replace\": 1,"
    " \"intermediate_size\": 256, \"num_attention_heads\": 4, \"num_key_value_heads\": 4,"
    " \"q_lora_rank\": 48, \"kv_lora_rank\": 32, \"qk_nope_head_dim\": 32,"
    " \"qk_rope_head_dim\": 16, \"v_head_dim\": 32, \"mla_use_nope\": true,"
    " \"mla_use_output_gate\": true, \"rms_norm_eps\": 1e-05, \"hidden_act\": \"situ\","
    " \"activation_situ_beta\": 4.0, \"activation_situ_linear_beta\": 25.0,"
    " \"attn_res_block_size\": 3, \"num_experts\": 32, \"num_experts_per_token\": 4,"
    " \"moe_intermediate_size\": 384, \"num_shared_experts\": 2,"
    " \"routed_expert_hidden_size\": 64, \"latent_moe_use_norm\": true,"
    " \"moe_router_activation_func\": \"sigmoid\", \"moe_renormalize\": true,"
    " \"moe_layer_freq\": 1, \"routed_scaling_factor\": 1.0, \"num_expert_group\": 1,"
    " \"topk_group\": 1, \"topk_method\": \"noaux_tc\", \"num_nextn_predict_layers\": 0,"
    " \"use_grouped_topk\": true, \"tie_word_embeddings\": false,"
    " \"linear_attn_config\": {\"num_heads\": 4, \"head_dim\": 32,"
    "  \"short_conv_kernel_size\": 4, \"gate_lower_bound\": -5.0,"
    "  \"use_full_rank_gate\": true, \"full_attn_layers\": [4, 7],"
    "  \"kda_layers\": [1, 2, 3, 5, 6]},"
    " \"quantization_config\": {\"quant_method\": \"compressed-tensors\","
    "  \"format\": \"mxfp4-pack-quantized\", \"config_groups\": {\"group_0\": {"
    "   \"weights\": {\"num_bits\": 4, \"type\": \"float\", \"strategy\": \"group\","
    "    \"group_size\": 32, \"symmetric\": true}}}}}}";

struct shape tiny_shape(void)
{
    struct shape s;
    struct problems p;
    problems_init(&p);
    if (shape_parse(&s, "tiny", tiny_config, strlen(tiny_config), &p))
        fail_msg("%s", p.text);
    return s;
}
