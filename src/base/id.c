#include "base/id.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

int random_bytes(void *out, size_t n)
{
    char *at = out;
    while (n > 0) {
        ssize_t r = getrandom(at, n, 0);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        at += r;
        n -= (size_t)r;
    }
    return 0;
}

int id_random(char out[ID_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char raw[ID_LEN * 2];
    size_t have = 0;
    while (have < ID_LEN) {
        int r = random_bytes(raw, sizeof(raw));
        if (r < 0)
            return r;
        for (size_t i = 0; i < sizeof(raw) && have < ID_LEN; i++) {
            /* Reject what would favour some characters. */
            unsigned span = have == 0 ? 26 : 36, limit = 256 - 256 % span;
            if (raw[i] < limit)
                out[have++] = letters[raw[i] % span];
        }
    }
    out[ID_LEN] = '\0';
    return 0;
}

bool id_valid(const char *id)
{
    if (strnlen(id, ID_LEN + 1) != ID_LEN || id[0] < 'a' || id[0] > 'z')
        return false;
    for (const char *p = id; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')))
            return false;
    return true;
}

static bool alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool name_valid(const char *name)
{
    size_t n = strnlen(name, NAME_MAX_LEN + 1);
    if (n == 0 || n > NAME_MAX_LEN || !alnum(name[0]))
        return false;
    for (const char *p = name; *p; p++)
        if (!alnum(*p) && *p != '.' && *p != '_' && *p != '-')
            return false;
    return true;
}
