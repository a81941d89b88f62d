#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/term.h"
#include "cli/units.h"
#include "cli/xmem.h"

#define EVERY_MS 100
#define BAR_WIDTH 24
#define LAYERS_MAX 1024 /* the daemon takes fewer */

void progress_init(struct progress *p, bool quiet)
{
    memset(p, 0, sizeof(*p));
    p->quiet = quiet;
    p->terminal = isatty(STDERR_FILENO);
}

static bool finished(const struct progress_layer *l)
{
    return strcmp(l->state, "done") == 0 || strcmp(l->state, "exists") == 0;
}

static void draw_layer(const struct progress_layer *l)
{
    char bytes[UNIT_TEXT_MAX], total[UNIT_TEXT_MAX], bar[BAR_WIDTH + 1];
    int64_t full = l->total > 0 ? l->bytes * BAR_WIDTH / l->total : BAR_WIDTH;
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    if (finished(l))
        (void)fprintf(stderr, "%s  %-11s  %s\x1b[K\n", l->digest, l->state,
                      size_text(l->total, total));
    else
        (void)fprintf(stderr, "%s  %-11s  [%s]  %s of %s\x1b[K\n", l->digest, l->state, bar,
                      size_text(l->bytes, bytes), size_text(l->total, total));
}

/* As many lines as the terminal has room for: what is finished gives way first. */
static void draw(struct progress *p)
{
    unsigned rows = 24, cols = 80, lines = 0;
    size_t ended = 0, shown = 0;
    (void)term_size(&rows, &cols);
    size_t room = rows > 4 ? rows - 2 : 2;
    bool all = p->n <= room;
    for (size_t i = 0; i < p->n; i++)
        ended += finished(&p->layers[i]);
    if (p->drawn)
        (void)fprintf(stderr, "\x1b[%uA\r", p->drawn);
    for (size_t i = 0; i < p->n; i++) {
        if (!all && (finished(&p->layers[i]) || shown + 1 >= room))
            continue;
        draw_layer(&p->layers[i]);
        shown++;
        lines++;
    }
    if (!all) {
        (void)fprintf(stderr, "%zu of %zu layers\x1b[K\n", ended, p->n);
        lines++;
    }
    (void)fprintf(stderr, "\x1b[J"); /* fewer lines than before: the rest goes */
    (void)fflush(stderr);
    p->drawn = lines;
    p->drawn_ms = clock_mono_ms();
}

static struct progress_layer *find(struct progress *p, const char *digest)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->layers[i].digest, digest) == 0)
            return &p->layers[i];
    if (p->n == LAYERS_MAX)
        return NULL;
    p->layers = xrealloc(p->layers, p->n + 1, sizeof(*p->layers));
    struct progress_layer *l = &p->layers[p->n++];
    memset(l, 0, sizeof(*l));
    (void)snprintf(l->digest, sizeof(l->digest), "%s", digest);
    return l;
}

void progress_layer(struct progress *p, const json_t *event)
{
    char digest[PROGRESS_DIGEST], total[UNIT_TEXT_MAX];
    _cleanup_free_ char *clean = text_line(member_text(event, "digest"));
    _cleanup_free_ char *state = text_line(member_text(event, "state"));
    (void)snprintf(digest, sizeof(digest), "%.19s", clean);
    struct progress_layer *l = find(p, digest);
    if (!l || p->quiet)
        return;
    l->bytes = member_int(event, "bytes");
    l->total = member_int(event, "total");
    if (l->bytes < 0 || l->total < 0 || l->bytes > l->total)
        l->bytes = l->total = 0;
    bool changed = strncmp(l->state, state, sizeof(l->state) - 1) != 0;
    (void)snprintf(l->state, sizeof(l->state), "%.15s", state);
    if (p->terminal && clock_mono_ms() - p->drawn_ms >= EVERY_MS)
        draw(p);
    else if (!p->terminal && changed && strcmp(l->state, "waiting") != 0)
        (void)fprintf(stderr, "%s  %-11s  %s\n", l->digest, l->state, size_text(l->total, total));
}

void progress_done(struct progress *p)
{
    if (p->terminal && !p->quiet && p->n > 0)
        draw(p);
    free(p->layers);
    p->layers = NULL;
    p->n = 0;
}
