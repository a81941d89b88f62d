/* api - authorization: no key, a wrong one, another team's. Every operation of openapi.json is
 * tried with ids of another team, so that operations added later are tried too. */
#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "cli/attack/attack.h"
#include "cli/attack/wire.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define WRONG_KEYS 40

/* Blue's things, by the kind that a path's parameter names; made once for a run of the category. */
struct treasure {
    char *sandbox, *volume, *checkpoint, *secret, *template, *image, *key, *volume_checkpoint;
};

static char *made(struct client *c, const char *path, json_t *body, const char *member)
{
    _cleanup_json_ json_t *answer = NULL;
    long status = talk(c, "POST", path, body, &answer);
    return status == 201 ? xstrdup(member_text(answer, member)) : NULL;
}

static void treasure_done(struct treasure *o)
{
    free(o->sandbox);
    free(o->volume);
    free(o->checkpoint);
    free(o->secret);
    free(o->template);
    free(o->key);
    free(o->volume_checkpoint);
}

static bool treasure_make(struct attack *a, struct treasure *o, struct trial *t)
{
    struct client *c = a->blue.client;
    if (!stage_blue_box(a, t))
        return false;
    o->sandbox = xstrdup(a->blue_box);
    _cleanup_free_ char *checkpoints = xasprintf("/v1/sandboxes/%s/checkpoints", o->sandbox);
    o->checkpoint = made(c, checkpoints, json_object(), "id");
    o->volume = made(c, "/v1/volumes", json_pack("{s:i}", "size_mb", 16), "id");
    if (o->volume) {
        _cleanup_free_ char *below = xasprintf("/v1/volumes/%s/checkpoints", o->volume);
        o->volume_checkpoint = made(c, below, json_object(), "id");
    }
    static unsigned times;
    _cleanup_free_ char *secret = xasprintf("%s-secret-%u", a->tag, times++);
    o->secret =
        made(c, "/v1/secrets", json_pack("{s:s,s:s}", "name", secret, "value", "blue"), "id");
    _cleanup_free_ char *template = xasprintf("%s-private", a->tag);
    o->template = made(c, "/v1/templates",
                       json_pack("{s:s,s:s}", "name", template, "image", a->image), "name");
    o->key = made(c, "/v1/keys", json_pack("{s:s}", "name", "blue"), "id");
    if (!o->checkpoint || !o->volume || !o->secret || !o->template || !o->key)
        trial_error(t, "blue's things could not be made");
    return o->checkpoint && o->volume && o->secret && o->template && o->key;
}

/* Blue's id for a parameter of `path`; NULL: nothing fits. */
static const char *fitting(const struct treasure *o, const char *path, const char *parameter)
{
    bool first = strcmp(parameter, "id") == 0 || strcmp(parameter, "name") == 0;
    if (strcmp(parameter, "checkpoint") == 0)
        return o->volume_checkpoint ? o->volume_checkpoint : "x";
    if (!first)
        return strcmp(parameter, "port") == 0 ? "8080" : "1";
    return strncmp(path, "/v1/sandboxes", 13) == 0     ? o->sandbox
           : strncmp(path, "/v1/volumes", 11) == 0     ? o->volume
           : strncmp(path, "/v1/checkpoints", 15) == 0 ? o->checkpoint
           : strncmp(path, "/v1/secrets", 11) == 0     ? o->secret
           : strncmp(path, "/v1/templates", 13) == 0   ? o->template
           : strncmp(path, "/v1/keys", 8) == 0         ? o->key
                                                       : NULL;
}

/* Fill a path's parameters with ids; NULL: it has none, or none fits. */
static char *instance(const struct treasure *o, const char *pattern)
{
    struct buf b = BUF_INIT(4096);
    char parameter[64];
    bool any = false;
    const char *p = pattern;
    while (*p) {
        if (*p != '{') {
            xputn(&b, p++, 1);
            continue;
        }
        size_t n = strcspn(p, "}");
        (void)snprintf(parameter, sizeof(parameter), "%.*s", (int)(n > 0 ? n - 1 : 0), p + 1);
        const char *id = fitting(o, pattern, parameter);
        if (!id) {
            buf_done(&b);
            return NULL;
        }
        xputs(&b, id);
        any = true;
        p += n + 1;
    }
    if (!any) {
        buf_done(&b);
        return NULL;
    }
    if (strstr(pattern, "/files")) /* all file operations need a path */
        xputs(&b, "?path=/etc/passwd&name=x");
    return buf_steal(&b);
}

