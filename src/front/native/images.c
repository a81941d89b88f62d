#include <errno.h>
#include <string.h>

#include "core/image.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

/* ---- showing ---- */

static void put_strings(struct jout *j, const char *key, char *const *list)
{
    jout_open(j, key, '[');
    for (char *const *p = list; p && *p; p++)
        jout_str(j, NULL, *p);
    jout_close(j, ']');
}

static void put_members(struct jout *j, const struct image *i, const struct image_config *c)
{
    jout_str(j, "name", i->as);
    jout_str(j, "team", i->owner);
    jout_str(j, "id", i->id);
    jout_str(j, "digest", i->digest);
    jout_uint(j, "size_bytes", i->size_bytes);
    jout_uint(j, "shared_bytes", i->shared_bytes);
    jout_uint(j, "layers", i->layers);
    jout_str(j, "os", i->os);
    jout_str(j, "architecture", i->architecture);
    jout_time(j, "created_at", i->created_ms);
    jout_bool(j, "public", i->public);
    jout_open(j, "config", '{');
    put_pairs(j, "env", &c->env);
    put_strings(j, "cmd", c->cmd);
    put_strings(j, "entrypoint", c->entrypoint);
    jout_str(j, "user", c->user);
    jout_str(j, "workdir", c->workdir);
    put_strings(j, "ports", c->ports);
    put_pairs(j, "labels", &c->labels);
    jout_close(j, '}');
}

void native_put_image(struct jout *j, const char *key, const struct image *image,
                      const struct image_config *config)
{
    jout_open(j, key, '{');
    put_members(j, image, config);
    jout_close(j, '}');
}

/* By its digest's own texts, so that it is the image that was meant whatever its name is now. */
static int config_of(struct core *core, const struct image *image, struct image_config *ret_config,
                     struct err *err)
{
    _cleanup_free_ char *text = NULL;
    int r = image_texts(core, image, NULL, &text, err);
    return r < 0 ? r : image_config_parse(text, strlen(text), ret_config, err);
}

void native_put_made(struct core *core, struct jout *j, const struct image *image)
{
    struct image_config config = { 0 };
    (void)config_of(core, image, &config, NULL); /* it may have been removed meanwhile */
    native_put_image(j, "image", image, &config);
    image_config_done(&config);
}

int native_reply_image(struct request *req, unsigned status, const struct image *image,
                       struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct image_config config;
    int r = config_of(req->core, image, &config, err);
    if (r < 0)
        return r;
    native_put_image(&j, NULL, image, &config);
    image_config_done(&config);
    return reply_json(req, status, &j);
}

int native_image_list(struct request *req, struct err *err)
{
    static const char *const known[] = { "limit", "cursor", "name", NULL };
    _cleanup_(page_done) struct page page = { 0 };
    _cleanup_free_ struct image *images = NULL;
    size_t n = 0;

    int r = page_read(req, known, &page, err);
    if (r >= 0)
        r = image_list(req->core, req->owner, uri_param(&req->uri, "name"), &images, &n, err);
    if (r < 0)
        return r;
    page_open(&page, "images");
    for (size_t i = 0; i < n; i++) { /* they come in order of their names */
        struct image_config config;
        if (!page_takes(&page, images[i].as) || config_of(req->core, &images[i], &config, err) < 0)
            continue; /* it was removed meanwhile */
        native_put_image(&page.json, NULL, &images[i], &config);
        image_config_done(&config);
    }
    return page_reply(req, &page);
}

/* What made each layer, oldest first: the steps of the history that are not empty. */
static const char *made_by(const struct image_config *c, size_t layer)
{
    for (size_t i = 0; i < c->n_history; i++)
        if (!c->history[i].empty && layer-- == 0)
            return c->history[i].created_by;
    return NULL;
}

