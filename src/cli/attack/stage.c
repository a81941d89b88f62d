#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "attack/shape.h"
#include "base/clock.h"
#include "cli/attack/attack.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define VOLUME_AT "/attack-volume"
#define DEFAULT_URL "http://127.0.0.1:7070"

static int side_set(struct attack *a, struct side *side, const char *colour, struct err *err)
{
    _cleanup_json_ json_t *key = NULL;
    struct client_config config = { .url = a->url };
    _cleanup_free_ char *name = xasprintf("%s-%s", a->tag, colour);
    _cleanup_json_ json_t *team = json_pack("{s:s}", "name", name);
    int r = client_call(a->admin, "POST", "/v1/teams", team, NULL, NULL, err);
    if (r < 0)
        return err_wrap(err, r,
                        "cannot make a throw-away team, which needs the admin socket or an "
                        "operator's key");
    side->team = take_ptr(name);
    _cleanup_json_ json_t *body = json_pack("{s:s,s:s}", "name", "attack", "team", side->team);
    r = client_call(a->admin, "POST", "/v1/keys", body, &key, NULL, err);
    if (r < 0)
        return err_wrap(err, r, "cannot make a key for team '%s'", side->team);
    config.key = side->key = xstrdup(member_text(key, "key"));
    if (!a->url)
        config.socket = client_where(a->admin);
    return client_new(&config, &side->client, err);
}

/* Write a file with a random word: an answer with it came from outside of the sandbox. */
static void secret_set(struct attack *a)
{
    _cleanup_free_ char *path = xasprintf("/tmp/%s-secret", a->tag);
    (void)snprintf(a->secret, sizeof(a->secret), "%s-is-the-host", a->tag);
    _cleanup_fd_ int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (fd >= 0 && write(fd, a->secret, strlen(a->secret)) > 0)
        a->secret_path = take_ptr(path);
}

/* Find the API's TCP address: the client's own, or the default one if this daemon answers there. */
static void find_url(struct attack *a)
{
    const char *where = client_where(a->admin);
    if (*where != '/') {
        a->url = strncmp(where, "http://", 7) == 0 ? xstrdup(where) : NULL;
        return;
    }
    if (a->url)
        return;
    _cleanup_json_ json_t *body = json_pack("{s:s}", "name", a->tag);
    _cleanup_json_ json_t *key = NULL;
    struct err ignored = ERR_INIT;
    if (client_call(a->admin, "POST", "/v1/keys", body, &key, NULL, &ignored) < 0)
        return;
    struct client_config config = { .url = DEFAULT_URL, .key = member_text(key, "key") };
    _cleanup_(client_freep) struct client *c = NULL;
    if (client_new(&config, &c, &ignored) == 0 &&
        talk(c, "GET", "/v1/sandboxes?limit=1", NULL, NULL) == 200)
        a->url = xstrdup(DEFAULT_URL);
    _cleanup_free_ char *path = api_path("keys", member_text(key, "id"), NULL);
    (void)talk(a->admin, "DELETE", path, NULL, NULL);
}

int stage_set(struct attack *a, struct err *err)
{
    unsigned char random[4];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_set(err, errno, "cannot get random bytes");
    a->tag = xasprintf("attack-%02x%02x%02x%02x", random[0], random[1], random[2], random[3]);
    find_url(a);
    int r = side_set(a, &a->red, "red", err);
    if (r >= 0)
        r = side_set(a, &a->blue, "blue", err);
    if (r >= 0)
        secret_set(a);
    return r;
}

static int upload(const struct side *side, const char *id, struct err *err)
{
    _cleanup_free_ char *path =
        xasprintf("/v1/sandboxes/%s/files?path=%s&mode=0755&user=root", id, INSIDE_PATH);
    _cleanup_json_ json_t *answer = NULL;
    long status = talk_raw(side->client, "PUT", path, "application/octet-stream",
                           attack_inside_text, attack_inside_size, &answer);
    if (status != 201 && status != 200)
        return err_set(err, EIO, "cannot put the program into sandbox '%s': %ld %s", id, status,
                       talk_code(answer));
    return 0;
}

