#include "net/pins.h"

#include <errno.h>
#include <string.h>

struct pin {
    struct address to;
    int64_t until_ms;
    char *name;
};

struct pins {
    struct pin *pins;
    size_t n, room;
};

struct pins *pins_new(void)
{
    return calloc(1, sizeof(struct pins));
}

void pins_clear(struct pins *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->pins[i].name);
    p->n = 0;
}

void pins_free(struct pins *p)
{
    if (!p)
        return;
    pins_clear(p);
    free(p->pins);
    free(p);
}

static struct pin *find(const struct pins *p, const char *name, const struct address *to)
{
    for (size_t i = 0; i < p->n; i++)
        if (address_equal(&p->pins[i].to, to) && strcmp(p->pins[i].name, name) == 0)
            return &p->pins[i];
    return NULL;
}

static struct pin *first_to_end(struct pins *p)
{
    struct pin *first = NULL;
    for (size_t i = 0; i < p->n; i++)
        if (!first || p->pins[i].until_ms < first->until_ms)
            first = &p->pins[i];
    return first;
}

static int grow(struct pins *p)
{
    size_t room = p->room ? 2 * p->room : 8;
    struct pin *more = reallocarray(p->pins, room, sizeof(*more));
    if (!more)
        return -ENOMEM;
    p->pins = more;
    p->room = room;
    return 0;
}

int pins_add(struct pins *p, const char *name, const struct address *to, int64_t now_ms,
             int64_t until_ms)
{
    struct pin *pin = find(p, name, to);
    if (pin) {
        if (until_ms > pin->until_ms)
            pin->until_ms = until_ms;
        return 0;
    }
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    pin = first_to_end(p);
    if (pin && (p->n == PINS_MAX || pin->until_ms <= now_ms)) {
        free(pin->name);
    } else {
        if (p->n == p->room && grow(p) < 0) {
            free(copy);
            return -ENOMEM;
        }
        pin = &p->pins[p->n++];
    }
    *pin = (struct pin){ *to, until_ms, copy };
    return 0;
}

bool pins_has(const struct pins *p, const char *name, const struct address *to, int64_t now_ms)
{
    const struct pin *pin = find(p, name, to);
    return pin && pin->until_ms > now_ms;
}

size_t pins_names(const struct pins *p, const struct address *to, int64_t now_ms,
                  const char *ret_names[PINS_NAMES_MAX])
{
    const struct pin *found[PINS_NAMES_MAX];
    size_t n = 0;
    for (size_t i = p->n; i > 0; i--) {
        const struct pin *pin = &p->pins[i - 1];
        if (pin->until_ms <= now_ms || !address_equal(&pin->to, to))
            continue;
        size_t at = n;
        while (at > 0 && found[at - 1]->until_ms < pin->until_ms)
            at--;
        if (at == PINS_NAMES_MAX)
            continue;
        n += n < PINS_NAMES_MAX;
        memmove(&found[at + 1], &found[at], (n - 1 - at) * sizeof(found[0]));
        found[at] = pin;
    }
    for (size_t i = 0; i < n; i++)
        ret_names[i] = found[i]->name;
    return n;
}