/* A body for operations that would complain about a missing one before checking the caller. */
static json_t *body_for(const char *method, const char *pattern)
{
    static const struct {
        const char *end, *body;
    } bodies[] = {
        { "/exec", "{\"argv\":[\"true\"]}" },
        { "/processes", "{\"argv\":[\"true\"]}" },
        { "/signal", "{\"signal\":9}" },
        { "/resize", "{\"rows\":24,\"cols\":80}" },
        { "/restore", "{\"checkpoint\":\"x\"}" },
        { "/fork", "{\"count\":1}" },
        { "/commit", "{\"name\":\"stolen\"}" },
        { "/leases", "{\"seconds\":10}" },
        { "/mkdir", "{\"path\":\"/tmp/x\"}" },
        { "/move", "{\"from\":\"/tmp/x\",\"to\":\"/tmp/y\"}" },
        { "/copy", "{\"from\":\"/etc/passwd\",\"to\":\"/tmp/y\"}" },
        { "/chmod", "{\"path\":\"/tmp\",\"mode\":\"0777\"}" },
        { "/chown", "{\"path\":\"/tmp\",\"owner\":\"root\"}" },
        { "/symlink", "{\"path\":\"/tmp/l\",\"target\":\"/\"}" },
        { "/truncate", "{\"path\":\"/tmp/x\",\"size\":0}" },
        { "/xattrs", "{\"path\":\"/tmp\",\"name\":\"user.a\",\"value\":\"b\"}" },
        { "/files/read", "{\"paths\":[\"/etc/passwd\"]}" },
        { "/search", "{\"path\":\"/etc\",\"text\":\"root\"}" },
        { "/replace", "{\"path\":\"/etc\",\"text\":\"root\",\"replacement\":\"x\"}" },
        { "/watches", "{\"path\":\"/tmp\"}" },
        { "/tokens", "{\"port\":80}" },
        { "/tag", "{\"name\":\"stolen\"}" },
    };
    size_t n = strlen(pattern);
    if (strcmp(method, "GET") == 0 || strcmp(method, "DELETE") == 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        size_t end = strlen(bodies[i].end);
        if (n >= end && strcmp(pattern + n - end, bodies[i].end) == 0)
            return json_loads(bodies[i].body, 0, NULL);
    }
    return json_object();
}

static bool is_method(const char *word)
{
    return strcmp(word, "get") == 0 || strcmp(word, "put") == 0 || strcmp(word, "post") == 0 ||
           strcmp(word, "patch") == 0 || strcmp(word, "delete") == 0;
}

/* Call `one` for every operation below the prefix that names a thing of blue's. */
static void each_operation(struct attack *a, const char *prefix, struct trial *t,
                           void (*one)(struct attack *a, const char *method, const char *path,
                                       json_t *body, struct trial *t))
{
    _cleanup_json_ json_t *api = NULL;
    _cleanup_(treasure_done) struct treasure o = { 0 };
    const char *pattern, *word;
    json_t *item, *operation;
    unsigned n = 0;
    if (talk(a->admin, "GET", "/v1/openapi.json", NULL, &api) != 200 || !treasure_make(a, &o, t))
        return;
    json_object_foreach(json_object_get(api, "paths"), pattern, item) {
        _cleanup_free_ char *path = instance(&o, pattern);
        if (!path || strncmp(pattern, prefix, strlen(prefix)) != 0)
            continue;
        json_object_foreach(item, word, operation) {
            char method[8] = "";
            for (size_t i = 0; i < sizeof(method) - 1 && word[i]; i++)
                method[i] = (char)toupper((unsigned char)word[i]);
            if (!is_method(word))
                continue;
            one(a, method, path, body_for(method, pattern), t);
            n++;
        }
    }
    if (n == 0)
        trial_error(t, "no operation was found to try");
    trial_held(t, "%u operations say that it is not there", n);
}

/* Another team's thing must look missing; an error about the request itself tells nothing. */
static void one_foreign(struct attack *a, const char *method, const char *path, json_t *body,
                        struct trial *t)
{
    _cleanup_json_ json_t *answer = NULL;
    long status = talk(a->red.client, method, path, body, &answer);
    bool told = status == 404 || status == 403 || status == 426 || status == 405 ||
                (status == 400 && strcmp(talk_code(answer), "sandbox_busy") != 0) || status == 501;
    if (!told)
        trial_broke(t, "%s %s answers %ld %s to another team", method, path, status,
                    talk_code(answer));
    const char *message = member_text(json_object_get(answer, "error"), "message");
    if (strstr(message, a->blue.team))
        trial_broke(t, "%s %s names the other team", method, path);
}

static void run_foreign(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    each_operation(a, self->text, t, one_foreign);
    if (a->blue_box && talk_box(a->blue.client, "GET", a->blue_box, "", NULL, NULL) != 200)
        trial_broke(t, "blue's sandbox did not survive it");
}

