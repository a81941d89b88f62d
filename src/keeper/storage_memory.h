/* storage_memory - where the memory of checkpoints lies: pool/memory/<id>, plain files in one directory.
 *
 * Belongs to the checkpoint of the same name and goes with it. Nothing half written has that name. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct storage;

/* Returned descriptors are owned. */
int storage_memory(struct storage *st, const char *point, int *ret_fd, struct err *err);
/* A new one to fill, then keep it under its name or throw it away. */
int storage_memory_begin(struct storage *st, const char *point, int *ret_fd, struct err *err);
int storage_memory_commit(struct storage *st, const char *point, struct err *err);
void storage_memory_abort(struct storage *st, const char *point);
int storage_memory_trash(struct storage *st, const char *point,
                         struct err *err);                                /* missing is fine */
uint64_t storage_memory_bytes(int fd);                                    /* of all files in one */
bool storage_memory_is_unfinished(struct storage *st, const char *point); /* it is being filled */
/* Throw away what a keeper's death cut off, and what belongs to no checkpoint. */
void storage_memory_drop_unfinished(struct storage *st);