static void put_whole(struct jout *j, const struct image *image, const struct image_config *c,
                      const struct image_layer *layers, size_t n)
{
    put_members(j, image, c);
    jout_open(j, "layer_list", '[');
    for (size_t i = 0; i < n; i++) {
        jout_open(j, NULL, '{');
        jout_str(j, "digest", layers[i].digest);
        jout_str(j, "diff_id", layers[i].diff_id);
        jout_uint(j, "size_bytes", layers[i].size_bytes);
        jout_uint(j, "compressed_bytes", layers[i].compressed_bytes);
        jout_str(j, "created_by", made_by(c, i));
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static void put_history(struct jout *j, const struct image *image, const struct image_config *c,
                        const struct image_layer *layers, size_t n)
{
    size_t layer = 0, steps = c->n_history;
    for (size_t i = 0; i < steps; i++)
        layer += !c->history[i].empty;
    jout_open(j, "history", '[');
    for (size_t i = steps; i-- > 0;) {
        const struct oci_history *h = &c->history[i];
        layer -= !h->empty;
        jout_open(j, NULL, '{');
        jout_time(j, "created_at", h->created_ms);
        jout_str(j, "created_by", h->created_by);
        jout_uint(j, "size_bytes", !h->empty && layer < n ? layers[layer].size_bytes : 0);
        jout_bool(j, "empty", h->empty);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

/* The image of the path, with its layers, as `put` shows it. */
static int reply_about(struct request *req,
                       void (*put)(struct jout *j, const struct image *image,
                                   const struct image_config *c, const struct image_layer *layers,
                                   size_t n),
                       struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    _cleanup_free_ struct image_layer *layers = NULL;
    _cleanup_(image_config_done) struct image_config config = { 0 };
    struct jout j = JOUT_INIT(&b);
    struct image image;
    size_t n = 0;
    int r = image_resolve(req->core, req->owner, req->args[0], &image, &config, err);
    if (r >= 0)
        r = image_layers(req->core, &image, &layers, &n, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    put(&j, &image, &config, layers, n);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_image_get(struct request *req, struct err *err)
{
    return reply_about(req, put_whole, err);
}

int native_image_history(struct request *req, struct err *err)
{
    return reply_about(req, put_history, err);
}

/* ---- bringing in ---- */

static int sink_begin(struct request *req, struct err *err)
{
    static const char *const known[] = { "public", NULL };
    struct image_import *imp = NULL;
    bool public = false;
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_bool(req, "public", &public, err);
    if (r >= 0)
        r = image_import_begin(req->core, req->owner, req->args[0], public, &imp, err);
    if (r >= 0)
        req->sink = imp;
    return r;
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    return image_import_write(req->sink, p, n, err);
}

static void sink_end(struct request *req)
{
    if (req->sink)
        image_import_abort(req->sink);
    req->sink = NULL;
}

const struct route_sink native_image_sink = { sink_begin, sink_write, sink_end, NULL };

int native_image_put(struct request *req, struct err *err)
{
    struct image image;
    struct image_import *imp = req->sink;

    req->sink = NULL; /* finishing frees it, whatever comes of it */
    int r = image_import_finish(imp, &image, err);
    return r < 0 ? r : native_reply_image(req, 201, &image, err);
}

/* ---- changing ---- */

struct tag_body {
    char *name;
};

static const struct field tag_fields[] = {
    FIELD(struct tag_body, name, "name", as_text, .max = IMAGE_NAME_MAX),
};

int native_image_tag(struct request *req, struct err *err)
{
    struct tag_body want = { NULL };
    struct image image;
    int r = request_fields(req, tag_fields, ARRAY_LEN(tag_fields), &want, NULL, err);
    if (r >= 0 && !want.name)
        r = err_fail(err, FAIL_MISSING_FIELD, "'name' is missing: what to call it");
    if (r >= 0)
        r = image_tag(req->core, req->owner, req->args[0], want.name, &image, err);
    free(want.name);
    return r < 0 ? r : native_reply_image(req, 201, &image, err);
}

int native_image_prune(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct image_pruned pruned;
    /* What no image needs may be another team's cache: that is the operator's to remove. */
    int r = image_prune(req->core, req->admin && !req->for_team ? NULL : req->owner, &pruned, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_open(&j, "removed", '[');
    for (size_t i = 0; i < pruned.n; i++)
        jout_str(&j, NULL, pruned.layers[i]);
    jout_close(&j, ']');
    jout_uint(&j, "freed_bytes", pruned.freed_bytes);
    jout_close(&j, '}');
    free(pruned.layers);
    return reply_json(req, 200, &j);
}

int native_image_delete(struct request *req, struct err *err)
{
    int r = image_remove(req->core, req->owner, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}
