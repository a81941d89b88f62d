#include <errno.h>
#include <string.h>

#include "core/key.h"
#include "core/team.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

struct ask {
    char *name, *team;
    enum key_role role;
};

static const char *const roles[] = { [KEY_MEMBER] = "member", [KEY_ADMIN] = "admin", NULL };

static const struct field fields[] = {
    FIELD(struct ask, name, "name", as_text, .max = NAME_MAX_LEN),
    FIELD(struct ask, team, "team", as_text, .max = NAME_MAX_LEN),
    FIELD(struct ask, role, "role", as_choice, .choices = roles),
};

static void put_key(struct jout *j, const struct key *k, const char *text)
{
    jout_open(j, NULL, '{');
    jout_str(j, "id", k->id);
    jout_str(j, "name", k->name);
    if (text)
        jout_str(j, "key", text);
    jout_str(j, "team", k->owner);
    jout_str(j, "role", key_role_name(k->role));
    jout_time(j, "created_at", k->created_ms);
    jout_time(j, "last_used_at", k->last_used_ms);
    jout_close(j, '}');
}

/* A member issues keys like its own; the operator, any. */
static int check_right(const struct request *req, const struct ask *ask, struct err *err)
{
    const char *team = ask->team ? ask->team : req->owner;
    if (!req->admin && (strcmp(team, req->owner) != 0 || ask->role != KEY_MEMBER))
        return err_fail(err, FAIL_FORBIDDEN,
                        "this key may issue members' keys of its own team '%s' only", req->owner);
    if (!team_exists(req->core, team))
        return err_fail(err, FAIL_TEAM_NOT_FOUND, "no team '%.64s' here", team);
    return 0;
}

/* Which team's keys it is about; NULL: the operator, who named none. */
static const char *scope(const struct request *req)
{
    return req->admin && !req->for_team ? NULL : req->owner;
}

int native_key_create(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    struct ask ask = { .role = KEY_MEMBER };
    struct key key;
    char text[KEY_TEXT_MAX];

    int r = request_fields(req, fields, ARRAY_LEN(fields), &ask, NULL, err);
    if (r >= 0 && !ask.name)
        r = err_fail(err, FAIL_MISSING_FIELD, "'name' is needed: what the key is for");
    if (r >= 0 && !name_valid(ask.name))
        r = err_fail(
            err, FAIL_INVALID_FIELD,
            "'name' must be letters, digits, '.', '_' and '-', the first a letter or digit");
    if (r >= 0)
        r = check_right(req, &ask, err);
    if (r >= 0)
        r = key_create(req->core, ask.team ? ask.team : req->owner, ask.name, ask.role, &key, text,
                       err);
    free(ask.name);
    free(ask.team);
    if (r < 0)
        return r;
    put_key(&j, &key, text);
    explicit_bzero(text, sizeof(text));
    return reply_json(req, 201, &j);
}

/* In order of creation. */
static const char *key_place(const struct key *k, char out[64])
{
    (void)snprintf(out, 64, "%016llx-%s", (unsigned long long)k->created_ms, k->id);
    return out;
}

static int compare(const void *a, const void *b)
{
    char x[64], y[64];
    return strcmp(key_place(a, x), key_place(b, y));
}

int native_key_list(struct request *req, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    _cleanup_free_ struct key *keys = NULL;
    char place[64];
    size_t n = 0;

    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = key_list(req->core, scope(req), &keys, &n, err);
    if (r < 0)
        return r;
    if (n > 1)
        qsort(keys, n, sizeof(*keys), compare);
    page_open(&page, "keys");
    for (size_t i = 0; i < n; i++)
        if (page_takes(&page, key_place(&keys[i], place)))
            put_key(&page.json, &keys[i], NULL);
    return page_reply(req, &page);
}

int native_key_delete(struct request *req, struct err *err)
{
    int r = key_revoke(req->core, scope(req), req->args[0], req->admin, err);
    return r < 0 ? r : reply_empty(req);
}
