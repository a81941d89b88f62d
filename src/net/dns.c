#include "net/dns.h"

#include <errno.h>
#include <string.h>

#define HEADER_SIZE 12
#define NAME_WIRE_MAX 255
#define JUMPS_MAX 32    /* more than one to every label is nobody's compression */
#define CHAIN_MAX 16    /* aliases on the way to an address */
#define RECORDS_MAX 256 /* read of one answer */

#define TYPE_CNAME 5
#define TYPE_OPT 41
#define CLASS_IN 1
#define FLAG_ANSWER 0x8000
#define FLAG_OPCODE 0x7800
#define FLAG_TRUNCATED 0x0200
#define FLAG_RECURSION 0x0100
#define FLAG_RECURSION_HERE 0x0080
#define OPTION_REASON 15
#define NAME_POINTER 0xc0
#define TO_QUESTION 0xc00c /* a pointer to the name in the question */

struct reader {
    const uint8_t *p;
    size_t n, at;
    bool plain; /* names are written out here: there is nothing yet to point at */
};

static int get16(struct reader *r, uint16_t *ret)
{
    if (r->n - r->at < 2)
        return -EBADMSG;
    *ret = (uint16_t)(r->p[r->at] << 8 | r->p[r->at + 1]);
    r->at += 2;
    return 0;
}

static int get32(struct reader *r, uint32_t *ret)
{
    uint16_t high, low;
    if (get16(r, &high) < 0 || get16(r, &low) < 0)
        return -EBADMSG;
    *ret = (uint32_t)high << 16 | low;
    return 0;
}

struct header {
    uint16_t id, flags, counts[4]; /* questions, answers, authorities, additions */
};

static int get_header(struct reader *r, struct header *h)
{
    int bad = get16(r, &h->id) | get16(r, &h->flags);
    for (size_t i = 0; i < 4; i++)
        bad |= get16(r, &h->counts[i]);
    return bad ? -EBADMSG : 0;
}

/* Put a label behind those that are there. A byte that is a dot would look like two labels. */
static int add_label(char text[HOST_SIZE], size_t *len, const uint8_t *label, size_t n)
{
    size_t at = *len;
    if (memchr(label, '.', n) || memchr(label, '\0', n))
        return -EINVAL;
    if (at + n + 2 > HOST_SIZE)
        return -EINVAL;
    if (at)
        text[at++] = '.';
    memcpy(text + at, label, n);
    text[at + n] = '\0';
    *len = at + n;
    return 0;
}

/* A name, its compression undone, canonical in out; empty if no host can have it. Compressed names
 * point backwards only, so each jump makes what is left smaller. */
static int get_name(struct reader *r, char out[HOST_SIZE])
{
    char text[HOST_SIZE] = "";
    size_t at = r->at, limit = r->at, len = 0, wire = 0, jumps = 0;
    bool odd = false;
    for (;;) {
        if (at >= r->n)
            return -EBADMSG;
        size_t n = r->p[at];
        if ((n & NAME_POINTER) == NAME_POINTER) {
            if (r->plain || at + 1 >= r->n || ++jumps > JUMPS_MAX)
                return -EBADMSG;
            if (jumps == 1)
                r->at = at + 2;
            at = (n & ~(size_t)NAME_POINTER) << 8 | r->p[at + 1];
            if (at >= limit)
                return -EBADMSG;
            limit = at;
            continue;
        }
        wire += n + 1;
        if ((n & NAME_POINTER) || wire > NAME_WIRE_MAX || r->n - at - 1 < n)
            return -EBADMSG;
        if (n == 0)
            break;
        odd = odd || add_label(text, &len, r->p + at + 1, n) < 0;
        at += n + 1;
    }
    if (jumps == 0)
        r->at = at + 1;
    if (odd || host_canon(text, len, out) < 0)
        out[0] = '\0';
    return 0;
}

struct record {
    char name[HOST_SIZE];
    uint16_t type, class;
    uint32_t ttl;
    size_t data, n; /* where in the message */
};

static int get_record(struct reader *r, struct record *rec)
{
    uint16_t n;
    if (get_name(r, rec->name) < 0 || get16(r, &rec->type) < 0 || get16(r, &rec->class) < 0 ||
        get32(r, &rec->ttl) < 0 || get16(r, &n) < 0 || r->n - r->at < n)
        return -EBADMSG;
    rec->data = r->at;
    rec->n = n;
    r->at += n;
    return 0;
}

/* ---- questions ---- */

