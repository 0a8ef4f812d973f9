/*
 * kapok run: continues a prompt. Text (or token ids, for a prompt of token ids) goes to
 * stdout as it comes; a live line and the figures go to stderr when that is a terminal. Ctrl-C
 * ends the request, which cancels the generation.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "client/command.h"
#include "client/completion.h"
#include "client/model_name.h"
#include "client/status_view.h"

struct run {
    struct target target;
    const char *ids, *text, *model;
    char served[256]; /* the model's name when none is given */
    uint64_t max_tokens, seed;
    double temperature, top_p;
    bool json;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    interrupted = signal;
}

static bool is_interrupted(void *context)
{
    return interrupted != 0;
}

/* "3,7,11" as an array; NULL with a sentence. */
static json_t *parse_ids(const char *text, struct problems *p)
{
    json_t *ids = json_array();
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        unsigned long id = strtoul(at, &end, 10);
        if (end == at || *at < '0' || *at > '9' || errno || (*end && *end != ',')) {
            problems_add(p, "--ids %.80s: expected token ids like 3,7,11", text);
            json_decref(ids);
            return NULL;
        }
        json_array_append_new(ids, json_integer((json_int_t)id));
        at = end;
        if (!*at)
            return ids;
    }
}

static json_t *make_body(const struct run *r, struct problems *p)
{
    json_t *prompt = r->ids ? parse_ids(r->ids, p) : json_string(r->text);
    if (!prompt) {
        if (!r->ids)
            problems_add(p, "the prompt is not UTF-8");
        return NULL;
    }
    return json_pack("{s:o,s:I,s:f,s:f,s:I,s:b,s:{s:b}}", "prompt", prompt, "max_tokens",
                     (json_int_t)r->max_tokens, "temperature", r->temperature, "top_p",
                     r->top_p, "seed", (json_int_t)r->seed, "stream", 1, "stream_options",
                     "include_usage", 1);
}

static void print_figures(const struct completion *c)
{
    const json_t *bytes = json_object_get(c->kapok, "bytes_read");
    const json_t *seconds = json_object_get(c->kapok, "seconds");
    double trunk = json_number_value(json_object_get(bytes, "trunk"));
    double experts = json_number_value(json_object_get(bytes, "experts"));
    char a[16], b[16];
    fprintf(stderr, "[%zu tokens; prefill %.2f s, decode %.2f s; read %s dense, %s experts]\n",
            json_array_size(c->ids), json_number_value(json_object_get(seconds, "prefill")),
            json_number_value(json_object_get(seconds, "decode")), status_view_bytes(trunk, a),
            status_view_bytes(experts, b));
}

static void print_result(const struct run *r, const struct completion *c)
{
    if (r->json) {
        json_t *j = completion_json(c);
        json_dumpf(j, stdout, JSON_COMPACT);
        json_decref(j);
    }
    putchar('\n');
    if (isatty(2))
        print_figures(c);
}

/* The message of an error in OpenAI's shape, or the text itself. */
static void print_refusal(const struct fetch_answer *a)
{
    json_t *j = json_loads(a->text ? a->text : "", 0, NULL);
    const json_t *error = json_object_get(j, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    fprintf(stderr, "kapok run: HTTP %ld: %s\n", a->status,
            message   ? message
            : a->text ? a->text
                      : "");
    json_decref(j);
}

static int judge(const struct run *r, const struct completion *c, int error,
                 const struct fetch_answer *a)
{
    if (error == -EINTR) {
        fputs("kapok run: interrupted, the generation is cancelled\n", stderr);
        return COMMAND_INTERRUPTED;
    }
    if (error) {
        fprintf(stderr, "kapok run: %s at %s: %s\n",
                a->status ? "the answer broke off" : "no pipeline answers", r->target.url,
                a->reason);
        return COMMAND_UNAVAILABLE;
    }
    if (a->status != 200) {
        print_refusal(a);
        return a->status == 503 ? COMMAND_UNAVAILABLE : COMMAND_FAILED;
    }
    if (c->problem[0] || !c->done) {
        fprintf(stderr, "kapok run: %s\n", c->problem[0] ? c->problem : "the answer broke off");
        return COMMAND_FAILED;
    }
    print_result(r, c);
    return COMMAND_DONE;
}

/* Puts the model's name into the body; asks for it when none was given. */
static int name_model(struct run *r, json_t *body)
{
    struct fetch_answer a = {0};
    int code = COMMAND_DONE;
    int error = r->model ? 0 : model_name_find(&r->target, r->served, sizeof r->served, &a);
    if (error == -EPROTO && a.status != 200) {
        print_refusal(&a);
        code = COMMAND_FAILED;
    } else if (error == -EPROTO) {
        fprintf(stderr, "kapok run: %s names no model it serves\n", r->target.url);
        code = COMMAND_FAILED;
    } else if (error) {
        fprintf(stderr, "kapok run: no pipeline answers at %s: %s\n", r->target.url, a.reason);
        code = COMMAND_UNAVAILABLE;
    } else {
        json_object_set_new(body, "model", json_string(r->model ? r->model : r->served));
    }
    fetch_release(&a);
    return code;
}

static int generate(const struct run *r, const json_t *body)
{
    struct completion c;
    struct fetch_answer a = {0};
    completion_init(&c);
    c.quiet = r->json;
    c.show_ids = r->ids != NULL;
    c.progress = isatty(2) && (r->json || !isatty(1));
    c.stop = is_interrupted;
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int code = judge(r, &c, completion_run(&c, &r->target, body, &a), &a);
    fetch_release(&a);
    completion_fini(&c);
    return code;
}

static void read_options(struct run *r, int argc, char **argv, struct options *o)
{
    const struct option table[] = {
        TARGET_OPTIONS(&r->target),
        {"model", OPTION_TEXT, &r->model, NULL, "NAME",
         "The model to ask (default: the one that is served)"},
        {"ids", OPTION_TEXT, &r->ids, NULL, "3,7,11", "The prompt as token ids"},
        {"max-tokens", OPTION_COUNT, &r->max_tokens, "32", "N", "Most tokens to generate", 1},
        {"temperature", OPTION_REAL, &r->temperature, "0", "T",
         "0: always the likeliest token"},
        {"top-p", OPTION_REAL, &r->top_p, "0.95", "P",
         "Nucleus, when the temperature is not 0"},
        {"seed", OPTION_COUNT, &r->seed, "0", "K", "Same seed, same tokens"},
        {"json", OPTION_FLAG, &r->json, NULL, NULL, "Print one JSON object at the end"},
    };
    const struct options_program program = {
        .name = "kapok run",
        .purpose = "Continues a prompt.",
        .arguments = "[TEXT]",
        .option = table,
        .count = sizeof table / sizeof table[0],
    };
    options_parse(&program, argc, argv, o);
}

int command_run(int argc, char **argv)
{
    struct run r = {0};
    struct options o;
    struct problems p;
    json_t *body = NULL;
    read_options(&r, argc, argv, &o);
    problems_init(&p);
    if (o.positional.count == 1)
        r.text = o.positional.item[0];
    if (o.positional.count > 1 || !r.text == !r.ids)
        problems_add(&p, "expected one prompt, TEXT in quotes or --ids 3,7,11");
    else if (!target_find(&r.target, &p))
        body = make_body(&r, &p);
    int code = COMMAND_USAGE;
    if (p.count)
        fprintf(stderr, "kapok run: %s\n", p.text);
    else if ((code = name_model(&r, body)) == COMMAND_DONE)
        code = generate(&r, body);
    json_decref(body);
    options_release(&o);
    return code;
}
