/* file_fuzz - what a worker of warren-init is asked: FILE requests, entries of a tree, patterns. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "init/file/ask.h"
#include "init/file/globs.h"
#include "init/file/tree_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const char *s)
{
    volatile size_t n = s ? strlen(s) : 0;
    (void)n;
}

static void try_ask(char *payload, size_t n)
{
    struct ask ask = { 0 };
    struct err err = ERR_INIT;
    if (ask_decode(payload, n, &ask, &err) < 0)
        return;
    for (size_t i = 0; i < ask.n_paths; i++)
        touch(ask.paths[i]);
    struct globs globs;
    if (globs_init(&globs, ask.patterns, ask.n_patterns) == 0) {
        (void)globs_match(&globs, ask.paths[0], ask.paths[0], ask_is(&ask, WIRE_F_ICASE));
        globs_done(&globs);
    }
    touch(ask.user);
    touch(ask.to);
    touch(ask.text);
    touch(ask.owner);
    touch(ask.etag);
    touch(ask.after);
    if (ask.xattr && (ask.value_n == 0 || ask.value[ask.value_n - 1] == 'x'))
        touch(ask.xattr);
    ask_done(&ask);
}

/* What is taken must be plain names below the top. */
static void try_entry(const char *payload, size_t n)
{
    static struct tree_entry e;
    const char *why = "";
    if (tree_entry_decode(payload, n, &e, &why) < 0) {
        touch(e.path);
        touch(why);
        return;
    }
    const char *paths[] = { e.path, e.type == WIRE_HARDLINK ? e.link : "" };
    for (int i = 0; i < 2; i++) {
        char padded[PATH_MAX + 3];
        (void)snprintf(padded, sizeof(padded), "/%s/", paths[i]);
        if (paths[i][0] == '/' || strstr(padded, "/../") || strstr(padded, "/./") ||
            (paths[i][0] && strstr(padded, "//")))
            abort();
    }
    for (size_t i = 0; i < e.n_xattrs; i++)
        touch(payload + e.xattrs[i].at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t n = size - 1;
    char *payload = malloc(n + 1);
    if (!payload)
        return 0;
    memcpy(payload, data + 1, n);
    if (data[0] & 1)
        try_ask(payload, n);
    else
        try_entry(payload, n);
    free(payload);
    return 0;
}
