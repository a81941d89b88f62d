#include "daemon/visit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/key.h"
#include "core/pass.h"
#include "core/port.h"
#include "core/sandbox.h"
#include "core/token.h"
#include "daemon/previews.h"

#define LOG_MODULE "preview"
#define DIAL_MS 5000
#define BOOT_MS 30000 /* its start command may take this long until it listens */
#define WOKEN_MS 5000 /* one without: whoever watches its events may start something */
#define PAUSE_MS 5
#define PAUSE_MAX_MS 100
#define KEY_LIFE_S 3600 /* a cookie that holds a key's worth is asked for again after this */

/* "${PORT}" stands for the port. */
static void mask_host(const struct sandbox *s, unsigned port, char out[BROKER_HOST_SIZE])
{
    const char *mask = pairs_get(&s->spec.notes, PORT_HOST_NOTE);
    const char *mark = mask ? strstr(mask, "${PORT}") : NULL;
    int n = 0;
    if (mark)
        n = snprintf(out, BROKER_HOST_SIZE, "%.*s%u%s", (int)(mark - mask), mask, port, mark + 7);
    else if (mask)
        n = snprintf(out, BROKER_HOST_SIZE, "%s", mask);
    if (n < 0 || n >= BROKER_HOST_SIZE)
        out[0] = '\0';
}

static enum broker_verdict verdict_of(const struct err *err)
{
    switch (err->failure) {
    case FAIL_SANDBOX_NOT_FOUND: return BROKER_NO_SANDBOX;
    case FAIL_SANDBOX_GONE: return BROKER_GONE;
    case FAIL_SANDBOX_NOT_RUNNING:
    case FAIL_QUOTA_EXCEEDED: return BROKER_ASLEEP;
    case FAIL_PORT_CLOSED: return BROKER_CLOSED;
    default: return BROKER_FAILED;
    }
}

/* ---- who ---- */

static bool by_pass(struct core *core, const struct sandbox *s, unsigned port, const char *text,
                    struct broker_answer *a)
{
    struct pass pass = { .data = NULL };
    if (!text[0] || pass_check(core, s->id, port, text, &pass) < 0)
        return false;
    if (pass.data)
        (void)snprintf(a->data, sizeof(a->data), "%s", pass.data);
    a->life_s = (pass.expires_ms - clock_now_ms()) / 1000;
    pass_done(&pass);
    return true;
}

static bool by_key(struct core *core, const struct sandbox *s, const char *text)
{
    struct key key;
    return text[0] && key_check(core, text, &key) >= 0 &&
           (key.role == KEY_ADMIN || strcmp(key.owner, s->owner) == 0);
}

/* Each of them may stand in either place: who sends a token as a bearer's is understood. */
static bool is_proven(struct core *core, const struct sandbox *s, unsigned port,
                      const struct broker_proof *p, struct broker_answer *a)
{
    if (by_pass(core, s, port, p->token, a) || by_pass(core, s, port, p->key, a))
        return true;
    a->life_s = KEY_LIFE_S;
    return token_is(core, PORT_TOKEN, s->id, p->token) || by_key(core, s, p->key) ||
           by_key(core, s, p->token);
}

static bool may_enter(struct visit *v, const struct sandbox *s, const struct broker_ask *ask,
                      struct broker_answer *a)
{
    const struct broker_proof *p = &ask->proof;
    bool offered = p->token[0] || p->key[0];
    bool proven = offered && is_proven(v->core, s, ask->port, p, a);
    if (proven || (s->spec.preview == PREVIEW_PUBLIC && !ask->look))
        return true;
    a->verdict = BROKER_FORBIDDEN;
    if (offered &&
        auth_failed(v->guard, (const struct sockaddr *)(const void *)&ask->peer, clock_mono_ms()))
        a->verdict = BROKER_LIMITED;
    return false;
}

/* ---- the way there ---- */

static bool is_closed(const struct err *err)
{
    return err->failure == FAIL_PORT_CLOSED;
}

static int dial(struct visit *v, const struct sandbox *s, unsigned port, bool woken, int *ret_fd,
                struct err *err)
{
    int64_t patience = s->spec.boot.argv ? BOOT_MS : woken ? WOKEN_MS : 0;
    int64_t until = s->started_ms + patience;
    for (int pause = PAUSE_MS;; pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS) {
        *err = (struct err)ERR_INIT;
        int r = port_dial(v->core, s, port, DIAL_MS, ret_fd, err);
        if (r >= 0 || !is_closed(err) || clock_now_ms() >= until || atomic_load(&v->stop))
            return r;
        (void)poll(NULL, 0, pause);
    }
}

static void reach(struct visit *v, const struct broker_ask *ask, struct broker_answer *a,
                  int *ret_fd)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct err err = ERR_INIT;
    bool woken = false;
    if (sandbox_wake(v->core, NULL, ask->sandbox, &s, &woken, &err) < 0) {
        a->verdict = verdict_of(&err);
        return;
    }
    mask_host(&s, ask->port, a->host);
    int r = dial(v, &s, ask->port, woken, ret_fd, &err);
    a->verdict = r < 0 ? verdict_of(&err) : BROKER_OK;
    if (a->verdict == BROKER_FAILED)
        log_warn("a port could not be reached sandbox=%s port=%u err=\"%s\"", s.id, ask->port,
                 err.msg);
    sandbox_leave(v->core, s.id);
}

/* What became of it is told to who could have entered it. */
static void tell_end(struct visit *v, const struct sandbox *s, const struct broker_ask *ask,
                     struct broker_answer *a)
{
    struct broker_answer unused = { .verdict = BROKER_OK };
    if (!s->id[0] || (s->spec.preview == PREVIEW_PRIVATE &&
                      !is_proven(v->core, s, ask->port, &ask->proof, &unused)))
        return;
    a->verdict = BROKER_GONE;
    a->ended_ms = s->ended_ms;
    (void)snprintf(a->cause, sizeof(a->cause), "%s", sandbox_cause_name(s->cause));
}

void visit_decide(struct visit *v, const struct broker_ask *ask, struct broker_answer *a,
                  int *ret_fd)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct err err = ERR_INIT;
    *ret_fd = -1;
    if (sandbox_get(v->core, NULL, ask->sandbox, &s, &err) < 0) {
        a->verdict = BROKER_NO_SANDBOX;
        if (verdict_of(&err) == BROKER_GONE)
            tell_end(v, &s, ask, a);
        return;
    }
    if (!may_enter(v, &s, ask, a))
        return;
    if (ask->look) {
        a->verdict = BROKER_OK;
        return;
    }
    reach(v, ask, a, ret_fd);
    if (a->verdict == BROKER_ASLEEP && s.cause != CAUSE_NONE)
        (void)snprintf(a->cause, sizeof(a->cause), "%s", sandbox_cause_name(s.cause));
}
