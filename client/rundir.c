/* The run directory: see the header. */
#include "client/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define URL_FILE "url"

void rundir_name(struct rundir *d, const char *path)
{
    d->lock = -1;
    if (path)
        snprintf(d->path, sizeof d->path, "%s", path);
    else if (geteuid() == 0)
        snprintf(d->path, sizeof d->path, "/run/kapok");
    else
        snprintf(d->path, sizeof d->path, "/tmp/kapok-%u", geteuid());
}

const char *rundir_file(const struct rundir *d, const char *name, char *buf)
{
    snprintf(buf, RUNDIR_PATH + 64, "%s/%s", d->path, name);
    return buf;
}

static int check_owner(const struct rundir *d, struct problems *p)
{
    struct stat st;
    if (lstat(d->path, &st))
        return -errno;
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
        return 0;
    problems_add(p,
                 "run directory %s: expected a directory of user %u that nobody else can write "
                 "to, found owner %u, mode %04o",
                 d->path, geteuid(), st.st_uid, st.st_mode & 07777);
    return -EPERM;
}

static int take_lock(struct rundir *d, struct problems *p)
{
    char path[RUNDIR_PATH + 64];
    d->lock = open(rundir_file(d, "lock", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (d->lock < 0)
        return -errno;
    if (!flock(d->lock, LOCK_EX | LOCK_NB))
        return 0;
    int r = -errno;
    if (r == -EWOULDBLOCK) {
        problems_add(p,
                     "run directory %s: another pipeline runs there (--run-dir names another)",
                     d->path);
        r = -EBUSY;
    }
    close(d->lock);
    d->lock = -1;
    return r;
}

int rundir_open(struct rundir *d, struct problems *p)
{
    size_t before = p->count;
    int r = mkdir(d->path, 0700) && errno != EEXIST ? -errno : 0;
    if (!r)
        r = check_owner(d, p);
    if (!r)
        r = take_lock(d, p);
    if (r && p->count == before)
        problems_add(p, "run directory %s: %s", d->path, strerror(-r));
    return r;
}

void rundir_close(struct rundir *d)
{
    if (d->lock < 0)
        return; /* what lies there is another pipeline's */
    rundir_remove(d, URL_FILE);
    close(d->lock);
    d->lock = -1;
}

int rundir_write(const struct rundir *d, const char *name, const char *text)
{
    char path[RUNDIR_PATH + 64];
    return file_write(rundir_file(d, name, path), text, strlen(text), 0600);
}

void rundir_remove(const struct rundir *d, const char *name)
{
    char path[RUNDIR_PATH + 64];
    unlink(rundir_file(d, name, path));
}

int rundir_url(const struct rundir *d, char *buf, size_t size)
{
    char path[RUNDIR_PATH + 64], *text;
    size_t length;
    int r = file_read(rundir_file(d, URL_FILE, path), 1024, &text, &length);
    if (r)
        return r;
    snprintf(buf, size, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
    return 0;
}
