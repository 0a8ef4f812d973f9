/*
 * Figures of the scheduler, the hub and the links, and every counter the stages tell of
 * themselves (as kapok_trunk_NAME with the stage as a label).
 */
#include "coordinator/metrics.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/http.h"
#include "coordinator/status.h"

static void one(FILE *out, const char *name, const char *type, const char *help, double value)
{
    fprintf(out, "# HELP kapok_%s %s\n# TYPE kapok_%s %s\nkapok_%s %.17g\n", name, help, name,
            type, name, value);
}

static void put_scheduler(FILE *out, struct api *s)
{
    struct scheduler_status x;

    scheduler_status(s->scheduler, &x);
    one(out, "generations_waiting", "gauge", "Generations in the queue.", x.waiting);
    one(out, "generations_running", "gauge", "Generations with rows in the steps.", x.running);
    one(out, "prefixes_kept", "gauge", "Sequences kept for later requests.", x.kept);
    one(out, "generations_finished_total", "counter", "Generations that ended well.",
        (double)x.finished);
    one(out, "generations_cancelled_total", "counter", "Generations nobody wanted any more.",
        (double)x.cancelled);
    one(out, "generations_failed_total", "counter", "Generations that failed.",
        (double)x.failed);
    one(out, "requests_refused_total", "counter", "Requests answered 429.", (double)x.refused);
    one(out, "prompt_tokens_total", "counter", "Tokens of prompts.", (double)x.prompt_tokens);
    one(out, "cached_tokens_total", "counter", "Tokens of prompts that were kept.",
        (double)x.cached_tokens);
    one(out, "generated_tokens_total", "counter", "Tokens generated.",
        (double)x.generated_tokens);
    one(out, "drafted_tokens_total", "counter", "Tokens proposed ahead.", (double)x.drafted);
    one(out, "accepted_tokens_total", "counter", "Proposed tokens that stood.",
        (double)x.accepted);
    one(out, "step_seconds", "gauge", "Age of the step under way.", x.step_seconds);
}

static void put_hub(FILE *out, struct api *s)
{
    struct hub_counts x;
    bool ready;

    hub_counts(scheduler_hub(s->scheduler), &x);
    one(out, "steps_total", "counter", "Steps run.", (double)x.steps);
    one(out, "rows_total", "counter", "Rows of these steps.", (double)x.rows);
    one(out, "calls_resent_total", "counter", "Calls sent to a stage again.", (double)x.resent);
    one(out, "sequences_replayed_total", "counter", "Sequences a stage had lost.",
        (double)x.replayed);
    one(out, "steps_cancelled_total", "counter", "Steps stopped in the middle.",
        (double)x.cancelled);
    json_decref(status_ready_json(s, &ready));
    one(out, "ready", "gauge", "1 when all stages are up and all tiles are held.", ready);
}

/* Metric names are letters, digits and underscores. */
static void put_name(FILE *out, const char *name)
{
    for (; *name != 0; name++)
        fputc(isalnum((unsigned char)*name) ? *name : '_', out);
}

static void put_links(FILE *out, struct hub *hub)
{
    fprintf(out, "# HELP kapok_link_up 1 when the trunk stage answers.\n"
                 "# TYPE kapok_link_up gauge\n");
    for (size_t i = 0; i < hub_stages(hub); i++) {
        struct link_status status;

        link_status(hub_stage(hub, i), &status);
        fprintf(out, "kapok_link_up{stage=\"%zu\"} %d\n", i, status.state == LINK_UP);
    }
}

static void put_stage(FILE *out, struct api *s, size_t stage)
{
    json_t *j = monitor_stage(s->monitor, stage);
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(json_object_get(j, "stats"), "counters"), name, value)
    {
        fputs("kapok_trunk_", out);
        put_name(out, name);
        fprintf(out, "{stage=\"%zu\"} %.17g\n", stage, json_number_value(value));
    }
    json_decref(j);
}

char *metrics_text(struct api *s, unsigned connections)
{
    struct hub *hub = scheduler_hub(s->scheduler);
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        return NULL;
    put_scheduler(out, s);
    put_hub(out, s);
    one(out, "http_connections", "gauge", "Open connections.", connections);
    one(out, "resident_bytes", "gauge", "Memory of the coordinator.",
        (double)memory_resident());
    put_links(out, hub);
    for (size_t i = 0; i < hub_stages(hub); i++)
        put_stage(out, s, i);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
