#include "cli/lineage.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define NONE ((size_t)-1)

struct node {
    const char *id;
    size_t parent, first, next; /* the first child, and the next one of the same parent */
    bool drawn;
};

struct drawing {
    const json_t *list;
    struct node *nodes;
    struct lineage_row *rows;
    size_t n, done, trees;
};

struct named {
    const char *id;
    size_t at;
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->id, ((const struct named *)b)->id);
}

/* Children keep the list's order: the last is looked at first, and put in front. */
static void link_nodes(struct drawing *d)
{
    struct named *index = xcalloc(d->n + 1, sizeof(*index));
    for (size_t i = 0; i < d->n; i++) {
        d->nodes[i] =
            (struct node){ member_text(json_array_get(d->list, i), "id"), NONE, NONE, NONE, false };
        index[i] = (struct named){ d->nodes[i].id, i };
    }
    qsort(index, d->n, sizeof(*index), by_id);
    for (size_t i = d->n; i-- > 0;) {
        const struct named key = { member_text(json_array_get(d->list, i), "parent"), 0 };
        const struct named *found =
            *key.id ? bsearch(&key, index, d->n, sizeof(*index), by_id) : NULL;
        if (!found || found->at == i)
            continue;
        d->nodes[i].parent = found->at;
        d->nodes[i].next = d->nodes[found->at].first;
        d->nodes[found->at].first = i;
    }
    free(index);
}

static void put_row(struct drawing *d, size_t at, char *stem)
{
    d->nodes[at].drawn = true;
    d->rows[d->done++] = (struct lineage_row){ json_array_get(d->list, at), stem, d->trees };
}

/* `before` is what all rows of this line begin with, `dot` what the first does. */
static void draw_line(struct drawing *d, size_t at, const char *before, const char *dot)
{
    put_row(d, at, xasprintf("%s● ", dot));
    for (;;) {
        size_t child = d->nodes[at].first;
        if (child == NONE || d->nodes[child].drawn)
            return;
        if (d->nodes[child].next != NONE)
            break;
        at = child;
        put_row(d, at, xasprintf("%s│ ", before));
    }
    for (size_t c = d->nodes[at].first; c != NONE; c = d->nodes[c].next) {
        bool last = d->nodes[c].next == NONE;
        _cleanup_free_ char *inner = xasprintf("%s%s", before, last ? "  " : "│ ");
        _cleanup_free_ char *first = xasprintf("%s%s", before, last ? "└─" : "├─");
        if (!d->nodes[c].drawn)
            draw_line(d, c, inner, first);
    }
}

struct lineage_row *lineage_draw(const json_t *checkpoints)
{
    size_t n = json_array_size(checkpoints);
    struct drawing d = { .list = checkpoints,
                         .n = n,
                         .nodes = xcalloc(n + 1, sizeof(*d.nodes)),
                         .rows = xcalloc(n + 1, sizeof(*d.rows)) };
    link_nodes(&d);
    /* Roots; then whatever hangs in a ring, which no daemon of ours makes. */
    for (int rest = 0; rest < 2; rest++) {
        for (size_t i = 0; i < n; i++) {
            if (d.nodes[i].drawn || (!rest && d.nodes[i].parent != NONE))
                continue;
            draw_line(&d, i, "", "");
            d.trees++;
        }
    }
    free(d.nodes);
    return d.rows;
}

void lineage_free(struct lineage_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(rows[i].stem);
    free(rows);
}
