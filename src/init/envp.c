#include "init/envp.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *text;
    size_t index;
};

static size_t name_len(const char *entry)
{
    return (size_t)(strchrnul(entry, '=') - entry);
}

static int by_name(const void *va, const void *vb)
{
    const struct entry *a = va, *b = vb;
    size_t an = name_len(a->text), bn = name_len(b->text);
    int r = memcmp(a->text, b->text, an < bn ? an : bn);
    if (r == 0 && an != bn)
        r = an < bn ? -1 : 1;
    if (r == 0)
        r = a->index < b->index ? -1 : 1;
    return r;
}

static bool same_name(const char *a, const char *b)
{
    size_t n = name_len(a);
    return n == name_len(b) && memcmp(a, b, n) == 0;
}

/* The given entries in their order, without those that a later one replaces. Sorted, so that a
 * hundred thousand of them cost no more than they should. */
static int keep_last(char *const *given, size_t n, char **out, size_t *ret_n)
{
    size_t kept = 0;
    if (n > 1) {
        struct entry *es = calloc(n, sizeof(*es));
        bool *gone = calloc(n, sizeof(*gone));
        if (!es || !gone) {
            free(es);
            free(gone);
            return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++)
            es[i] = (struct entry){ given[i], i };
        qsort(es, n, sizeof(*es), by_name);
        for (size_t i = 0; i + 1 < n; i++)
            gone[es[i].index] = same_name(es[i].text, es[i + 1].text);
        for (size_t i = 0; i < n; i++)
            if (!gone[i])
                out[kept++] = given[i];
        free(es);
        free(gone);
    } else if (n == 1) {
        out[kept++] = given[0];
    }
    *ret_n = kept;
    return 0;
}

int envp_build(char *const *given, size_t n, const struct account *who, bool terminal,
               char ***ret_envp)
{
    const struct {
        const char *name, *value;
        bool wanted;
    } usual[] = {
        { "PATH", ENVP_PATH, true },   { "HOME", who->home, true },
        { "USER", who->name, true },   { "LOGNAME", who->name, true },
        { "SHELL", who->shell, true }, { "TERM", "xterm-256color", terminal },
    };
    size_t text = 0;
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        text += strlen(usual[i].name) + 1 + strlen(usual[i].value) + 1;
    size_t slots = n + ARRAY_LEN(usual) + 1;
    _cleanup_free_ char **envp = malloc(slots * sizeof(*envp) + text);
    if (!envp)
        return -ENOMEM;
    size_t count;
    int r = keep_last(given, n, envp, &count);
    if (r < 0)
        return r;
    envp[count] = NULL;

    char *at = (char *)(envp + slots);
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        if (!usual[i].wanted || envp_get(envp, usual[i].name))
            continue;
        envp[count++] = at;
        envp[count] = NULL;
        at = stpcpy(stpcpy(stpcpy(at, usual[i].name), "="), usual[i].value) + 1;
    }
    *ret_envp = take_ptr(envp);
    return 0;
}

const char *envp_get(char *const *envp, const char *name)
{
    size_t n = strlen(name);
    for (; *envp; envp++)
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return *envp + n + 1;
    return NULL;
}
