/* files - plain HTTP up and down of files: what both directions share. */
#pragma once
#include "front/e2b/envd.h"

/* The sandbox of the request, by header or by signature, its rights checked. */
int files_enter(struct request *req, const char *op, struct envd *ret_envd, struct err *err);
/* A failure as these clients know it; as a handler's result. */
int files_fail(struct request *req, int r, struct err *err);
