/* Everything here is on purpose unlike the program: whole files, plain loops. */
#include "tests/expertd/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/file.h"
#include "kernels/kernels.h"
#include "proto/region.h"
#include "proto/secret.h"

static const char config[] =
    "{\"architectures\":[\"KimiK3ForConditionalGeneration\"],\"model_type\":\"kimi_k3\","
    "\"dtype\":\"bfloat16\",\"bos_token_id\":0,\"eos_token_id\":2,\"pad_token_id\":3,"
    "\"tie_word_embeddings\":false,\"text_config\":{\"model_type\":\"kimi_linear\","
    "\"architectures\":[\"KimiLinearForCausalLM\"],\"hidden_size\":64,"
    "\"num_hidden_layers\":3,\"vocab_size\":32,\"intermediate_size\":64,"
    "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":2,\"q_lora_rank\":32,\"kv_lora_rank\":32,\"qk_nope_head_dim\":32,"
    "\"qk_rope_head_dim\":16,\"v_head_dim\":32,\"mla_use_nope\":true,"
    "\"mla_use_output_gate\":true,\"linear_attn_config\":{\"num_heads\":2,\"head_dim\":32,"
    "\"short_conv_kernel_size\":4,\"gate_lower_bound\":-5.0,\"use_full_rank_gate\":true,"
    "\"full_attn_layers\":[3],\"kda_layers\":[1,2]},\"rms_norm_eps\":1e-05,"
    "\"hidden_act\":\"situ\",\"activation_situ_beta\":4.0,\"activation_situ_linear_beta\":25.0,"
    "\"attn_res_block_size\":2,\"num_experts\":12,\"num_experts_per_token\":4,"
    "\"moe_intermediate_size\":384,\"num_shared_experts\":2,\"routed_expert_hidden_size\":64,"
    "\"latent_moe_use_norm\":true,\"moe_router_activation_func\":\"sigmoid\","
    "\"moe_renormalize\":true,\"routed_scaling_factor\":1.0,\"num_expert_group\":1,"
    "\"topk_group\":1,\"use_grouped_topk\":true,\"topk_method\":\"noaux_tc\","
    "\"num_nextn_predict_layers\":0,\"max_position_embeddings\":1024,"
    "\"tie_word_embeddings\":false,\"quantization_config\":{"
    "\"quant_method\":\"compressed-tensors\",\"format\":\"mxfp4-pack-quantized\","
    "\"quantization_status\":\"compressed\",\"config_groups\":{\"group_0\":{"
    "\"format\":\"mxfp4-pack-quantized\",\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":4,"
    "\"type\":\"float\",\"strategy\":\"group\",\"group_size\":32,\"symmetric\":true,"
    "\"dynamic\":false,\"scale_dtype\":\"torch.uint8\"}}}}}}";

static const char *const part_name[FIXTURE_PARTS] = {"w1.weight_packed", "w1.weight_scale",
                                                     "w2.weight_packed", "w2.weight_scale",
                                                     "w3.weight_packed", "w3.weight_scale"};

static size_t part_rows(int part)
{
    return part / 2 == 1 ? FIXTURE_LATENT : FIXTURE_WIDTH;
}

static size_t part_row_bytes(int part)
{
    size_t cols = part / 2 == 1 ? FIXTURE_WIDTH : FIXTURE_LATENT;
    return part % 2 ? cols / 32 : cols / 2;
}

static size_t part_bytes(int part)
{
    return part_rows(part) * part_row_bytes(part);
}

/* ---- the checkpoint -------------------------------------------------------------------- */

static void make_parts(struct fixture *f)
{
    srand(7);
    for (int l = 1; l < FIXTURE_LAYERS; l++)
        for (int e = 0; e < FIXTURE_EXPERTS; e++)
            for (int i = 0; i < FIXTURE_PARTS; i++) {
                uint8_t *b = f->part[l][e][i] = malloc(part_bytes(i));
                for (size_t k = 0; k < part_bytes(i); k++)
                    b[k] = i % 2 ? (uint8_t)(120 + rand() % 4) : (uint8_t)rand();
            }
}

