/* The greedy algorithm of Myers ("An O(ND) Difference Algorithm and Its Variations", 1986) over numbered
 * lines, with every round kept for the way back: row d of `rounds` begins at d * d and has 2d + 1
 * diagonals. */
#include "unpack/textdiff.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EDITS_MAX 1500                /* rounds: 9 MB of them */
#define STEPS_MAX (200 * 1000 * 1000) /* lines looked at: under a second */

struct line {
    const char *p;
    size_t n;        /* with its newline, if it has one */
    uint32_t number; /* equal lines have equal ones */
    bool edited;     /* removed, or added */
};

struct text {
    struct line *lines;
    size_t n;
};

struct diff {
    struct text a, b;
    struct buf *out;
};

/* ---- lines ---- */

static int split(const char *p, size_t n, struct text *t)
{
    size_t count = 0;
    for (const char *at = p, *end = p + n; at < end; count++) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        at = nl ? nl + 1 : end;
    }
    t->lines = calloc(count + 1, sizeof(*t->lines));
    if (!t->lines)
        return -ENOMEM;
    for (const char *at = p, *end = p + n; at < end; t->n++) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        const char *next = nl ? nl + 1 : end;
        t->lines[t->n] = (struct line){ .p = at, .n = (size_t)(next - at) };
        at = next;
    }
    return 0;
}

static int by_text(const void *x, const void *y)
{
    const struct line *a = *(struct line *const *)x, *b = *(struct line *const *)y;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return memcmp(a->p, b->p, a->n);
}

/* Sorted, not hashed: nobody can choose lines that make this slow. */
static int number_lines(struct diff *d)
{
    size_t n = d->a.n + d->b.n;
    struct line **all = calloc(n + 1, sizeof(struct line *));
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        all[i] = i < d->a.n ? &d->a.lines[i] : &d->b.lines[i - d->a.n];
    qsort(all, n, sizeof(struct line *), by_text);
    uint32_t number = 0;
    for (size_t i = 0; i < n; i++) {
        number += i > 0 && by_text(&all[i - 1], &all[i]) != 0;
        all[i]->number = number;
    }
    free(all);
    return 0;
}

/* ---- the shortest edit ---- */

struct middle { /* what is left of both without their common beginning and end */
    struct line *a, *b;
    int32_t n, m;
};

static struct middle trim(const struct diff *d)
{
    size_t head = 0, tail = 0, n = d->a.n, m = d->b.n;
    while (head < n && head < m && d->a.lines[head].number == d->b.lines[head].number)
        head++;
    while (tail < n - head && tail < m - head &&
           d->a.lines[n - 1 - tail].number == d->b.lines[m - 1 - tail].number)
        tail++;
    return (struct middle){ d->a.lines + head, d->b.lines + head, (int32_t)(n - head - tail),
                            (int32_t)(m - head - tail) };
}

static int32_t *round_at(int32_t *rounds, int32_t d, int32_t k)
{
    return &rounds[(size_t)d * (size_t)d + (size_t)(k + d)];
}

/* Does the way to diagonal k in round d come from above (a line added) rather than from the left? */
static bool from_above(int32_t *rounds, int32_t d, int32_t k)
{
    return k == -d || (k != d && *round_at(rounds, d - 1, k - 1) < *round_at(rounds, d - 1, k + 1));
}

static int32_t enter(int32_t *rounds, int32_t d, int32_t k)
{
    if (d == 0)
        return 0;
    return from_above(rounds, d, k) ? *round_at(rounds, d - 1, k + 1)
                                    : *round_at(rounds, d - 1, k - 1) + 1;
}

/* One round; true when the end is reached. */
static bool advance(const struct middle *mid, int32_t *rounds, int32_t d, int64_t *steps)
{
    for (int32_t k = -d; k <= d; k += 2) {
        int32_t x = enter(rounds, d, k), y = x - k, from = x;
        while (x < mid->n && y < mid->m && mid->a[x].number == mid->b[y].number) {
            x++;
            y++;
        }
        *steps += x - from + 1;
        *round_at(rounds, d, k) = x;
        if (k == mid->n - mid->m && x >= mid->n)
            return true;
    }
    return false;
}

static void walk_back(const struct middle *mid, int32_t *rounds, int32_t d)
{
    int32_t x = mid->n, y = mid->m;
    for (; d > 0; d--) {
        int32_t k = x - y;
        bool above = from_above(rounds, d, k);
        int32_t before = *round_at(rounds, d - 1, above ? k + 1 : k - 1);
        if (above)
            mid->b[before - (k + 1)].edited = true;
        else
            mid->a[before].edited = true;
        x = before;
        y = above ? before - (k + 1) : before - (k - 1);
    }
}

