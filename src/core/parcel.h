/* parcel - a checkpoint as one file, to keep elsewhere or to take to another Warren.
 *
 * A tar of checkpoint.json first, then blobs under the names of their digests: the layers of its image as they
 * came in (unless they are left out, for a place that has them) and its files, packed with zstd. It has what the
 * sandbox was but for what belongs to a place: secrets, volumes, templates. What comes in is hostile: a process
 * without files takes it apart (bundle.h), every blob is checked against its digest, what it says of the
 * sandbox is checked as a request is. Calls block for as long as the disk takes. */
#pragma once
#include "core/checkpoint.h"
#include "core/image.h"

#define PARCEL_FORMAT "warren-checkpoint"
#define PARCEL_VERSION 1
#define PARCEL_HEAD "checkpoint.json"

/* What a sandbox is, without what belongs to its place. Takes from's contents. */
void parcel_spec(struct sandbox_spec *from, struct sandbox_spec *ret_to);
/* The same of its text, as spec_to_json writes it; NULL: err says why. */
char *parcel_spec_text(const char *text, struct err *err);

/* Its files are read at once, into a file that has no name; image_export_next gives the rest. */
int parcel_pack(struct core *core, const char *owner, const char *who, bool with_image,
                struct image_export **ret_exp, struct err *err);

/* Import while the bytes arrive: begin, write as they come, then finish or abort (both free). */
struct parcel_import;
int parcel_import_begin(struct core *core, const char *owner, struct parcel_import **ret_imp,
                        struct err *err);
int parcel_import_write(struct parcel_import *imp, const void *p, size_t n, struct err *err);
/* A checkpoint of no sandbox that is here; name NULL: the one that it had. -EINVAL, invalid_archive or
 * invalid_image; -ENOENT, image_not_found: its layers were left out and are not here. */
int parcel_import_finish(struct parcel_import *imp, const char *name, struct checkpoint *ret_c,
                         struct err *err);
void parcel_import_abort(struct parcel_import *imp); /* NULL is fine */
