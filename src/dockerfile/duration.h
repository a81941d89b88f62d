/* duration - "1m30s", "500ms": a length of time as Dockerfiles write it. */
#pragma once
#include <stdint.h>

int duration_parse(const char *text, int64_t *ret_ns); /* -EINVAL: no duration, or a negative one */
