/* Rules of a sandbox's network: what is read is written as it is read again, and a judgement is
 * one of its kinds whatever the connection. */
#include <stdlib.h>
#include <string.h>

#include "net/host.h"
#include "net/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void same_again(const struct policy *policy)
{
    struct buf once = BUF_INIT(4 * POLICY_TEXT_MAX), twice = BUF_INIT(4 * POLICY_TEXT_MAX);
    struct policy again = POLICY_INIT;
    if (policy_text(policy, &once) < 0)
        abort();
    if (once.len && once.len <= POLICY_TEXT_MAX) {
        if (policy_parse(once.data, once.len, &again, NULL) < 0 ||
            policy_text(&again, &twice) < 0 || once.len != twice.len ||
            memcmp(once.data, twice.data, once.len) != 0)
            abort();
    }
    policy_done(&again);
    buf_done(&once);
    buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const struct policy_limits nothing;
    struct policy policy = POLICY_INIT;
    struct err err = ERR_INIT;
    char name[HOST_SIZE];
    size_t head = n < 48 ? 0 : 48; /* a connection, before the rules */
    if (policy_parse((const char *)p + head, n - head, &policy, &err) < 0) {
        if (err.failure != FAIL_INVALID_NETWORK || !err.msg[0])
            abort();
        return 0;
    }
    same_again(&policy);
    if (head && host_canon((const char *)p + 20, p[19] % 28, name) == 0) {
        const char *pin = name;
        struct policy_flow f = { .protocol = p[18] & 1 ? POLICY_TCP : POLICY_UDP,
                                 .to = address_v6(p),
                                 .port = (uint16_t)(p[16] << 8 | p[17]),
                                 .named = (enum policy_name)(p[18] >> 1 & 3),
                                 .name = name,
                                 .pinned = &pin,
                                 .n_pinned = p[18] >> 7 };
        struct policy_answer a = policy_judge(&policy, &nothing, &f);
        if (a.verdict == POLICY_WAIT && f.named != POLICY_NAME_UNKNOWN)
            abort();
        if (a.verdict == POLICY_ALLOW && address_kind_of(&f.to) != ADDRESS_PUBLIC)
            abort();
        (void)policy_resolves(&policy, name);
    }
    policy_done(&policy);
    return 0;
}
