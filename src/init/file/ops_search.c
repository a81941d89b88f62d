/* SEARCH: text in files, told by line and column. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/needle.h"
#include "init/file/path.h"
#include "init/file/seek.h"

#define HAY_BYTES (1024u * 1024) /* of a file at a time; longer lines are seen in pieces */
#define AROUND 512u              /* of the line that is told with a hit */

static char hay[HAY_BYTES + 1];

struct search {
    struct seek *seek;
    uint64_t left, count;
    /* where in the file the hay begins */
    uint64_t base, line, line_at;
    size_t len;
    size_t counted; /* lines before this are */
    bool full;      /* as many hits as were asked for */
};

/* Line and column of a place in the hay; places come in order. */
static void locate(struct search *s, size_t at)
{
    while (s->counted < at) {
        const char *nl = memchr(hay + s->counted, '\n', at - s->counted);
        if (!nl) {
            s->counted = at;
            break;
        }
        s->counted = (size_t)(nl - hay) + 1;
        s->line++;
        s->line_at = s->base + s->counted;
    }
}

/* The line around a hit, as much as is worth looking at. */
static void around(const struct search *s, const struct needle_hit *hit, size_t *ret_at,
                   size_t *ret_n)
{
    size_t from = s->line_at > s->base ? (size_t)(s->line_at - s->base) : 0;
    const char *nl = memchr(hay + hit->at, '\n', s->len - hit->at);
    size_t end = nl ? (size_t)(nl - hay) : s->len;
    if (end > from && hay[end - 1] == '\r')
        end--;
    if (end - from > AROUND) { /* a quarter of it before the hit */
        if (hit->at > from + AROUND / 4)
            from = hit->at - AROUND / 4;
        if (end - from > AROUND)
            end = from + AROUND;
    }
    *ret_at = from;
    *ret_n = end > from ? end - from : 0;
}

static int tell(struct search *s, const struct needle_hit *hit, const char *path)
{
    struct talk *t = &s->seek->j->talk;
    size_t from, n;
    if (s->left == 0) {
        s->full = true;
        return 0;
    }
    s->left--;
    s->count++;
    locate(s, hit->at);
    around(s, hit, &from, &n);
    uint64_t at = s->base + hit->at;
    struct buf *b = talk_begin(t);
    int r = wire_put_str(b, WIRE_T_PATH, path);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_LINE, s->line);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_COLUMN, at - s->line_at + 1);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_OFFSET, at);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_LENGTH, hit->n);
    if (r == 0)
        r = wire_put(b, WIRE_T_TEXT, hay + from, n);
    return r < 0 ? r : talk_end(t, WIRE_MATCH);
}

/* How much of the hay can be judged: whole lines, unless one fills it or the file is at its end. */
static size_t judge_to(const struct search *s, const struct needle *d, bool eof)
{
    if (eof)
        return s->len;
    const char *nl = memrchr(hay, '\n', s->len);
    size_t to = nl ? (size_t)(nl - hay) + 1 : s->len;
    if (!d->regex && to > s->len - (d->n - 1))
        to = s->len - (d->n - 1); /* what begins later may end in what is not read yet */
    return to;
}

static int search_hay(struct search *s, const char *path, bool eof)
{
    const struct needle *d = &s->seek->needle;
    struct needle_hit hit;
    size_t at = 0, to = judge_to(s, d, eof);
    /* An expression ends with its line; text may reach beyond what is judged. */
    size_t see = d->regex ? to : s->len;
    while (!s->full && at < to && needle_find(d, hay, at, see, &hit) && hit.at < to) {
        int r = tell(s, &hit, path);
        if (r < 0)
            return r;
        at = hit.at + (hit.n ? hit.n : 1);
        if (hit.n == 0) { /* nothing matches everywhere: once a line is enough */
            const char *nl = memchr(hay + hit.at, '\n', to - hit.at);
            at = nl ? (size_t)(nl - hay) + 1 : to;
        }
    }
    size_t used = at > to ? at : to;
    locate(s, used);
    memmove(hay, hay + used, s->len - used);
    s->base += used;
    s->len -= used;
    s->counted = 0;
    return talk_look(&s->seek->j->talk);
}

static int search_file(struct seek *k, const struct seek_file *f)
{
    struct search *s = k->arg;
    s->base = s->line_at = 0;
    s->len = s->counted = 0;
    s->line = 1;
    for (bool eof = false; !eof && !s->full;) {
        ssize_t n = read(f->fd, hay + s->len, HAY_BYTES - s->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return job_skip(k->j, errno, f->path);
        if (s->base == 0 && s->len == 0 && seek_is_binary(hay, (size_t)n))
            return 0;
        s->len += (size_t)n;
        eof = n == 0;
        if (!eof && s->len < HAY_BYTES)
            continue;
        int r = search_hay(s, f->path, eof);
        if (r < 0)
            return r;
    }
    k->files++;
    if (s->full) {
        k->stop = true;
        k->j->after = strdup(f->path);
    }
    return 0;
}

int op_search(struct job *j)
{
    struct search s = { .left = ask_has(j->ask, WIRE_T_LIMIT) ? j->ask->limit : UINT32_MAX };
    struct seek k = { .j = j, .fn = search_file, .arg = &s };
    s.seek = &k;
    int r = seek_run(&k);
    job_note(j, WIRE_T_FILES, k.files);
    job_note(j, WIRE_T_COUNT, s.count);
    return r;
}
