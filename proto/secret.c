/* The secret's file: see the header. */
#include "proto/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static int check_file(int fd, const char *path, struct problems *p)
{
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    if (!S_ISREG(st.st_mode))
        problems_add(p, "secret %s: expected a regular file", path);
    else if (st.st_mode & 077)
        problems_add(p, "secret %s: expected mode 0600, found %04o (others could read it)",
                     path, st.st_mode & 07777);
    else if (st.st_size != SECRET_BYTES)
        problems_add(p, "secret %s: expected %d bytes, found %lld", path, SECRET_BYTES,
                     (long long)st.st_size);
    else
        return 0;
    return -EINVAL;
}

int secret_load(const char *path, uint8_t ret_secret[SECRET_BYTES], struct problems *p)
{
    uint8_t bytes[SECRET_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        int r = -errno;
        problems_add(p, "secret %s: %s", path, strerror(-r));
        return r;
    }
    int r = check_file(fd, path, p);
    if (!r)
        r = file_pread(fd, bytes, sizeof bytes, 0);
    close(fd);
    if (!r)
        memcpy(ret_secret, bytes, sizeof bytes);
    return r;
}

int secret_make(const char *path, struct problems *p)
{
    uint8_t bytes[SECRET_BYTES];
    int r = 0;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        r = -EIO;
    if (!r)
        r = file_write(path, bytes, sizeof bytes, 0600);
    if (r)
        problems_add(p, "secret %s: cannot be written: %s", path, strerror(-r));
    return r;
}

bool secret_equal(const uint8_t *a, const uint8_t *b)
{
    return CRYPTO_memcmp(a, b, SECRET_BYTES) == 0;
}
