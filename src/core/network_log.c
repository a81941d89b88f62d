/* What sandboxes tried to reach, and what that carried: read from their accounts. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/ledger.h"
#include "core/table.h"
#include "net/policy.h"

/* The id of a sandbox of this owner's that is there or has been; its record may be gone before its
 * account is. */
static int find(struct core *core, const char *owner, const char *who, char out[ID_SIZE],
                struct err *err)
{
    struct sandbox s = { 0 };
    struct account a;
    int r = sandbox_get(core, owner, who, &s, err);
    if (s.id[0]) {
        memcpy(out, s.id, ID_SIZE);
        sandbox_done(&s);
        return 0;
    }
    sandbox_done(&s);
    if (r != -ENOENT || !id_valid(who) || ledger_enter(core, who, &a) < 0)
        return r;
    bool theirs = !owner || strcmp(a.head.owner, owner) == 0;
    ledger_leave(core, &a);
    if (theirs)
        memcpy(out, who, ID_SIZE);
    return theirs ? 0 : r;
}

static int read_entries(struct core *core, const char *id, const struct network_query *query,
                        struct network_entry **ret_items, size_t *ret_n)
{
    struct account a;
    int r = ledger_enter(core, id, &a);
    if (r == -ENOENT) {
        *ret_n = 0;
        *ret_items = NULL;
        return 0;
    }
    if (r < 0)
        return r;
    r = account_entries(&a, query->after, query->limit, ret_items, ret_n);
    ledger_leave(core, &a);
    for (size_t i = 0; r == 0 && i < *ret_n; i++)
        (*ret_items)[i].record.open = ledger_is_open(core, &(*ret_items)[i].record);
    return r;
}

int network_log(struct core *core, const char *owner, const char *who,
                const struct network_query *query, struct network_entry **ret_items, size_t *ret_n,
                struct err *err)
{
    char id[ID_SIZE];
    int64_t until = clock_mono_ms() + query->wait_ms;
    int r = find(core, owner, who, id, err);
    if (r < 0)
        return r;
    ledger_settle(core);
    for (;;) {
        r = read_entries(core, id, query, ret_items, ret_n);
        if (r < 0)
            return err_set(err, -r, "cannot read the network log of '%s'", id);
        if (*ret_n || clock_mono_ms() >= until || atomic_load(&core->stopping))
            return 0;
        free(*ret_items);
        *ret_items = NULL;
        ledger_wait(core, until);
    }
}

int network_account(struct core *core, const char *owner, const char *who,
                    struct account *ret_account, struct err *err)
{
    char id[ID_SIZE];
    int r = find(core, owner, who, id, err);
    if (r < 0)
        return r;
    ledger_settle(core);
    r = ledger_enter(core, id, ret_account);
    if (r == -ENOENT) {
        *ret_account = (struct account)ACCOUNT_INIT;
        return 0;
    }
    if (r == 0)
        r = account_hosts(ret_account);
    if (r < 0) {
        if (ret_account->fd >= 0)
            ledger_leave(core, ret_account);
        return err_set(err, -r, "cannot read what the network of '%s' carried", id);
    }
    return 0;
}

void network_account_done(struct core *core, struct account *account)
{
    if (account->fd >= 0)
        ledger_leave(core, account);
}

const char *network_reason(const struct broker_record *r)
{
    static const char *const reasons[] = { [POLICY_BY_RULE] = "rule",
                                           [POLICY_BY_DEFAULT] = "no_rule",
                                           [POLICY_BY_PLACE] = "reserved_address",
                                           [POLICY_BY_MISMATCH] = "name_mismatch",
                                           [POLICY_BY_CONNECTIONS] = "connections_limit",
                                           [POLICY_BY_PACE] = "connections_per_s_limit",
                                           [POLICY_BY_BYTES] = "bytes_limit",
                                           [POLICY_BY_HIDDEN] = "encrypted_name" };
    return r->why < ARRAY_LEN(reasons) ? reasons[r->why] : "no_rule";
}

const char *network_protocol(const struct broker_record *r)
{
    return r->udp == 2 ? "icmp" : r->udp ? "udp" : "tcp";
}
