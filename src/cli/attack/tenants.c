/* tenants - names that shadow another team's, and quotas. Red publishes; blue must never get
 * red's thing by a bare name. */
#include <string.h>

#include "cli/attack/attack.h"
#include "cli/attack/tar.h"
#include "cli/object.h"
#include "cli/xmem.h"

/* An image of one file. */
static long make_image(struct attack *a, struct client *c, const char *name, bool public,
                       const char *text)
{
    struct buf b = BUF_INIT(1 << 20);
    _cleanup_free_ char *path = xasprintf("/v1/images/%s%s", name, public ? "?public=true" : "");
    tar_put(&b, "mark", '0', NULL, text);
    tar_end(&b);
    long status = talk_raw(c, "PUT", path, "application/octet-stream", b.data, b.len, NULL);
    buf_done(&b);
    return status;
}

static void remove_at(struct client *c, const char *kind, const char *name)
{
    _cleanup_free_ char *path = xasprintf("/v1/%s/%s", kind, name);
    (void)talk(c, "DELETE", path, NULL, NULL);
}

static long make_template(struct client *c, const char *name, const char *image, int cpus_of)
{
    return talk(c, "POST", "/v1/templates",
                json_pack("{s:s,s:s,s:b,s:i}", "name", name, "image", image, "public", true,
                          "memory_mb", cpus_of),
                NULL);
}

/* The operator's template and red's have the same name and differ in memory: the bare name must
 * mean the operator's. */
static void run_template_shadow(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *name = xasprintf("%s-t%ld", a->tag, self->number);
    _cleanup_free_ char *path = xasprintf("/v1/templates/%s", name);
    _cleanup_json_ json_t *seen = NULL;
    struct client *first = self->number ? a->red.client : a->admin;
    struct client *second = self->number ? a->admin : a->red.client;
    (void)make_template(first, name, a->image, first == a->red.client ? 77 : 88);
    (void)make_template(second, name, a->image, second == a->red.client ? 77 : 88);
    long status = talk(a->blue.client, "GET", path, NULL, &seen);
    if (status == 200 && member_int(seen, "memory_mb") == 77)
        trial_broke(t, "another team's template stands for the operator's");
    _cleanup_json_ json_t *made = NULL, *box = NULL;
    (void)talk(a->blue.client, "POST", "/e2b/sandboxes", json_pack("{s:s}", "templateID", name),
               &made);
    const char *id = member_text(made, "sandboxID");
    if (*id && talk_box(a->blue.client, "GET", id, "", NULL, &box) == 200 &&
        member_int(box, "memory_mb") == 77)
        trial_broke(t, "by E2B's dialect blue's sandbox is made of red's template");
    if (*id)
        remove_at(a->blue.client, "sandboxes", id);
    trial_held(t, "blue gets %ld", status);
    remove_at(a->red.client, "templates", name);
    remove_at(a->admin, "templates", name);
}

/* A name that the operator does not have must mean nothing, although red publishes it. */
static void run_template_free(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *name = xasprintf("%s-free", a->tag);
    _cleanup_free_ char *path = xasprintf("/v1/templates/%s", name);
    (void)make_template(a->red.client, name, a->image, 77);
    long looked = talk(a->blue.client, "GET", path, NULL, NULL);
    _cleanup_json_ json_t *made = NULL;
    long status =
        talk(a->blue.client, "POST", "/v1/sandboxes", json_pack("{s:s}", "template", name), &made);
    if (looked == 200 || status == 201)
        trial_broke(t, "blue gets another team's template by a name without a team (%ld, %ld)",
                    looked, status);
    else
        trial_held(t, "%ld, %ld", looked, status);
    if (status == 201)
        remove_at(a->blue.client, "sandboxes", member_text(made, "id"));
    remove_at(a->red.client, "templates", name);
}

static void run_image_free(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *name = xasprintf("%s-image-free", a->tag);
    _cleanup_free_ char *path = xasprintf("/v1/images/%s", name);
    long made = make_image(a, a->red.client, name, true, "red");
    long looked = talk(a->blue.client, "GET", path, NULL, NULL);
    if (looked == 200)
        trial_broke(t, "blue gets another team's image by a name without a team");
    else
        trial_held(t, "red's image: %ld, blue's look: %ld", made, looked);
    remove_at(a->red.client, "images", name);
}