static int get_question(struct reader *r, struct dns_question *q)
{
    size_t start = r->at;
    uint16_t class;
    r->plain = true;
    if (get_name(r, q->name) < 0 || get16(r, &q->type) < 0 || get16(r, &class) < 0)
        return -EINVAL;
    r->plain = false;
    size_t n = r->at - start;
    if (n > sizeof(q->raw))
        return -EINVAL;
    memcpy(q->raw, r->p + start, n);
    q->n_raw = n;
    return class == CLASS_IN ? 0 : -EOPNOTSUPP;
}

/* A question has additions: of those, EDNS is of interest. */
static int get_additions(struct reader *r, size_t n, struct dns_question *q)
{
    for (size_t i = 0; i < n; i++) {
        struct record rec;
        if (get_record(r, &rec) < 0)
            return -EINVAL;
        if (rec.type != TYPE_OPT)
            continue;
        if (q->edns)
            return -EINVAL; /* RFC 6891: one */
        q->edns = true;
        q->udp_max = rec.class < DNS_UDP_PLAIN ? DNS_UDP_PLAIN
                     : rec.class > DNS_UDP_MAX ? DNS_UDP_MAX
                                               : rec.class;
    }
    return 0;
}

int dns_read_question(const void *p, size_t n, struct dns_question *ret_q)
{
    struct reader r = { p, n, 0, false };
    struct header h;
    *ret_q = (struct dns_question){ .udp_max = DNS_UDP_PLAIN };
    if (get_header(&r, &h) < 0 || (h.flags & FLAG_ANSWER))
        return -EBADMSG;
    ret_q->id = h.id;
    ret_q->recursion = (h.flags & FLAG_RECURSION) != 0;
    int bad = 0;
    if (h.flags & FLAG_OPCODE)
        bad = -EOPNOTSUPP;
    else if (h.counts[0] != 1 || h.counts[1] || h.counts[2] || h.counts[3] > 4)
        bad = -EINVAL;
    if (!bad)
        bad = get_question(&r, ret_q);
    if (!bad)
        bad = get_additions(&r, h.counts[3], ret_q);
    if (!bad && r.at != n)
        bad = -EINVAL; /* bytes behind the end are a message to somebody */
    if (bad)
        ret_q->n_raw = 0;
    return bad;
}

/* ---- writing ---- */

static int put16(struct buf *out, unsigned v)
{
    const uint8_t bytes[] = { (uint8_t)(v >> 8), (uint8_t)v };
    return buf_append(out, bytes, sizeof(bytes));
}

static int put32(struct buf *out, uint32_t v)
{
    int r = put16(out, v >> 16);
    return r < 0 ? r : put16(out, v & 0xffff);
}

static int put_header(struct buf *out, uint16_t id, unsigned flags, const uint16_t counts[4])
{
    int r = put16(out, id);
    if (r == 0)
        r = put16(out, flags);
    for (size_t i = 0; r == 0 && i < 4; i++)
        r = put16(out, counts[i]);
    return r;
}

static int put_opt(struct buf *out, enum dns_reason reason)
{
    int r = buf_append(out, "", 1); /* the root's name */
    if (r == 0)
        r = put16(out, TYPE_OPT);
    if (r == 0)
        r = put16(out, DNS_UDP_MAX);
    if (r == 0)
        r = put32(out, 0);
    if (r == 0)
        r = put16(out, reason ? 6 : 0);
    if (r == 0 && reason) {
        r = put16(out, OPTION_REASON);
        if (r == 0)
            r = put16(out, 2);
        if (r == 0)
            r = put16(out, reason);
    }
    return r;
}

static int put_address(struct buf *out, uint16_t type, uint32_t ttl, const struct address *a)
{
    int r = put16(out, TO_QUESTION);
    if (r == 0)
        r = put16(out, type);
    if (r == 0)
        r = put16(out, CLASS_IN);
    if (r == 0)
        r = put32(out, ttl);
    if (r == 0)
        r = put16(out, a->bits / 8u);
    return r < 0 ? r : buf_append(out, a->bytes, a->bits / 8u);
}

static unsigned type_bits(uint16_t type)
{
    return type == DNS_A ? 32 : type == DNS_AAAA ? 128 : 0;
}