struct tensor {
    char name[112];
    int expert, part;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

static size_t list_tensors(struct tensor *t, int layer, enum fixture_order order,
                           const char *missing)
{
    size_t n = 0;
    for (int e = 0; e < FIXTURE_EXPERTS; e++)
        for (int i = 0; i < FIXTURE_PARTS; i++) {
            snprintf(t[n].name, sizeof t[n].name,
                     "language_model.model.layers.%d.block_sparse_moe.experts.%d.%s", layer, e,
                     part_name[i]);
            t[n].expert = e;
            t[n].part = i;
            n += !missing || strcmp(t[n].name, missing) != 0;
        }
    qsort(t, n, sizeof *t, by_name);
    for (size_t i = n - 1; order == FIXTURE_SHUFFLED && i; i--) {
        size_t j = (size_t)rand() % (i + 1);
        struct tensor swap = t[i];
        t[i] = t[j];
        t[j] = swap;
    }
    return n;
}

static void write_shard(const struct fixture *f, int shard, int layer, const struct tensor *t,
                        size_t tensors)
{
    char path[160], *header = malloc(256 * tensors + 16);
    size_t length = 0, at = 0;
    for (size_t i = 0; i < tensors; i++) {
        size_t bytes = part_bytes(t[i].part);
        length += (size_t)sprintf(header + length,
                                  "%c\"%s\":{\"dtype\":\"U8\",\"shape\":[%zu,%zu],"
                                  "\"data_offsets\":[%zu,%zu]}",
                                  i ? ',' : '{', t[i].name, part_rows(t[i].part),
                                  part_row_bytes(t[i].part), at, at + bytes);
        at += bytes;
    }
    length += (size_t)sprintf(header + length, "}");
    while (length % 8)
        header[length++] = ' ';
    snprintf(path, sizeof path, "%s/model-%05d-of-000006.safetensors", f->folder, shard);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    uint64_t size = length;
    fwrite(&size, 8, 1, file);
    fwrite(header, 1, length, file);
    for (size_t i = 0; i < tensors; i++)
        fwrite(f->part[layer][t[i].expert][t[i].part], 1, part_bytes(t[i].part), file);
    fclose(file);
    free(header);
}

static void probe(struct fixture *f)
{
    char path[160];
    int fd = -1;
    snprintf(path, sizeof path, "%s/config.json", f->folder);
    f->buffered = disk_file(path, false, &fd) == -EINVAL;
    if (fd >= 0)
        close(fd);
}

void fixture_make(struct fixture *f, enum fixture_order order, const char *missing)
{
    static struct tensor t[FIXTURE_EXPERTS * FIXTURE_PARTS];
    struct problems p;
    char path[160];
    memset(f, 0, sizeof *f);
    strcpy(f->folder, "/tmp/kapok-expertd-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(path, sizeof path, "%s/config.json", f->folder);
    assert_int_equal(file_write(path, config, sizeof config - 1, 0644), 0);
    snprintf(f->secret, sizeof f->secret, "%s/secret", f->folder);
    problems_init(&p);
    assert_int_equal(secret_make(f->secret, &p), 0);
    make_parts(f);
    for (int l = 1; l < FIXTURE_LAYERS; l++) {
        size_t n = list_tensors(t, l, order, missing);
        size_t cut = order == FIXTURE_SHUFFLED ? n / 3 : n;
        write_shard(f, 2 * l, l, t, cut);
        if (cut < n)
            write_shard(f, 2 * l + 1, l, t + cut, n - cut);
    }
    probe(f);
}

void fixture_remove(struct fixture *f)
{
    char command[128];
    for (int l = 1; l < FIXTURE_LAYERS; l++)
        for (int e = 0; e < FIXTURE_EXPERTS; e++)
            for (int i = 0; i < FIXTURE_PARTS; i++)
                free(f->part[l][e][i]);
    snprintf(command, sizeof command, "rm -r %s", f->folder);
    assert_int_equal(system(command), 0);
}

void fixture_locate(const struct fixture *f, uint32_t layer, uint32_t expert, char path[160],
                    uint64_t *ret_offset)
{
    struct checkpoint c;
    struct problems p;
    char name[112];
    problems_init(&p);
    assert_int_equal(checkpoint_open(&c, f->folder, &p), 0);
    snprintf(name, sizeof name, "language_model.model.layers.%u.block_sparse_moe.experts.%u.%s",
             layer, expert, part_name[0]);
    const struct safetensors_tensor *t = safetensors_find(c.tensors, name);
    assert_non_null(t);
    snprintf(path, 160, "%s", safetensors_path(c.tensors, t->shard));
    *ret_offset = t->offset;
    checkpoint_close(&c);
}

void fixture_poison(struct fixture *f, uint32_t layer, uint32_t expert, uint8_t scale)
{
    char path[160];
    uint64_t at;
    fixture_locate(f, layer, expert, path, &at);
    int fd = open(path, O_WRONLY);
    /* In the released order the scales follow the nibbles; the 5th is of band 0. */
    assert_int_equal(pwrite(fd, &scale, 1, (off_t)(at + part_bytes(0) + 5)), 1);
    close(fd);
    f->part[layer][expert][1][5] = scale;
}

static struct region_tile tile_in_memory(const struct fixture *f, const uint32_t place[3])
{
    uint8_t *const *part = f->part[place[0]][place[1]];
    size_t rise = place[2] * 32;
    return (struct region_tile){
        .w1 = part[0] + rise * part_row_bytes(0),
        .s1 = part[1] + rise * part_row_bytes(1),
        .w2 = part[2] + place[2] * 16,
        .s2 = part[3] + place[2],
        .w3 = part[4] + rise * part_row_bytes(4),
        .s3 = part[5] + rise * part_row_bytes(5),
        .w2_stride = part_row_bytes(2),
        .s2_stride = part_row_bytes(3),
    };
}

static void write_tiles(const struct fixture *f, const struct region *g, FILE *file)
{
    uint8_t *bytes = calloc(1, g->tile_stride), sum[SUM_BYTES];
    for (uint64_t rank = 0; rank < g->tiles; rank++) {
        uint32_t place[3];
        region_place(g, rank, place);
        struct region_tile t = tile_in_memory(f, place);
        region_gather(g, &t, bytes);
        sum_of(bytes, g->tile_bytes, sum);
        fseek(file, (long)region_sum_offset(rank), SEEK_SET);
        fwrite(sum, 1, sizeof sum, file);
        if (!g->data_offset)
            continue;
        fseek(file, (long)region_tile_offset(g, rank), SEEK_SET);
        fwrite(bytes, 1, g->tile_stride, file);
    }
    free(bytes);
}

void fixture_pack(const struct fixture *f, const char *name, const char *layers,
                  const char *experts, const char *bands)
{
    char path[160];
    uint8_t block[REGION_BLOCK];
    struct checkpoint c;
    struct tile_set tiles;
    struct region g;
    struct problems p;
    problems_init(&p);
    assert_int_equal(checkpoint_open(&c, f->folder, &p), 0);
    assert_int_equal(tile_set_parse(&tiles, &c.shape, layers, experts, bands, &p), 0);
    assert_int_equal(region_init(&g, &c, &tiles, strcmp(name, REGION_SUMS) != 0, &p), 0);
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    g.complete = true;
    region_encode(&g, block);
    fwrite(block, 1, sizeof block, file);
    write_tiles(f, &g, file);
    fclose(file);
    checkpoint_close(&c);
}

void fixture_flip(const char *path, uint64_t bit)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, (off_t)(bit / 8)), 1);
    byte ^= (uint8_t)(1 << bit % 8);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
    close(fd);
}

