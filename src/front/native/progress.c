#include "front/native/progress.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fd.h"

#define PING_MS 15000 /* of silence */
#define LOOK_MS 500   /* between looks whether the client is still there */

struct lines {
    const struct progress *how;
    void *job;
    int fd;
    int64_t quiet_since_ms;
    struct buf first; /* read before there was an answer */
    bool ended;
};

static void lines_free(void *arg)
{
    struct lines *l = arg;
    l->how->free(l->job);
    buf_done(&l->first);
    free(l);
}

/* One event as a line; 0: there was none yet. */
static int take_line(struct lines *l, struct buf *out, struct err *ret_err)
{
    struct jout j = JOUT_INIT(out);
    if (l->how->next(l->job, LOOK_MS, &j, &l->ended, ret_err) == 0)
        return fd_wait(l->fd, POLLRDHUP, 0) != 0 ? -ECANCELED : 0;
    int r = jout_done(&j);
    if (r >= 0)
        r = buf_append(out, "\n", 1);
    l->quiet_since_ms = clock_mono_ms();
    return r < 0 ? r : 1;
}

static int lines_next(void *arg, struct buf *out)
{
    struct lines *l = arg;
    struct err ignored = ERR_INIT; /* it is in the line */
    int r = 0;
    if (l->first.len > 0) {
        r = buf_append(out, l->first.data, l->first.len);
        buf_done(&l->first);
        return r < 0 ? r : 1;
    }
    while (!l->ended && (r = take_line(l, out, &ignored)) == 0)
        if (clock_mono_ms() - l->quiet_since_ms >= PING_MS) {
            l->quiet_since_ms = clock_mono_ms();
            return buf_puts(out, "{\"type\":\"ping\"}\n") < 0 ? -ENOMEM : 1;
        }
    return r;
}

int progress_reply(struct request *req, const struct progress *how, void *job, struct err *err)
{
    static const struct reply_source source = { lines_next, lines_free };
    struct lines *l = calloc(1, sizeof(*l));
    struct err failed = ERR_INIT;
    int r = 0;
    if (!l) {
        how->free(job);
        return err_set(err, ENOMEM, "cannot allocate a stream");
    }
    *l = (struct lines){ .how = how,
                         .job = job,
                         .fd = req->fd,
                         .quiet_since_ms = clock_mono_ms(),
                         .first = BUF_INIT(REPLY_MAX) };
    while (r == 0)
        r = take_line(l, &l->first, &failed);
    if (r < 0)
        r = err_set(err, -r, r == -ECANCELED ? "the client went away" : "cannot tell the progress");
    if (r >= 0 && (failed.code || failed.failure)) {
        *err = failed;
        r = failed.code ? -failed.code : -EIO;
    }
    if (r < 0) {
        lines_free(l);
        return r;
    }
    return reply_stream(req, "application/x-ndjson", &source, l);
}