int dns_write_reply(const struct dns_question *q, const struct dns_reply *reply, size_t max,
                    struct buf *out)
{
    unsigned bits = q->n_raw ? type_bits(q->type) : 0;
    size_t record = 12 + bits / 8, size = HEADER_SIZE + q->n_raw + (q->edns ? 17 : 0);
    size_t fit = max > size ? (max - size) / record : 0, wanted = 0;
    for (size_t i = 0; bits && i < reply->n_addresses; i++)
        wanted += reply->addresses[i].bits == bits;
    size_t n = wanted < fit ? wanted : fit;
    unsigned flags = FLAG_ANSWER | FLAG_RECURSION_HERE | (unsigned)reply->rcode;
    flags |= q->recursion ? FLAG_RECURSION : 0;
    flags |= n < wanted ? FLAG_TRUNCATED : 0;
    const uint16_t counts[4] = { q->n_raw ? 1 : 0, (uint16_t)n, 0, q->edns ? 1 : 0 };
    int r = put_header(out, q->id, flags, counts);
    if (r == 0)
        r = buf_append(out, q->raw, q->n_raw);
    for (size_t i = 0; r == 0 && n; i++) {
        if (reply->addresses[i].bits != bits)
            continue;
        r = put_address(out, q->type, reply->ttl, &reply->addresses[i]);
        n--;
    }
    return r == 0 && q->edns ? put_opt(out, reply->reason) : r;
}

int dns_write_question(uint16_t id, const char *name, enum dns_type type, struct buf *out)
{
    static const uint16_t counts[4] = { 1, 0, 0, 1 };
    int r = put_header(out, id, FLAG_RECURSION, counts);
    for (const char *p = name; r == 0 && *p;) {
        uint8_t n = (uint8_t)strcspn(p, "."); /* canonical: 63 at most */
        r = buf_append(out, &n, 1);
        if (r == 0)
            r = buf_append(out, p, n);
        p += n + (p[n] == '.');
    }
    if (r == 0)
        r = buf_append(out, "", 1);
    if (r == 0)
        r = put16(out, type);
    if (r == 0)
        r = put16(out, CLASS_IN);
    return r < 0 ? r : put_opt(out, DNS_NO_REASON);
}

/* ---- answers ---- */

/* The record's address, if it is one of `name`'s. */
static void take_address(const struct reader *r, const struct record *rec, const char *name,
                         uint16_t type, struct dns_answer *a)
{
    if (rec->type != type || rec->class != CLASS_IN || rec->n != type_bits(type) / 8 ||
        strcmp(rec->name, name) != 0 || a->n_addresses == DNS_ADDRESSES_MAX)
        return;
    const uint8_t *bytes = r->p + rec->data;
    a->addresses[a->n_addresses++] = type == DNS_A ? address_v4(bytes) : address_v6(bytes);
    if (rec->ttl < a->ttl)
        a->ttl = rec->ttl;
}

/* One pass over the answers: addresses of `name` are taken, an alias of it goes to *ret_alias. */
static int pass(struct reader r, size_t n, const char *name, uint16_t type, struct dns_answer *a,
                char alias[HOST_SIZE])
{
    alias[0] = '\0';
    for (size_t i = 0; i < n && i < RECORDS_MAX; i++) {
        struct record rec;
        if (get_record(&r, &rec) < 0)
            return -EBADMSG;
        take_address(&r, &rec, name, type, a);
        if (rec.type != TYPE_CNAME || rec.class != CLASS_IN || alias[0] ||
            strcmp(rec.name, name) != 0)
            continue;
        struct reader data = { r.p, rec.data + rec.n, rec.data, false };
        if (get_name(&data, alias) < 0)
            return -EBADMSG;
        if (rec.ttl < a->ttl)
            a->ttl = rec.ttl;
    }
    return 0;
}

int dns_read_answer(const void *p, size_t n, uint16_t id, const char *name, enum dns_type type,
                    struct dns_answer *ret_answer)
{
    struct reader r = { p, n, 0, false };
    struct header h;
    struct dns_question q;
    if (get_header(&r, &h) < 0 || h.id != id || !(h.flags & FLAG_ANSWER) ||
        (h.flags & FLAG_OPCODE) || h.counts[0] != 1 || get_question(&r, &q) < 0 || q.type != type ||
        strcmp(q.name, name) != 0)
        return -EBADMSG;
    struct dns_answer a = { .rcode = h.flags & 0xf,
                            .truncated = (h.flags & FLAG_TRUNCATED) != 0,
                            .ttl = UINT32_MAX };
    char at[HOST_SIZE], next[HOST_SIZE];
    (void)snprintf(at, sizeof(at), "%s", name);
    for (int i = 0; i < CHAIN_MAX && at[0] && !a.n_addresses; i++) {
        if (pass(r, h.counts[1], at, (uint16_t)type, &a, next) < 0)
            return -EBADMSG;
        memcpy(at, next, sizeof(at));
    }
    if (!a.n_addresses)
        a.ttl = 0;
    *ret_answer = a;
    return 0;
}
