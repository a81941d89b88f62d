/* seal - bytes that only this daemon can read again: AES-256-GCM with a key in a file.
 *
 * Sealed text is base64 of nonce, bytes and tag. What it is about (`about`) is part of the seal:
 * text that was sealed about one thing does not open as another's. */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define SEAL_KEY_BYTES 32

/* The key in `path`, which is made if it is not there: 0600, written out before it is used. */
int seal_key(const char *path, unsigned char ret_key[SEAL_KEY_BYTES], struct err *err);
/* Appends text. */
int seal_close(const unsigned char key[SEAL_KEY_BYTES], const char *about, const void *p, size_t n,
               struct buf *out);
/* Appends the bytes; -EBADMSG: not ours, or about something else. */
int seal_open(const unsigned char key[SEAL_KEY_BYTES], const char *about, const char *text,
              struct buf *out);
