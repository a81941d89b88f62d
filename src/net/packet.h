/* packet - IP packets that we write ourselves: a datagram or an echo from anywhere, and the word that one is
 * refused.
 *
 * For a raw socket in a sandbox's namespace, where the world's answers must seem to come from where
 * they were asked for. Both addresses are of one family. Pure functions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"

#define PACKET_HEAD_MAX 48     /* IPv6's 40 and UDP's 8 */
#define PACKET_REFUSAL_MAX 104 /* two of those and ICMP's own 8 */
#define PACKET_DATA_MAX 65507  /* what an IPv4 datagram holds */

struct packet_end {
    struct address address;
    uint16_t port;
};

/* The bytes before the data; how many. */
size_t packet_head(const struct packet_end *from, const struct packet_end *to, const void *data,
                   size_t n, uint8_t out[PACKET_HEAD_MAX]);
/* An echo request; the number of who sent it is from.port, to.port is 0. */
struct packet_echo {
    struct packet_end from, to;
    uint16_t sequence;
    const uint8_t *data; /* within what was read */
    size_t n;
};

/* What a raw socket of ICMP gives: of IPv4 the whole packet, of IPv6 (from and to are known) what is in it. -EBADMSG. */
int packet_read_echo(const uint8_t *p, size_t n, struct packet_echo *ret_echo);
int packet_read_echo6(const uint8_t *p, size_t n, struct packet_echo *ret_echo);
/* The bytes before the data of the answer to it, from whom it asked; how many. */
size_t packet_echo_head(const struct packet_echo *echo, uint8_t out[PACKET_HEAD_MAX]);
/* That it may not be ("administratively prohibited"); how many bytes. */
size_t packet_echo_refusal(const struct packet_echo *echo, uint8_t out[PACKET_REFUSAL_MAX]);
/* To `from`, whose datagram for `to` found nobody there ("port unreachable"); how many bytes. */
size_t packet_refusal(const struct packet_end *from, const struct packet_end *to,
                      uint8_t out[PACKET_REFUSAL_MAX]);
