#include "unpack/wanted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

static int take_paths(const struct compare_query *q, struct wanted *ask)
{
    size_t at = 0;
    for (uint32_t i = 0; i < q->n_paths; i++) {
        const char *text = ask->memory + at;
        const char *end = at < q->paths_len ? memchr(text, '\0', q->paths_len - at) : NULL;
        if (!end || text[0] != '/')
            return -EPROTO;
        ask->paths[ask->n_paths++] = text;
        at += (size_t)(end - text) + 1;
    }
    return 0;
}

int wanted_read(int fd, struct wanted *ret_ask, struct err *err)
{
    struct compare_query q;
    struct wanted ask = { 0 };
    if (fd_read_full(fd, &q, sizeof(q)) < 0 || q.n_paths > COMPARE_PATHS_MAX ||
        q.paths_len > COMPARE_PATHS_BYTES)
        return err_set(err, EPROTO, "a query out of shape");
    ask.text = q.text == 1;
    ask.shared_before_ms = q.shared_before_ms;
    ask.memory = malloc((size_t)q.paths_len + 1);
    if (!ask.memory || fd_read_full(fd, ask.memory, q.paths_len) < 0 || take_paths(&q, &ask) < 0) {
        wanted_done(&ask);
        return err_set(err, EPROTO, "a query out of shape");
    }
    *ret_ask = ask;
    return 0;
}

void wanted_done(struct wanted *ask)
{
    free(ask->memory);
    ask->memory = NULL;
}

static bool begins_with(const char *path, const char *with)
{
    size_t n = strlen(with);
    return strncmp(path, with, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

enum wanted_how wanted_is(const struct wanted *ask, const char *path)
{
    enum wanted_how how = ask->n_paths == 0 ? WANTED_WHOLE : WANTED_NOT;
    for (size_t i = 0; i < ask->n_paths && how != WANTED_WHOLE; i++) {
        const char *wanted = ask->paths[i];
        if (wanted[1] == '\0' || begins_with(path, wanted))
            how = WANTED_WHOLE;
        else if (begins_with(wanted, path))
            how = WANTED_BELOW;
    }
    return how;
}
