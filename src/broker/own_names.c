#include "broker/plates.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "net/host.h"
#include "net/preview.h"
#include "wire/broker.h"

#define LOG_MODULE "preview"

struct plate {
    struct plate *next;
    char name[HOST_SIZE];
    char sandbox[ID_SIZE];
    unsigned port;
};

static struct plate *const *slot_of(const struct plates *all, const char *name)
{
    struct plate *const *at = &all->buckets[hash_text(name) % PLATES_BUCKETS];
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static void forget(struct plates *all, const char *name)
{
    struct plate **at = (struct plate **)(uintptr_t)slot_of(all, name), *a = *at;
    if (!a)
        return;
    *at = a->next;
    all->n--;
    free(a);
}

void plates_learn(struct plates *all, const struct broker_name *msg)
{
    char name[HOST_SIZE];
    size_t n = strnlen(msg->name, sizeof(msg->name));
    if (host_canon(msg->name, n, name) < 0 || msg->sandbox[ID_LEN] || msg->port > UINT16_MAX)
        return;
    forget(all, name);
    if (msg->port == 0 || !id_valid(msg->sandbox))
        return;
    struct plate *a = calloc(1, sizeof(*a));
    if (!a) {
        log_error("no memory for a name; it leads nowhere name=%s", name);
        return;
    }
    memcpy(a->name, name, sizeof(name));
    memcpy(a->sandbox, msg->sandbox, ID_SIZE);
    a->port = msg->port;
    *(struct plate **)(uintptr_t)slot_of(all, name) = a;
    all->n++;
}

bool plates_find(const struct plates *all, const char *host, size_t n, char ret_id[ID_SIZE],
                 unsigned *ret_port)
{
    char name[HOST_SIZE];
    if (all->n == 0 || host_canon(host, preview_name_len(host, n), name) < 0)
        return false;
    const struct plate *a = *slot_of(all, name);
    if (!a)
        return false;
    memcpy(ret_id, a->sandbox, ID_SIZE);
    *ret_port = a->port;
    return true;
}

void plates_done(struct plates *all)
{
    for (size_t i = 0; i < PLATES_BUCKETS; i++)
        while (all->buckets[i]) {
            struct plate *a = all->buckets[i];
            all->buckets[i] = a->next;
            free(a);
        }
    all->n = 0;
}
