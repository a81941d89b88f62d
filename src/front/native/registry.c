#include <errno.h>
#include <string.h>

#include "core/transfer.h"
#include "front/http/fields.h"
#include "front/native/progress.h"

#define SECRET_MAX 4096

struct ask {
    char *image, *name, *platform, *username, *password;
    bool insecure;
};

#define WHERE                                                                \
    FIELD(struct ask, image, "image", as_text, .max = REFERENCE_TEXT_MAX),   \
        FIELD(struct ask, username, "username", as_text, .max = SECRET_MAX), \
        FIELD(struct ask, password, "password", as_text, .max = SECRET_MAX), \
        FIELD(struct ask, insecure, "insecure", as_bool)

static const struct field push_fields[] = { WHERE };
static const struct field pull_fields[] = {
    WHERE,
    FIELD(struct ask, name, "name", as_text, .max = IMAGE_NAME_MAX),
    FIELD(struct ask, platform, "platform", as_text, .max = 96),
};

static void ask_done(struct ask *ask)
{
    if (ask->password)
        explicit_bzero(ask->password, strlen(ask->password));
    free(ask->image);
    free(ask->name);
    free(ask->platform);
    free(ask->username);
    free(ask->password);
}

/* ---- progress, as lines ---- */

struct lines {
    struct transfer *t;
    struct core *core;
};

static void lines_free(void *arg)
{
    struct lines *l = arg;
    transfer_free(l->t);
    free(l);
}

static void put_event(const struct lines *l, struct jout *j, const struct transfer_event *ev)
{
    jout_open(j, NULL, '{');
    switch (ev->type) {
    case TRANSFER_LAYER:
        jout_str(j, "type", "layer");
        jout_str(j, "digest", ev->digest);
        jout_str(j, "state", transfer_state_name(ev->state));
        jout_uint(j, "bytes", ev->bytes);
        jout_uint(j, "total", ev->total);
        break;
    case TRANSFER_IMAGE:
        jout_str(j, "type", "image");
        jout_str(j, "reference", ev->reference);
        jout_str(j, "digest", ev->digest);
        native_put_made(l->core, j, &ev->image);
        break;
    case TRANSFER_FAILED:
        jout_str(j, "type", "error");
        jout_str(j, "code", failure_name(ev->err.failure));
        jout_str(j, "message", ev->err.msg);
        break;
    }
    jout_close(j, '}');
}

static int lines_next(void *arg, int wait_ms, struct jout *out, bool *ret_last, struct err *ret_err)
{
    struct lines *l = arg;
    struct transfer_event ev;
    if (transfer_next(l->t, wait_ms, &ev) == 0)
        return 0;
    put_event(l, out, &ev);
    *ret_last = ev.type != TRANSFER_LAYER;
    if (ev.type == TRANSFER_FAILED)
        *ret_err = ev.err;
    return 1;
}

/* Takes t. */
static int reply_lines(struct request *req, struct transfer *t, struct err *err)
{
    static const struct progress how = { lines_next, lines_free };
    struct lines *l = malloc(sizeof(*l));
    if (!l) {
        transfer_free(t);
        return err_set(err, ENOMEM, "cannot allocate a stream");
    }
    *l = (struct lines){ t, req->core };
    return progress_reply(req, &how, l, err);
}

/* ---- requests ---- */

static int read_ask(struct request *req, const struct field *fields, size_t n, struct ask *ask,
                    struct err *err)
{
    int r = request_fields(req, fields, n, ask, NULL, err);
    if (r >= 0 && ask->password && !ask->username)
        r = err_fail(err, FAIL_MISSING_FIELD, "'password' needs a 'username'");
    return r;
}

static struct transfer_config config_of(const struct request *req, const struct ask *ask)
{
    return (struct transfer_config){ .owner = req->owner,
                                     .image = ask->image,
                                     .name = ask->name,
                                     .platform = ask->platform,
                                     .username = ask->username,
                                     .password = ask->password,
                                     .insecure = ask->insecure,
                                     .trusted = req->admin };
}

int native_image_pull(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    struct transfer *t = NULL;
    int r = read_ask(req, pull_fields, ARRAY_LEN(pull_fields), &ask, err);
    if (r >= 0 && !ask.image)
        r = err_fail(err, FAIL_MISSING_FIELD,
                     "'image' is needed: what to pull, as HOST/NAME[:TAG]");
    if (r < 0)
        return r;
    struct transfer_config config = config_of(req, &ask);
    r = pull_start(req->core, &config, &t, err);
    return r < 0 ? r : reply_lines(req, t, err);
}

int native_image_push(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    struct transfer *t = NULL;
    int r = read_ask(req, push_fields, ARRAY_LEN(push_fields), &ask, err);
    if (r < 0)
        return r;
    struct transfer_config config = config_of(req, &ask);
    config.name = req->args[0];
    r = push_start(req->core, &config, &t, err);
    return r < 0 ? r : reply_lines(req, t, err);
}
