#include "front/e2b/birth.h"

#include <pthread.h>
#include <string.h>

#include "front/e2b/envd.h"

#define PLACE "/run/e2b"
#define SLOTS 4096

static struct {
    pthread_mutex_t lock;
    struct {
        char id[ID_SIZE];
        int64_t started_ms; /* of the life that has them: they go with it */
    } slots[SLOTS];
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Whether this life of it is new here; it is not any more. Ids are random: any part of one is a hash. */
static bool is_new(const struct sandbox *s)
{
    size_t at = 0;
    for (size_t i = ID_LEN - 4; i < ID_LEN; i++)
        at = at * 37 + (unsigned char)s->id[i];
    at %= SLOTS;
    (void)pthread_mutex_lock(&known.lock);
    bool fresh = known.slots[at].started_ms != s->started_ms ||
                 memcmp(known.slots[at].id, s->id, ID_SIZE) != 0;
    memcpy(known.slots[at].id, s->id, ID_SIZE);
    known.slots[at].started_ms = s->started_ms;
    (void)pthread_mutex_unlock(&known.lock);
    return fresh;
}

static int send_all(struct file_call *call, const struct pairs *facts)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < facts->n; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), ".%s", facts->names[i]);
        struct file_entry e = { .path = name, .type = WIRE_REGULAR, .mode = 0444 };
        r = file_put_entry(call, &e);
        if (r >= 0)
            r = file_put_data(call, facts->values[i], strlen(facts->values[i]));
    }
    return r < 0 ? r : file_put_end(call);
}

struct file_call *birth_files(struct core *core, const struct sandbox *s)
{
    static const char *const place = PLACE;
    struct file_call *call = NULL;
    struct pairs facts = { 0 };
    if (!is_new(s))
        return NULL;
    struct file_ask ask = {
        .op = WIRE_FILE_TREE_IN, .user = "root", .paths = &place, .n_paths = 1
    };
    /* A sandbox without them is none the worse: what fails here is not the command's failure. */
    if (envd_put_env(s, &facts) >= 0 && file_begin(core, s, &ask, &call, NULL) >= 0)
        (void)send_all(call, &facts);
    pairs_done(&facts);
    return call;
}
