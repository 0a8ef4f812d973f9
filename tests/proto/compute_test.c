/* The payload of Compute: written and read back, and everything a hostile one can claim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/compute.h"
#include "tests/proto/frame.h"
#include "tests/proto/tiny.h"

#define ROWS  3
#define TOTAL 5 /* an odd number: the weights need padding before them */

struct sample {
    struct shape shape;
    Kapok__Request request;
    Kapok__Compute header;
    uint32_t counts[ROWS];
    uint16_t experts[TOTAL];
    float weights[TOTAL];
    float z[ROWS * 64];
    struct frame frame;
};

static void sample_init(struct sample *s)
{
    memset(s, 0, sizeof *s);
    s->shape = tiny_shape();
    memcpy(s->counts, (uint32_t[]){2, 0, 3}, sizeof s->counts);
    memcpy(s->experts, (uint16_t[]){4, 31, 0, 1, 2}, sizeof s->experts);
    for (int i = 0; i < TOTAL; i++)
        s->weights[i] = (float)(i + 1) / 8;
    for (int i = 0; i < ROWS * 64; i++)
        s->z[i] = (float)(i - 90);
    kapok__request__init(&s->request);
    kapok__compute__init(&s->header);
    s->request.body_case = KAPOK__REQUEST__BODY_COMPUTE;
    s->request.compute = &s->header;
    s->header.layer = 3;
    s->header.bands = 0x801;
    s->header.rows = s->header.n_counts = ROWS;
    s->header.counts = s->counts;
}

/* The message of the sample as it stands, `more` bytes longer than it should be. */
static void sample_send(struct sample *s, long more)
{
    struct compute c = {.layer = s->header.layer,
                        .rows = ROWS,
                        .bands = s->header.bands,
                        .z = s->z,
                        .counts = s->counts,
                        .experts = s->experts,
                        .weights = s->weights,
                        .total = TOTAL};
    size_t bytes = compute_bytes(&s->shape, ROWS, TOTAL);
    uint8_t *payload = malloc(bytes);
    compute_write(&c, &s->shape, payload);
    frame_open(&s->frame, &s->request, bytes + (size_t)more);
    memcpy(frame_payload(&s->frame), payload, more < 0 ? bytes - (size_t)-more : bytes);
    free(payload);
}

static void refused_by(struct sample *s, long more, const char *sentence)
{
    struct compute c = {.rows = 99};
    const char *why = "";
    sample_send(s, more);
    assert_int_equal(compute_open(&c, &s->frame.msg, &s->shape, &why), -EBADMSG);
    if (!strstr(why, sentence))
        fail_msg("'%s' is not in: %s", sentence, why);
    assert_int_equal(c.rows, 99);
    frame_close(&s->frame);
}

static void what_is_written_is_read(void **state)
{
    struct sample s;
    struct compute c;
    const char *why;
    sample_init(&s);
    sample_send(&s, 0);
    assert_int_equal(s.frame.msg.payload_bytes, ROWS * 64 * 4 + 12 + TOTAL * 4);
    assert_int_equal(compute_open(&c, &s.frame.msg, &s.shape, &why), 0);
    assert_int_equal(c.layer, 3);
    assert_int_equal(c.bands, 0x801);
    assert_int_equal(c.rows, ROWS);
    assert_int_equal(c.total, TOTAL);
    assert_memory_equal(c.z, s.z, sizeof s.z);
    assert_memory_equal(c.counts, s.counts, sizeof s.counts);
    assert_memory_equal(c.experts, s.experts, sizeof s.experts);
    assert_memory_equal(c.weights, s.weights, sizeof s.weights);
    frame_close(&s.frame);
}

static void sizes_must_match(void **state)
{
    struct sample s;
    sample_init(&s);
    for (long more = -(ROWS * 64 * 4 + 12 + TOTAL * 4); more <= 64; more++)
        if (more)
            refused_by(&s, more, "payload's size");
}

static void headers_must_fit_the_shape(void **state)
{
    struct sample s;
    sample_init(&s);
    s.header.layer = 0;
    refused_by(&s, 0, "no experts");
    s.header.layer = 7;
    refused_by(&s, 0, "no experts");
    s.header.layer = UINT32_MAX;
    refused_by(&s, 0, "no experts");
    s.header.layer = 6;
    s.header.bands = 0;
    refused_by(&s, 0, "bands");
    s.header.bands = 1 << 12;
    refused_by(&s, 0, "bands");
    s.header.bands = 1;
    s.header.rows = 0;
    refused_by(&s, 0, "rows");
    s.header.rows = ROWS + 1;
    refused_by(&s, 0, "rows");
    s.header.rows = UINT32_MAX;
    refused_by(&s, 0, "rows");
}

static void counts_must_be_possible(void **state)
{
    struct sample s;
    sample_init(&s);
    s.counts[1] = 33;
    refused_by(&s, 0, "payload's size");
    s.counts[1] = UINT32_MAX;
    refused_by(&s, 0, "payload's size");
    s.counts[1] = 1;
    refused_by(&s, 0, "payload's size");
}

static void experts_must_increase(void **state)
{
    struct sample s;
    sample_init(&s);
    s.experts[1] = 4;
    refused_by(&s, 0, "increase");
    s.experts[1] = 3;
    refused_by(&s, 0, "increase");
    s.experts[1] = 32;
    refused_by(&s, 0, "exist");
    s.experts[1] = 31;
    s.experts[4] = UINT16_MAX;
    refused_by(&s, 0, "exist");
}

static void numbers_must_be_finite(void **state)
{
    struct sample s;
    sample_init(&s);
    s.z[ROWS * 64 - 1] = NAN;
    refused_by(&s, 0, "input is not finite");
    s.z[ROWS * 64 - 1] = -INFINITY;
    refused_by(&s, 0, "input is not finite");
    s.z[ROWS * 64 - 1] = 0;
    s.weights[TOTAL - 1] = INFINITY;
    refused_by(&s, 0, "weight is not finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),    cmocka_unit_test(sizes_must_match),
        cmocka_unit_test(headers_must_fit_the_shape), cmocka_unit_test(counts_must_be_possible),
        cmocka_unit_test(experts_must_increase),      cmocka_unit_test(numbers_must_be_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
