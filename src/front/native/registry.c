#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/transfer.h"
#include "front/http/fields.h"
#include "front/native/native.h"

#define SECRET_MAX 4096
#define PING_MS 15000 /* of silence */
#define LOOK_MS 500   /* between looks whether the client is still there */

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
    int fd;
    int64_t quiet_since_ms;
    struct transfer_event first; /* read before there was an answer */
    bool begun, ended;
};

static void lines_free(void *arg)
{
    struct lines *l = arg;
    transfer_free(l->t);
    free(l);
}

static void put_image(const struct lines *l, struct jout *j, const struct image *image)
{
    _cleanup_free_ char *text = NULL;
    struct image_config config = { 0 };
    if (image_texts(l->core, image, NULL, &text, NULL) >= 0) /* else it was removed meanwhile */
        (void)image_config_parse(text, strlen(text), &config, NULL);
    native_put_image(j, "image", image, &config);
    image_config_done(&config);
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
        put_image(l, j, &ev->image);
        break;
    case TRANSFER_FAILED:
        jout_str(j, "type", "error");
        jout_str(j, "code", ev->err.what ? ev->err.what : "internal");
        jout_str(j, "message", ev->err.msg);
        break;
    }
    jout_close(j, '}');
}

static int lines_next(void *arg, struct buf *out)
{
    struct lines *l = arg;
    struct jout j = JOUT_INIT(out);
    struct transfer_event ev;
    if (l->ended)
        return 0;
    if (!l->begun)
        ev = l->first;
    while (l->begun && transfer_next(l->t, LOOK_MS, &ev) == 0) {
        if (fd_wait(l->fd, POLLRDHUP, 0) != 0)
            return -ECANCELED; /* freeing the transfer ends it */
        if (clock_mono_ms() - l->quiet_since_ms >= PING_MS) {
            l->quiet_since_ms = clock_mono_ms();
            return buf_puts(out, "{\"type\":\"ping\"}\n") < 0 ? -ENOMEM : 1;
        }
    }
    l->begun = true;
    l->quiet_since_ms = clock_mono_ms();
    l->ended = ev.type != TRANSFER_LAYER;
    put_event(l, &j, &ev);
    int r = jout_done(&j);
    if (r >= 0)
        r = buf_append(out, "\n", 1);
    return r < 0 ? r : 1;
}

/* Takes t. What fails before the first layer is known is an answer of its own, with a status. */
static int reply_lines(struct request *req, struct transfer *t, struct err *err)
{
    static const struct reply_source source = { lines_next, lines_free };
    struct lines *l = calloc(1, sizeof(*l));
    int r = 0;
    if (!l) {
        transfer_free(t);
        return err_set(err, ENOMEM, "cannot allocate a stream");
    }
    *l = (struct lines){
        .t = t, .core = req->core, .fd = req->fd, .quiet_since_ms = clock_mono_ms()
    };
    while (r >= 0 && transfer_next(t, LOOK_MS, &l->first) == 0)
        if (fd_wait(req->fd, POLLRDHUP, 0) != 0)
            r = err_set(err, ECANCELED, "the client went away");
    if (r >= 0 && l->first.type == TRANSFER_FAILED) {
        *err = l->first.err;
        r = err->code ? -err->code : -EIO;
    }
    if (r < 0) {
        lines_free(l);
        return r;
    }
    return reply_stream(req, "application/x-ndjson", &source, l);
}

/* ---- requests ---- */

static int read_ask(struct request *req, const struct field *fields, size_t n, struct ask *ask,
                    struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    uint32_t seen;
    int r = request_json(req, &object, err);
    if (r >= 0)
        r = fields_decode(object, fields, n, ask, &seen, err);
    if (r >= 0 && ask->password && !ask->username)
        r = err_name(err, EINVAL, "missing_field", "'password' needs a 'username'");
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
        r = err_name(err, EINVAL, "missing_field",
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
