/* transfer_private - the inside of a transfer, for transfer.c, pull.c and push.c. */
#pragma once
#include <pthread.h>

#include "core/private.h"
#include "core/transfer.h"
#include "registry/registry.h"

#define TRANSFER_THREADS 3 /* layers on their way at the same time */

struct transfer_layer {
    struct descriptor blob;
    enum transfer_state state;
    uint64_t bytes, told_bytes;
    int64_t told_ms;
    bool told;  /* the reader knows of this state */
    bool ready; /* its thread is through with it */
};

struct transfer {
    struct core *core;
    struct transfer_config config; /* its texts are owned */
    struct reference ref;
    struct registry *registry;
    int (*run)(struct transfer *t, struct err *err);
    int (*move)(struct transfer *t, size_t i, struct err *err); /* one layer, by a thread */
    void *arg;                                                  /* run's, for move */

    pthread_t thread;
    bool started, counted;
    _Atomic bool cancel;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* anything below */
    struct transfer_layer *layers;
    size_t n, next; /* the next that a thread takes */
    pthread_t movers[TRANSFER_THREADS];
    unsigned nmovers;
    int failed; /* the first failure of a layer, told in err */
    struct err err;
    bool ended, told_end;
    struct image image;
    char digest[DIGEST_SIZE];
};

/* Checks the names, copies the config, opens nothing. */
int transfer_new(struct core *core, const struct transfer_config *config, struct transfer **ret_t,
                 struct err *err);
int transfer_set_name(struct transfer *t, const char *name, struct err *err);
int transfer_start(struct transfer *t, struct err *err);
int transfer_connect(struct transfer *t, bool push, struct err *err);
bool transfer_cancelled(void *t);

/* The list of layers, once; then threads that call `move` for each that is not ready. */
int transfer_set_layers(struct transfer *t, const struct descriptor *layers, size_t n,
                        struct err *err);
int transfer_move_layers(struct transfer *t, struct err *err);
/* Wait until layer i was moved, or some layer failed: then that failure. */
int transfer_wait_layer(struct transfer *t, size_t i, struct err *err);
void transfer_join(struct transfer *t); /* the movers; after a failure, having told them */
void transfer_set_state(struct transfer *t, size_t i, enum transfer_state state);
void transfer_set_bytes(struct transfer *t, size_t i, uint64_t bytes);
void transfer_set_ready(struct transfer *t, size_t i, enum transfer_state state);
