#include "cli/attack/tar.h"

#include <stdint.h>
#include <string.h>

#include "cli/xmem.h"

#define BLOCK 512

void tar_put(struct buf *b, const char *name, char type, const char *link, const char *text)
{
    char head[BLOCK] = "";
    size_t n = text ? strlen(text) : 0;
    unsigned sum = 0;
    static const char zeros[BLOCK];
    (void)snprintf(head, 100, "%s", name);
    memcpy(head + 100, "0000755", 8);
    memcpy(head + 108, "0000000", 8);
    memcpy(head + 116, "0000000", 8);
    (void)snprintf(head + 124, 12, "%011o", (unsigned)n);
    memcpy(head + 136, "00000000000", 12);
    memset(head + 148, ' ', 8);
    head[156] = type;
    (void)snprintf(head + 157, 100, "%s", link ? link : "");
    memcpy(head + 257,
           "ustar\0"
           "00",
           8);
    if (type == '3') { /* /dev/mem */
        memcpy(head + 329, "0000001", 8);
        memcpy(head + 337, "0000001", 8);
    }
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)head[i];
    (void)snprintf(head + 148, 8, "%06o", sum);
    xputn(b, head, BLOCK);
    if (n > 0) {
        xputn(b, text, n);
        xputn(b, zeros, (BLOCK - n % BLOCK) % BLOCK);
    }
}

void tar_end(struct buf *b)
{
    static const char zeros[2 * BLOCK];
    xputn(b, zeros, sizeof(zeros));
}

static uint32_t crc(const char *p)
{
    uint32_t c = 0xffffffff;
    for (; *p; p++) {
        c ^= (unsigned char)*p;
        for (int i = 0; i < 8; i++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
    }
    return ~c;
}

static void put(struct buf *b, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8)
        xputn(b, (const char[]){ (char)(v & 0xff) }, 1);
}

/* The fields that the local header and the directory's entry share. */
static void put_common(struct buf *b, const char *name, const char *text)
{
    put(b, 20, 2);
    put(b, 0, 2);
    put(b, 0, 2);
    put(b, 0, 4);
    put(b, crc(text), 4);
    put(b, (uint32_t)strlen(text), 4);
    put(b, (uint32_t)strlen(text), 4);
    put(b, (uint32_t)strlen(name), 2);
    put(b, 0, 2);
}

void zip_put(struct buf *b, const char *name, const char *text)
{
    xputn(b, "PK\3\4", 4);
    put_common(b, name, text);
    xputs(b, name);
    xputs(b, text);
    size_t directory = b->len;
    xputn(b, "PK\1\2\x14\0", 6);
    put_common(b, name, text);
    put(b, 0, 2); /* comment, disk, attributes, offset */
    put(b, 0, 2);
    put(b, 0, 2);
    put(b, 0, 4);
    put(b, 0, 4);
    xputs(b, name);
    size_t size = b->len - directory;
    xputn(b, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    put(b, (uint32_t)size, 4);
    put(b, (uint32_t)directory, 4);
    put(b, 0, 2);
}
