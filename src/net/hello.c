#include "net/hello.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RECORD_HEADER 5
#define RECORD_HANDSHAKE 22
#define RECORD_MAX (16 * 1024)
#define TLS_MAJOR 3
#define MESSAGE_HEADER 4
#define CLIENT_HELLO 1
#define RANDOM_SIZE 32
#define SESSION_MAX 32
#define EXTENSION_NAME 0
#define EXTENSION_ESNI 0xffce      /* drafts before ECH */
#define EXTENSION_ECH_FIRST 0xfe08 /* drafts of ECH begin here */
#define EXTENSION_ECH 0xfe0d       /* ECH as published */
#define NAME_HOST 0

struct span {
    const uint8_t *p;
    size_t n;
};

/* The next n bytes; fails at the end. */
static bool take(struct span *s, size_t n, struct span *ret)
{
    if (s->n < n)
        return false;
    *ret = (struct span){ s->p, n };
    s->p += n;
    s->n -= n;
    return true;
}

static bool take_number(struct span *s, size_t bytes, size_t *ret)
{
    struct span v;
    size_t n = 0;
    if (!take(s, bytes, &v))
        return false;
    for (size_t i = 0; i < bytes; i++)
        n = n << 8 | v.p[i];
    *ret = n;
    return true;
}

/* A vector: its length in that many bytes, then itself. */
static bool take_vector(struct span *s, size_t bytes, struct span *ret)
{
    size_t n;
    return take_number(s, bytes, &n) && take(s, n, ret);
}

/* The records' contents, one behind the other: all of the first message. 0, -EAGAIN, -EBADMSG. */
static int gather(struct span in, uint8_t out[HELLO_MAX], size_t *ret_n)
{
    size_t have = 0, want = MESSAGE_HEADER;
    while (have < want) {
        if (in.n < RECORD_HEADER) {
            bool wrong =
                (in.n > 0 && in.p[0] != RECORD_HANDSHAKE) || (in.n > 1 && in.p[1] != TLS_MAJOR);
            return wrong ? -EBADMSG : -EAGAIN;
        }
        size_t n = (size_t)in.p[3] << 8 | in.p[4];
        if (in.p[0] != RECORD_HANDSHAKE || in.p[1] != TLS_MAJOR || n == 0 || n > RECORD_MAX)
            return -EBADMSG;
        size_t here = in.n - RECORD_HEADER < n ? in.n - RECORD_HEADER : n;
        if (have + here > HELLO_MAX)
            return -EBADMSG;
        memcpy(out + have, in.p + RECORD_HEADER, here);
        have += here;
        in.p += RECORD_HEADER + here;
        in.n -= RECORD_HEADER + here;
        if (have >= 1 && out[0] != CLIENT_HELLO)
            return -EBADMSG;
        if (have >= MESSAGE_HEADER)
            want = MESSAGE_HEADER + ((size_t)out[1] << 16 | (size_t)out[2] << 8 | out[3]);
        if (want > HELLO_MAX)
            return -EBADMSG;
        if (here < n)
            break;
    }
    if (have < want)
        return -EAGAIN;
    /* A second message behind the first, before any answer, is nobody's handshake. */
    if (have > want)
        return -EBADMSG;
    *ret_n = want;
    return 0;
}

/* server_name: a list of exactly one host name. */
static int read_name(struct span ext, char ret_name[HOST_SIZE])
{
    struct span list, name;
    size_t type;
    if (!take_vector(&ext, 2, &list) || ext.n || !take_number(&list, 1, &type) ||
        type != NAME_HOST || !take_vector(&list, 2, &name) || list.n || name.n == 0)
        return -EBADMSG;
    if (name.p[name.n - 1] == '.') /* RFC 6066: without it */
        return -EBADMSG;
    return host_canon((const char *)name.p, name.n, ret_name) < 0 ? -EBADMSG : 0;
}

static bool is_encrypted(size_t type)
{
    return type == EXTENSION_ESNI || (type >= EXTENSION_ECH_FIRST && type <= EXTENSION_ECH);
}

static int read_extensions(struct span all, char ret_name[HOST_SIZE])
{
    bool encrypted = false;
    int r = -ENOENT;
    while (all.n) {
        size_t type;
        struct span ext;
        if (!take_number(&all, 2, &type) || !take_vector(&all, 2, &ext))
            return -EBADMSG;
        encrypted |= is_encrypted(type);
        if (type != EXTENSION_NAME)
            continue;
        if (r != -ENOENT) /* a second one: who says which counts? */
            return -EBADMSG;
        r = read_name(ext, ret_name);
        if (r < 0)
            return r;
    }
    return r == 0 && encrypted ? HELLO_ENCRYPTED : r;
}

int hello_read(const void *p, size_t n, char ret_name[HOST_SIZE])
{
    uint8_t message[HELLO_MAX];
    char name[HOST_SIZE];
    size_t len, version;
    int r = gather((struct span){ p, n }, message, &len);
    if (r < 0)
        return r;
    struct span s = { message + MESSAGE_HEADER, len - MESSAGE_HEADER }, skip, session, extensions;
    if (!take_number(&s, 2, &version) || version >> 8 != TLS_MAJOR ||
        !take(&s, RANDOM_SIZE, &skip) || !take_vector(&s, 1, &session) || session.n > SESSION_MAX ||
        !take_vector(&s, 2, &skip) || skip.n == 0 || !take_vector(&s, 1, &skip) || skip.n == 0)
        return -EBADMSG;
    if (s.n == 0)
        return -ENOENT;
    if (!take_vector(&s, 2, &extensions) || s.n)
        return -EBADMSG;
    r = read_extensions(extensions, name);
    if (r >= 0)
        memcpy(ret_name, name, sizeof(name));
    return r;
}
