#include "front/native/paging.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

static int page_of(const char *target, struct paging *p)
{
    struct request req = { .fd = -1 };
    struct err err = ERR_INIT;
    int r = uri_parse(target, strlen(target), &req.uri, &err);
    if (r >= 0)
        r = paging_read(&req, p, &err);
    uri_done(&req.uri);
    return r;
}

/* Walks a list of n texts page by page; how many pages there were. */
static unsigned walk(char keys[][8], size_t n, unsigned limit)
{
    char target[1024];
    unsigned pages = 0;
    size_t at = 0;

    (void)snprintf(target, sizeof(target), "/x?limit=%u", limit);
    for (;;) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        struct jout j = JOUT_INIT(&b);
        struct paging p;
        CHECK_OK(page_of(target, &p));
        for (size_t i = 0; i < n; i++)
            if (paging_takes(&p, keys[i]))
                CHECK_EQ(i, at++);
        pages++;
        jout_open(&j, NULL, '{');
        paging_put(&p, &j);
        jout_close(&j, '}');
        CHECK_OK(jout_done(&j));
        if (strcmp(b.data, "{\"next_cursor\":null}") == 0)
            break;
        (void)snprintf(target, sizeof(target), "/x?limit=%u&cursor=%.*s", limit,
                       (int)strcspn(b.data + 16, "\""), b.data + 16);
    }
    CHECK_EQ(at, n);
    return pages;
}

TEST(every_item_is_on_one_page_whatever_the_limit)
{
    char keys[10][8];
    for (int i = 0; i < 10; i++)
        (void)snprintf(keys[i], sizeof(keys[i]), "%c%.*s", 'a' + i, i % 4, "xyz");
    for (unsigned limit = 1; limit <= 12; limit++)
        CHECK_EQ(walk(keys, 10, limit), (10 + limit - 1) / limit);
    CHECK_EQ(walk(keys, 0, 5), 1);
}

TEST(what_is_no_cursor_is_refused)
{
    static const char *const bad[] = { "/x?cursor=",   "/x?cursor=*",    "/x?cursor=A",
                                       "/x?cursor=AA", "/x?cursor=YQ==", "/x?limit=0",
                                       "/x?limit=1001" };
    struct paging p;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(page_of(bad[i], &p), -EINVAL);
    CHECK_OK(page_of("/x?cursor=YQ&limit=1000", &p));
    CHECK(strcmp(p.after, "a") == 0);
}
