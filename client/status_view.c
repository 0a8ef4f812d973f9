/* Tables of a status: see the header. What the JSON does not have is left out, not invented. */
#include "client/status_view.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/jsontext.h"

const char *status_view_bytes(double bytes, char buf[16])
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
    unsigned i = 0;
    for (; bytes >= 999.5 && i < 4; i++)
        bytes /= 1000;
    snprintf(buf, 16, i && bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes, unit[i]);
    return buf;
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

static double number_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static long long count_of(const json_t *o, const char *key)
{
    return (long long)json_integer_value(json_object_get(o, key));
}

static void view_areas(FILE *out, const json_t *stage)
{
    const json_t *areas = json_object_get(json_object_get(stage, "stats"), "areas"), *area;
    size_t i;
    char bytes[16];
    double total = 0;
    if (!json_array_size(areas))
        return;
    fprintf(out, "  memory of %s\n", text_of(stage, "address"));
    json_array_foreach(areas, i, area)
    {
        total += number_of(area, "bytes");
        fprintf(out, "    %-28s %10s\n", text_of(area, "name"),
                status_view_bytes(number_of(area, "bytes"), bytes));
    }
    fprintf(out, "    %-28s %10s\n", "together", status_view_bytes(total, bytes));
}

static void view_peer(FILE *out, const json_t *peer)
{
    char sent[16], received[16];
    fprintf(out, "  expertd  %-24s %-8s %8lld tiles  %9s out %9s in  %7.1f s waited for\n",
            text_of(peer, "address"), text_of(peer, "state"), count_of(peer, "tiles"),
            status_view_bytes(number_of(peer, "bytes_sent"), sent),
            status_view_bytes(number_of(peer, "bytes_received"), received),
            number_of(peer, "straggler_seconds"));
    if (*text_of(peer, "reason"))
        fprintf(out, "           %s\n", text_of(peer, "reason"));
}

static void view_stage(FILE *out, const json_t *stage)
{
    const json_t *link = json_object_get(stage, "link"), *peer;
    const json_t *serves = json_object_get(stage, "serves");
    const json_t *stats = json_object_get(stage, "stats");
    size_t i;
    fprintf(out, "trunk    %-24s %-8s", text_of(stage, "address"), text_of(link, "state"));
    if (json_is_object(serves))
        fprintf(out, " layers %lld-%lld, %lld of %lld tiles covered",
                count_of(serves, "layer_first"), count_of(serves, "layer_end") - 1,
                count_of(serves, "tiles_covered"), count_of(serves, "tiles_needed"));
    fprintf(out, "%s%s\n", json_is_object(stats) ? ", " : "", text_of(stats, "now"));
    if (*text_of(link, "reason"))
        fprintf(out, "           %s\n", text_of(link, "reason"));
    if (*text_of(serves, "missing"))
        fprintf(out, "           %s\n", text_of(serves, "missing"));
    json_array_foreach(json_object_get(stats, "peers"), i, peer) view_peer(out, peer);
    view_areas(out, stage);
}

static void view_head(FILE *out, const json_t *status)
{
    const json_t *tiles = json_object_get(status, "tiles");
    const json_t *requests = json_object_get(status, "requests");
    fprintf(out, "%s: %s", text_of(status, "model"),
            json_is_true(json_object_get(status, "ready")) ? "ready" : "not ready");
    if (*text_of(status, "missing"))
        fprintf(out, " (%s)", text_of(status, "missing"));
    fprintf(out, "\n%lld layers, %lld of %lld tiles covered\n", count_of(status, "layers"),
            count_of(tiles, "covered"), count_of(tiles, "model"));
    fprintf(out, "requests: %lld running, %lld waiting, %lld finished, %lld cancelled, ",
            count_of(requests, "running"), count_of(requests, "waiting"),
            count_of(requests, "finished"), count_of(requests, "cancelled"));
    fprintf(out, "%lld failed; tokens: %lld read, %lld written\n", count_of(requests, "failed"),
            count_of(requests, "prompt_tokens"), count_of(requests, "generated_tokens"));
}

static json_t *parse(const char *text, size_t length)
{
    struct problems p;
    problems_init(&p);
    return jsontext_parse("status", text, length, &p);
}

int status_view(FILE *out, const char *text, size_t length)
{
    json_t *status = parse(text, length), *stage;
    size_t i;
    if (!json_is_object(status)) {
        json_decref(status);
        return -EINVAL;
    }
    view_head(out, status);
    json_array_foreach(json_object_get(status, "stages"), i, stage) view_stage(out, stage);
    json_decref(status);
    return 0;
}