static void one_keyless(struct attack *a, const char *method, const char *path, json_t *body,
                        struct trial *t)
{
    struct client_config config = { .url = a->url };
    _cleanup_(client_freep) struct client *c = NULL;
    struct err ignored = ERR_INIT;
    if (client_new(&config, &c, &ignored) < 0)
        return;
    long status = talk(c, method, path, body, NULL);
    if (status != 401)
        trial_broke(t, "%s %s answers %ld without a key", method, path, status);
}

static void run_keyless(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    if (!a->url) {
        trial_not_here(t, "on the admin socket root needs no key");
        return;
    }
    each_operation(a, "/v1/", t, one_keyless);
}

/* ---- E2B's dialect ---- */

static void run_foreign_e2b(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    static const char *const asks[][2] = { { "GET", "" },
                                           { "POST", "/timeout" },
                                           { "POST", "/refreshes" },
                                           { "POST", "/connect" },
                                           { "POST", "/pause" },
                                           { "POST", "/fork" },
                                           { "POST", "/snapshots" },
                                           { "GET", "/metrics" },
                                           { "GET", "/logs" },
                                           { "DELETE", "" } };
    if (!stage_blue_box(a, t))
        return;
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        _cleanup_free_ char *path = xasprintf("/e2b/sandboxes/%s%s", a->blue_box, asks[i][1]);
        bool post = strcmp(asks[i][0], "POST") == 0;
        long status = talk(a->red.client, asks[i][0], path,
                           post ? json_pack("{s:i}", "timeout", 60) : NULL, NULL);
        if (status != 404 && status != 403 && status != 400)
            trial_broke(t, "%s %s answers %ld to another team", asks[i][0], path, status);
    }
    if (talk_box(a->blue.client, "GET", a->blue_box, "", NULL, NULL) != 200)
        trial_broke(t, "blue's sandbox did not survive it");
    trial_held(t, "%zu operations say that it is not there", ARRAY_LEN(asks));
}

/* ---- rights within a team, keys ---- */

static long as_red(struct attack *a, const char *header, const char *method, const char *path,
                   const char *body)
{
    char host[256];
    _cleanup_fd_ int fd = wire_open(a);
    struct buf b = BUF_INIT(1 << 20), answer = BUF_INIT(1 << 20);
    (void)buf_printf(&b,
                     "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nAuthorization: Bearer "
                     "%s\r\n%sContent-Length: %zu\r\n\r\n%s",
                     method, path, wire_host(a, host, sizeof(host)), a->red.key, header,
                     strlen(body), body);
    if (fd >= 0 && wire_send(fd, b.data, b.len))
        (void)wire_read(fd, &answer, 10000);
    long status = wire_status(&answer);
    buf_done(&b);
    buf_done(&answer);
    return status;
}

/* Replace '@' in the text with the other team's name. */
static char *with_team(const struct attack *a, const char *text)
{
    int n = (int)strcspn(text, "@");
    return text[n] ? xasprintf("%.*s%s%s", n, text, a->blue.team, text + n + 1) : xstrdup(text);
}

static void run_refused(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    char method[8];
    (void)snprintf(method, sizeof(method), "%.*s", (int)strcspn(self->text, " "), self->text);
    _cleanup_free_ char *path = with_team(a, self->text + strcspn(self->text, " ") + 1);
    _cleanup_free_ char *body = with_team(a, self->more ? self->more : "");
    long status = as_red(a, "", method, path, body);
    if (status == 403 || status == 404)
        trial_held(t, "%ld", status);
    else
        trial_broke(t, "a member's key gets %ld", status);
}

static void run_team_header(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *header = xasprintf("X-Warren-Team: %s\r\n", a->blue.team);
    long status =
        as_red(a, header, self->more ? "POST" : "GET", self->text, self->more ? self->more : "");
    if (status == 403 || status == 404)
        trial_held(t, "%ld", status);
    else
        trial_broke(t, "a member acts for another team: %ld", status);
}

static void run_key_variant(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_free_ char *key = xstrdup(a->red.key);
    size_t n = strlen(key);
    if (self->number < 0)
        key[n - (size_t)-self->number] = '\0'; /* cut its last characters */
    else if (self->number == 1)
        key[n - 1] = key[n - 1] == '0' ? '1' : '0';
    else
        key[0] = '\0';
    struct client_config config = { .url = a->url, .key = key };
    struct err ignored = ERR_INIT;
    _cleanup_(client_freep) struct client *c = NULL;
    if (!a->url || client_new(&config, &c, &ignored) < 0) {
        trial_not_here(t, "no TCP address of the API is known; --at names it");
        return;
    }
    long status = talk(c, "GET", "/v1/sandboxes", NULL, NULL);
    if (status == 401 || status == 429)
        trial_held(t, "%ld", status);
    else
        trial_broke(t, "the key that is not one gets %ld", status);
}

