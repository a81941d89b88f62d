#include "dockerfile/duration.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const struct unit {
    const char *name;
    double ns;
} units[] = { /* the longer name first: "ms" begins like "m" */
              { "ns", 1 },  { "us", 1e3 }, { "\xc2\xb5s", 1e3 }, { "ms", 1e6 },
              { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 }
};

static const struct unit *unit_of(const char *p)
{
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strncmp(p, units[i].name, strlen(units[i].name)) == 0)
            return &units[i];
    return NULL;
}

int duration_parse(const char *text, int64_t *ret_ns)
{
    double total = 0;
    if (strcmp(text, "0") == 0) {
        *ret_ns = 0;
        return 0;
    }
    if (!*text)
        return -EINVAL;
    for (const char *p = text; *p;) {
        size_t n = strspn(p, "0123456789.");
        char number[24], *end;
        if (n == 0 || n >= sizeof(number) || !isdigit((unsigned char)p[0]))
            return -EINVAL;
        memcpy(number, p, n);
        number[n] = '\0';
        double v = strtod(number, &end);
        const struct unit *u = unit_of(p + n);
        if (*end || !u)
            return -EINVAL;
        total += v * u->ns;
        p += n + strlen(u->name);
    }
    if (total > 9e18)
        return -EINVAL;
    *ret_ns = (int64_t)total;
    return 0;
}
