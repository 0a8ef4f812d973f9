/* What a Step brings: read back, and everything a hostile one can claim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "proto/step_rows.h"
#include "tests/proto/frame.h"
#include "tests/proto/tiny.h"

#define ROWS 5

struct sample {
    struct shape shape;
    struct step_rows_limits limits;
    Kapok__Request request;
    Kapok__Step header;
    uint64_t sequence[ROWS], commit_sequence[2];
    uint32_t position[ROWS], token[ROWS], commit_length[2];
    protobuf_c_boolean logits[ROWS];
    struct frame frame;
};

/* Two sequences, mixed, to a stage that runs layers 4 to the end (3 sources each row). */
static void sample_init(struct sample *s)
{
    memset(s, 0, sizeof *s);
    s->shape = tiny_shape();
    s->limits = (struct step_rows_limits){4, 7, 8, 2};
    memcpy(s->sequence, (uint64_t[]){9, 9, 1, 9, 1}, sizeof s->sequence);
    memcpy(s->position, (uint32_t[]){7, 8, 0, 9, 1}, sizeof s->position);
    memcpy(s->token, (uint32_t[]){0, 511, 3, 4, 5}, sizeof s->token);
    s->logits[3] = s->logits[4] = 1;
    s->commit_sequence[0] = 9;
    s->commit_sequence[1] = 1;
    s->commit_length[0] = 7;
    kapok__request__init(&s->request);
    kapok__step__init(&s->header);
    s->request.body_case = KAPOK__REQUEST__BODY_STEP;
    s->request.step = &s->header;
    s->header.number = 77;
    s->header.n_sequence = s->header.n_position = s->header.n_token = s->header.n_logits = ROWS;
    s->header.sequence = s->sequence;
    s->header.position = s->position;
    s->header.token = s->token;
    s->header.logits = s->logits;
    s->header.n_commit_sequence = s->header.n_commit_length = 2;
    s->header.commit_sequence = s->commit_sequence;
    s->header.commit_length = s->commit_length;
}

static size_t input_bytes(const struct sample *s)
{
    return step_rows_bytes(&s->shape, s->limits.layer_first, (uint32_t)s->header.n_sequence);
}

static void refused_with(struct sample *s, size_t payload, const char *sentence)
{
    struct step_rows r = {.number = 5};
    const char *why = "";
    frame_open(&s->frame, &s->request, payload);
    assert_int_equal(step_rows_open(&r, &s->frame.msg, &s->shape, &s->limits, &why), -EBADMSG);
    if (!strstr(why, sentence))
        fail_msg("'%s' is not in: %s", sentence, why);
    assert_int_equal(r.number, 5);
    frame_close(&s->frame);
}

static void refused(struct sample *s, const char *sentence)
{
    refused_with(s, input_bytes(s), sentence);
}

static void what_is_sent_is_read(void **state)
{
    struct sample s;
    struct step_rows r;
    const char *why = "";
    sample_init(&s);
    assert_int_equal(input_bytes(&s), ROWS * 3 * 128 * 4);
    frame_open(&s.frame, &s.request, input_bytes(&s));
    ((float *)frame_payload(&s.frame))[ROWS * 3 * 128 - 1] = 0.5F;
    assert_int_equal(step_rows_open(&r, &s.frame.msg, &s.shape, &s.limits, &why), 0);
    assert_int_equal(r.number, 77);
    assert_int_equal(r.rows, ROWS);
    assert_int_equal(r.wanted, 2);
    assert_int_equal(r.sources, 3);
    assert_memory_equal(r.sequence, s.sequence, sizeof s.sequence);
    assert_memory_equal(r.position, s.position, sizeof s.position);
    assert_memory_equal(r.token, s.token, sizeof s.token);
    assert_int_equal(r.commits, 2);
    assert_memory_equal(r.commit_length, s.commit_length, sizeof s.commit_length);
    assert_true(r.input[ROWS * 3 * 128 - 1] == 0.5F);
    frame_close(&s.frame);
}