/* Guessing must be slowed down, without slowing callers with a key. */
static void run_guessing(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    bool slowed = false;
    struct err ignored = ERR_INIT;
    if (!a->url) {
        trial_not_here(t, "no TCP address of the API is known; --at names it");
        return;
    }
    for (int i = 0; i < WRONG_KEYS; i++) {
        _cleanup_free_ char *key = xasprintf("wrong_%040d", i);
        struct client_config config = { .url = a->url, .key = key };
        _cleanup_(client_freep) struct client *c = NULL;
        if (client_new(&config, &c, &ignored) == 0)
            slowed = talk(c, "GET", "/v1/sandboxes", NULL, NULL) == 429 || slowed;
    }
    if (!slowed)
        trial_broke(t, "%d wrong keys, and no 429", WRONG_KEYS);
    if (talk(a->blue.client, "GET", "/v1/sandboxes?limit=1", NULL, NULL) != 200)
        trial_broke(t, "a good key from the same address is refused");
    trial_held(t, "429, and a good key works on");
}

static void run_key_in_url(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct client_config config = { .url = a->url };
    struct err ignored = ERR_INIT;
    _cleanup_(client_freep) struct client *c = NULL;
    _cleanup_free_ char *path =
        xasprintf("/v1/sandboxes?api_key=%s&key=%s&token=%s", a->red.key, a->red.key, a->red.key);
    if (!a->url || client_new(&config, &c, &ignored) < 0) {
        trial_not_here(t, "no TCP address of the API is known; --at names it");
        return;
    }
    long status = talk(c, "GET", path, NULL, NULL);
    if (status == 401 || status == 400 || status == 429)
        trial_held(t, "%ld", status);
    else
        trial_broke(t, "a key in an address, where logs keep it, gets %ld", status);
}

#define FOREIGN(name_, title_, prefix_)                                                   \
    {                                                                                     \
        .name = "foreign-" name_, .category = "api", .title = title_, .run = run_foreign, \
        .text = prefix_                                                                   \
    }
#define MEMBER(name_, title_, ask_, body_)                                               \
    {                                                                                    \
        .name = "member-" name_, .category = "api", .title = title_, .run = run_refused, \
        .text = ask_, .more = body_                                                      \
    }
#define VARIANT(name_, title_, n_)                                                        \
    {                                                                                     \
        .name = "key-" name_, .category = "api", .title = title_, .run = run_key_variant, \
        .number = n_                                                                      \
    }

/* clang-format off */
static const struct attempt_row rows[] = {
    FOREIGN("sandboxes", "every operation on another team's sandbox", "/v1/sandboxes"),
    FOREIGN("volumes", "every operation on another team's volume", "/v1/volumes"),
    FOREIGN("checkpoints", "every operation on another team's checkpoint", "/v1/checkpoints"),
    FOREIGN("secrets", "every operation on another team's secret", "/v1/secrets"),
    FOREIGN("templates", "every operation on another team's template", "/v1/templates"),
    FOREIGN("keys", "every operation on another team's key", "/v1/keys"),
    { .name = "foreign-e2b", .category = "api", .title = "another team's sandbox by E2B's dialect", .run = run_foreign_e2b },
    { .name = "keyless", .category = "api", .title = "every operation without a key", .run = run_keyless },
    MEMBER("team-create", "make a team", "POST /v1/teams", "{\"name\":\"@-x\"}"),
    MEMBER("team-quota", "lift a quota", "PATCH /v1/teams/@", "{\"quotas\":{}}"),
    MEMBER("team-delete", "delete another team", "DELETE /v1/teams/@", NULL),
    MEMBER("team-look", "look at another team", "GET /v1/teams/@", NULL),
    MEMBER("admin-key", "make an operator's key", "POST /v1/keys", "{\"name\":\"x\",\"role\":\"admin\"}"),
    MEMBER("team-key", "make another team's key", "POST /v1/keys", "{\"name\":\"x\",\"team\":\"@\"}"),
    MEMBER("usage", "read another team's usage", "GET /v1/usage?team=@", NULL),
    { .name = "member-team-header", .category = "api", .title = "act for another team", .run = run_team_header, .text = "/v1/sandboxes" },
    { .name = "member-prune", .category = "api", .title = "remove what others cached", .run = run_team_header, .text = "/v1/images/prune", .more = "{}" },
    VARIANT("prefix", "a key without its last characters", -4),
    VARIANT("changed", "a key with one other character", 1),
    VARIANT("empty", "an empty key", 0),
    { .name = "key-in-address", .category = "api", .title = "a key in the address", .run = run_key_in_url },
    { .name = "key-guessing", .category = "api", .title = "guess keys", .run = run_guessing },
};
/* clang-format on */

const struct attempt_table attack_api = { rows, ARRAY_LEN(rows) };
