#include "cli/target.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define DEFAULT_RUN "/run/warren"
#define DEFAULT_URL "http://127.0.0.1:7070"

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

/* By name, or with name NULL the current one, if there is any: then 1, and the address is set. */
static int take_context(struct target *t, const char *name, const char *key, struct err *err)
{
    int r = contexts_read(&t->contexts, err);
    if (r < 0)
        return r;
    if (!name)
        name = contexts_current(t->contexts);
    if (!name || strcmp(name, CONTEXT_LOCAL) == 0)
        return 0;
    const json_t *c = contexts_get(t->contexts, name);
    if (!c)
        return err_set(err, ENOENT, "there is no context '%s'; `warren context ls` lists them",
                       name);
    t->config.url = member_text(c, "url");
    t->config.key = key ? key : member_text(c, "key");
    if (!t->config.ca)
        t->config.ca = or_null(member_text(c, "ca"));
    if (!t->config.team)
        t->config.team = or_null(member_text(c, "team"));
    return 1;
}

/* This machine's own daemon; by its usual address where the socket is for others. */
static void take_local(struct target *t)
{
    const char *run = env("WARREN_RUN");
    t->socket = xasprintf("%s/warren.sock", run ? run : DEFAULT_RUN);
    t->config.socket = t->socket;
    /* On the admin socket the kernel vouches for root; a stale key must not spoil that. */
    if (!t->config.key && geteuid() != 0)
        t->config.key = env("WARREN_API_KEY");
    if (!run && t->config.key && access(t->socket, W_OK) < 0) {
        t->config.socket = NULL;
        t->config.url = DEFAULT_URL;
    }
}

/* No address was given: a context, or this machine. A key beside a context's own replaces it, but a
 * context that was named on the command line comes before the environment. */
static int take_other(struct target *t, const struct cli *cli, struct err *err)
{
    const char *named = cli->context;
    const char *key = cli->key || named ? cli->key : env("WARREN_API_KEY");
    int r = 0;
    if (named || !env("WARREN_RUN"))
        r = take_context(t, named ? named : env("WARREN_CONTEXT"), key, err);
    if (r == 0)
        take_local(t);
    return r < 0 ? r : 0;
}

int target_find(const struct cli *cli, struct target *t, struct err *err)
{
    struct client_config *c = &t->config;
    const char *named = cli->context;
    *c = (struct client_config){ .key = cli->key,
                                 .team = cli->team ? cli->team : env("WARREN_TEAM"),
                                 .ca = env("WARREN_CA") };
    if (named && (cli->url || cli->socket))
        return err_set(err, EINVAL, "--context does not go with --url or --socket");
    if (cli->url) {
        c->url = cli->url;
    } else if (cli->socket) {
        c->socket = cli->socket;
    } else if (!named && !(c->url = env("WARREN_URL"))) {
        c->socket = env("WARREN_SOCKET");
    }
    if (!c->url && !c->socket)
        return take_other(t, cli, err);
    if (!c->key && (c->url || geteuid() != 0))
        c->key = env("WARREN_API_KEY");
    return 0;
}

void target_done(struct target *t)
{
    free(t->socket);
    contexts_free(t->contexts);
    *t = (struct target)TARGET_INIT;
}
