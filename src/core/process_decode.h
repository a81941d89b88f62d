/* process_decode - a struct process out of the fields that warren-init sent.
 *
 * Private to process*.c. The fields are hostile: each number is held against its range, each
 * text against a NUL, and a field that is not known is passed over. */
#pragma once
#include "core/process.h"

int process_decode(const char *p, size_t n, struct process *ret_p); /* -EPROTO, -ENOMEM */