static void run_image_shadow(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *name = xasprintf("%s-image", a->tag);
    _cleanup_free_ char *path = xasprintf("/v1/images/%s", name);
    _cleanup_json_ json_t *ours = NULL, *seen = NULL;
    (void)make_image(a, a->red.client, name, true, "red");
    (void)make_image(a, a->admin, name, true, "operator");
    (void)talk(a->admin, "GET", path, NULL, &ours);
    long status = talk(a->blue.client, "GET", path, NULL, &seen);
    if (strcmp(member_text(ours, "id"), member_text(seen, "id")) != 0 ||
        strcmp(member_text(ours, "digest"), member_text(seen, "digest")) != 0)
        trial_broke(t, "blue gets another team's image in the place of the operator's");
    else
        trial_held(t, "blue gets the operator's (%ld)", status);
    remove_at(a->red.client, "images", name);
    remove_at(a->admin, "images", name);
}

/* A team must be able to delete its image although another team's template has its name. */
static void run_own_image(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *name = xasprintf("%s-own", a->tag);
    _cleanup_free_ char *path = xasprintf("/v1/images/%s", name);
    _cleanup_json_ json_t *answer = NULL;
    (void)make_image(a, a->blue.client, name, false, "blue");
    (void)make_image(a, a->red.client, name, false, "red");
    (void)make_template(a->red.client, name, name, 77);
    long status = talk(a->blue.client, "DELETE", path, NULL, &answer);
    if (status == 204)
        trial_held(t, "204");
    else
        trial_broke(t, "red's template keeps blue's image: %ld %s", status, talk_code(answer));
    remove_at(a->red.client, "templates", name);
    remove_at(a->red.client, "images", name);
    remove_at(a->blue.client, "images", name);
}

static void run_private_image(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *name = xasprintf("%s-private-image", a->tag);
    (void)make_image(a, a->blue.client, name, false, "blue");
    static const char *const ways[] = { "", "/history", "/export" };
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        _cleanup_free_ char *path = xasprintf("/v1/images/%s%s", name, ways[i]);
        long status = talk(a->red.client, "GET", path, NULL, NULL);
        if (status == 200)
            trial_broke(t, "GET %s shows another team's image", path);
    }
    long status =
        talk(a->red.client, "POST", "/v1/sandboxes", json_pack("{s:s}", "image", name), NULL);
    if (status == 201)
        trial_broke(t, "a sandbox was made of another team's image");
    trial_held(t, "not there");
    remove_at(a->blue.client, "images", name);
}

/* ---- quotas ---- */

static void set_quota(struct attack *a, const char *name, json_t *value)
{
    _cleanup_free_ char *path = xasprintf("/v1/teams/%s", a->red.team);
    (void)talk(a->admin, "PATCH", path, json_pack("{s:{s:o}}", "quotas", name, value), NULL);
}

/* text: the quota; more: a request that exceeds it. */
static void run_quota(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_json_ json_t *answer = NULL;
    json_t *body = json_loads(self->more, 0, NULL);
    if (!stage_box(a, t))
        return;
    (void)json_object_set_new(body, "image", json_string(a->image));
    set_quota(a, self->text, json_integer(self->number));
    long status = talk(a->red.client, "POST", "/v1/sandboxes", body, &answer);
    set_quota(a, self->text, json_null());
    if (status == 403 && strcmp(talk_code(answer), "quota_exceeded") == 0)
        trial_held(t, "403 quota_exceeded");
    else
        trial_broke(t, "over a quota of %ld %s: %ld", self->number, self->text, status);
    if (status == 201)
        remove_at(a->red.client, "sandboxes", member_text(answer, "id"));
}

/* Import 24 MB of random bytes under a quota of 16. */
static void run_image_quota(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(64 << 20);
    _cleanup_free_ char *path = xasprintf("/v1/images/%s-large", a->tag);
    _cleanup_free_ char *name = xasprintf("%s-large", a->tag);
    _cleanup_free_ char *text = xcalloc(24 << 20, 1);
    _cleanup_json_ json_t *answer = NULL;
    unsigned state = 88172645;
    for (size_t i = 0; i + 1 < 24 << 20; i++) {
        state = state * 1664525 + 1013904223;
        text[i] = (char)('!' + (state >> 24) % 90);
    }
    tar_put(&b, "large", '0', NULL, text);
    tar_end(&b);
    if (!stage_delete(a, &a->red, &a->box, t) || !stage_delete(a, &a->red, &a->volume_box, t))
        return;
    set_quota(a, "disk_mb", json_integer(16));
    long status =
        talk_raw(a->red.client, "PUT", path, "application/octet-stream", b.data, b.len, &answer);
    set_quota(a, "disk_mb", json_null());
    if (status == 403 || status == 507 || status == 413)
        trial_held(t, "%ld %s", status, talk_code(answer));
    else
        trial_broke(t, "an image of 24 MB under a quota of 16: %ld", status);
    remove_at(a->red.client, "images", name);
    buf_done(&b);
}

