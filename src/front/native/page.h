/* page - one page of a list as the whole reply: {"NAME": [...], "next_cursor": ...}.
 *
 *     _cleanup_(page_done) struct page page = { 0 };
 *     int r = page_read(req, NULL, &page, err);
 *     if (r >= 0)
 *         r = volume_list(..., &list, &n, err);
 *     if (r < 0)
 *         return r;
 *     page_open(&page, "volumes");
 *     for (size_t i = 0; i < n; i++)
 *         if (page_takes_made(&page, list[i].created_ms, list[i].id))
 *             put_volume(&page.json, &list[i]);
 *     return page_reply(req, &page);
 *
 * How it is walked is paging's; what an item looks like is the caller's. */
#pragma once
#include "front/native/paging.h"

struct page {
    struct jout json; /* items go here, between page_open and page_reply */
    /* its own */
    struct paging at;
    struct buf buf;
};

/* Reads limit and cursor and refuses any other parameter. `known`, if not NULL, says which there
 * may be, those two among them. */
int page_read(const struct request *req, const char *const *known, struct page *ret_page,
              struct err *err);
void page_done(struct page *page); /* fine for one that is all zeroes */
void page_open(struct page *page, const char *name);
/* Call for every item, in ascending order: true if it belongs here. By a text of its own ... */
bool page_takes(struct page *page, const char *key);
/* ... or by when it was made, which two may share, and its id, which they do not. */
bool page_takes_made(struct page *page, int64_t made_ms, const char *id);
int page_reply(struct request *req, struct page *page);
