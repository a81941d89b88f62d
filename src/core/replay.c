#include "core/replay.h"

#include <errno.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "core/private.h"

#define LOG_MODULE "replay"
#define PRUNE_MS 60000
#define SECRETS_MAX 256 /* answers kept in memory */

struct replay {
    char owner[OWNER_MAX], key[REPLAY_HASH_SIZE], hash[REPLAY_HASH_SIZE];
    char made[REPLAY_MADE_MAX];
    bool secret, running;
    int64_t created_ms;
    struct replay_answer answer; /* of a secret one that has ended */
    struct replay *next;
};

static _Thread_local struct replay *at_work; /* a request is one thread */

void replay_answer_done(struct replay_answer *a)
{
    if (a->body)
        explicit_bzero(a->body, strlen(a->body));
    free(a->body);
    free(a->etag);
    *a = (struct replay_answer){ 0 };
}

static void replay_free(struct replay *p)
{
    replay_answer_done(&p->answer);
    free(p);
}

void replays_done(struct core *core)
{
    struct replay *p;
    while ((p = core->replays.first)) {
        core->replays.first = p->next;
        replay_free(p);
    }
}

static void hash_of(const void *p, size_t n, char out[REPLAY_HASH_SIZE])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    (void)SHA256(p, n, hash);
    hex_encode(hash, sizeof(hash), out);
}

static int copy_answer(unsigned status, const char *body, const char *etag,
                       struct replay_answer *ret_a)
{
    struct replay_answer a = { status, body ? strdup(body) : NULL, etag ? strdup(etag) : NULL };
    if ((body && !a.body) || (etag && !a.etag)) {
        replay_answer_done(&a);
        return -ENOMEM;
    }
    *ret_a = a;
    return 0;
}

static int mismatch(struct err *err)
{
    return err_fail(err, FAIL_IDEMPOTENCY_MISMATCH,
                    "this Idempotency-Key was used for another request within the last 24 h");
}

/* ---- in memory ---- */

/* With the lock held. Also forgets secrets that are too old or too many. */
static struct replay *find(struct replays *all, const char *owner, const char *key, int64_t now)
{
    unsigned secrets = 0;
    struct replay *found = NULL;
    for (struct replay **at = &all->first; *at;) {
        struct replay *p = *at;
        if (!p->running && (now - p->created_ms > REPLAY_MS || ++secrets > SECRETS_MAX)) {
            *at = p->next;
            replay_free(p);
            continue;
        }
        if (strcmp(p->key, key) == 0 && strcmp(p->owner, owner) == 0)
            found = p;
        at = &p->next;
    }
    return found;
}

/* 1: *ret_answer is it; 0: `mine` is now at work; or why not. */
static int enter(struct replays *all, struct replay *mine, struct replay_answer *ret_answer,
                 struct err *err)
{
    int r = 0;
    (void)pthread_mutex_lock(&all->lock);
    struct replay *other = find(all, mine->owner, mine->key, mine->created_ms);
    if (!other) {
        mine->next = all->first;
        all->first = mine;
    } else if (strcmp(other->hash, mine->hash) != 0) {
        r = mismatch(err);
    } else if (other->running) {
        r = err_fail(err, FAIL_IDEMPOTENCY_BUSY,
                     "the first request with this Idempotency-Key is still at work; try again");
    } else {
        r = copy_answer(other->answer.status, other->answer.body, other->answer.etag, ret_answer);
        r = r < 0 ? err_set(err, -r, "cannot copy an answer") : 1;
    }
    (void)pthread_mutex_unlock(&all->lock);
    return r;
}

static void leave(struct replays *all, struct replay *mine)
{
    (void)pthread_mutex_lock(&all->lock);
    for (struct replay **at = &all->first; *at; at = &(*at)->next)
        if (*at == mine) {
            *at = mine->next;
            break;
        }
    (void)pthread_mutex_unlock(&all->lock);
    replay_free(mine);
}

/* ---- recorded ---- */

struct recorded {
    const struct replay *mine;
    bool found, other;
    char made[REPLAY_MADE_MAX];
    struct replay_answer answer;
};

static int take_row(void *ctx, const struct store_replay *row)
{
    struct recorded *rec = ctx;
    if (rec->mine->created_ms - row->created_ms > REPLAY_MS)
        return 0;
    rec->found = true;
    rec->other = strcmp(row->hash, rec->mine->hash) != 0;
    (void)snprintf(rec->made, sizeof(rec->made), "%s", row->made);
    if (row->status == 0 || rec->other)
        return 0;
    return copy_answer((unsigned)row->status, row->body, row->etag, &rec->answer);
}

/* A sandbox that was cut while it was made is removed at start-up, as one that failed. */
static bool was_made(struct core *core, const char *owner, const char *made)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct err why = ERR_INIT;
    if (strncmp(made, "sandbox ", 8) != 0)
        return made[0] != '\0';
    int r = sandbox_get(core, owner, made + 8, &s, &why);
    return r >= 0 || (why.failure == FAIL_SANDBOX_GONE && s.cause != CAUSE_FAILED);
}

