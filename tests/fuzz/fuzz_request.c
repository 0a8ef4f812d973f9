/* Requests as a server reads them: the frame, then the payloads of Compute and Step. */
#include <string.h>

#include "proto/compute.h"
#include "proto/msg.h"
#include "proto/step_rows.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/samples.h"
#include "tests/proto/tiny.h"

/* Reads all of it, which a sanitizer watches. */
static void touch(const void *bytes, size_t length)
{
    const uint8_t *b = bytes;
    uint8_t all = 0;
    for (size_t i = 0; i < length; i++)
        all |= b[i];
    __asm__ volatile("" : : "r"(all));
}

static void read_compute(const struct msg *m, const struct shape *s)
{
    struct compute c;
    const char *why;
    if (compute_open(&c, m, s, &why))
        return;
    touch(c.z, (size_t)c.rows * s->latent * sizeof *c.z);
    touch(c.counts, c.rows * sizeof *c.counts);
    touch(c.experts, c.total * sizeof *c.experts);
    touch(c.weights, c.total * sizeof *c.weights);
}

static void read_step(const struct msg *m, const struct shape *s)
{
    static const struct step_rows_limits limits[] = {{0, 4, 64, 8}, {4, 7, 64, 8}};
    for (int i = 0; i < 2; i++) {
        struct step_rows r;
        const char *why;
        if (step_rows_open(&r, m, s, &limits[i], &why))
            continue;
        touch(r.input, (size_t)r.rows * r.sources * s->hidden * sizeof *r.input);
        touch(r.sequence, r.rows * sizeof *r.sequence);
        touch(r.position, r.rows * sizeof *r.position);
        touch(r.token, r.rows * sizeof *r.token);
        touch(r.logits, r.rows * sizeof *r.logits);
        touch(r.commit_sequence, r.commits * sizeof *r.commit_sequence);
        touch(r.commit_length, r.commits * sizeof *r.commit_length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct shape shape;
    struct msg m;
    const char *why;
    if (!shape.layers)
        shape = tiny_shape();
    if (msg_request_open(&m, bytes, length, &why))
        return 0;
    if (m.request->body_case == KAPOK__REQUEST__BODY_COMPUTE)
        read_compute(&m, &shape);
    if (m.request->body_case == KAPOK__REQUEST__BODY_STEP)
        read_step(&m, &shape);
    msg_close(&m);
    return 0;
}

/* A Compute that is taken whole. */
static size_t good_compute(uint8_t *out)
{
    static const float z[2 * 64] = {0.5F}, weights[3] = {0.25F, 0.5F, 1};
    static const uint16_t experts[3] = {1, 5, 2};
    uint32_t counts[2] = {2, 1};
    struct shape shape = tiny_shape();
    Kapok__Compute h = KAPOK__COMPUTE__INIT;
    Kapok__Request r = KAPOK__REQUEST__INIT;
    struct compute c = {3, 2, 0xfff, z, counts, experts, weights, 3};
    h.layer = 3;
    h.bands = 0xfff;
    h.rows = 2;
    h.n_counts = 2;
    h.counts = counts;
    r.body_case = KAPOK__REQUEST__BODY_COMPUTE;
    r.compute = &h;
    msg_request_pack(&r, out);
    compute_write(&c, &shape, out + msg_request_frame(&r));
    return msg_request_frame(&r) + compute_bytes(&shape, 2, 3);
}

/* A Step to a stage from layer 4 on that is taken whole. */
static size_t good_step(uint8_t *out)
{
    uint64_t sequence[] = {1, 1};
    uint32_t position[] = {0, 1}, token[] = {3, 7};
    protobuf_c_boolean logits[] = {0, 1};
    struct shape shape = tiny_shape();
    Kapok__Step h = KAPOK__STEP__INIT;
    Kapok__Request r = KAPOK__REQUEST__INIT;
    h.number = 9;
    h.n_sequence = h.n_position = h.n_token = h.n_logits = 2;
    h.sequence = sequence;
    h.position = position;
    h.token = token;
    h.logits = logits;
    r.body_case = KAPOK__REQUEST__BODY_STEP;
    r.step = &h;
    msg_request_pack(&r, out);
    memset(out + msg_request_frame(&r), 0, step_rows_bytes(&shape, 4, 2));
    return msg_request_frame(&r) + step_rows_bytes(&shape, 4, 2);
}

size_t fuzz_seed(size_t i, uint8_t *out)
{
    size_t count;
    const struct samples_request *sample = samples_requests(&count);
    if (i == count)
        return good_compute(out);
    if (i == count + 1)
        return good_step(out);
    if (i > count)
        return 0;
    msg_request_pack(&sample[i].message, out);
    return msg_request_frame(&sample[i].message);
}
