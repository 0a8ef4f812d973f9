/* See the header. Figures come from the hub, the scheduler and the monitor's last round. */
#include "coordinator/status.h"

#include "base/memory.h"

json_t *status_ready_json(struct api *s, bool *ret_ready)
{
    char why[512];

    *ret_ready = !hub_missing(scheduler_hub(s->scheduler), why, sizeof why);
    if (*ret_ready)
        return json_pack("{s:b}", "ready", 1);
    return json_pack("{s:b,s:s}", "ready", 0, "missing", why);
}

static json_t *requests_json(struct api *s)
{
    struct scheduler_status x;

    scheduler_status(s->scheduler, &x);
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f}", "waiting",
                     (json_int_t)x.waiting, "running", (json_int_t)x.running, "kept",
                     (json_int_t)x.kept, "admitted", (json_int_t)x.admitted, "finished",
                     (json_int_t)x.finished, "cancelled", (json_int_t)x.cancelled, "failed",
                     (json_int_t)x.failed, "refused", (json_int_t)x.refused, "prompt_tokens",
                     (json_int_t)x.prompt_tokens, "cached_tokens", (json_int_t)x.cached_tokens,
                     "generated_tokens", (json_int_t)x.generated_tokens, "drafted",
                     (json_int_t)x.drafted, "accepted", (json_int_t)x.accepted, "step_rows",
                     (json_int_t)x.step_rows, "step_seconds", x.step_seconds);
}

static json_t *hub_json(struct api *s)
{
    struct hub_counts x;

    hub_counts(scheduler_hub(s->scheduler), &x);
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "steps", (json_int_t)x.steps, "rows",
                     (json_int_t)x.rows, "resent", (json_int_t)x.resent, "replayed",
                     (json_int_t)x.replayed, "cancelled", (json_int_t)x.cancelled);
}

/* Adds one stage's tiles to the totals. */
static void add_tiles(const json_t *stage, json_int_t *needed, json_int_t *covered)
{
    const json_t *serves = json_object_get(stage, "serves");

    *needed += json_integer_value(json_object_get(serves, "tiles_needed"));
    *covered += json_integer_value(json_object_get(serves, "tiles_covered"));
}

json_t *status_json(struct api *s, unsigned connections)
{
    struct hub *hub = scheduler_hub(s->scheduler);
    json_t *stages = json_array(), *j;
    json_int_t needed = 0, covered = 0;
    bool ready;

    j = status_ready_json(s, &ready);
    for (size_t i = 0; i < hub_stages(hub); i++) {
        json_t *stage = monitor_stage(s->monitor, i);

        add_tiles(stage, &needed, &covered);
        json_array_append_new(stages, stage);
    }
    json_object_set_new(j, "model", json_string(s->model));
    json_object_set_new(j, "uptime_seconds", json_integer(time(NULL) - s->started));
    json_object_set_new(j, "layers", json_integer(s->checkpoint->shape.layers));
    json_object_set_new(j, "tiles",
                        json_pack("{s:I,s:I,s:I}", "model",
                                  (json_int_t)shape_tiles(&s->checkpoint->shape), "needed",
                                  needed, "covered", covered));
    json_object_set_new(j, "requests", requests_json(s));
    json_object_set_new(j, "hub", hub_json(s));
    json_object_set_new(j, "connections", json_integer(connections));
    json_object_set_new(j, "resident_bytes", json_integer((json_int_t)memory_resident()));
    json_object_set_new(j, "stages", stages);
    return j;
}