/* ---- names and words ---- */

static void run_name(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_json_ json_t *answer = NULL;
    long status = talk(a->red.client, "POST", "/v1/sandboxes",
                       json_pack("{s:s,s:s}", "image", a->image, "name", self->text), &answer);
    if (status == 400)
        trial_held(t, "400 %s", talk_code(answer));
    else
        trial_broke(t, "the name is taken: %ld", status);
    if (status == 201)
        remove_at(a->red.client, "sandboxes", member_text(answer, "id"));
}

/* A checkpoint's copy must not get a name that looks like an id either. */
static void run_checkpoint_name(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_json_ json_t *checkpoint = NULL, *answer = NULL;
    const char *box = stage_box(a, t);
    if (!box ||
        talk_box(a->red.client, "POST", box, "/checkpoints", json_object(), &checkpoint) != 201) {
        trial_error(t, "no checkpoint");
        return;
    }
    _cleanup_free_ char *path =
        xasprintf("/v1/checkpoints/%s/sandboxes", member_text(checkpoint, "id"));
    long status =
        talk(a->red.client, "POST", path, json_pack("{s:s}", "name", self->text), &answer);
    if (status == 400)
        trial_held(t, "400 %s", talk_code(answer));
    else
        trial_broke(t, "a name of an id's shape is taken: %ld", status);
    if (status == 201)
        remove_at(a->red.client, "sandboxes", member_text(answer, "id"));
    remove_at(a->red.client, "checkpoints", member_text(checkpoint, "id"));
}

#define NAME(name_, title_, text_)                                                      \
    {                                                                                   \
        .name = "name-" name_, .category = "tenants", .title = title_, .run = run_name, \
        .text = text_                                                                   \
    }
#define QUOTA(name_, title_, what_, n_, body_)                                            \
    {                                                                                     \
        .name = "quota-" name_, .category = "tenants", .title = title_, .run = run_quota, \
        .text = what_, .number = n_, .more = body_                                        \
    }

/* clang-format off */
static const struct attempt_row rows[] = {
    { .name = "template-shadow", .category = "tenants", .title = "a public template that takes the operator's place", .run = run_template_shadow },
    { .name = "template-shadow-first", .category = "tenants", .title = "the same, made before the operator's", .run = run_template_shadow, .number = 1 },
    { .name = "template-free-name", .category = "tenants", .title = "a public template under a free name", .run = run_template_free },
    { .name = "image-shadow", .category = "tenants", .title = "a public image that takes the operator's place", .run = run_image_shadow },
    { .name = "image-free-name", .category = "tenants", .title = "a public image under a free name", .run = run_image_free },
    { .name = "image-private", .category = "tenants", .title = "another team's private image", .run = run_private_image },
    { .name = "image-delete-blocked", .category = "tenants", .title = "keep another team's image by a template's name", .run = run_own_image },
    QUOTA("sandboxes", "one sandbox more than allowed", "sandboxes", 1, "{}"),
    QUOTA("memory", "more memory than allowed", "memory_mb", 300, "{\"memory_mb\":1024}"),
    QUOTA("cpus", "more cpus than allowed", "cpus", 1, "{\"cpus\":2}"),
    QUOTA("disk", "more disk than allowed", "disk_mb", 128, "{\"disk_mb\":4096}"),
    { .name = "quota-image", .category = "tenants", .title = "an image larger than the team's disk", .run = run_image_quota },
    NAME("newline", "a name of two lines", "a\nb"), NAME("escape", "a name that moves the cursor", "a\x1b[2Jb"),
    NAME("bidi", "a name that reads backwards", "a\xe2\x80\xae" "b"), NAME("path", "a name that is a path", "../x"),
    NAME("id", "a name that looks like an id", "abcdefghij0123456789"), NAME("option", "a name that is an option", "--help"),
    { .name = "checkpoint-name-id", .category = "tenants", .title = "the same, from a checkpoint", .run = run_checkpoint_name, .text = "abcdefghij0123456789" },
};
/* clang-format on */

const struct attempt_table attack_tenants = { rows, ARRAY_LEN(rows) };
