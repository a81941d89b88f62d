#include "net/hop.h"

#include <errno.h>
#include <string.h>

#include "net/head.h"

#define SOCKS 5
#define SOCKS_CONNECT 1
#define METHOD_NONE 0
#define METHOD_LOGIN 2
#define METHOD_REFUSED 0xff
#define LOGIN_VERSION 1
#define OUT_MAX 4096 /* an encoded user and password of 255 bytes each, twice a name, and change */

enum socks_address { SOCKS_V4 = 1, SOCKS_NAME = 3, SOCKS_V6 = 4 };

/* ---- HTTP ---- */

static int put_base64(struct buf *out, const char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i += 3) {
        unsigned char b[3] = { 0 };
        size_t have = n - i < 3 ? n - i : 3;
        memcpy(b, p + i, have);
        char four[4] = { digits[b[0] >> 2], digits[(b[0] & 3) << 4 | b[1] >> 4],
                         have > 1 ? digits[(b[1] & 15) << 2 | b[2] >> 6] : '=',
                         have > 2 ? digits[b[2] & 63] : '=' };
        r = buf_append(out, four, sizeof(four));
    }
    return r;
}

static int ask_http(struct hop *h)
{
    char address[ADDRESS_TEXT_SIZE], place[HOST_SIZE + 16];
    if (h->name[0])
        (void)snprintf(place, sizeof(place), "%s:%u", h->name, h->port);
    else
        (void)snprintf(place, sizeof(place), h->to.bits > 32 ? "[%s]:%u" : "%s:%u",
                       address_text(&h->to, address), h->port);
    int r = buf_printf(&h->out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", place, place);
    if (r == 0 && h->up->user[0]) {
        char login[2 * PROXY_WORD_SIZE];
        int n = snprintf(login, sizeof(login), "%s:%s", h->up->user, h->up->password);
        r = buf_puts(&h->out, "Proxy-Authorization: Basic ");
        if (r == 0)
            r = put_base64(&h->out, login, (size_t)n);
        if (r == 0)
            r = buf_puts(&h->out, "\r\n");
        explicit_bzero(login, sizeof(login));
    }
    h->state = HOP_HTTP;
    return r == 0 ? buf_puts(&h->out, "\r\n") : r;
}

static int http_status(unsigned status)
{
    if (status >= 200 && status < 300)
        return 1;
    switch (status) {
    case 401: /* as some say where 407 is meant */
    case 407: return -EKEYREJECTED;
    case 502: return -EHOSTUNREACH;
    case 503: return -ECONNREFUSED;
    case 504: return -ETIMEDOUT;
    default: return status < 400 ? -EPROTO : -EACCES;
    }
}

static int take_http(struct hop *h, const char *p, size_t n, size_t *ret_used)
{
    struct head head;
    size_t before = h->in.len, take = n < HOP_HEAD_MAX - before ? n : HOP_HEAD_MAX - before;
    int r = buf_append(&h->in, p, take);
    if (r < 0)
        return r;
    size_t end = head_end(h->in.data, h->in.len, before);
    *ret_used = end ? end - before : take;
    if (end == 0)
        return h->in.len == HOP_HEAD_MAX ? -EPROTO : 0;
    h->state = HOP_OVER;
    if (head_answer(h->in.data, end, true, &head) < 0)
        return -EPROTO;
    return http_status(head.status);
}

/* ---- SOCKS5 ---- */

static int greet_socks(struct hop *h)
{
    static const char either[] = { SOCKS, 2, METHOD_LOGIN, METHOD_NONE };
    static const char none[] = { SOCKS, 1, METHOD_NONE };
    h->state = HOP_METHOD;
    return h->up->user[0] ? buf_append(&h->out, either, sizeof(either))
                          : buf_append(&h->out, none, sizeof(none));
}

static int put_word(struct buf *out, const char *word)
{
    unsigned char n = (unsigned char)strlen(word); /* all of them are bounded by it */
    int r = buf_append(out, &n, 1);
    return r == 0 ? buf_append(out, word, n) : r;
}

static int log_in(struct hop *h)
{
    static const char version = LOGIN_VERSION;
    int r = buf_append(&h->out, &version, 1);
    if (r == 0)
        r = put_word(&h->out, h->up->user);
    h->state = HOP_LOGIN;
    return r == 0 ? put_word(&h->out, h->up->password) : r;
}

static int ask_socks(struct hop *h)
{
    const unsigned char port[2] = { (unsigned char)(h->port >> 8), (unsigned char)h->port };
    unsigned char kind = h->name[0] ? SOCKS_NAME : h->to.bits > 32 ? SOCKS_V6 : SOCKS_V4;
    const unsigned char start[] = { SOCKS, SOCKS_CONNECT, 0, kind };
    int r = buf_append(&h->out, start, sizeof(start));
    if (r == 0)
        r = h->name[0] ? put_word(&h->out, h->name)
                       : buf_append(&h->out, h->to.bytes, h->to.bits / 8);
    h->state = HOP_REPLY;
    return r == 0 ? buf_append(&h->out, port, sizeof(port)) : r;
}

static int method_chosen(struct hop *h, const unsigned char *p)
{
    if (p[0] != SOCKS)
        return -EPROTO;
    if (p[1] == METHOD_REFUSED)
        return -EKEYREJECTED;
    if (p[1] == METHOD_LOGIN && h->up->user[0])
        return log_in(h);
    return p[1] == METHOD_NONE ? ask_socks(h) : -EPROTO;
}

static int logged_in(struct hop *h, const unsigned char *p)
{
    if (p[0] != LOGIN_VERSION)
        return -EPROTO;
    return p[1] == 0 ? ask_socks(h) : -EKEYREJECTED;
}

/* Its length, as far as it can be told from n bytes: 4 first, then 5, then all. */
static size_t reply_size(const unsigned char *p, size_t n)
{
    if (n < 4)
        return 4;
    switch (p[3]) {
    case SOCKS_V4: return 4 + 4 + 2;
    case SOCKS_V6: return 4 + 16 + 2;
    case SOCKS_NAME: return n < 5 ? 5 : 5 + (size_t)p[4] + 2;
    default: return 0;
    }
}

static int reply_means(const unsigned char *p)
{
    static const int codes[] = {
        1,          -EHOSTUNREACH, -EACCES, -ENETUNREACH, -EHOSTUNREACH, -ECONNREFUSED,
        -ETIMEDOUT, -EACCES,       -EACCES
    };
    return p[1] < ARRAY_LEN(codes) ? codes[p[1]] : -EPROTO;
}

/* One step, if what it needs is whole: 1 connected, 0 go on; `*ret_need` bytes are needed. */
static int step_socks(struct hop *h, size_t *ret_need)
{
    const unsigned char *p = (const unsigned char *)h->in.data;
    *ret_need = h->state == HOP_REPLY ? reply_size(p, h->in.len) : 2;
    if (h->state == HOP_REPLY && h->in.len >= 3 && (p[0] != SOCKS || p[2] != 0))
        return -EPROTO;
    if (*ret_need == 0)
        return -EPROTO;
    if (h->in.len < *ret_need)
        return 0;
    int r = h->state == HOP_METHOD  ? method_chosen(h, p)
            : h->state == HOP_LOGIN ? logged_in(h, p)
                                    : reply_means(p);
    buf_clear(&h->in);
    *ret_need = 1;
    return r;
}

static int take_socks(struct hop *h, const char *p, size_t n, size_t *ret_used)
{
    int r = 0;
    for (*ret_used = 0;;) { /* each answer is short and says how long it is */
        size_t need;
        r = step_socks(h, &need);
        if (r != 0 || *ret_used == n)
            break;
        size_t more = need > h->in.len ? need - h->in.len : 1;
        more = more < n - *ret_used ? more : n - *ret_used;
        r = buf_append(&h->in, p + *ret_used, more);
        if (r < 0)
            break;
        *ret_used += more;
    }
    if (r != 0)
        h->state = HOP_OVER;
    return r;
}

/* ---- life ---- */

int hop_init(struct hop *h, const struct proxy *up, const struct address *to, uint16_t port,
             const char *name)
{
    *h = (struct hop){
        .up = up, .to = *to, .port = port, .out = BUF_INIT(OUT_MAX), .in = BUF_INIT(HOP_HEAD_MAX)
    };
    (void)snprintf(h->name, sizeof(h->name), "%s", name);
    int r = up->kind == PROXY_SOCKS5 ? greet_socks(h) : ask_http(h);
    if (r < 0)
        hop_done(h);
    return r;
}

void hop_done(struct hop *h)
{
    if (h->out.data)
        explicit_bzero(h->out.data, h->out.cap);
    buf_done(&h->out);
    buf_done(&h->in);
}

int hop_take(struct hop *h, const char *p, size_t n, size_t *ret_used)
{
    *ret_used = 0;
    switch (h->state) {
    case HOP_HTTP: return take_http(h, p, n, ret_used);
    case HOP_METHOD:
    case HOP_LOGIN:
    case HOP_REPLY: return take_socks(h, p, n, ret_used);
    case HOP_OVER: return -EPROTO;
    }
    return -EPROTO;
}
