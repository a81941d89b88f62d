/* entry - one file of a sandbox as EntryInfo. */
#pragma once
#include "core/file.h"
#include "filesystem.pb-c.h"
#include "front/e2b/envd.h"

/* Owned memory, all of it: an entry_done'd one leaves nothing. */
struct entry {
    Filesystem__EntryInfo info;
    Google__Protobuf__Timestamp time;
    char permissions[12];
    char *strings[5];
    Filesystem__EntryInfo__MetadataEntry *metadata, **metadata_pointers;
};

/* A symbolic link is asked for once more, for what it leads to. -ENOMEM. */
int entry_fill(const struct envd *envd, const struct file_entry *e, struct entry *ret_entry);
void entry_done(struct entry *entry);
/* The directory at `path`, as the sandbox sees it; the caller frees. */
int entry_find_dir(const struct envd *envd, const char *path, char **ret_top, struct err *err);
/* The name of `path` below a watched directory. */
const char *entry_name_below(const char *top, const char *path);
/* The common part of requests: one path, as the call's user. */
/* With root's rights and for the user, as E2B's own daemon acts; add flags, do not set them. */
struct file_ask entry_ask(const struct envd *envd, enum wire_file_op op, const char *const *path);