/* ---- servers --------------------------------------------------------------------------- */

struct serving_options fixture_options(const struct fixture *f)
{
    return (struct serving_options){
        .checkpoint = f->folder,
        .listen = "tcp://127.0.0.1:0",
        .secret = f->secret,
        .memory = (uint64_t)64 << 20,
        .threads = 2,
        .rows = 100,
        .requests = 4,
        .buffered = f->buffered,
    };
}

struct serving *fixture_serve(const struct serving_options *o)
{
    struct problems p;
    struct serving *s;
    problems_init(&p);
    int r = serving_open(&s, o, &p);
    if (!r)
        r = serving_start(s, &p);
    if (r)
        fail_msg("serving: %d %s", r, p.text);
    return s;
}

/* ---- questions ------------------------------------------------------------------------- */

static float uniform(void)
{
    return (float)rand() / (float)RAND_MAX * 2 - 1;
}

void fixture_ask_random(struct fixture_question *q, uint32_t layer, uint32_t rows,
                        const uint32_t first_end[2], unsigned seed)
{
    srand(seed);
    *q = (struct fixture_question){.layer = layer, .rows = rows, .bands = 0xfff};
    q->z = malloc(rows * FIXTURE_LATENT * sizeof *q->z);
    q->counts = calloc(rows, sizeof *q->counts);
    q->experts = malloc(rows * FIXTURE_CHOSEN * sizeof *q->experts);
    q->weights = malloc(rows * FIXTURE_CHOSEN * sizeof *q->weights);
    for (size_t i = 0; i < rows * FIXTURE_LATENT; i++)
        q->z[i] = uniform();
    for (uint32_t t = 0; t < rows; t++) {
        unsigned room = t ? (unsigned)rand() % (FIXTURE_CHOSEN + 1) : FIXTURE_CHOSEN;
        for (uint32_t e = first_end[0]; e < first_end[1] && room; e++)
            if ((unsigned)rand() % (first_end[1] - e) < room) {
                q->experts[q->total] = (uint16_t)e;
                q->weights[q->total++] = uniform();
                q->counts[t]++;
                room--;
            }
    }
}

