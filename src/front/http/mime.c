#include "front/http/mime.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

static const struct {
    const char *ending, *type;
} types[] = {
    { "avif", "image/avif" },
    { "css", "text/css; charset=utf-8" },
    { "csv", "text/csv; charset=utf-8" },
    { "gif", "image/gif" },
    { "gz", "application/gzip" },
    { "htm", "text/html; charset=utf-8" },
    { "html", "text/html; charset=utf-8" },
    { "jpeg", "image/jpeg" },
    { "jpg", "image/jpeg" },
    { "js", "text/javascript; charset=utf-8" },
    { "json", "application/json" },
    { "md", "text/markdown; charset=utf-8" },
    { "mjs", "text/javascript; charset=utf-8" },
    { "mp3", "audio/mpeg" },
    { "mp4", "video/mp4" },
    { "pdf", "application/pdf" },
    { "png", "image/png" },
    { "svg", "image/svg+xml" },
    { "tar", "application/x-tar" },
    { "txt", "text/plain; charset=utf-8" },
    { "wasm", "application/wasm" },
    { "webm", "video/webm" },
    { "webp", "image/webp" },
    { "xml", "text/xml; charset=utf-8" },
    { "zip", "application/zip" },
};

const char *mime_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < ARRAY_LEN(types); i++)
        if (strcasecmp(dot + 1, types[i].ending) == 0)
            return types[i].type;
    return "application/octet-stream";
}
