#include "daemon/resolvers.h"

#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "net/address.h"

#define FILE_MAX_BYTES 8192
#define RESOLVERS_MAX 3

/* The address of a line "nameserver ADDRESS"; 0: it is another line. */
static size_t address_of(const char *line, size_t n, const char **ret_p)
{
    static const char word[] = "nameserver";
    size_t at = sizeof(word) - 1;
    struct address a;
    if (n <= at || strncmp(line, word, at) != 0 || (line[at] != ' ' && line[at] != '\t'))
        return 0;
    at += strspn(line + at, " \t");
    size_t len = at < n ? strcspn(line + at, " \t\r\n#") : 0;
    if (address_parse(line + at, len, &a) < 0)
        return 0;
    *ret_p = line + at;
    return len;
}

void resolvers_read(const char *path, char out[RESOLVERS_SIZE])
{
    char text[FILE_MAX_BYTES];
    size_t at = 0, n = 0;
    out[0] = '\0';
    if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
        return;
    for (const char *p = text; *p && n < RESOLVERS_MAX;) {
        const char *address = NULL;
        size_t line = strcspn(p, "\n"), len = address_of(p, line, &address);
        if (len && at + len + 2 < RESOLVERS_SIZE) {
            if (n++)
                out[at++] = ',';
            memcpy(out + at, address, len);
            at += len;
            out[at] = '\0';
        }
        p += line + (p[line] == '\n');
    }
}
