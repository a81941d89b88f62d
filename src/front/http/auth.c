#include "front/http/auth.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/hash.h"

#define SLOTS 256
#define ADDRESS_BYTES 8 /* an IPv4 address, or the network half of an IPv6 one */

struct slot {
    unsigned char address[ADDRESS_BYTES];
    int64_t since_ms;
    unsigned failures;
};

struct auth {
    pthread_mutex_t lock;
    struct slot slots[SLOTS];
};

int auth_new(struct auth **ret_auth, struct err *err)
{
    struct auth *a = calloc(1, sizeof(*a));
    if (!a)
        return err_set(err, ENOMEM, "cannot allocate the table of refused keys");
    (void)pthread_mutex_init(&a->lock, NULL);
    *ret_auth = a;
    return 0;
}

void auth_free(struct auth *auth)
{
    if (!auth)
        return;
    (void)pthread_mutex_destroy(&auth->lock);
    free(auth);
}

static void address_of(const struct sockaddr *from, unsigned char out[ADDRESS_BYTES])
{
    memset(out, 0, ADDRESS_BYTES);
    if (from && from->sa_family == AF_INET) {
        memcpy(out, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
        out[7] = 4;
    } else if (from && from->sa_family == AF_INET6) {
        memcpy(out, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, ADDRESS_BYTES);
    }
}

bool auth_failed(struct auth *auth, const struct sockaddr *from, int64_t mono_ms)
{
    unsigned char address[ADDRESS_BYTES];

    address_of(from, address);
    (void)pthread_mutex_lock(&auth->lock);
    /* Two addresses that share a slot push each other out: a slower guard, never a wrong one. */
    struct slot *s = &auth->slots[hash_more(HASH_SEED, address, ADDRESS_BYTES) % SLOTS];
    if (memcmp(s->address, address, ADDRESS_BYTES) != 0 ||
        mono_ms - s->since_ms > AUTH_WINDOW_S * 1000) {
        memcpy(s->address, address, ADDRESS_BYTES);
        s->since_ms = mono_ms;
        s->failures = 0;
    }
    bool over = ++s->failures > AUTH_FAILURES_MAX;
    (void)pthread_mutex_unlock(&auth->lock);
    return over;
}

const char *auth_key_text(const char *authorization, const char *api_key)
{
    if (authorization && strncasecmp(authorization, "Bearer ", 7) == 0) {
        authorization += 7;
        while (*authorization == ' ')
            authorization++;
        return authorization;
    }
    return api_key;
}

bool auth_peer_trusted(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || n != sizeof(peer))
        return false;
    return peer.uid == 0 || peer.uid == geteuid();
}
