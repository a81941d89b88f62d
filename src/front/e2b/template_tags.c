/* Tags: names of builds of a template, kept as templates of their own. */
#include <errno.h>
#include <string.h>

#include "front/e2b/templates.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-_"

bool e2b_tag_valid(const char *tag)
{
    for (const char *p = tag; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            return false;
    return name_valid(tag);
}

static const char *without_team(const struct request *req, const char *text)
{
    size_t n = strlen(req->owner);
    return strncmp(text, req->owner, n) == 0 && text[n] == '/' ? text + n + 1 : text;
}

const char *e2b_known_name(const struct request *req, const char *asked)
{
    asked = without_team(req, asked);
    return strcmp(asked, "code-interpreter-v1") == 0 ? "code-interpreter" : asked;
}

int e2b_name_parse(const struct request *req, const char *text, struct e2b_name *ret_name,
                   struct err *err)
{
    struct e2b_name name = { .tag = "" };
    text = without_team(req, text);
    const char *slash = strchr(text, '/');
    if (slash && (size_t)(slash - text) < sizeof(name.team)) {
        memcpy(name.team, text, (size_t)(slash - text));
        text = slash + 1;
    }
    size_t n = strcspn(text, ":");
    const char *tag = text[n] ? text + n + 1 : "";
    if (n >= sizeof(name.name) || strlen(tag) >= sizeof(name.tag))
        n = 0;
    (void)snprintf(name.name, sizeof(name.name), "%.*s", (int)n, text);
    (void)snprintf(name.tag, sizeof(name.tag), "%.*s", NAME_MAX_LEN, tag);
    if ((slash && !name_valid(name.team)) || !name_valid(name.name) ||
        name.name[strspn(name.name, NAME_CHARS)] ||
        (text[strcspn(text, ":")] && !e2b_tag_valid(name.tag)))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "a template's name must be at most %d lower-case letters, digits, '-' or "
                        "'_', a letter or digit first; a tag may follow a colon",
                        NAME_MAX_LEN);
    (void)snprintf(name.ref, sizeof(name.ref), "%s%s%s", name.team, name.team[0] ? "/" : "",
                   name.name);
    *ret_name = name;
    return 0;
}

int e2b_name_own(const struct request *req, const char *text, struct e2b_name *ret_name,
                 struct err *err)
{
    int r = e2b_name_parse(req, text, ret_name, err);
    if (r >= 0 && ret_name->team[0])
        r = err_fail(err, FAIL_FORBIDDEN,
                     "the name '%s' is another team's; leave the team out to use your own",
                     ret_name->ref);
    return r;
}

static int unknown(struct err *err, const struct e2b_name *name)
{
    return err_fail(err, FAIL_TEMPLATE_NOT_FOUND, "template '%s%s%s' not found", name->ref,
                    name->tag[0] ? ":" : "", name->tag);
}

/* An own one, by name and tag. */
static int get_own(struct request *req, const struct e2b_name *name, struct template *ret_t,
                   struct err *err)
{
    char full[TEMPLATE_NAME_SIZE];
    (void)snprintf(full, sizeof(full), "%s:%s", name->name,
                   name->tag[0] ? name->tag : TEMPLATE_TAG);
    int r = template_get(req->core, req->owner, full, ret_t, err);
    if (r >= 0 && strcmp(ret_t->owner, req->owner) != 0) {
        template_done(ret_t);
        r = -ENOENT;
    }
    return r == -ENOENT ? unknown(err, name) : r;
}

static int put_tag(struct request *req, struct template *t, const char *name, const char *tag,
                   struct err *err)
{
    struct template made = { 0 };
    char full[TEMPLATE_NAME_SIZE];
    (void)snprintf(full, sizeof(full), "%s:%s", name, tag);
    if (!e2b_tag_valid(tag) || !template_name_normal(full, t->name))
        return err_fail(err, FAIL_INVALID_FIELD, "'%.64s' is no tag", tag);
    free(t->spec.template);
    t->spec.template = strdup(t->name);
    if (!t->spec.template)
        return err_set(err, ENOMEM, "cannot allocate a template");
    int r = template_put(req->core, t, &made, err);
    template_done(&made);
    return r;
}

