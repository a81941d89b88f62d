#include "front/native/page.h"

int page_read(const struct request *req, const char *const *known, struct page *ret_page,
              struct err *err)
{
    static const char *const usual[] = { "limit", "cursor", NULL };
    int r = request_params_known(req, known ? known : usual, err);
    return r < 0 ? r : paging_read(req, &ret_page->at, err);
}

void page_done(struct page *page)
{
    buf_done(&page->buf);
}

void page_open(struct page *page, const char *name)
{
    page->buf = (struct buf)BUF_INIT(REPLY_MAX);
    page->json = (struct jout)JOUT_INIT(&page->buf);
    jout_open(&page->json, NULL, '{');
    jout_open(&page->json, name, '[');
}

bool page_takes(struct page *page, const char *key)
{
    return paging_takes(&page->at, key);
}

bool page_takes_made(struct page *page, int64_t made_ms, const char *id)
{
    char key[PAGING_KEY_MAX];
    (void)snprintf(key, sizeof(key), "%016llx-%s", (unsigned long long)made_ms, id);
    return paging_takes(&page->at, key);
}

int page_reply(struct request *req, struct page *page)
{
    jout_close(&page->json, ']');
    paging_put(&page->at, &page->json);
    jout_close(&page->json, '}');
    return reply_json(req, 200, &page->json);
}