int stage_make(struct attack *a, const struct side *side, json_t *more, char **ret_id,
               struct err *err)
{
    _cleanup_json_ json_t *body =
        json_pack("{s:s,s:i,s:i,s:i,s:i,s:s}", "image", a->image, "memory_mb", SHAPE_MEMORY_MB,
                  "disk_mb", SHAPE_DISK_MB, "pids", SHAPE_PIDS, "timeout_s", 1800, "user", "root");
    _cleanup_json_ json_t *extra = more, *answer = NULL;
    if (extra)
        (void)json_object_update(body, extra);
    int r = client_call(side->client, "POST", "/v1/sandboxes", body, &answer, NULL, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *id = xstrdup(member_text(answer, "id"));
    r = upload(side, id, err);
    if (r < 0) {
        _cleanup_free_ char *path = api_path("sandboxes", id, NULL);
        (void)talk(side->client, "DELETE", path, NULL, NULL);
        return r;
    }
    *ret_id = take_ptr(id);
    return 0;
}

static const char *made(struct attack *a, const struct side *side, json_t *more, char **id,
                        struct trial *t)
{
    struct err err = ERR_INIT;
    if (stage_make(a, side, more, id, &err) < 0) {
        trial_error(t, "no sandbox: %s", err.msg);
        return NULL;
    }
    return *id;
}

const char *stage_box(struct attack *a, struct trial *t)
{
    return a->box ? a->box : made(a, &a->red, NULL, &a->box, t);
}

const char *stage_blue_box(struct attack *a, struct trial *t)
{
    return a->blue_box ? a->blue_box : made(a, &a->blue, NULL, &a->blue_box, t);
}

const char *stage_volume_box(struct attack *a, struct trial *t)
{
    if (a->volume_box)
        return a->volume_box;
    if (!a->volume) {
        _cleanup_json_ json_t *answer = NULL;
        _cleanup_free_ char *name = xasprintf("%s-volume", a->tag);
        if (talk(a->red.client, "POST", "/v1/volumes",
                 json_pack("{s:s,s:i}", "name", name, "size_mb", SHAPE_VOLUME_MB),
                 &answer) != 201) {
            trial_error(t, "no volume: %s", talk_code(answer));
            return NULL;
        }
        a->volume = xstrdup(member_text(answer, "id"));
    }
    return made(a, &a->red,
                json_pack("{s:[{s:s,s:s}]}", "volumes", "volume", a->volume, "path", VOLUME_AT),
                &a->volume_box, t);
}

bool stage_delete(struct attack *a, const struct side *side, char **id, struct trial *t)
{
    _cleanup_free_ char *gone = take_ptr(*id);
    if (!gone)
        return true;
    _cleanup_free_ char *path = api_path("sandboxes", gone, NULL);
    _cleanup_json_ json_t *answer = NULL;
    int64_t began = clock_mono_ms();
    long status = talk(side->client, "DELETE", path, NULL, &answer);
    int64_t took = clock_mono_ms() - began;
    if (status != 204)
        trial_broke(t, "the sandbox cannot be deleted: %ld %s after %lld ms", status,
                    talk_code(answer), (long long)took);
    else if (took > DELETE_LIMIT_MS)
        trial_broke(t, "deleting the sandbox took %lld ms", (long long)took);
    return status == 204 && took <= DELETE_LIMIT_MS;
}

/* Delete everything of a team's, page by page, then the team. */
static void sweep(struct attack *a, const struct side *side, const char *collection,
                  const char *member)
{
    if (!side->client)
        return;
    for (int rounds = 0; rounds < 20; rounds++) {
        _cleanup_free_ char *path = api_query(api_path(collection, NULL), "limit", "100");
        _cleanup_json_ json_t *answer = NULL;
        size_t i, removed = 0;
        json_t *o;
        if (talk(side->client, "GET", path, NULL, &answer) != 200)
            return;
        json_array_foreach(json_object_get(answer, collection), i, o) {
            _cleanup_free_ char *one = api_path(collection, member_text(o, member), NULL);
            removed += talk(side->client, "DELETE", one, NULL, NULL) == 204;
        }
        if (removed == 0)
            return;
    }
}

static void side_strike(struct attack *a, struct side *side, bool keep)
{
    static const char *const kinds[][2] = { { "sandboxes", "id" },   { "checkpoints", "id" },
                                            { "templates", "name" }, { "images", "name" },
                                            { "volumes", "id" },     { "secrets", "id" } };
    for (size_t i = 0; !keep && i < ARRAY_LEN(kinds); i++)
        sweep(a, side, kinds[i][0], kinds[i][1]);
    if (side->team && !keep) {
        _cleanup_free_ char *path = api_path("teams", side->team, NULL);
        _cleanup_json_ json_t *answer = NULL;
        long status = talk(a->admin, "DELETE", path, NULL, &answer);
        if (status != 204)
            cli_note("team '%s' is left: %ld %s", side->team, status, talk_code(answer));
    }
    client_free(side->client);
    free(side->team);
    free(side->key);
}

void stage_strike(struct attack *a, bool keep)
{
    side_strike(a, &a->red, keep);
    side_strike(a, &a->blue, keep);
    if (a->secret_path)
        (void)unlink(a->secret_path);
    free(a->secret_path);
    free(a->box);
    free(a->blue_box);
    free(a->volume);
    free(a->volume_box);
    free(a->url);
    free(a->tag);
}
