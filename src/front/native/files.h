/* files - what the requests under /v1/sandboxes/{id}/files share. Private to files*.c. */
#pragma once
#include "core/file.h"
#include "front/http/coding.h"
#include "front/native/native.h"

#define FILES_PATH_MAX 4096
#define FILES_PATHS_MAX 10000 /* names in one request; what a bulk answer lists */

/* A failure of a file operation, in req->args[0]'s sandbox: as native_sandbox_error. */
int files_error(struct request *req, int r, struct err *err);

/* The query of one that has no body: `path` (required) and `user` in ask; others as known. */
struct files_query {
    const char *path, *user;
};
int files_query(struct request *req, const char *const *known, struct files_query *ret_q,
                struct err *err);
/* Flags of the query: each name's bit is set where it is `true`. NULL-terminated. */
struct files_flag {
    const char *name;
    uint64_t flag;
    bool inverted; /* set where it is `false` */
};
int files_query_flags(const struct request *req, const struct files_flag *flags, size_t n,
                      uint64_t *io_flags, struct err *err);
int files_mode_parse(const char *text, uint64_t *ret_mode); /* "644", "0755"; -EINVAL */

void files_put_entry(struct jout *j, const char *key, const struct file_entry *e);
/* Enter, do it, and answer with the entry. */
int files_reply_do(struct request *req, const struct file_ask *ask, unsigned status,
                   struct err *err);
/* Quoted, as headers and JSON have it; "" where there is none. */
#define FILES_ETAG_MAX 128
const char *files_etag(const struct file_entry *e, char out[FILES_ETAG_MAX]);
/* What a header that names one tag means to init: *, or the tag without quotes. -EINVAL. */
int files_etag_parse(const char *header, char out[FILES_ETAG_MAX]);
bool files_etag_listed(const char *header, const struct file_entry *e); /* weak comparison */
/* Enter, and answer with the trees of a TREE_OUT as one archive. */
int files_reply_archive(struct request *req, const struct file_ask *ask, const char *format,
                        struct err *err);
