/* file_codec - file requests and answers as the fields of wire, and back.
 *
 * Private to file*.c. Bytes in, values out, no I/O: what is decoded was written by something a
 * sandbox may control, so every value is checked before it is believed. */
#pragma once
#include "core/file.h"

int file_encode_ask(struct buf *b, const struct sandbox *s, const struct file_ask *ask);
int file_encode_entry(struct buf *b, const struct file_entry *e);
/* Of ENTRY, CHANGE, MATCH and OK; -EPROTO, -ENOMEM. ret_ev->type is the caller's to set. */
int file_decode(const char *p, size_t n, struct file_event *ret_ev);
