#include "core/denials.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "core/event.h"
#include "core/network.h"

#define SANDBOXES 512 /* remembered; a newer one takes the place of an older */
#define PLACES 8      /* of one, told of lately */
#define AGAIN_MS 60000
#define EVENTS_BURST 8
#define EVENT_EVERY_MS 10000
#define DATA_MAX 4096

struct denial_place {
    uint64_t hash;
    int64_t told_ms;
};

struct denials {
    char sandbox[ID_SIZE];
    int64_t budget, budget_ms; /* thousandths of events */
    uint64_t unsaid;
    struct denial_place places[PLACES];
};

static struct denials *find(struct core *core, const char *sandbox)
{
    struct ledger *l = &core->ledger;
    if (!l->denials)
        l->denials = calloc(SANDBOXES, sizeof(*l->denials));
    if (!l->denials)
        return NULL;
    struct denials *d = &l->denials[hash_text(sandbox) % SANDBOXES];
    if (strcmp(d->sandbox, sandbox) == 0)
        return d;
    *d = (struct denials){ .budget = EVENTS_BURST * 1000, .budget_ms = clock_mono_ms() };
    (void)snprintf(d->sandbox, sizeof(d->sandbox), "%s", sandbox);
    return d;
}

/* The place of it, or of what was told of longest ago. */
static struct denial_place *find_place(struct denials *d, uint64_t h)
{
    struct denial_place *oldest = &d->places[0];
    for (size_t i = 0; i < PLACES; i++) {
        if (d->places[i].hash == h)
            return &d->places[i];
        if (d->places[i].told_ms < oldest->told_ms)
            oldest = &d->places[i];
    }
    return oldest;
}

static bool is_worth_it(struct denials *d, const struct broker_record *rec)
{
    int64_t now = clock_mono_ms();
    uint64_t h = HASH_SEED ^ (rec->port * 31 + rec->question + 2 * rec->udp);
    h = hash_more(h, rec->name, strlen(rec->name));
    h = hash_more(h, rec->address, strlen(rec->address));
    struct denial_place *p = find_place(d, h);
    d->budget += (now - d->budget_ms) * 1000 / EVENT_EVERY_MS;
    d->budget = d->budget > EVENTS_BURST * 1000 ? EVENTS_BURST * 1000 : d->budget;
    d->budget_ms = now;
    if ((p->hash == h && now - p->told_ms < AGAIN_MS) || d->budget < 1000)
        return false;
    d->budget -= 1000;
    *p = (struct denial_place){ h, now };
    return true;
}

void denials_note(struct core *core, const char *owner, const struct broker_record *rec)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(DATA_MAX);
    struct jout j = JOUT_INIT(&b);
    struct denials *d = find(core, rec->sandbox);
    char hint[NETWORK_HINT_SIZE];
    if (!d)
        return;
    if (!is_worth_it(d, rec)) {
        d->unsaid++;
        return;
    }
    jout_open(&j, NULL, '{');
    jout_str(&j, "kind", rec->question ? "dns" : "connection");
    jout_str(&j, "protocol", network_protocol(rec));
    jout_str(&j, "name", rec->name[0] ? rec->name : NULL);
    jout_str(&j, "address", rec->address[0] ? rec->address : NULL);
    if (rec->question)
        jout_null(&j, "port");
    else
        jout_uint(&j, "port", rec->port);
    jout_str(&j, "reason", network_reason(rec));
    jout_str(&j, "rule", rec->rule[0] ? rec->rule : NULL);
    jout_str(&j, "hint", network_hint(rec, hint));
    jout_str(&j, "program", rec->program[0] ? rec->program : NULL);
    jout_uint(&j, "unsaid", d->unsaid);
    jout_close(&j, '}');
    d->unsaid = 0;
    if (jout_done(&j) >= 0)
        event_emit(core, owner, rec->sandbox, "network.denied", b.data);
}

void denials_done(struct core *core)
{
    free(core->ledger.denials);
    core->ledger.denials = NULL;
}
