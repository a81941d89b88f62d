/* words - the ways an instruction's text is cut into parts.
 *
 * Quotes and escapes stay in the parts: resolve.h takes them off when it expands. */
#pragma once
#include "dockerfile/dockerfile.h"

struct words {
    const char **items;
    size_t n;
};

bool words_space(char c);
/* By spaces alone. -E2BIG: over DOCKERFILE_WORDS_MAX; -ENOMEM. */
int words_plain(struct arena *arena, const char *text, struct words *ret_words);
/* By spaces outside quotes. */
int words_quoted(struct arena *arena, const char *text, char escape, struct words *ret_words);
/* A JSON array of strings: 1; 0: it is none (the shell form); -EINVAL: an array of something
 * else, or a string with a zero byte. */
int words_json(struct arena *arena, const char *text, struct words *ret_words);
