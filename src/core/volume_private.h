/* volume_private - what volume.c and volume_cell.c share. */
#pragma once
#include "core/private.h"
#include "core/volume.h"

enum volume_cell { VOLUME_CELL_NONE, VOLUME_CELL_COMING, VOLUME_CELL_UP, VOLUME_CELL_GOING };

struct volume_entry {
    struct volume v;
    bool unsure; /* being made or removed: nobody's */
    enum volume_cell state;
    char cell[ID_SIZE];
    bool died;       /* its cell did: it goes as soon as nobody is inside */
    unsigned inside; /* requests at work in it, or waiting for it to come up */
    int64_t up_ms;   /* monotonic: when it came up */
    int64_t idle_ms; /* monotonic: since when nobody is inside */
};

/* With the table's lock held; NULL: there is none that is sure. owner NULL: any. */
struct volume_entry *volumes_find(struct core *core, const char *owner, const char *who);
int volume_missing(struct err *err, const char *who);
