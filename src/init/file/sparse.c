#include "init/file/sparse.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 4096u

static bool is_zero(const char *p, size_t n)
{
    return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static int write_at(int fd, uint64_t at, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t r = pwrite(fd, p, n, (off_t)at);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        p += r;
        at += (uint64_t)r;
        n -= (size_t)r;
    }
    return 0;
}

int sparse_write(int fd, uint64_t *pos, const char *p, size_t n)
{
    uint64_t at = *pos, from = at; /* what lies between them is to be written */
    const char *end = p + n, *p_from = p;
    while (p < end) {
        size_t block = BLOCK - (size_t)(at % BLOCK), left = (size_t)(end - p);
        if (block > left)
            block = left;
        bool hole = block == BLOCK && is_zero(p, BLOCK);
        if (hole && at > from) {
            int r = write_at(fd, from, p_from, (size_t)(p - p_from));
            if (r < 0)
                return r;
        }
        p += block;
        at += block;
        if (hole) {
            from = at;
            p_from = p;
        }
    }
    *pos = at;
    return write_at(fd, from, p_from, (size_t)(p - p_from));
}
