/* kapok status: what a pipeline is doing, as tables or as the JSON it came as. */
#include <errno.h>
#include <stdio.h>

#include "base/options.h"
#include "client/command.h"
#include "client/fetch.h"
#include "client/status_view.h"
#include "client/target.h"

static int show(const struct target *t, bool json)
{
    struct fetch_request r = {
        .url = t->url, .path = "/v1/kapok/status", .key = target_key(t), .seconds = 30};
    struct fetch_answer a;
    int error = fetch(&r, &a);
    int code = COMMAND_DONE;
    if (error) {
        fprintf(stderr, "kapok status: no pipeline answers at %s: %s\n", t->url, a.reason);
        code = COMMAND_UNAVAILABLE;
    } else if (a.status != 200) {
        fprintf(stderr, "kapok status: %s answers HTTP %ld: %s\n", t->url, a.status,
                a.text ? a.text : "");
        code = COMMAND_FAILED;
    } else if (json) {
        puts(a.text);
    } else if (status_view(stdout, a.text, a.length)) {
        fprintf(stderr, "kapok status: %s does not answer like a coordinator of Kapok\n",
                t->url);
        code = COMMAND_FAILED;
    }
    fetch_release(&a);
    return code;
}

int command_status(int argc, char **argv)
{
    struct target t = {0};
    bool json = false;
    const struct option table[] = {
        TARGET_OPTIONS(&t),
        {"json", OPTION_FLAG, &json, NULL, NULL, "Print the status as JSON"},
    };
    const struct options_program program = {
        .name = "kapok status",
        .purpose = "Shows what a pipeline is doing: processes, tiles, links, memory.",
        .option = table,
        .count = sizeof table / sizeof table[0],
    };
    struct options o;
    struct problems p;
    options_parse(&program, argc, argv, &o);
    problems_init(&p);
    int code = COMMAND_USAGE;
    if (target_find(&t, &p))
        fprintf(stderr, "kapok status: %s\n", p.text);
    else
        code = show(&t, json);
    options_release(&o);
    return code;
}
