#include "front/e2b/proxy.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/network.h"
#include "net/proxy.h"

static int wrong(struct err *err, const char *what)
{
    return err_fail(err, FAIL_INVALID_PROXY, "'egressProxy' %s", what);
}

/* A text or, where it is not there, NULL. */
static int read_text(const json_t *object, const char *member, const char **ret, struct err *err)
{
    const json_t *v = json_object_get(object, member);
    *ret = json_string_value(v);
    if (!v || json_is_null(v))
        return 0;
    return *ret && strlen(*ret) == json_string_length(v) ? 0
                                                         : wrong(err, "has members that are texts");
}

static int put_encoded(struct buf *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    int r = 0;
    for (; *text && r >= 0; text++)
        r = strchr(plain, *text) ? buf_append(out, text, 1)
                                 : buf_printf(out, "%%%02X", (unsigned char)*text);
    return r;
}

static int put_login(struct buf *out, const char *username, const char *password)
{
    int r = put_encoded(out, username);
    if (r >= 0 && password)
        r = buf_puts(out, ":");
    if (r >= 0 && password)
        r = put_encoded(out, password);
    return r < 0 ? r : buf_puts(out, "@");
}

int egress_proxy_read(const json_t *v, bool by_name, struct buf *network, struct err *err)
{
    const char *address = NULL, *username = NULL, *password = NULL;
    if (!v || json_is_null(v))
        return 0;
    int r = json_is_object(v) ? read_text(v, "address", &address, err) : 0;
    if (r >= 0)
        r = read_text(v, "username", &username, err);
    if (r >= 0)
        r = read_text(v, "password", &password, err);
    if (r < 0)
        return r;
    if (!address || strpbrk(address, " \t\r\n@/"))
        return wrong(err, "needs an 'address' such as proxy.example.com:1080");
    if (password && !username)
        return wrong(err, "has a password, but no username");
    size_t begin = network->len;
    r = buf_printf(network, "%sproxy %s://", begin && network->data[begin - 1] != '\n' ? "\n" : "",
                   by_name ? "socks5h" : "socks5");
    if (r >= 0 && username)
        r = put_login(network, username, password);
    if (r >= 0)
        r = buf_printf(network, "%s\n", address);
    return r < 0 ? r == -EMSGSIZE ? wrong(err, "is too long")
                                  : err_set(err, -r, "cannot keep a proxy")
                 : 0;
}

void egress_proxy_put(struct jout *j, const char *network)
{
    char address[HOST_SIZE + ADDRESS_TEXT_SIZE + 16], text[ADDRESS_TEXT_SIZE];
    struct proxy p;
    size_t n_rules;
    const char *url = network_proxy(network, &n_rules);
    if (!url || proxy_parse(url, strcspn(url, "\n"), &p, NULL) < 0)
        return;
    explicit_bzero(p.password, sizeof(p.password));
    if (p.kind != PROXY_SOCKS5)
        return;
    const char *host = p.host[0] ? p.host : address_text(&p.address, text);
    bool v6 = strchr(host, ':') != NULL;
    (void)snprintf(address, sizeof(address), "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "",
                   p.port);
    jout_open(j, "egressProxy", '{');
    jout_str(j, "address", address);
    if (p.user[0])
        jout_str(j, "username", p.user);
    jout_close(j, '}');
}
