/* DNS: a sandbox's questions and a resolver's answers. What is answered can be read again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void ask(const uint8_t *p, size_t n)
{
    static const uint8_t four[4] = { 1, 2, 3, 4 }, six[16] = { 0x20, 1 };
    const struct address both[] = { address_v4(four), address_v6(six) };
    const struct dns_reply reply = { .ttl = 5, .addresses = both, .n_addresses = 2 };
    struct buf out = BUF_INIT(DNS_TCP_MAX);
    struct dns_question q;
    struct dns_answer a;
    if (dns_read_question(p, n, &q) == -EBADMSG)
        return;
    if (dns_write_reply(&q, &reply, q.udp_max, &out) < 0 || out.len > q.udp_max)
        abort();
    if (q.n_raw && q.name[0] && (q.type == DNS_A || q.type == DNS_AAAA) &&
        (dns_read_answer(out.data, out.len, q.id, q.name, (enum dns_type)q.type, &a) < 0 ||
         a.n_addresses != 1))
        abort();
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct dns_answer a;
    ask(p, n);
    if (n < 2)
        return 0;
    uint16_t id = (uint16_t)(p[0] << 8 | p[1]);
    for (int type = DNS_A; type <= DNS_AAAA; type += DNS_AAAA - DNS_A)
        if (dns_read_answer(p, n, id, "a.test", (enum dns_type)type, &a) == 0 &&
            a.n_addresses > DNS_ADDRESSES_MAX)
            abort();
    return 0;
}