void fixture_question_free(struct fixture_question *q)
{
    free(q->z);
    free(q->counts);
    free(q->experts);
    free(q->weights);
}

static float decode(const uint8_t *nibbles, const uint8_t *scales, size_t col)
{
    static const float value[8] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    unsigned code = nibbles[col / 2] >> (col % 2 * 4) & 15;
    float v = ldexpf(value[code & 7], scales[col / 32] - 127);
    return code & 8 ? -v : v;
}

/* docs/numerics.md, literally; `first` is the first column, i is counted from it. */
static float dot(uint8_t *const part[2], int which, size_t row, const size_t first_count[2],
                 const float *x)
{
    const uint8_t *w = part[0] + row * part_row_bytes(which);
    const uint8_t *s = part[1] + row * part_row_bytes(which + 1);
    float lane[16] = {0};
    for (size_t i = 0; i < first_count[1]; i++)
        lane[(i >> 1) % 16] = fmaf(decode(w, s, first_count[0] + i), x[i], lane[(i >> 1) % 16]);
    for (int half = 8; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

static void expect_tile(uint8_t *const part[FIXTURE_PARTS], uint32_t band, const float *z,
                        float weight, int64_t *sum)
{
    static const float beta[2] = {4, 25};
    const struct kernels *k = kernels_best("c", &(const char *){0});
    float gate[32], up[32];
    for (size_t i = 0; i < 32; i++) {
        gate[i] = dot(part, 0, band * 32 + i, (size_t[]){0, FIXTURE_LATENT}, z);
        up[i] = dot(part + 4, 4, band * 32 + i, (size_t[]){0, FIXTURE_LATENT}, z);
    }
    k->situ_glu(gate, gate, up, 32, beta);
    for (size_t r = 0; r < FIXTURE_LATENT; r++) {
        float d = dot(part + 2, 2, r, (size_t[]){band * 32, 32}, gate);
        sum[r] += llrint((double)weight * (double)d * 0x1p40);
    }
}

void fixture_expect(const struct fixture *f, const struct fixture_question *q, int64_t *sum)
{
    size_t at = 0;
    for (uint32_t t = 0; t < q->rows; t++)
        for (uint32_t i = 0; i < q->counts[t]; i++, at++)
            for (uint32_t b = 0; b < FIXTURE_BANDS; b++)
                if (q->bands >> b & 1)
                    expect_tile(f->part[q->layer][q->experts[at]], b, q->z + t * FIXTURE_LATENT,
                                q->weights[at], sum + t * FIXTURE_LATENT);
}

/* ---- asking ---------------------------------------------------------------------------- */

void fixture_asker_open(struct asker *a, const struct fixture *f, const char *address)
{
    asker_open(a, f->folder, f->secret, address);
}

void fixture_call_start(struct asker_call *c, struct asker *a, const struct fixture_question *q)
{
    struct compute content = {.layer = q->layer,
                              .rows = q->rows,
                              .bands = q->bands,
                              .z = q->z,
                              .counts = q->counts,
                              .experts = q->experts,
                              .weights = q->weights,
                              .total = q->total};
    asker_call_start(c, a, &content, FIXTURE_LATENT);
}

int fixture_ask(struct asker *a, const struct fixture_question *q, int64_t *sum,
                struct fixture_answer *ret_answer)
{
    struct asker_call c;
    void *done;
    fixture_call_start(&c, a, q);
    assert_int_equal(queue_take(&a->done, 60, &done), 0);
    int error = c.call.error;
    if (!error) {
        const int64_t *got = (const int64_t *)c.call.reply.payload;
        size_t n = q->rows * FIXTURE_LATENT;
        assert_int_equal(c.call.reply.payload_bytes, n * sizeof *got);
        for (size_t i = 0; i < n; i++)
            sum[i] += got[i];
    }
    if (ret_answer) {
        const Kapok__ComputeReply *r = error ? NULL : c.call.reply.reply->compute;
        *ret_answer = (struct fixture_answer){0};
        if (r)
            *ret_answer =
                (struct fixture_answer){r->bytes_read, r->tiles_read, r->tiles_hit, ""};
        else
            memcpy(ret_answer->reason, c.call.reason, sizeof ret_answer->reason);
    }
    asker_call_close(&c);
    return error;
}
