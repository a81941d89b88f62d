/* A network as a spec says it: a word or rules, and perhaps a proxy behind them. */
#include <errno.h>
#include <string.h>

#include "core/network.h"
#include "net/policy.h"
#include "net/proxy.h"

const char *network_proxy(const char *network, size_t *ret_rules)
{
    size_t n;
    *ret_rules = 0;
    return network ? proxy_line(network, strlen(network), ret_rules, &n) : NULL;
}

/* Its text before the proxy is this word, perhaps with a line's end. */
static bool says(const char *network, const char *word)
{
    size_t n, len = strlen(word);
    (void)network_proxy(network, &n);
    return n - (n && network[n - 1] == '\n') == len && memcmp(network, word, len) == 0;
}

bool network_is_none(const char *network)
{
    return !network || says(network, "") || says(network, "none");
}

int network_rules(const char *network, struct policy *ret_policy, struct err *err)
{
    if (network_is_none(network))
        return policy_preset("none", ret_policy, err);
    size_t n;
    (void)network_proxy(network, &n);
    if (memchr(network, ' ', n)) /* a rule has at least two words */
        return policy_parse(network, n, ret_policy, err);
    _cleanup_free_ char *word = strndup(network, n - (n && network[n - 1] == '\n'));
    return word ? policy_preset(word, ret_policy, err) : err_set(err, ENOMEM, "out of memory");
}

int network_check(const char *network, struct err *err)
{
    _cleanup_(policy_done) struct policy p = POLICY_INIT;
    size_t n;
    const char *proxy = network_proxy(network, &n);
    int r = network_rules(network, &p, err);
    if (r == 0 && proxy) {
        struct proxy read;
        r = proxy_parse(proxy, strcspn(proxy, "\n"), &read, err);
        explicit_bzero(&read, sizeof(read));
    }
    return r == -ENOENT || r == -E2BIG ? -EINVAL : r;
}
