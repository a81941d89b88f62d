"""Every list comes in pages that are stable while things come and go."""
import urllib.parse


def walk(api, path, member, limit):
    items, cursor, pages = [], None, 0
    while True:
        query = {"limit": limit, **({"cursor": cursor} if cursor else {})}
        page = api.ok("GET", f"{path}{'&' if '?' in path else '?'}{urllib.parse.urlencode(query)}")
        assert len(page[member]) <= limit
        items += page[member]
        pages += 1
        cursor = page["next_cursor"]
        if cursor is None:
            return items, pages


def test_keys_and_images(api, tiny_tar):
    names = [f"page-{i}" for i in range(5)]
    ids = [api.ok("POST", "/v1/keys", {"name": n})["id"] for n in names]
    try:
        items, pages = walk(api, "/v1/keys", "keys", 2)
        assert [k["name"] for k in items if k["id"] in ids] == names and pages >= 3
        assert len({k["id"] for k in items}) == len(items)
    finally:
        for i in ids:
            api.ok("DELETE", f"/v1/keys/{i}")
    items, pages = walk(api, "/v1/images", "images", 1)
    assert [i["name"] for i in items] == sorted(i["name"] for i in items) and pages == len(items)
    api.refused(400, "invalid_query", "GET", "/v1/keys?cursor=*")
    api.refused(400, "invalid_query", "GET", "/v1/images?limit=0")
    api.refused(400, "invalid_query", "GET", "/v1/images?other=1")


def test_processes_and_events(api, tiny):
    for i in range(5):
        api.wait(tiny, api.start(tiny, ["true"])["process"])
    items, pages = walk(api, f"/v1/sandboxes/{tiny}/processes", "processes", 2)
    assert [p["process"] for p in items] == sorted(p["process"] for p in items)
    assert len(items) == 5 and pages == 3
    events, pages = walk(api, f"/v1/events?sandbox={tiny}", "events", 3)
    assert [e["seq"] for e in events] == sorted({e["seq"] for e in events}) and pages >= 3


def test_a_page_holds_still_when_an_earlier_item_goes(api):
    made = [api.ok("POST", "/v1/keys", {"name": f"still-{i}"})["id"] for i in range(4)]
    seen, cursor = [], None
    while True:
        page = api.ok("GET", "/v1/keys?limit=1" + (f"&cursor={cursor}" if cursor else ""))
        seen += [k["id"] for k in page["keys"]]
        if seen[-1] == made[1]:
            api.ok("DELETE", f"/v1/keys/{made[0]}")
            api.ok("DELETE", f"/v1/keys/{made[1]}")
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen[-4:] == made
    for i in made[2:]:
        api.ok("DELETE", f"/v1/keys/{i}")
