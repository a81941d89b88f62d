/* REPLACE: text in files, each rewritten in one step. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/file/entry.h"
#include "init/file/seek.h"
#include "init/file/stage.h"

#define FILE_BYTES_MAX (32u * 1024 * 1024) /* a text file that is larger is none to edit this way */
#define NEW_BYTES_MAX (64u * 1024 * 1024)

struct replace {
    struct buf old, new;
    uint64_t count; /* of all files */
};

/* Of an expression: \0 to \9 are what its groups found, \n and \t what they always are. */
static int put_expanded(struct buf *out, const char *to, const char *line,
                        const struct needle_hit *hit)
{
    int r = 0;
    for (const char *p = to; r == 0 && *p; p++) {
        if (*p != '\\' || !p[1]) {
            r = buf_append(out, p, 1);
            continue;
        }
        p++;
        if (*p >= '0' && *p <= '9') {
            const regmatch_t *g = &hit->groups[*p - '0'];
            if (g->rm_so >= 0)
                r = buf_append(out, line + g->rm_so, (size_t)(g->rm_eo - g->rm_so));
        } else {
            r = buf_append(out, *p == 'n' ? "\n" : *p == 't' ? "\t" : p, 1);
        }
    }
    return r;
}

/* r->old with every hit replaced, in r->new: how many there were. */
static int64_t rewrite(struct seek *k, struct replace *p)
{
    const char *to = k->j->ask->to;
    size_t at = 0, told = 0;
    int64_t count = 0;
    struct needle_hit hit;
    int r = 0;
    buf_clear(&p->new);
    while (r == 0 && at <= p->old.len &&
           needle_find(&k->needle, p->old.data, at, p->old.len, &hit)) {
        count++;
        r = buf_append(&p->new, p->old.data + told, hit.at - told);
        if (r == 0)
            r = k->needle.regex ? put_expanded(&p->new, to, p->old.data + hit.line, &hit)
                                : buf_puts(&p->new, to);
        told = hit.at + hit.n;
        at = told + (hit.n == 0);
        if (r == 0)
            r = talk_beat(&k->j->talk);
    }
    if (r == 0 && count > 0)
        r = buf_append(&p->new, p->old.data + told, p->old.len - told);
    return r < 0 ? r : count;
}

static int load(struct replace *p, const struct seek_file *f)
{
    if (f->st.st_size > (off_t)FILE_BYTES_MAX)
        return -EFBIG;
    buf_clear(&p->old);
    int r = buf_reserve(&p->old, (size_t)f->st.st_size + 1);
    while (r == 0) {
        r = buf_reserve(&p->old, 64 * 1024);
        if (r < 0)
            break;
        ssize_t n = read(f->fd, p->old.data + p->old.len, p->old.cap - p->old.len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        if (p->old.len == 0 && seek_is_binary(p->old.data, (size_t)n))
            return 1;
        p->old.len += (size_t)n;
    }
    return r == -EMSGSIZE ? -EFBIG : r;
}

static int store(const struct replace *p, const struct seek_file *f)
{
    _cleanup_(stage_done) struct stage s = STAGE_INIT;
    struct stat now;
    char before[ETAG_MAX], after[ETAG_MAX];
    if (faccessat(f->dir, f->name, W_OK, AT_EACCESS) < 0)
        return -errno;
    int r = stage_open(f->dir, true, &s);
    if (r == 0)
        r = stage_write(s.fd, p->new.data, p->new.len);
    if (r == 0)
        r = stage_like(&s, f->name, &f->st, true);
    if (r < 0)
        return r;
    if (fstatat(f->dir, f->name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    etag_of(&f->st, before);
    etag_of(&now, after);
    if (strcmp(before, after) != 0)
        return -ESTALE; /* someone wrote to it: theirs stays */
    r = stage_commit(&s, f->name, false);
    return r < 0 ? r : 0;
}

static int replace_file(struct seek *k, const struct seek_file *f)
{
    struct replace *p = k->arg;
    struct talk *t = &k->j->talk;
    int r = load(p, f);
    if (r > 0)
        return 0; /* binary */
    int64_t count = r < 0 ? r : rewrite(k, p);
    if (count == -EPIPE || count == 0)
        return (int)count;
    if (count > 0 && !ask_is(k->j->ask, WIRE_F_DRY_RUN)) {
        r = store(p, f);
        if (r < 0)
            count = r;
    }
    if (count < 0)
        return job_skip(k->j, count == -EMSGSIZE ? EFBIG : (int)-count, f->path);
    k->files++;
    p->count += (uint64_t)count;
    struct buf *b = talk_begin(t);
    r = wire_put_str(b, WIRE_T_PATH, f->path);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_COUNT, (uint64_t)count);
    return r < 0 ? r : talk_end(t, WIRE_CHANGE);
}

int op_replace(struct job *j)
{
    struct replace p = { .old = BUF_INIT(FILE_BYTES_MAX + 128u * 1024),
                         .new = BUF_INIT(NEW_BYTES_MAX) };
    struct seek k = { .j = j, .fn = replace_file, .arg = &p };
    int r = seek_run(&k);
    buf_done(&p.old);
    buf_done(&p.new);
    job_note(j, WIRE_T_FILES, k.files);
    job_note(j, WIRE_T_COUNT, p.count);
    return r;
}
