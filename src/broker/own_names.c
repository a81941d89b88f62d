#include "broker/own_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "net/host.h"
#include "net/preview.h"
#include "wire/broker.h"

#define LOG_MODULE "preview"

struct own_name {
    struct own_name *next;
    char name[HOST_SIZE];
    char sandbox[ID_SIZE];
    unsigned port;
};

static struct own_name *const *slot_of(const struct own_names *all, const char *name)
{
    struct own_name *const *at = &all->buckets[hash_text(name) % OWN_NAMES_BUCKETS];
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static void forget(struct own_names *all, const char *name)
{
    struct own_name **at = (struct own_name **)(uintptr_t)slot_of(all, name), *a = *at;
    if (!a)
        return;
    *at = a->next;
    all->n--;
    free(a);
}

void own_names_learn(struct own_names *all, const struct broker_name *msg)
{
    char name[HOST_SIZE];
    size_t n = strnlen(msg->name, sizeof(msg->name));
    if (host_canon(msg->name, n, name) < 0 || msg->sandbox[ID_LEN] || msg->port > UINT16_MAX)
        return;
    forget(all, name);
    if (msg->port == 0 || !id_valid(msg->sandbox))
        return;
    struct own_name *a = calloc(1, sizeof(*a));
    if (!a) {
        log_error("no memory for a name; it leads nowhere name=%s", name);
        return;
    }
    memcpy(a->name, name, sizeof(name));
    memcpy(a->sandbox, msg->sandbox, ID_SIZE);
    a->port = msg->port;
    *(struct own_name **)(uintptr_t)slot_of(all, name) = a;
    all->n++;
}

bool own_names_find(const struct own_names *all, const char *host, size_t n, char ret_id[ID_SIZE],
                    unsigned *ret_port)
{
    char name[HOST_SIZE];
    if (all->n == 0 || host_canon(host, preview_name_len(host, n), name) < 0)
        return false;
    const struct own_name *a = *slot_of(all, name);
    if (!a)
        return false;
    memcpy(ret_id, a->sandbox, ID_SIZE);
    *ret_port = a->port;
    return true;
}

void own_names_done(struct own_names *all)
{
    for (size_t i = 0; i < OWN_NAMES_BUCKETS; i++)
        while (all->buckets[i]) {
            struct own_name *a = all->buckets[i];
            all->buckets[i] = a->next;
            free(a);
        }
    all->n = 0;
}
