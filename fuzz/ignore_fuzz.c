/* .dockerignore: any rules against any path; what is pruned is ignored. The first line is the
 * path, the rest the rules. */
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/ignore.h"
#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct ignore ig;
    char path[512], again[512];
    const uint8_t *eol = memchr(p, '\n', n);
    size_t len = eol ? (size_t)(eol - p) : 0;
    if (!eol || len > sizeof(path) - 2 || memchr(p, 0, len))
        return 0;
    memcpy(path, p, len);
    path[len] = '\0';
    path_clean(path);
    memcpy(again, path, sizeof(again));
    path_clean(again);
    if (strcmp(path, again) != 0)
        abort();
    if (ignore_parse((const char *)eol + 1, n - len - 1, &ig, NULL) < 0)
        return 0;
    if (ignore_prunes(&ig, path) && !ignore_match(&ig, path))
        abort();
    ignore_done(&ig);
    return 0;
}
