#include "wire/wire.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"

#define FIELD_HEAD 5 /* tag and length */

void wire_header_put(unsigned char out[WIRE_HEADER_SIZE], const struct wire_header *h)
{
    uint32_t len = htole32(h->len);
    uint64_t offset = htole64(h->offset);
    memcpy(out, &len, 4);
    out[4] = h->type;
    out[5] = h->stream;
    out[6] = out[7] = 0;
    memcpy(out + 8, &offset, 8);
}

int wire_header_get(const unsigned char in[WIRE_HEADER_SIZE], struct wire_header *ret_h)
{
    struct wire_header h = { .type = in[4], .stream = in[5] };
    memcpy(&h.len, in, 4);
    memcpy(&h.offset, in + 8, 8);
    h.len = le32toh(h.len);
    h.offset = le64toh(h.offset);
    if (in[6] || in[7] || h.type == 0 || h.len > WIRE_PAYLOAD_MAX)
        return -EPROTO;
    if ((h.type == WIRE_OUTPUT || h.type == WIRE_INPUT) && h.len > WIRE_DATA_MAX)
        return -EPROTO;
    if (h.type == WIRE_DATA && h.len > WIRE_BULK_MAX)
        return -EPROTO;
    *ret_h = h;
    return 0;
}

int wire_put(struct buf *b, enum wire_tag tag, const void *p, size_t n)
{
    if (n > WIRE_PAYLOAD_MAX)
        return -EMSGSIZE;
    int r = buf_reserve(b, FIELD_HEAD + n);
    if (r < 0)
        return r;
    unsigned char head[FIELD_HEAD] = { (unsigned char)tag };
    uint32_t len = htole32((uint32_t)n);
    memcpy(head + 1, &len, 4);
    (void)buf_append(b, head, FIELD_HEAD); /* reserved above */
    return buf_append(b, p, n);
}

int wire_put_str(struct buf *b, enum wire_tag tag, const char *s)
{
    return s ? wire_put(b, tag, s, strlen(s)) : 0;
}

int wire_put_u64(struct buf *b, enum wire_tag tag, uint64_t v)
{
    v = htole64(v);
    return wire_put(b, tag, &v, sizeof(v));
}

int wire_next(struct wire_reader *r, struct wire_field *ret_f)
{
    if (r->n == 0)
        return 0;
    if (r->n < FIELD_HEAD)
        return -EPROTO;
    uint32_t len;
    memcpy(&len, r->p + 1, 4);
    len = le32toh(len);
    if (len > r->n - FIELD_HEAD)
        return -EPROTO;
    ret_f->tag = (enum wire_tag)(unsigned char)r->p[0];
    ret_f->p = r->p + FIELD_HEAD;
    ret_f->n = len;
    r->p += FIELD_HEAD + len;
    r->n -= FIELD_HEAD + len;
    return 1;
}

int wire_field_u64(const struct wire_field *f, uint64_t *ret_v)
{
    if (f->n != sizeof(*ret_v))
        return -EPROTO;
    memcpy(ret_v, f->p, sizeof(*ret_v));
    *ret_v = le64toh(*ret_v);
    return 0;
}

int wire_field_str(const struct wire_field *f, char **ret_s)
{
    if (memchr(f->p, 0, f->n))
        return -EINVAL;
    char *s = malloc(f->n + 1);
    if (!s)
        return -ENOMEM;
    if (f->n)
        memcpy(s, f->p, f->n);
    s[f->n] = '\0';
    *ret_s = s;
    return 0;
}

int wire_send_raw(int fd, enum wire_type type, const void *p, size_t n)
{
    if (n > WIRE_PAYLOAD_MAX)
        return -EMSGSIZE;
    unsigned char head[WIRE_HEADER_SIZE];
    struct wire_header h = { .len = (uint32_t)n, .type = (uint8_t)type };
    wire_header_put(head, &h);
    /* One system call where the socket has room: the common case by far. */
    struct iovec iov[2] = { { head, sizeof(head) }, { (void *)(uintptr_t)p, n } };
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = n ? 2 : 1 };
    ssize_t sent;
    do
        sent = sendmsg(fd, &m, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN)
        return -errno;
    size_t done = sent < 0 ? 0 : (size_t)sent;
    if (done < sizeof(head)) {
        int r = fd_write_full(fd, head + done, sizeof(head) - done);
        if (r < 0)
            return r;
        done = sizeof(head);
    }
    done -= sizeof(head);
    return done < n ? fd_write_full(fd, (const char *)p + done, n - done) : 0;
}

int wire_send(int fd, enum wire_type type, const struct buf *payload)
{
    return payload ? wire_send_raw(fd, type, payload->data, payload->len)
                   : wire_send_raw(fd, type, NULL, 0);
}

int wire_recv(int fd, struct wire_header *ret_h, struct buf *payload, int timeout_ms)
{
    unsigned char head[WIRE_HEADER_SIZE];
    int r;

    if (timeout_ms >= 0) {
        r = fd_wait(fd, POLLIN, timeout_ms);
        if (r <= 0)
            return r < 0 ? r : -ETIMEDOUT;
    }
    r = fd_read_full(fd, head, sizeof(head));
    if (r < 0)
        return r;
    r = wire_header_get(head, ret_h);
    if (r < 0)
        return r;
    buf_clear(payload);
    r = buf_reserve(payload, ret_h->len);
    if (r < 0)
        return r;
    r = fd_read_full(fd, payload->data, ret_h->len);
    if (r < 0)
        return r;
    payload->len = ret_h->len;
    payload->data[payload->len] = '\0';
    return 0;
}