static void replace_all(const struct middle *mid)
{
    for (int32_t i = 0; i < mid->n; i++)
        mid->a[i].edited = true;
    for (int32_t i = 0; i < mid->m; i++)
        mid->b[i].edited = true;
}

static int find_edits(const struct middle *mid)
{
    int32_t *rounds = NULL;
    int64_t steps = 0;
    size_t room = 0;
    for (int32_t d = 0; d <= EDITS_MAX && steps <= STEPS_MAX; d++) {
        size_t need = ((size_t)d + 1) * ((size_t)d + 1);
        if (need > room) {
            room = need * 2;
            int32_t *more = reallocarray(rounds, room, sizeof(*more));
            if (!more) {
                free(rounds);
                return -ENOMEM;
            }
            rounds = more;
        }
        if (advance(mid, rounds, d, &steps)) {
            walk_back(mid, rounds, d);
            free(rounds);
            return 0;
        }
    }
    free(rounds);
    replace_all(mid);
    return 0;
}

/* ---- hunks ---- */

static int put_line(struct buf *out, char mark, const struct line *l)
{
    static const char no_newline[] = "\n\\ No newline at end of file\n";
    bool whole = l->p[l->n - 1] == '\n';
    size_t len = out->len;
    int r = buf_append(out, &mark, 1);
    if (r == 0)
        r = buf_append(out, l->p, l->n);
    if (r == 0 && !whole)
        r = buf_append(out, no_newline, sizeof(no_newline) - 1);
    if (r < 0 && out->data) {
        out->len = len;
        out->data[len] = '\0';
    }
    return r;
}

static bool edited(const struct text *t, size_t at)
{
    return at < t->n && t->lines[at].edited;
}

/* Where the hunk that begins with an edit at *i, *j ends: behind its last edit. */
static void find_end(const struct diff *d, size_t *i, size_t *j)
{
    size_t x = *i, y = *j, same = 0;
    while ((x < d->a.n || y < d->b.n) && same <= (size_t)2 * TEXTDIFF_CONTEXT) {
        bool gone = edited(&d->a, x), added = edited(&d->b, y);
        x += gone || !added;
        y += added || !gone;
        same = gone || added ? 0 : same + 1;
        if (gone || added) {
            *i = x;
            *j = y;
        }
    }
}

static int put_hunk(struct diff *d, size_t i, size_t j, size_t end_i, size_t end_j)
{
    size_t n = end_i - i, m = end_j - j;
    int r = buf_printf(d->out, "@@ -%zu,%zu +%zu,%zu @@\n", i + (n > 0), n, j + (m > 0), m);
    while (r >= 0 && (i < end_i || j < end_j)) {
        if (edited(&d->a, i))
            r = put_line(d->out, '-', &d->a.lines[i++]);
        else if (edited(&d->b, j))
            r = put_line(d->out, '+', &d->b.lines[j++]);
        else {
            r = put_line(d->out, ' ', &d->a.lines[i++]);
            j++;
        }
    }
    return r;
}

static int put_hunks(struct diff *d)
{
    size_t i = 0, j = 0;
    int r = 0;
    while (r >= 0 && (i < d->a.n || j < d->b.n)) {
        if (!edited(&d->a, i) && !edited(&d->b, j)) {
            i++;
            j++;
            continue;
        }
        size_t before = i < j ? i : j, end_i = i, end_j = j;
        before = before < TEXTDIFF_CONTEXT ? before : TEXTDIFF_CONTEXT;
        find_end(d, &end_i, &end_j);
        size_t after = d->a.n - end_i < TEXTDIFF_CONTEXT ? d->a.n - end_i : TEXTDIFF_CONTEXT;
        r = put_hunk(d, i - before, j - before, end_i + after, end_j + after);
        i = end_i + after;
        j = end_j + after;
    }
    return r;
}

int textdiff(const char *a, size_t an, const char *b, size_t bn, struct buf *out)
{
    struct diff d = { .out = out };
    if (an > INT32_MAX / 2 || bn > INT32_MAX / 2)
        return -EFBIG;
    int r = split(a, an, &d.a);
    if (r == 0)
        r = split(b, bn, &d.b);
    if (r == 0)
        r = number_lines(&d);
    if (r == 0) {
        const struct middle mid = trim(&d);
        r = find_edits(&mid);
    }
    if (r == 0)
        r = put_hunks(&d);
    free(d.a.lines);
    free(d.b.lines);
    return r;
}
