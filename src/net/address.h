/* address - an IPv4 or IPv6 address as a value, ranges of them, and what kind of place one is.
 *
 * An IPv4 address in IPv6's mapped form is that IPv4 address from the start, so nobody compares two
 * spellings of one place. Other forms (translated, 6to4) stay IPv6, and address_inner looks
 * beneath them. Text is read strictly: no octal, hex or short forms. Pure functions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct address {
    uint8_t bits;      /* 32 or 128; 0: none */
    uint8_t bytes[16]; /* network order; the unused ones are 0 */
};

#define ADDRESS_TEXT_SIZE 46 /* INET6_ADDRSTRLEN */

/* PRIVATE: a network of somebody's own, loopback among them. NEVER: link-local (where clouds keep
 * their metadata), multicast, unspecified, and what nobody was given. */
enum address_kind { ADDRESS_PUBLIC, ADDRESS_PRIVATE, ADDRESS_NEVER };

struct address address_v4(const uint8_t bytes[4]);
struct address address_v6(const uint8_t bytes[16]);
int address_from_sockaddr(const struct sockaddr *sa, struct address *ret); /* -EAFNOSUPPORT */
/* Fills *ret_sa and gives its length. */
socklen_t address_to_sockaddr(const struct address *a, uint16_t port,
                              struct sockaddr_storage *ret_sa);
int address_parse(const char *p, size_t n, struct address *ret); /* -EINVAL */
const char *address_text(const struct address *a, char out[ADDRESS_TEXT_SIZE]);
bool address_equal(const struct address *a, const struct address *b);
/* The IPv4 address that an IPv6 one carries (translated, 6to4, compatible); false: it carries none. */
bool address_inner(const struct address *a, struct address *ret);
enum address_kind address_kind_of(const struct address *a);
enum address_kind address_kind(const struct sockaddr *sa);
/* The machine itself, whatever its interfaces say, or where a cloud hands out credentials: nobody means it who
 * names a range that it is in. */
bool address_is_guarded(const struct address *a);

struct range {
    struct address net; /* what lies behind the prefix is 0 */
    uint8_t prefix;
};

#define RANGE_TEXT_SIZE (ADDRESS_TEXT_SIZE + 4)

int range_parse(const char *p, size_t n, struct range *ret); /* "10.0.0.0/8" or one address */
const char *range_text(const struct range *r, char out[RANGE_TEXT_SIZE]);
bool range_has(const struct range *r, const struct address *a);
