#include "core/inside.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/private.h"
#include "wire/wire.h"

#define PING_MS 300
#define GRACE_MS 2000
#define PROBE_MS 5000   /* longer than init tries */
#define ANSWER_MAX 1024 /* an OK has a handful of numbers */
#define WHO_MS 500
#define WHO_ANSWER_MAX 4096
#define LISTENERS_ANSWER_MAX (64u * 1024)

static int dial(struct core *core, const char *id)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int n =
        snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/cells/%s/init.sock", core->run_dir, id);
    if (n < 0 || (size_t)n >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
        return -errno; /* -EAGAIN: it does not accept any more */
    return take_fd(fd);
}

static int ask(struct core *core, const char *id, enum wire_type type, const struct buf *payload,
               int wait_ms, struct buf *answer)
{
    _cleanup_fd_ int fd = dial(core, id);
    if (fd < 0)
        return fd;
    int64_t until = clock_mono_ms() + wait_ms;
    int r = wire_send(fd, type, payload); /* a few bytes: an empty socket takes them at once */
    if (r < 0)
        return r;
    unsigned char head[WIRE_HEADER_SIZE];
    r = fd_read_by(fd, head, sizeof(head), until);
    if (r < 0)
        return r;
    struct wire_header h;
    r = wire_header_get(head, &h);
    if (r < 0 || h.type != WIRE_OK)
        return r < 0 ? r : -EPROTO;
    buf_clear(answer);
    r = buf_reserve(answer, h.len); /* -EMSGSIZE over ANSWER_MAX */
    if (r < 0)
        return r;
    r = fd_read_by(fd, answer->data, h.len, until);
    if (r < 0)
        return r;
    answer->len = h.len;
    return 0;
}

/* The number under a tag of an OK; -EPROTO: it is not there. */
static int number_in(const struct buf *answer, enum wire_tag tag, uint64_t *ret_v)
{
    struct wire_reader reader = { answer->data, answer->len };
    struct wire_field f;
    int r;
    while ((r = wire_next(&reader, &f)) > 0)
        if (f.tag == tag)
            return wire_field_u64(&f, ret_v);
    return r < 0 ? r : -EPROTO;
}

int inside_ping(struct core *core, const char *id, uint64_t *ret_procs)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    int r = ask(core, id, WIRE_PING, NULL, PING_MS, &answer);
    return r < 0 ? r : number_in(&answer, WIRE_T_PROCS, ret_procs);
}

int inside_probe(struct core *core, const char *id, uint32_t port, const char *path,
                 uint64_t *ret_status)
{
    _cleanup_(buf_done) struct buf payload = BUF_INIT(4096), answer = BUF_INIT(ANSWER_MAX);
    int r = wire_put_u64(&payload, WIRE_T_PORT, port);
    if (r >= 0 && path)
        r = wire_put_str(&payload, WIRE_T_PATH, path);
    if (r >= 0)
        r = ask(core, id, WIRE_PROBE, &payload, PROBE_MS, &answer);
    return r < 0 || !path ? r : number_in(&answer, WIRE_T_STATUS, ret_status);
}

int inside_who(struct core *core, const char *id, const uint32_t *inodes, size_t n,
               char (*ret_programs)[BROKER_PROGRAM_SIZE])
{
    _cleanup_(buf_done) struct buf payload = BUF_INIT(1024), answer = BUF_INIT(WHO_ANSWER_MAX);
    struct wire_field f;
    size_t at = 0;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = wire_put_u64(&payload, WIRE_T_INODE, inodes[i]);
    if (r >= 0)
        r = ask(core, id, WIRE_WHO, &payload, WHO_MS, &answer);
    if (r < 0)
        return r;
    struct wire_reader reader = { answer.data, answer.len };
    while ((r = wire_next(&reader, &f)) > 0 && at < n) {
        if (f.tag != WIRE_T_TEXT || f.n >= BROKER_PROGRAM_SIZE)
            return -EPROTO;
        memcpy(ret_programs[at], f.p, f.n);
        ret_programs[at++][f.n] = '\0';
    }
    return r;
}

/* Each is a PORT, a TEXT and an INODE, in this order. */
static int take_listener(const struct wire_field *f, struct inside_listener *l)
{
    uint64_t v = 0;
    int r = f->tag == WIRE_T_TEXT ? 0 : wire_field_u64(f, &v);
    if (r < 0)
        return r;
    if (f->tag == WIRE_T_PORT && v >= 1 && v <= UINT16_MAX)
        *l = (struct inside_listener){ .port = (unsigned)v };
    else if (f->tag == WIRE_T_TEXT && f->n < sizeof(l->address))
        memcpy(l->address, f->p, f->n);
    else if (f->tag == WIRE_T_INODE && l->port && v <= UINT32_MAX)
        l->inode = (uint32_t)v;
    else
        return -EPROTO;
    return f->tag == WIRE_T_INODE;
}

int inside_listeners(struct core *core, const char *id, struct inside_listener *ret_list,
                     size_t max, size_t *ret_n)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(LISTENERS_ANSWER_MAX);
    struct inside_listener l = { 0 };
    struct wire_field f;
    size_t n = 0;
    int r = ask(core, id, WIRE_PORTS, NULL, WHO_MS, &answer);
    if (r < 0)
        return r;
    struct wire_reader reader = { answer.data, answer.len };
    while ((r = wire_next(&reader, &f)) > 0 && n < max) {
        r = take_listener(&f, &l);
        if (r < 0)
            return r;
        if (r > 0) {
            ret_list[n++] = l;
            l = (struct inside_listener){ 0 };
        }
    }
    *ret_n = n;
    return r < 0 ? r : 0;
}

void inside_shutdown(struct core *core, const char *id)
{
    uint64_t procs = 0;
    if (inside_ping(core, id, &procs) < 0 || procs == 0)
        return;
    _cleanup_(buf_done) struct buf payload = BUF_INIT(64), answer = BUF_INIT(ANSWER_MAX);
    if (wire_put_u64(&payload, WIRE_T_GRACE_MS, GRACE_MS) >= 0)
        (void)ask(core, id, WIRE_SHUTDOWN, &payload, GRACE_MS + PING_MS, &answer);
}