static void the_first_stage_has_no_input(void **state)
{
    struct sample s;
    struct step_rows r;
    const char *why = "";
    sample_init(&s);
    s.limits.layer_first = 0;
    s.limits.layer_end = 4;
    frame_open(&s.frame, &s.request, 0);
    assert_int_equal(step_rows_open(&r, &s.frame.msg, &s.shape, &s.limits, &why), 0);
    assert_null(r.input);
    assert_int_equal(r.wanted, 0); /* it is not the last one either */
    assert_int_equal(r.sources, 0);
    frame_close(&s.frame);
    refused_with(&s, 4, "payload's size");
}

static void a_step_may_only_commit(void **state)
{
    struct sample s;
    struct step_rows r;
    const char *why = "";
    sample_init(&s);
    s.header.n_sequence = s.header.n_position = s.header.n_token = s.header.n_logits = 0;
    frame_open(&s.frame, &s.request, 0);
    assert_int_equal(step_rows_open(&r, &s.frame.msg, &s.shape, &s.limits, &why), 0);
    assert_int_equal(r.rows, 0);
    frame_close(&s.frame);
    s.header.n_commit_sequence = s.header.n_commit_length = 0;
    refused_with(&s, 0, "neither rows nor commits");
}

static void arrays_must_be_equally_long(void **state)
{
    for (int which = 0; which < 6; which++) {
        struct sample s;
        sample_init(&s);
        size_t *length[] = {&s.header.n_sequence,        &s.header.n_position,
                            &s.header.n_token,           &s.header.n_logits,
                            &s.header.n_commit_sequence, &s.header.n_commit_length};
        --*length[which];
        refused(&s, "not equally many");
    }
}

static void limits_are_kept(void **state)
{
    struct sample s;
    sample_init(&s);
    s.limits.rows_most = ROWS - 1;
    refused(&s, "more rows than");
    s.limits.rows_most = ROWS;
    s.limits.logits_most = 1;
    refused(&s, "want logits");
}

static void rows_must_be_possible(void **state)
{
    struct sample s;
    sample_init(&s);
    s.token[1] = 512;
    refused(&s, "vocabulary");
    s.token[1] = 511;
    s.position[3] = 10;
    refused(&s, "consecutive");
    s.position[3] = 8;
    refused(&s, "consecutive");
    s.position[0] = s.position[1] = s.position[3] = UINT32_MAX;
    refused(&s, "context");
    sample_init(&s);
    s.position[2] = 4095;
    refused(&s, "consecutive");
    s.position[4] = 4096;
    refused(&s, "context");
    sample_init(&s);
    s.commit_length[1] = 4097;
    refused(&s, "commit");
}

static void sizes_must_match(void **state)
{
    struct sample s;
    sample_init(&s);
    refused_with(&s, 0, "payload's size");
    refused_with(&s, input_bytes(&s) - 1, "payload's size");
    refused_with(&s, input_bytes(&s) + 1, "payload's size");
}

static void input_must_be_finite(void **state)
{
    struct sample s;
    struct step_rows r;
    const char *why = "";
    sample_init(&s);
    frame_open(&s.frame, &s.request, input_bytes(&s));
    ((float *)frame_payload(&s.frame))[17] = NAN;
    assert_int_equal(step_rows_open(&r, &s.frame.msg, &s.shape, &s.limits, &why), -EBADMSG);
    assert_non_null(strstr(why, "finite"));
    frame_close(&s.frame);
}

static void answers_have_a_size(void **state)
{
    struct shape s = tiny_shape();
    assert_int_equal(step_rows_reply_bytes(&s, 7, 5, 2), 2 * 512 * 4);
    assert_int_equal(step_rows_reply_bytes(&s, 3, 5, 2), 5 * 2 * 128 * 4);
    assert_int_equal(step_rows_reply_bytes(&s, 4, 5, 2), 5 * 3 * 128 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_read),
        cmocka_unit_test(the_first_stage_has_no_input),
        cmocka_unit_test(a_step_may_only_commit),
        cmocka_unit_test(arrays_must_be_equally_long),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(rows_must_be_possible),
        cmocka_unit_test(sizes_must_match),
        cmocka_unit_test(input_must_be_finite),
        cmocka_unit_test(answers_have_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
