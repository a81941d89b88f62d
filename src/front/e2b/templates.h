/* templates - the control plane's templates and their builds.
 *
 * A template's id is its name. A tag names a build of it: "x:tag" is a template of ours by that name,
 * and "x" is "x:default". */
#pragma once
#include "core/template_build.h"
#include "front/http/request.h"

/* "[team/]name[:tag]". An absent tag is "", an absent team the caller's. -EINVAL, invalid_field. */
struct e2b_name {
    char team[OWNER_MAX], name[NAME_MAX_LEN + 1], tag[NAME_MAX_LEN + 1];
    char ref[OWNER_MAX + NAME_MAX_LEN + 1]; /* "[team/]name" */
};
/* A name to look up, of any team. */
int e2b_name_parse(const struct request *req, const char *text, struct e2b_name *ret_name,
                   struct err *err);
/* A name to make, change or delete: another team's is -EPERM, forbidden. */
int e2b_name_own(const struct request *req, const char *text, struct e2b_name *ret_name,
                 struct err *err);
/* A template's or image's name as the core knows it: without the caller's own team before it,
 * and without the version that E2B's interpreter has. */
const char *e2b_known_name(const struct request *req, const char *asked);
bool e2b_tag_valid(const char *tag);
/* The image that E2B's own one stands for, or the same. */
const char *e2b_image_name(const char *image);

/* template_body.c: the body of a build's start. Points into `object` and what it allocated. */
struct e2b_build_body {
    struct template_recipe recipe;
    struct build_step *steps;
    const char **args; /* of all steps */
};
int e2b_build_body_read(struct request *req, const json_t *object, struct e2b_build_body *ret_body,
                        struct err *err);
void e2b_build_body_done(struct e2b_build_body *body);

/* template_files.c */
extern const struct route_sink e2b_upload_sink;
int e2b_upload_auth(struct request *req, struct err *err); /* by the link itself */
int e2b_template_files(struct request *req, struct err *err);
int e2b_template_upload(struct request *req, struct err *err);

/* template_builds.c */
int e2b_build_request(struct request *req, struct err *err);
int e2b_build_request_old(struct request *req, struct err *err);
int e2b_build_start(struct request *req, struct err *err);
int e2b_build_status(struct request *req, struct err *err);
int e2b_build_logs(struct request *req, struct err *err);

/* templates.c, template_tags.c */
int e2b_template_alias(struct request *req, struct err *err);
int e2b_template_list(struct request *req, struct err *err);
int e2b_template_get(struct request *req, struct err *err);
int e2b_template_delete(struct request *req, struct err *err);
int e2b_template_patch(struct request *req, struct err *err);
int e2b_tags_assign(struct request *req, struct err *err);
int e2b_tags_remove(struct request *req, struct err *err);
int e2b_tags_list(struct request *req, struct err *err);
