/* What the parts of binding share. */
#pragma once
#include "net/binding.h"

/* A path's pattern in its one spelling. -EBADMSG. */
int binding_pattern(const char *p, size_t n, struct buf *out);
/* -EINVAL, invalid_binding, with the start of what is wrong. */
int binding_wrong(struct err *err, const char *p, size_t n, const char *what);
