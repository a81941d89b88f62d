/* Each thing that the keeper is asked for, as a request. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "core/keeper.h"
#include "core/spec.h"

static void put_text(char *out, size_t size, const char *text)
{
    size_t n = strnlen(text, size - 1);
    memcpy(out, text, n);
    out[n] = '\0';
}

static struct keeper_request request(enum keeper_op op, const char *id, const char *tree,
                                     const struct keeper_limits *limits)
{
    struct keeper_request req;
    memset(&req, 0, sizeof(req)); /* padding too: it crosses a socket */
    req.version = KEEPER_VERSION;
    req.op = op;
    if (id)
        put_text(req.id, sizeof(req.id), id);
    if (tree)
        put_text(req.image, sizeof(req.image), tree);
    if (limits)
        req.limits = *limits;
    return req;
}

int keeper_ask_make(struct core *core, const char *id, const char *tree,
                    const struct keeper_limits *limits, struct err *err)
{
    struct keeper_request req = request(KEEPER_MAKE, id, tree, limits);
    return err_wrap(err, keeper_ask(core, &req, NULL, err), "cannot start sandbox '%s'", id);
}

int keeper_ask_make_sandbox(struct core *core, const struct sandbox *s, const char *tree,
                            const char *point, struct err *err)
{
    struct keeper_limits limits = spec_limits(&s->spec);
    struct keeper_request req = request(KEEPER_MAKE, s->id, tree, &limits);
    put_text(req.point, sizeof(req.point), point);
    req.flags = s->spec.n_mounts > 1 ? KEEPER_MAKE_APART : 0;
    return err_wrap(err, keeper_ask(core, &req, NULL, err), "cannot start sandbox '%s'", s->id);
}

int keeper_ask_limits(struct core *core, const char *id, const struct keeper_limits *limits,
                      struct err *err)
{
    struct keeper_request req = request(KEEPER_LIMITS, id, NULL, limits);
    return err_wrap(err, keeper_ask(core, &req, NULL, err), "cannot limit sandbox '%s'", id);
}

int keeper_ask_cell(struct core *core, enum keeper_op op, const char *id, struct err *err)
{
    struct keeper_request req = request(op, id, NULL, NULL);
    return keeper_ask(core, &req, NULL, err);
}

int keeper_ask_end(struct core *core, enum keeper_op op, const char *id,
                   struct keeper_usage *ret_usage, struct err *err)
{
    struct keeper_request req = request(op, id, NULL, NULL);
    struct keeper_reply reply;
    int r = keeper_ask(core, &req, &reply, err);
    if (r >= 0)
        *ret_usage = reply.usage;
    return r;
}

int keeper_ask_stat(struct core *core, const char *id, struct keeper_usage *ret_usage,
                    struct err *err)
{
    struct keeper_request req = request(KEEPER_STAT, id, NULL, NULL);
    struct keeper_reply reply;
    int r = keeper_ask(core, &req, &reply, err);
    if (r >= 0)
        *ret_usage = reply.usage;
    return r;
}

int keeper_ask_changed(struct core *core, const char *id, const char *point, bool *ret_changed,
                       struct err *err)
{
    struct keeper_request req = request(KEEPER_STAT, id, NULL, NULL);
    struct keeper_reply reply;
    (void)snprintf(req.point, sizeof(req.point), "%s", point);
    int r = keeper_ask(core, &req, &reply, err);
    if (r >= 0)
        *ret_changed = reply.changed != 0;
    return r;
}

int keeper_ask_sockets(struct core *core, const char *id, int ret_fds[KEEPER_SOCKETS],
                       struct err *err)
{
    struct keeper_request req = request(KEEPER_SOCKETS_OF, id, NULL, NULL);
    struct keeper_passed passed = { .n = 0 };
    int r = keeper_ask_passed(core, &req, NULL, &passed, err);
    if (r < 0)
        return r;
    if (passed.n == 0)
        return err_set(err, EPROTO, "warren-keeper answered without a socket");
    for (size_t i = 0; i < KEEPER_SOCKETS; i++)
        ret_fds[i] = i < passed.n ? passed.fds[i] : -1;
    return 0;
}

int keeper_ask_steer(struct core *core, const char *id, int ret_fds[KEEPER_STEER_FDS],
                     struct err *err)
{
    struct keeper_request req = request(KEEPER_STEER, id, NULL, NULL);
    struct keeper_passed passed = { .n = 0 };
    int r = keeper_ask_passed(core, &req, NULL, &passed, err);
    if (r < 0)
        return r;
    if (passed.n != KEEPER_STEER_FDS) {
        fd_close_all(passed.fds, passed.n);
        return err_set(err, EPROTO, "warren-keeper answered without the sockets");
    }
    memcpy(ret_fds, passed.fds, sizeof(passed.fds));
    return 0;
}

int keeper_ask_volume(struct core *core, enum keeper_op op, const char *volume, uint64_t size_bytes,
                      struct err *err)
{
    struct keeper_limits limits = { .disk_bytes = size_bytes };
    struct keeper_request req = request(op, NULL, NULL, &limits);
    put_text(req.volume, sizeof(req.volume), volume);
    return keeper_ask(core, &req, NULL, err);
}

int keeper_ask_volume_used(struct core *core, const char *volume, uint64_t *ret_bytes,
                           struct err *err)
{
    struct keeper_request req = request(KEEPER_VOLUME_STAT, NULL, NULL, NULL);
    struct keeper_reply reply;
    put_text(req.volume, sizeof(req.volume), volume);
    int r = keeper_ask(core, &req, &reply, err);
    if (r >= 0)
        *ret_bytes = reply.usage.disk_bytes;
    return r;
}

int keeper_ask_attach(struct core *core, const char *id, const char *volume, const char *path,
                      bool read_only, struct err *err)
{
    struct keeper_request req = request(KEEPER_ATTACH, id, NULL, NULL);
    put_text(req.volume, sizeof(req.volume), volume);
    put_text(req.path, sizeof(req.path), path);
    req.read_only = read_only;
    return err_wrap(err, keeper_ask(core, &req, NULL, err), "cannot show a volume at '%s'", path);
}

int keeper_ask_image_rm(struct core *core, const char *tree, struct err *err)
{
    struct keeper_request req = request(KEEPER_IMAGE_RM, NULL, tree, NULL);
    return keeper_ask(core, &req, NULL, err);
}
