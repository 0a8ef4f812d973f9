/* kapok verify: every byte of a region, or of a checkpoint's experts, against its checksum. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/options.h"
#include "base/thread.h"
#include "client/command.h"
#include "client/region_verify.h"
#include "client/sums_file.h"

struct wanted {
    bool buffered, anew;
};

static int verify_checkpoint(const char *folder, const struct wanted *w, struct problems *p)
{
    struct sums_file_result result = {0};
    struct checkpoint c;
    int r = checkpoint_open(&c, folder, p);
    if (r)
        return r;
    r = sums_file_verify(&c, w->buffered, w->anew, &result, p);
    checkpoint_close(&c);
    if (r)
        return r;
    printf("%s: %llu tiles read, %llu bad; %s/" REGION_SUMS "%s\n", folder,
           (unsigned long long)result.tiles, (unsigned long long)result.bad, folder,
           result.written ? " written"
           : result.bad   ? " left as it was"
                          : " agrees");
    return result.bad ? -EIO : 0;
}

static int verify_region(const char *path, const struct wanted *w, struct problems *p)
{
    struct region_file_options o = {.path = path, .buffered = w->buffered};
    struct region_file f;
    struct memory m;
    uint64_t bad = 0, first;
    memory_init(&m, 0);
    int r = region_file_read(&f, &o, &m, p);
    if (!r) {
        r = region_verify(&f, &m, &bad, &first, p);
        if (!r)
            printf("%s: %llu tiles read, %llu bad\n", path, (unsigned long long)f.region.tiles,
                   (unsigned long long)bad);
        region_file_close(&f);
    }
    memory_fini(&m);
    return r ? r : bad ? -EIO : 0;
}

static int verify(const char *path, const struct wanted *w, struct problems *p)
{
    struct stat st;
    if (stat(path, &st)) {
        problems_add(p, "%s: there is no such file or folder", path);
        return -ENOENT;
    }
    return S_ISDIR(st.st_mode) ? verify_checkpoint(path, w, p) : verify_region(path, w, p);
}

int command_verify(int argc, char **argv)
{
    struct wanted w = {0};
    const struct option table[] = {
        {"anew", OPTION_FLAG, &w.anew, NULL, NULL,
         "Of a checkpoint: write " REGION_SUMS " again from what is read"},
        {"buffered", OPTION_FLAG, &w.buffered, NULL, NULL,
         "Go through the page cache, for file systems without O_DIRECT"},
    };
    const struct options_program program = {
        .name = "kapok verify",
        .purpose =
            "Reads everything and compares it with its checksums; of a checkpoint without "
            "any it writes them to " REGION_SUMS ".",
        .arguments = "REGION|CHECKPOINT",
        .option = table,
        .count = sizeof table / sizeof table[0],
    };
    static struct problems p;
    struct options o;
    thread_block_signals();
    options_parse(&program, argc, argv, &o);
    problems_init(&p);
    int code = COMMAND_USAGE;
    if (o.positional.count != 1) {
        fputs("kapok verify: one REGION or CHECKPOINT is needed\n", stderr);
    } else {
        int r = verify(o.positional.item[0], &w, &p);
        code = r == -ECANCELED ? COMMAND_INTERRUPTED : r ? COMMAND_FAILED : COMMAND_DONE;
    }
    if (p.count)
        fprintf(stderr, "kapok verify: %s\n", p.text);
    options_release(&o);
    return code;
}
