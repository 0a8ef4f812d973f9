/* kapok pack: tiles of a checkpoint into a region on a file or block device. */
#include <errno.h>
#include <stdio.h>

#include "base/options.h"
#include "base/thread.h"
#include "client/command.h"
#include "client/pack.h"

struct wanted {
    const char *layers, *experts, *bands;
    struct region_file_options file;
};

static int pack_folder(const char *folder, const struct wanted *w, struct problems *p)
{
    struct checkpoint c;
    struct tile_set tiles;
    int r = checkpoint_open(&c, folder, p);
    if (r)
        return r;
    r = tile_set_parse(&tiles, &c.shape, w->layers, w->experts, w->bands, p);
    if (!r)
        r = pack(&c, &tiles, &w->file, p);
    if (!r)
        printf("%s holds %llu tiles, each read back and right\n", w->file.path,
               (unsigned long long)tile_set_count(&tiles, &c.shape));
    checkpoint_close(&c);
    return r;
}

int command_pack(int argc, char **argv)
{
    struct wanted w = {0};
    const struct option table[] = {
        {"region", OPTION_TEXT, &w.file.path, NULL, "PATH",
         "The file or block device to pack into"},
        {"layers", OPTION_TEXT, &w.layers, NULL, "LIST", "Layers to pack, as 1-5,9"},
        {"experts", OPTION_TEXT, &w.experts, NULL, "LIST", "Experts to pack"},
        {"bands", OPTION_TEXT, &w.bands, NULL, "LIST", "Bands of them to pack"},
        {"overwrite", OPTION_FLAG, &w.file.overwrite, NULL, NULL,
         "Replace whatever PATH holds"},
        {"buffered", OPTION_FLAG, &w.file.buffered, NULL, NULL,
         "Go through the page cache, for file systems without O_DIRECT"},
    };
    const struct options_program program = {
        .name = "kapok pack",
        .purpose = "Packs experts for serving; goes on where an interrupted run stopped.",
        .arguments = "CHECKPOINT",
        .option = table,
        .count = sizeof table / sizeof table[0],
    };
    static struct problems p;
    struct options o;
    thread_block_signals();
    options_parse(&program, argc, argv, &o);
    problems_init(&p);
    int code = COMMAND_USAGE, r = 0;
    if (o.positional.count != 1 || !w.file.path)
        fputs("kapok pack: one CHECKPOINT and --region are needed\n", stderr);
    else
        r = pack_folder(o.positional.item[0], &w, &p), code = r ? COMMAND_FAILED : COMMAND_DONE;
    if (r == -ECANCELED) {
        fputs("kapok pack: interrupted; the same command goes on from here\n", stderr);
        code = COMMAND_INTERRUPTED;
    } else if (p.count) {
        fprintf(stderr, "kapok pack: %s\n", p.text);
    }
    options_release(&o);
    return code;
}
