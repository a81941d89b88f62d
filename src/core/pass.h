/* pass - a token that lets its bearer into a sandbox's ports from outside, for a time, and says who
 * that is.
 *
 * Whoever makes one may have it carry data of their own; the server inside gets that with each
 * request as X-Verified-User-Data, from us alone. The token is shown once and kept as a hash; it
 * ends at its moment, when it is revoked, and with its sandbox. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "core/core.h"

#define PASS_TEXT_SIZE 49  /* "preview_", 40 hex digits, the NUL */
#define PASS_DATA_MAX 4096 /* as JSON, in ASCII */
#define PASSES_OF_ONE 1000 /* a sandbox's */
#define PASS_LIFE_S 86400  /* unless said */
#define PASS_LIFE_MAX_S (366 * 86400)

struct pass {
    char id[ID_SIZE];
    char sandbox[ID_SIZE];
    unsigned port; /* 0: any */
    int64_t created_ms, expires_ms;
    char *data; /* a JSON object in ASCII, no line breaks; NULL: none */
};
void pass_done(struct pass *p);

/* `data` is a JSON object as text, in ASCII, or NULL. The token goes to ret_text, once. */
int pass_create(struct core *core, const char *owner, const char *who, unsigned port,
                int64_t life_ms, const char *data, struct pass *ret_pass,
                char ret_text[PASS_TEXT_SIZE], struct err *err);
/* In order of creation; without those that are over. pass_list_free. */
int pass_list(struct core *core, const char *owner, const char *who, struct pass **ret_list,
              size_t *ret_n, struct err *err);
void pass_list_free(struct pass *list, size_t n);
/* -ENOENT, token_not_found. */
int pass_revoke(struct core *core, const char *owner, const char *who, const char *id,
                struct err *err);
/* 0 and the pass, if this text opens that port of that sandbox now; -EACCES. Compared as a hash, in
 * constant time. */
int pass_check(struct core *core, const char *sandbox, unsigned port, const char *text,
               struct pass *ret_pass);
