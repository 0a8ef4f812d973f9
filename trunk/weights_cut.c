/* Pieces of a pass: see the header. Everything here happens once, at open. */
#include "trunk/weights_cut.h"

#include <errno.h>
#include <stdlib.h>

#include "base/disk.h"

#define CUT_SMALL ((size_t)256 << 10) /* pinned first */

static size_t entry_pieces(const struct weights_entry *e)
{
    return (e->rows + e->block_rows - 1) / e->block_rows;
}

static void cut_entry(struct weights_cut *cut, const struct weights_plan *plan, uint32_t at)
{
    const struct weights_entry *e = &plan->entry[at];
    for (uint32_t row = 0; row < e->rows; row += e->block_rows) {
        uint32_t rows = e->rows - row < e->block_rows ? e->rows - row : e->block_rows;
        struct weights_piece *w = &cut->piece[cut->pieces++];
        w->entry = at;
        w->row = row;
        w->rows = rows;
        w->offset = e->offset + (uint64_t)row * e->row_bytes;
        w->length = (size_t)rows * e->row_bytes;
        w->span = disk_span(w->offset, w->length);
        w->skip = (uint32_t)(w->offset - disk_floor(w->offset));
        if (w->span > cut->span_most)
            cut->span_most = w->span;
    }
}

int weights_cut_open(struct weights_cut *cut, const struct weights_plan *plan)
{
    size_t pieces = 0;
    for (size_t i = 0; i < plan->entries; i++)
        pieces += entry_pieces(&plan->entry[i]);
    *cut = (struct weights_cut){.piece = calloc(pieces, sizeof *cut->piece)};
    if (!cut->piece)
        return -ENOMEM;
    for (size_t i = 0; i < plan->entries; i++) {
        if (i == plan->head)
            cut->head = cut->pieces;
        cut_entry(cut, plan, (uint32_t)i);
    }
    if (plan->head == plan->entries)
        cut->head = cut->pieces;
    return 0;
}

void weights_cut_close(struct weights_cut *cut)
{
    free(cut->piece);
    *cut = (struct weights_cut){0};
}

static void pin(struct weights_cut *cut, struct weights_piece *w)
{
    w->pinned = true;
    cut->pinned_bytes += w->span;
}

void weights_cut_pin(struct weights_cut *cut, uint64_t budget)
{
    uint64_t total = 0, before = 0;
    for (size_t i = 0; i < cut->pieces; i++) {
        struct weights_piece *w = &cut->piece[i];
        if (w->span > CUT_SMALL)
            total += w->span;
        else if (cut->pinned_bytes + w->span <= budget)
            pin(cut, w);
    }
    double share = total ? (double)(budget - cut->pinned_bytes) / (double)total : 0;
    uint64_t spread = 0; /* bytes pinned by this loop */
    for (size_t i = 0; i < cut->pieces; i++) {
        struct weights_piece *w = &cut->piece[i];
        if (w->span <= CUT_SMALL)
            continue;
        before += w->span;
        if ((double)(spread + w->span) <= share * (double)before &&
            cut->pinned_bytes + w->span <= budget) {
            pin(cut, w);
            spread += w->span;
        }
    }
    for (size_t i = 0; i < cut->pieces; i++) /* what rounding left over */
        if (!cut->piece[i].pinned && cut->pinned_bytes + cut->piece[i].span <= budget)
            pin(cut, &cut->piece[i]);
}

void weights_cut_settle(struct weights_cut *cut, uint8_t *area)
{
    for (size_t i = 0; i < cut->pieces; i++)
        if (cut->piece[i].pinned) {
            cut->piece[i].home = area;
            area += cut->piece[i].span;
        }
}
