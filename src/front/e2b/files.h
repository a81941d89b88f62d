/* files - plain HTTP up and down of files: what both directions share. */
#pragma once
#include "core/file.h"
#include "front/e2b/envd.h"

/* As envd_enter, with the user that the link names. */
int files_enter(struct request *req, struct envd *ret_envd, struct err *err);
/* A failure as these clients know it; as a handler's result. */
int files_fail(struct request *req, int r, struct err *err);

/* ---- metadata: X-Metadata-* headers, kept as extended attributes ---- */

#define FILES_METADATA "user.e2b." /* what their names begin with */

/* The request's, checked. */
int files_metadata_read(struct request *req, struct pairs *ret_pairs, struct err *err);
/* Let a file have just these; `fresh`: it has none yet. A filesystem that keeps none is fine. */
int files_metadata_set(const struct envd *envd, const char *path, bool fresh,
                       const struct pairs *pairs, struct err *err);
