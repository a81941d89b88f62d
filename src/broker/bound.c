#include "broker/bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "broker/credential.h"
#include "net/host.h"

/* A key that only signs is never sent, and what is no secret need not be hidden. */
static bool sends(const struct binding *b)
{
    return b->secret && b->as != BINDING_SIGV4;
}

/* Basic credentials as two texts and as the one they are sent as. */
static int write_pair(const struct binding *b, struct buf *pair, struct buf *packed)
{
    int r = buf_printf(pair, "%s:", b->user ? b->user : "");
    if (r >= 0)
        r = buf_append(pair, b->value, b->n_value);
    return r < 0 ? r : base64_encode(pair->data, pair->len, packed);
}

/* The value, and what goes out in its place: an echo may put that into another form. */
static int hide(struct redact_words *words, const struct binding *b)
{
    _cleanup_(buf_wipe) struct buf first = BUF_INIT(4 * REDACT_WORD_MAX),
                                   second = BUF_INIT(4 * REDACT_WORD_MAX);
    int r = 0;
    if (!sends(b) || !b->value)
        return 0;
    size_t known = 0; /* of `first` */
    if (b->as == BINDING_BASIC || b->as == BINDING_GIT) {
        r = write_pair(b, &first, &second);
        known = r < 0 ? 0 : first.len - b->n_value;
    } else if (b->as == BINDING_QUERY) {
        r = credential_percent(&first, b->value, b->n_value);
    }
    if (r >= 0)
        r = redact_words_add(words, b->value, b->n_value);
    if (r >= 0)
        r = redact_words_add_behind(words, first.data, first.len, known);
    return r < 0 ? r : redact_words_add_behind(words, second.data, second.len, (known * 8 + 5) / 6);
}

/* Too long to be found again, or for a server: it is as if it had none. */
static void forget(struct binding *b)
{
    explicit_bzero(b->value, b->n_value);
    free(b->value);
    b->value = NULL;
    b->n_value = 0;
}

int bound_new(const char *packed, size_t n, struct bound **ret_bound, struct err *err)
{
    _cleanup_(bound_unrefp) struct bound *b = calloc(1, sizeof(*b));
    if (!b)
        return err_set(err, ENOMEM, "out of memory");
    b->refs = 1;
    int r = bindings_unpack(packed, n, &b->bindings, err);
    if (r < 0)
        return r;
    b->words = redact_words_new();
    if (!b->words)
        return err_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < b->bindings.n; i++) {
        struct binding *one = &b->bindings.items[i];
        if (sends(one) && one->n_value > BOUND_VALUE_MAX)
            forget(one);
        r = hide(b->words, one);
        if (r < 0)
            return err_set(err, -r,
                           "the secrets of %zu bindings are too long to be hidden in answers",
                           b->bindings.n);
    }
    *ret_bound = take_ptr(b);
    return 0;
}

struct bound *bound_ref(struct bound *b)
{
    if (b)
        b->refs++;
    return b;
}

void bound_unref(struct bound *b)
{
    if (!b || --b->refs > 0)
        return;
    bindings_done(&b->bindings);
    redact_words_unref(b->words);
    free(b);
}

bool bound_sends(const struct bound *b, const char *host)
{
    for (size_t i = 0; b && i < b->bindings.n; i++)
        if (sends(&b->bindings.items[i]) && host_matches(b->bindings.items[i].host, host))
            return true;
    return false;
}

static bool carries(const struct bound *b, const struct binding *like)
{
    for (size_t i = 0; b && i < b->bindings.n; i++) {
        const struct binding *one = &b->bindings.items[i];
        if (one->as == like->as && one->n_value == like->n_value && one->value &&
            memcmp(one->value, like->value, like->n_value) == 0)
            return true;
    }
    return false;
}

bool bound_knows(const struct bound *b, const struct bound *old)
{
    for (size_t i = 0; i < old->bindings.n; i++) {
        const struct binding *one = &old->bindings.items[i];
        if (sends(one) && one->value && !carries(b, one))
            return false;
    }
    return true;
}

int bound_hide(struct bound *b, const struct bound *old)
{
    int r = 0;
    for (size_t i = 0; i < old->bindings.n && r >= 0; i++)
        r = hide(b->words, &old->bindings.items[i]);
    return r;
}

const char *bound_label(const struct binding *b)
{
    return b->secret ? b->secret : b->name ? b->name : "literal";
}

bool bound_has(const struct bound *b, const char *label, const char *host)
{
    for (size_t i = 0; b && i < b->bindings.n; i++)
        if (strcmp(bound_label(&b->bindings.items[i]), label) == 0 &&
            host_matches(b->bindings.items[i].host, host))
            return true;
    return false;
}
