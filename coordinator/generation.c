/* Memory of a generation: its record and the tokens it may come to. */
#include "coordinator/generation.h"

#include <stdlib.h>
#include <string.h>

struct generation *generation_open(const uint32_t *prompt, uint32_t count, uint32_t most)
{
    struct generation *g = calloc(1, sizeof *g);

    if (g == NULL)
        return NULL;
    g->seq.room = count + most;
    g->seq.token = malloc(((size_t)g->seq.room + DRAFT_MOST) * sizeof *g->seq.token);
    if (g->seq.token == NULL) {
        free(g);
        return NULL;
    }
    memcpy(g->seq.token, prompt, count * sizeof *prompt);
    g->seq.count = g->prompt = count;
    g->most = most;
    g->sampling.top_p = 1;
    digest_init(&g->digest);
    draft_init(&g->draft);
    return g;
}

void generation_close(struct generation *g)
{
    if (g == NULL)
        return;
    free(g->seq.token);
    free(g);
}
