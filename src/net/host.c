#include "net/host.h"

#include <errno.h>
#include <string.h>

#define LABEL_MAX 63

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool label_char(char c)
{
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

static bool label_valid(const char *p, size_t n)
{
    if (n == 0 || n > LABEL_MAX || p[0] == '-' || p[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!label_char(p[i]))
            return false;
    return true;
}

/* Readers of addresses take "1", "0x7f.1" and the like for one, by their last part. */
static bool numeric(const char *label)
{
    if (label[0] == '0' && label[1] == 'x')
        return strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
    return strspn(label, "0123456789") == strlen(label);
}

int host_canon(const char *p, size_t n, char out[HOST_SIZE])
{
    char name[HOST_SIZE];
    size_t start = 0;
    if (n && p[n - 1] == '.')
        n--;
    if (n == 0 || n >= sizeof(name))
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        name[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] - 'A' + 'a') : p[i];
    name[n] = '\0';
    for (size_t i = 0; i <= n; i++) {
        if (i < n && name[i] != '.')
            continue;
        if (!label_valid(name + start, i - start))
            return -EINVAL;
        if (i == n && numeric(name + start))
            return -EINVAL;
        start = i + 1;
    }
    memcpy(out, name, n + 1);
    return 0;
}

int host_pattern(const char *p, size_t n, char out[HOST_SIZE])
{
    char name[HOST_SIZE];
    if (n < 2 || p[0] != '*' || p[1] != '.')
        return host_canon(p, n, out);
    int r = host_canon(p + 2, n - 2, name);
    size_t len = r < 0 ? 0 : strlen(name);
    /* "*.com" is hardly ever meant, and is all that a typo needs. */
    if (r < 0 || !strchr(name, '.') || len + 2 >= HOST_SIZE)
        return -EINVAL;
    out[0] = '*';
    out[1] = '.';
    memcpy(out + 2, name, len + 1);
    return 0;
}

bool host_matches(const char *pattern, const char *name)
{
    if (pattern[0] != '*')
        return strcmp(pattern, name) == 0;
    size_t n = strlen(name), tail = strlen(pattern + 1); /* with its dot */
    return n > tail && strcmp(name + n - tail, pattern + 1) == 0;
}
