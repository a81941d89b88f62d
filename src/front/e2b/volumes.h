/* volumes - E2B's volumes: the control plane's, and what is in one.
 *
 * The content has a plane of its own: a volume's token opens it, not an API key. */
#pragma once
#include <jansson.h>

#include "core/sandbox.h"
#include "front/http/request.h"
#include "front/http/route.h"

#define VOLUME_TOKEN "e2b-volume"

int e2b_volume_create(struct request *req, struct err *err);
int e2b_volume_list(struct request *req, struct err *err);
int e2b_volume_get(struct request *req, struct err *err);
int e2b_volume_delete(struct request *req, struct err *err);

int e2b_content_list(struct request *req, struct err *err);
int e2b_content_make_dir(struct request *req, struct err *err);
int e2b_content_stat(struct request *req, struct err *err);
int e2b_content_change(struct request *req, struct err *err);
int e2b_content_remove(struct request *req, struct err *err);
int e2b_content_read(struct request *req, struct err *err);
int e2b_content_write(struct request *req, struct err *err);
extern const struct route_sink e2b_content_sink;

/* `volumeMounts` of a sandbox, in and out. */
int e2b_read_mounts(const json_t *object, struct sandbox_spec *spec, struct err *err);
void e2b_put_mounts(struct jout *j, const struct sandbox_spec *spec);