static int read_ask(struct request *req, const char *member, json_t **ret_object,
                    struct e2b_name *ret_name, json_t **ret_tags, struct err *err)
{
    int r = request_json(req, ret_object, err);
    if (r < 0)
        return r;
    const char *text = json_string_value(json_object_get(*ret_object, member));
    r = e2b_name_own(req, text ? text : "", ret_name, err);
    if (r < 0)
        return r;
    json_t *list = json_object_get(*ret_object, "tags");
    size_t n = json_array_size(list);
    bool good = n >= 1 && n <= TEMPLATE_TAGS_MAX;
    for (size_t i = 0; i < n && good; i++) {
        const char *tag = json_string_value(json_array_get(list, i));
        good = tag && strlen(tag) <= NAME_MAX_LEN && e2b_tag_valid(tag);
    }
    *ret_tags = list;
    return good ? 0
                : err_fail(err, FAIL_INVALID_FIELD, "'tags' must be a list of 1 to %d tags",
                           TEMPLATE_TAGS_MAX);
}

int e2b_tags_assign(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(template_done) struct template t = { 0 };
    _cleanup_(buf_done) struct buf out = BUF_INIT(64 * 1024);
    struct jout j = JOUT_INIT(&out);
    struct e2b_name name;
    json_t *tags = NULL;
    char build[TEMPLATE_BUILD_ID_SIZE];
    int r = read_ask(req, "target", &object, &name, &tags, err);
    if (r >= 0)
        r = get_own(req, &name, &t, err);
    if (r < 0)
        return r;
    template_build_of(&t, build);
    jout_open(&j, NULL, '{');
    jout_str(&j, "buildID", build);
    jout_open(&j, "tags", '[');
    for (size_t i = 0; i < json_array_size(tags) && r >= 0; i++) {
        const char *tag = json_string_value(json_array_get(tags, i));
        r = put_tag(req, &t, name.name, tag, err);
        jout_str(&j, NULL, tag);
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
    return r < 0 ? r : reply_json(req, 201, &j);
}

int e2b_tags_remove(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    struct e2b_name name;
    json_t *tags = NULL;
    int r = read_ask(req, "name", &object, &name, &tags, err);
    for (size_t i = 0; i < json_array_size(tags) && r >= 0; i++) {
        struct template t = { 0 };
        (void)snprintf(name.tag, sizeof(name.tag), "%s",
                       json_string_value(json_array_get(tags, i)));
        if (strcmp(name.tag, TEMPLATE_TAG) == 0)
            return err_fail(err, FAIL_INVALID_FIELD,
                            "the tag '" TEMPLATE_TAG "' cannot be removed; delete the template");
        r = get_own(req, &name, &t, err);
        if (r >= 0)
            r = template_remove(req->core, req->owner, t.name, err);
        template_done(&t);
    }
    if (r < 0)
        return r;
    template_images_sweep(req->core, req->owner);
    return reply_empty(req);
}

int e2b_tags_list(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&out);
    struct template *list = NULL;
    struct e2b_name name;
    size_t n = 0, found = 0;
    int r = e2b_name_parse(req, req->args[0], &name, err);
    if (r >= 0)
        r = template_list(req->core, req->owner, &list, &n, err);
    if (r < 0)
        return r;
    size_t len = strlen(name.ref);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < n; i++) {
        const char *rest = list[i].as + len;
        char build[TEMPLATE_BUILD_ID_SIZE];
        if (strncmp(list[i].as, name.ref, len) != 0 || (*rest && *rest != ':'))
            continue;
        template_build_of(&list[i], build);
        found++;
        jout_open(&j, NULL, '{');
        jout_str(&j, "tag", *rest ? rest + 1 : TEMPLATE_TAG);
        jout_str(&j, "buildID", build);
        jout_time(&j, "createdAt", list[i].updated_ms);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    template_list_free(list, n);
    name.tag[0] = '\0';
    return found ? reply_json(req, 200, &j) : unknown(err, &name);
}
