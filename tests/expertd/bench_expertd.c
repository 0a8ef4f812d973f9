/*
 * Drives an expert server in this process over loopback, token by token and layer by layer, and
 * says how near it comes to what the disk gives for reads of the same size in the same run.
 *
 *     bench_expertd --checkpoint DIR [--bands 0-5] [--memory 1G] [--tokens 8] [--rows 1]
 *                   [--region PATH] [--trace FILE]
 *
 * Routing is random, or a trace of "layer expert" lines (layers and experts are taken modulo
 * what the checkpoint has). The raw reader is base/disk.h with nothing around it. CPU is that
 * of the whole process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/options.h"
#include "base/thread.h"
#include "expertd/serving.h"
#include "expertd/source.h"
#include "tests/expertd/asker.h"

#define RAW_BYTES ((uint64_t)3 << 30)

struct bench {
    struct serving_options serving;
    uint64_t tokens, rows;
    const char *folder, *region, *trace;
    /* its own: */
    struct checkpoint checkpoint;
    struct memory memory;
    struct source source;
    struct tile_set tiles;
    char secret[64];
    uint16_t *traced; /* [token][layer][chosen], layers from dense_layers */
    size_t traced_tokens;
    struct asker asker;
};

static void die(const struct problems *p)
{
    fprintf(stderr, "%s\n", p->text);
    exit(1);
}

