/* account - what one sandbox's network carried: sums, the hosts it talked to, its latest attempts.
 *
 * A file of its own that outlives daemon and sandbox: a head, a table of hosts, a ring of entries, and a table of
 * secrets that were used, each at a fixed place, so that a change writes a few hundred bytes and the file has a largest size. What is
 * read is checked: a file that is torn or of another version loses its entries, not its sums. The hosts
 * that carried least make room for new ones and go on in a sum of their own. Calls read and write
 * files; the caller sees to it that there is one at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/core.h"
#include "core/network.h"
#include "wire/broker.h"

#define ACCOUNT_HOSTS_MAX 256
#define ACCOUNT_BYTES_MAX (1200u * 1024) /* a file, however much is logged */
#define ACCOUNT_USES_MAX 128             /* twice what is bound at once */

struct account_sum {
    uint64_t sent_bytes, received_bytes;
    uint64_t connections; /* or requests, of previews */
    uint64_t denied;
};

struct account_host {
    char host[BROKER_HOST_SIZE];
    struct account_sum sum;
    int64_t first_ms, last_ms;
};

/* A secret that its requests carried to a host, as the binding names it. */
struct account_use {
    char secret[BROKER_BINDING_SIZE];
    char host[BROKER_HOST_SIZE];
    uint64_t count;
    int64_t first_ms, last_ms;
};

struct account_head {
    char magic[8];
    uint32_t host_size, entry_size;
    char sandbox[32];
    char owner[OWNER_MAX];
    uint64_t count;                      /* entries ever: the number of the latest */
    uint64_t first;                      /* those before this number are lost */
    struct account_sum egress, previews; /* of all */
    struct account_sum others;           /* of hosts that are not in the table any more */
    int64_t begun_ms;
    uint32_t n_hosts;
    uint32_t n_uses;
};

struct account {
    int fd; /* -1: not open */
    struct account_head head;
    struct account_host *hosts; /* NULL until they are needed */
    bool head_changed;
    bool changed[ACCOUNT_HOSTS_MAX];
};

#define ACCOUNT_INIT \
    {                \
        .fd = -1     \
    }

/* In the directory dir_fd. owner: whose it is if it has to be made; NULL: it is not made, -ENOENT. */
int account_open(struct account *a, int dir_fd, const char *sandbox, const char *owner);
int account_close(struct account *a); /* writes what has changed; -errno: some of it is lost */

/* The number of the entry. */
int account_log(struct account *a, const struct broker_record *rec, uint64_t *ret_number);
/* Writes another record into an entry that is there; -ENOENT: it is not any more. */
int account_relog(struct account *a, uint64_t number, const struct broker_record *rec);
int account_unlog(struct account *a, uint64_t number);
/* Those with a number above `after`, the oldest first, `limit` at most; free(*ret_items). */
int account_entries(struct account *a, uint64_t after, size_t limit,
                    struct network_entry **ret_items, size_t *ret_n);
int account_add(struct account *a, const struct broker_tally *tally, int64_t now_ms);
int account_hosts(struct account *a); /* has a->hosts read, a->head.n_hosts of them */
/* One that names a binding. Of too many the one that was used longest ago makes room. */
int account_add_use(struct account *a, const struct broker_tally *tally, int64_t now_ms);
int account_uses(const struct account *a, struct account_use **ret_items,
                 size_t *ret_n); /* free(*ret_items) */
