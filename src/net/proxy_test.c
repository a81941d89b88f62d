#include "net/proxy.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

static int parse(const char *text, struct proxy *up)
{
    return proxy_parse(text, strlen(text), up, NULL);
}

TEST(every_kind_of_proxy_is_read)
{
    struct proxy up;
    CHECK_OK(parse("http://proxy.corp.test:3128", &up));
    CHECK_EQ(up.kind, PROXY_HTTP);
    CHECK_STR(up.host, "proxy.corp.test");
    CHECK_EQ(up.port, 3128);
    CHECK_STR(up.user, "");
    CHECK_OK(parse("https://u:p%40ss%3a@192.0.2.9:443/", &up));
    CHECK_EQ(up.kind, PROXY_HTTPS);
    CHECK_STR(up.host, "");
    CHECK_EQ(up.address.bits, 32);
    CHECK_STR(up.user, "u");
    CHECK_STR(up.password, "p@ss:");
    CHECK_OK(parse("SOCKS5://only@[2001:db8::1]:1080", &up));
    CHECK_EQ(up.kind, PROXY_SOCKS5);
    CHECK_EQ(up.address.bits, 128);
    CHECK(!up.by_name);
    CHECK_OK(parse("socks5h://a:b@c@Proxy.Test.:1", &up));
    CHECK(up.by_name);
    CHECK_STR(up.host, "proxy.test");
    CHECK_STR(up.password, "b@c");
}

TEST(what_is_no_proxy_is_refused_without_telling_its_password)
{
    static const char *const bad[] = {
        "",
        "proxy:3128",
        "ftp://proxy:21",
        "http://",
        "http://proxy",
        "http://proxy:",
        "http://proxy:0",
        "http://proxy:08",
        "http://proxy:65536",
        "http://proxy:80:80",
        "http://proxy:80/path",
        "http://[::1:80",
        "http://[1.2.3.4]:80",
        "http://:hunter2@proxy:80",
        "http://u:hunter2%@proxy:80",
        "http://u:hunter2%0d@proxy:80",
        "http://u:hunter2%zz@proxy:80",
        "http://u%3av:hunter2@proxy:80",
        "http://u:hunter2@0x7f.1:80",
    };
    struct proxy up;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        CHECK_EQ(proxy_parse(bad[i], strlen(bad[i]), &up, &err), -EINVAL);
        CHECK(!strstr(err.msg, "hunter2"));
    }
}

TEST(a_proxy_is_shown_without_its_password)
{
    struct proxy up;
    _cleanup_(buf_done) struct buf out = BUF_INIT(1024);
    CHECK_OK(parse("socks5://a%40b:hunter2@[2001:db8::1]:1080", &up));
    CHECK_OK(proxy_show(&up, &out));
    CHECK_STR(out.data, "socks5://a%40b@[2001:db8::1]:1080");
}