static double cpu_now(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void open_source(struct bench *b)
{
    struct problems p;
    problems_init(&p);
    memory_init(&b->memory, 0);
    if (checkpoint_open(&b->checkpoint, b->folder, &p))
        die(&p);
    if (b->region) {
        if (source_packed_open(&b->source, b->region, &b->checkpoint.shape,
                               (bool[]){b->serving.buffered, false}, &b->memory, &p))
            die(&p);
        b->tiles = b->source.tiles;
        return;
    }
    if (tile_set_parse(&b->tiles, &b->checkpoint.shape, b->serving.layers, b->serving.experts,
                       b->serving.bands, &p) ||
        source_inplace_open(&b->source, &b->checkpoint, &b->tiles,
                            (bool[]){b->serving.buffered, false}, &b->memory, &p))
        die(&p);
}

/* ---- routing --------------------------------------------------------------------------- */

static void read_trace(struct bench *b)
{
    const struct shape *s = &b->checkpoint.shape;
    size_t each = (size_t)(s->layers - s->dense_layers) * s->chosen, room = 1 << 20, n = 0;
    unsigned layer, expert;
    FILE *f = fopen(b->trace, "r");
    if (!f) {
        perror(b->trace);
        exit(1);
    }
    b->traced = malloc(room * sizeof *b->traced);
    while (n < room && fscanf(f, "%u %u", &layer, &expert) == 2)
        b->traced[n++] = (uint16_t)(expert % s->experts);
    fclose(f);
    b->traced_tokens = n / each;
}

static int by_number(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* Increasing experts of one row. */
static size_t choose(struct bench *b, uint64_t token, uint32_t layer, uint16_t *expert)
{
    const struct shape *s = &b->checkpoint.shape;
    size_t n = 0;
    if (b->traced_tokens) {
        size_t at =
            token % b->traced_tokens * (s->layers - s->dense_layers) + layer - s->dense_layers;
        memcpy(expert, b->traced + at * s->chosen, s->chosen * sizeof *expert);
        qsort(expert, s->chosen, sizeof *expert, by_number);
        for (size_t i = 0; i < s->chosen; i++)
            if (!n || expert[n - 1] != expert[i])
                expert[n++] = expert[i];
        return n;
    }
    for (uint32_t e = 0; e < s->experts && n < s->chosen; e++)
        if ((uint32_t)rand() % (s->experts - e) < s->chosen - n)
            expert[n++] = (uint16_t)e;
    return n;
}

/* ---- the server ------------------------------------------------------------------------ */

struct result {
    uint64_t bytes, expected, hits;
    double seconds, cpu, *layer_ms;
    size_t layers;
};

static void expect(struct bench *b, const struct compute *c, struct result *r)
{
    bool *seen = calloc(b->checkpoint.shape.experts, 1);
    for (size_t i = 0; i < c->total; i++) {
        struct source_plan plan;
        if (seen[c->experts[i]])
            continue;
        seen[c->experts[i]] = true;
        source_plan(&b->source, (uint32_t[]){c->layer, c->experts[i]}, c->bands, &plan);
        r->expected += plan.bytes;
    }
    free(seen);
}

static void run_layer(struct bench *b, uint64_t token, uint32_t layer, struct result *r)
{
    const struct shape *s = &b->checkpoint.shape;
    struct compute c = {.layer = layer, .rows = (uint32_t)b->rows};
    float *z = calloc(b->rows * s->latent, sizeof *z);
    float *weight = malloc(b->rows * s->chosen * sizeof *weight);
    uint16_t *expert = malloc(b->rows * s->chosen * sizeof *expert);
    uint32_t *count = malloc(b->rows * sizeof *count);
    for (size_t i = 0; i < b->rows * s->latent; i++)
        z[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    for (uint32_t t = 0; t < b->rows; t++) {
        count[t] = (uint32_t)choose(b, token * b->rows + t, layer, expert + c.total);
        c.total += count[t];
    }
    for (size_t i = 0; i < c.total; i++)
        weight[i] = 0.0625f;
    c.bands = tile_set_bands(&b->tiles, layer, expert[0]);
    c.z = z;
    c.counts = count;
    c.experts = expert;
    c.weights = weight;
    expect(b, &c, r);

    struct asker_call call;
    void *done;
    double before = thread_now();
    asker_call_start(&call, &b->asker, &c, s->latent);
    queue_take(&b->asker.done, -1, &done);
    r->layer_ms[r->layers++] = 1e3 * (thread_now() - before);
    if (call.call.error) {
        fprintf(stderr, "layer %u: %s\n", layer, call.call.reason);
        exit(1);
    }
    r->bytes += call.call.reply.reply->compute->bytes_read;
    r->hits += call.call.reply.reply->compute->tiles_hit;
    asker_call_close(&call);
    free(z);
    free(weight);
    free(expert);
    free(count);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void run_server(struct bench *b)
{
    const struct shape *s = &b->checkpoint.shape;
    struct result r = {.layer_ms = malloc(b->tokens * s->layers * sizeof(double))};
    double cpu = cpu_now(), before = thread_now();
    for (uint64_t t = 0; t < b->tokens; t++)
        for (uint32_t l = b->tiles.box[0].layer_first; l < b->tiles.box[0].layer_end; l++)
            run_layer(b, t, l, &r);
    r.seconds = thread_now() - before;
    r.cpu = cpu_now() - cpu;
    qsort(r.layer_ms, r.layers, sizeof *r.layer_ms, by_size);
    printf("server    %7.0f MB/s  %.3f GB in %.2f s (with an empty cache it would be %.3f GB), "
           "%llu tiles hit\n",
           1e-6 * (double)r.bytes / r.seconds, 1e-9 * (double)r.bytes, r.seconds,
           1e-9 * (double)r.expected, (unsigned long long)r.hits);
    printf("a layer   p50 %.1f  p90 %.1f  p99 %.1f ms; %.2f CPU s/GB\n",
           r.layer_ms[r.layers / 2], r.layer_ms[r.layers * 9 / 10],
           r.layer_ms[r.layers * 99 / 100], r.cpu / (1e-9 * (double)r.bytes));
    printf("bytes     %llu read, %llu by arithmetic for an empty cache\n",
           (unsigned long long)r.bytes, (unsigned long long)r.expected);
    free(r.layer_ms);
}

/* ---- the disk alone -------------------------------------------------------------------- */

/* Starts one load of a random expert into a slot; gives its bytes. */
static uint64_t start_load(struct bench *b, struct disk *d, struct disk_read *read,
                           unsigned *left, uint8_t *slot)
{
    const struct tile_box *box = &b->tiles.box[0];
    struct source_plan plan;
    uint32_t at[2] = {box->layer_first + (uint32_t)rand() % (box->layer_end - box->layer_first),
                      box->expert_first +
                          (uint32_t)rand() % (box->expert_end - box->expert_first)};
    source_plan(&b->source, at, source_bands(&b->source, at[0], at[1]), &plan);
    *left = (unsigned)plan.reads;
    for (size_t i = 0; i < plan.reads; i++) {
        read[i] = (struct disk_read){.fd = b->source.fd[plan.read[i].file],
                                     .offset = plan.read[i].offset,
                                     .length = plan.read[i].length,
                                     .buffer = slot + plan.read[i].at,
                                     .owner = left};
        disk_submit(d, &read[i]);
    }
    return plan.bytes;
}

static double raw_rate(struct bench *b, unsigned loads, uint8_t *slots)
{
    size_t stride = (b->source.slot_bytes + DISK_PAGE - 1) / DISK_PAGE * DISK_PAGE;
    struct disk_read *read = calloc(loads * SOURCE_READS, sizeof *read);
    unsigned *left = calloc(loads, sizeof *left), flying = 0;
    uint64_t bytes = 0;
    struct disk *d;
    if (disk_open(&d, 64))
        exit(1);
    double before = thread_now();
    for (; flying < loads; flying++)
        bytes += start_load(b, d, read + flying * SOURCE_READS, &left[flying],
                            slots + flying * stride);
    while (flying) {
        struct disk_read *r = disk_reap(d, -1);
        unsigned *mine = r->owner;
        size_t i = (size_t)(mine - left);
        if (--*mine)
            continue;
        if (bytes < RAW_BYTES)
            bytes += start_load(b, d, read + i * SOURCE_READS, mine, slots + i * stride);
        else
            flying--;
    }
    double seconds = thread_now() - before;
    disk_close(d);
    free(read);
    free(left);
    return 1e-6 * (double)bytes / seconds;
}

static void run_raw(struct bench *b, uint8_t *slots)
{
    static const unsigned loads[] = {1, 4, 8, 16};
    double best = 0;
    printf("disk     ");
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        double rate = raw_rate(b, loads[i], slots);
        best = rate > best ? rate : best;
        printf(" %.0f MB/s with %u experts in flight%s", rate, loads[i], i < 3 ? "," : "");
    }
    printf("; best %.0f\n", best);
    fflush(stdout);
}

/* ---- together -------------------------------------------------------------------------- */

static void run(struct bench *b)
{
    struct problems p;
    struct serving *s = NULL;
    void *slots;
    problems_init(&p);
    snprintf(b->secret, sizeof b->secret, "/tmp/bench-expertd-%d", (int)getpid());
    b->serving.secret = b->secret;
    b->serving.listen = "tcp://127.0.0.1:0";
    open_source(b);
    if (b->trace)
        read_trace(b);
    if (memory_take(&b->memory, "raw", 17 * b->source.slot_bytes, &slots) ||
        secret_make(b->secret, &p) || serving_open(&s, &b->serving, &p) || serving_start(s, &p))
        die(&p);
    asker_open(&b->asker, b->folder, b->secret, serving_address(s));
    run_raw(b, slots);
    run_server(b);
    run_raw(b, slots);
    asker_close(&b->asker);
    serving_close(s);
    unlink(b->secret);
    source_close(&b->source);
    checkpoint_close(&b->checkpoint);
    memory_fini(&b->memory);
    free(b->traced);
}

int main(int argc, char **argv)
{
    struct bench b = {.serving = {.requests = 2}};
    const struct option table[] = {
        {"checkpoint", OPTION_TEXT, &b.folder, NULL, "DIR", "what to serve, in place"},
        {"region", OPTION_TEXT, &b.region, NULL, "PATH", "of it, served instead"},
        {"layers", OPTION_TEXT, &b.serving.layers, NULL, "LIST", "of it; a single range"},
        {"bands", OPTION_TEXT, &b.serving.bands, NULL, "LIST", "of it"},
        {"memory", OPTION_SIZE, &b.serving.memory, "1G", "BYTES", "of the server", 1},
        {"threads", OPTION_COUNT, &b.serving.threads, "0", "N", "of the server", 0, 1024},
        {"buffered", OPTION_FLAG, &b.serving.buffered, NULL, NULL, "without O_DIRECT"},
        {"tokens", OPTION_COUNT, &b.tokens, "8", "N", "to ask for", 1, 1 << 20},
        {"rows", OPTION_COUNT, &b.rows, "1", "N", "of each request", 1, 4096},
        {"trace", OPTION_TEXT, &b.trace, NULL, "FILE", "routing as \"layer expert\" lines"},
    };
    const struct options_program program = {"bench_expertd", "Measures an expert server.", NULL,
                                            table, sizeof table / sizeof *table};
    struct options options;
    options_parse(&program, argc, argv, &options);
    if (!b.folder) {
        fprintf(stderr, "--checkpoint is missing\n");
        return 2;
    }
    b.serving.checkpoint = b.region ? NULL : b.folder;
    b.serving.region = &b.region;
    b.serving.regions = b.region ? 1 : 0;
    b.serving.rows = b.rows > 256 ? b.rows : 256;
    run(&b);
    options_release(&options);
    return 0;
}
