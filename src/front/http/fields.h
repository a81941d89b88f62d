/* fields - a JSON object read into a struct by a table, one row a member.
 *
 * The table is the contract: a member that is not in it is refused by name, one of the wrong
 * type or out of range gets a sentence that says what it must be. Rows name a decoder; new
 * shapes are new decoders. The struct keeps what it held for members that are absent or null,
 * so fill it with the defaults first. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define FIELDS_MAX 32
#define FIELD_PAIRS_MAX 1024 /* variables, or labels, of one sandbox */

struct field {
    const char *name;
    int (*decode)(const json_t *v, const struct field *f, void *at, struct err *err);
    size_t offset;
    double min, max;            /* numbers: the range; texts: bytes at most */
    const char *const *choices; /* as_choice: the names of 0, 1, ...; NULL-terminated */
    bool null_ok;               /* null counts as given, and leaves the value alone */
};

/* FIELD(struct x, member, "name", decoder, .min = 1, .max = 9) */
#define FIELD(type_, member_, name_, decode_, ...)                                            \
    {                                                                                         \
        .name = (name_), .decode = (decode_), .offset = offsetof(type_, member_), __VA_ARGS__ \
    }

/* Parse a body. Empty is {}; anything but one object is invalid_json. The caller decrefs. */
int fields_parse(const char *p, size_t n, json_t **ret_object, struct err *err);
/* Bit i of *ret_seen: row i was there. Texts and lists in `target` are the caller's to free,
 * also after a failure. */
int fields_decode(const json_t *object, const struct field *fields, size_t n, void *target,
                  uint32_t *ret_seen, struct err *err);

/* Decoders (as_x), and what `at` must be. */
int as_text(const json_t *v, const struct field *f, void *at, struct err *err); /* char * */
int as_bool(const json_t *v, const struct field *f, void *at, struct err *err); /* bool */
int as_u32(const json_t *v, const struct field *f, void *at, struct err *err);  /* uint32_t */
int as_u64(const json_t *v, const struct field *f, void *at, struct err *err);  /* uint64_t */
int as_mib(const json_t *v, const struct field *f, void *at, struct err *err);  /* uint64_t bytes */
int as_thousandths(const json_t *v, const struct field *f, void *at,
                   struct err *err);                                               /* uint32_t */
int as_seconds(const json_t *v, const struct field *f, void *at, struct err *err); /* int64_t ms */
int as_choice(const json_t *v, const struct field *f, void *at, struct err *err);  /* an enum */
int as_texts(const json_t *v, const struct field *f, void *at, struct err *err);   /* char ** */
int as_pairs(const json_t *v, const struct field *f, void *at, struct err *err); /* struct pairs */
/* The way out of what as_pairs read: an object of texts. */
struct jout;
struct pairs;
void put_pairs(struct jout *j, const char *key, const struct pairs *p);
/* As as_pairs, for names that go into an environment: not empty, no '='. */
int as_env(const json_t *v, const struct field *f, void *at, struct err *err);