static void prune(struct core *core, const char *owner, int64_t now)
{
    int64_t last = atomic_load(&core->replays.pruned_ms);
    if (now - last >= PRUNE_MS &&
        atomic_compare_exchange_strong(&core->replays.pruned_ms, &last, now))
        (void)store_replay_prune(core->store, now - REPLAY_MS, owner, REPLAY_KEEP, NULL);
}

static int look_up(struct core *core, struct replay *mine, struct replay_answer *ret_answer,
                   char made[REPLAY_MADE_MAX], struct err *err)
{
    struct recorded rec = { .mine = mine };
    int r = store_replay_get(core->store, mine->owner, mine->key, take_row, &rec, err);
    if (r < 0)
        return r == -ENOMEM ? err_set(err, ENOMEM, "cannot copy an answer") : r;
    if (rec.other)
        return mismatch(err);
    if (rec.answer.body) {
        *ret_answer = rec.answer;
        return REPLAY_KNOWN;
    }
    replay_answer_done(&rec.answer);
    if (rec.found && was_made(core, mine->owner, rec.made)) {
        memcpy(made, rec.made, REPLAY_MADE_MAX);
        memcpy(mine->made, rec.made, REPLAY_MADE_MAX);
        return REPLAY_MADE;
    }
    struct store_replay row = {
        .owner = mine->owner, .key = mine->key, .hash = mine->hash, .created_ms = mine->created_ms
    };
    r = store_replay_put(core->store, &row, err);
    prune(core, mine->owner, mine->created_ms);
    return r < 0 ? r : REPLAY_NEW;
}

int replay_begin(struct core *core, const char *owner, const char *name, const void *ask, size_t n,
                 bool secret, struct replay **ret_replay, struct replay_answer *ret_answer,
                 char made[REPLAY_MADE_MAX], struct err *err)
{
    struct replay *mine = calloc(1, sizeof(*mine));
    if (!mine)
        return err_set(err, ENOMEM, "cannot allocate a replay");
    (void)snprintf(mine->owner, sizeof(mine->owner), "%s", owner);
    hash_of(name, strlen(name), mine->key);
    hash_of(ask, n, mine->hash);
    mine->secret = secret;
    mine->running = true;
    mine->created_ms = clock_now_ms();
    int r = enter(&core->replays, mine, ret_answer, err);
    if (r != 0) {
        replay_free(mine);
        return r < 0 ? r : REPLAY_KNOWN;
    }
    r = secret ? REPLAY_NEW : look_up(core, mine, ret_answer, made, err);
    if (r < 0 || r == REPLAY_KNOWN) {
        leave(&core->replays, mine);
        return r;
    }
    at_work = mine;
    *ret_replay = mine;
    return r;
}

/* A secret's answer stays where it is, marked as ended. */
static void keep_secret(struct replays *all, struct replay *mine, const struct replay_answer *a)
{
    struct replay_answer copy;
    if (copy_answer(a->status, a->body, a->etag, &copy) < 0) {
        leave(all, mine);
        return;
    }
    (void)pthread_mutex_lock(&all->lock);
    mine->answer = copy;
    mine->running = false;
    (void)pthread_mutex_unlock(&all->lock);
}

void replay_end(struct core *core, struct replay *replay, const struct replay_answer *answer)
{
    struct err err = ERR_INIT;
    int r = 0;
    at_work = NULL;
    if (replay->secret && answer && answer->body) {
        keep_secret(&core->replays, replay, answer);
        return;
    }
    if (!replay->secret && answer) {
        bool fits = answer->body && strlen(answer->body) <= REPLAY_BODY_MAX;
        struct store_replay row = { .owner = replay->owner,
                                    .key = replay->key,
                                    .status = answer->status,
                                    .etag = answer->etag,
                                    .body = fits ? answer->body : NULL };
        r = store_replay_done(core->store, &row, &err);
    } else if (!replay->secret &&
               !(replay->made[0] && was_made(core, replay->owner, replay->made))) {
        r = store_replay_remove(core->store, replay->owner, replay->key, &err);
    }
    if (r < 0)
        log_warn("an answer is not kept for a second try err=\"%s\"", err.msg);
    leave(&core->replays, replay);
}

void replay_note(struct core *core, const char *kind, const char *id)
{
    struct err err = ERR_INIT;
    struct replay *p = at_work;
    if (!p || p->secret)
        return;
    int n = snprintf(p->made, sizeof(p->made), "%s %s", kind, id);
    if (n < 0 || (size_t)n >= sizeof(p->made) ||
        store_replay_made(core->store, p->owner, p->key, p->made, &err) < 0)
        log_warn("what a request makes is not recorded err=\"%s\"", err.msg);
}
