"""A request that comes twice acts once: Idempotency-Key; and one that comes late: ETag, If-Match."""
import concurrent.futures
import contextlib
import http.client
import random
import sqlite3
import threading
import time
import uuid


def once(api, body, name, path="/v1/sandboxes"):
    return api.call("POST", path, body, headers={"Idempotency-Key": name})


def test_the_same_request_is_answered_again(api):
    name = str(uuid.uuid4())
    first = once(api, {"image": "tiny", "metadata": {"a": "b"}}, name)
    again = once(api, {"image": "tiny", "metadata": {"a": "b"}}, name)
    try:
        assert first.status == again.status == 201 and first.body == again.body
        assert "Idempotency-Replayed" not in first.headers
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.headers["ETag"] == first.headers["ETag"]
        other = once(api, {"image": "tiny"}, name)
        assert (other.status, other.code) == (422, "idempotency_mismatch")
        another = once(api, {"image": "tiny", "metadata": {"a": "b"}}, name + "x")
        assert another.status == 201 and another.json["id"] != first.json["id"]
        api.delete(another.json["id"])
    finally:
        api.delete(first.json["id"])
    gone = once(api, {"image": "tiny", "metadata": {"a": "b"}}, name)
    assert gone.status == 201 and gone.body == first.body  # still the first answer


def test_a_failed_request_may_be_tried_again(api, make):
    name = str(uuid.uuid4())
    taken = "once-" + name[:8]
    make(image="tiny", name=taken)
    assert once(api, {"image": "tiny", "name": taken}, name).code == "name_taken"
    api.delete(taken)
    made = once(api, {"image": "tiny", "name": taken}, name)
    assert made.status == 201 and "Idempotency-Replayed" not in made.headers
    api.delete(taken)


def test_two_at_once_make_one(api):
    name, body = str(uuid.uuid4()), {"image": "tiny", "metadata": {"race": str(uuid.uuid4())}}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: once(api, body, name), range(8)))
    made = {r.json["id"] for r in replies if r.status == 201}
    assert len(made) == 1
    for reply in replies:
        assert reply.status == 201 or (reply.status, reply.code) == (409, "idempotency_busy")
        assert reply.status == 201 or reply.headers["Retry-After"]
    assert len(api.list(metadata__race=body["metadata"]["race"])["sandboxes"]) == 1
    api.delete(made.pop())


def test_processes_keys_and_what_cannot_be_replayed(api, daemon, tiny):
    path = f"/v1/sandboxes/{tiny}/processes"
    first = once(api, {"argv": ["true"]}, "p-" + tiny, path)
    again = once(api, {"argv": ["true"]}, "p-" + tiny, path)
    assert first.status == 201 and again.body == first.body
    assert len(api.ok("GET", path)["processes"]) == 1
    streamed = api.call("POST", path, {"argv": ["true"]},
                        headers={"Idempotency-Key": "s", "Accept": "application/x-ndjson"})
    assert (streamed.status, streamed.code) == (400, "invalid_request")
    for bad in ("", "x" * 256, "a b", "\x7f"):
        assert once(api, {"image": "tiny"}, bad).code == "invalid_request", bad
    key = once(api, {"name": "once"}, "k-" + tiny, "/v1/keys")
    assert once(api, {"name": "once"}, "k-" + tiny, "/v1/keys").json == key.json
    with contextlib.closing(sqlite3.connect(f"file:{daemon.data}/state/warren.db?mode=ro", uri=True)) as db:
        text = "\n".join(map(str, db.execute("SELECT * FROM replays")))
        assert first.json["started_at"] in text
        assert key.json["key"].rpartition("_")[2] not in text  # a secret stays in memory
    api.ok("DELETE", f"/v1/keys/{key.json['id']}")


def test_an_answer_outlives_the_daemon(fresh):
    body = {"image": "tiny", "metadata": {"n": "1"}}
    first = once(fresh.api, body, "lives-on")
    fresh.restart()
    again = once(fresh.api, body, "lives-on")
    assert again.body == first.body and again.headers["Idempotency-Replayed"] == "true"
    # As if the daemon had died after making it and before recording its answer.
    fresh.kill()
    with contextlib.closing(sqlite3.connect(fresh.data / "state" / "warren.db")) as db, db:
        assert db.execute("UPDATE replays SET status = 0, body = NULL").rowcount == 1
    fresh.start()
    cut = once(fresh.api, body, "lives-on")
    assert cut.status == 201 and cut.json["id"] == first.json["id"]
    assert cut.headers["Idempotency-Replayed"] == "true"
    assert len(fresh.api.list()["sandboxes"]) == 1
    # As if it had died before making it.
    fresh.kill()
    with contextlib.closing(sqlite3.connect(fresh.data / "state" / "warren.db")) as db, db:
        db.execute("UPDATE replays SET status = 0, body = NULL, made = 'sandbox aaaaaaaaaaaaaaaaaaaa'")
    fresh.start()
    anew = once(fresh.api, body, "lives-on")
    assert anew.status == 201 and anew.json["id"] != first.json["id"]
    assert "Idempotency-Replayed" not in anew.headers
    # A large answer is made anew from what there is.
    large = {"image": "tiny", "env": {f"K{i}": "x" * 100 for i in range(200)}}
    one, two = once(fresh.api, large, "large"), once(fresh.api, large, "large")
    assert one.status == two.status == 201, (one, two)
    assert one.json["id"] == two.json["id"] and two.headers["Idempotency-Replayed"] == "true"


def test_a_kill_in_the_middle_never_makes_two(fresh):
    rng = random.Random(7)
    for i in range(8):
        body = {"image": "tiny", "metadata": {"try": str(i)}}
        ended = threading.Event()

        def ask():
            with contextlib.suppress(OSError, http.client.HTTPException):
                once(fresh.api, body, f"try-{i}")
            ended.set()
        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(rng.uniform(0, 0.02))
        fresh.kill()
        thread.join()
        fresh.start()
        reply = once(fresh.api, body, f"try-{i}")
        assert reply.status == 201, reply
        found = fresh.api.list(metadata__try=str(i))["sandboxes"]
        assert [s["id"] for s in found] == [reply.json["id"]] and found[0]["state"] == "running"
        fresh.api.delete(reply.json["id"])


# -- ETag and If-Match

def test_an_etag_changes_with_each_change_and_only_then(api, make):
    sandbox = make(image="tiny")
    path = f"/v1/sandboxes/{sandbox['id']}"

    def tag():
        return api.call("GET", path).headers["ETag"]
    seen = [tag()]
    assert seen[0].startswith('"') and seen[0] == tag()
    api.exec(sandbox["id"], ["true"])
    assert tag() == seen[0]  # its use is no change
    for change in ({"metadata": {"a": "1"}}, {"metadata": {"a": "1"}}, {"name": "tag-" + sandbox["id"][:6]}):
        reply = api.call("PATCH", path, change)
        assert reply.headers["ETag"] == tag() and tag() not in seen
        seen.append(tag())
    for verb in ("stop", "start"):
        assert api.call("POST", f"{path}/{verb}").headers["ETag"] == tag() and tag() not in seen
        seen.append(tag())


def test_only_the_version_seen_is_changed(api, make):
    path = f"/v1/sandboxes/{make(image='tiny')['id']}"
    old = api.call("GET", path).headers["ETag"]
    new = api.call("PATCH", path, {"metadata": {"x": "1"}}, headers={"If-Match": old}).headers["ETag"]
    for method, where, body in (("PATCH", path, {"metadata": {}}), ("POST", path + "/stop", None),
                                ("POST", path + "/start", None), ("DELETE", path, None)):
        for match in (old, 'W/' + new, '"x"', f'{old}, W/{new}'):
            api.refused(412, "precondition_failed", method, where, body, headers={"If-Match": match})
    assert api.ok("GET", path)["metadata"] == {"x": "1"} and api.ok("GET", path)["state"] == "running"
    api.refused(400, "invalid_request", "PATCH", path, {}, headers={"If-Match": "nonsense"})
    stopped = api.call("POST", path + "/stop", headers={"If-Match": f'"x", {new}'})
    assert stopped.status == 200
    assert api.call("PATCH", path, {"metadata": {}}, headers={"If-Match": "*"}).status == 200
    api.refused(404, "sandbox_not_found", "PATCH", "/v1/sandboxes/nope", {}, headers={"If-Match": old})
    assert api.call("DELETE", path, headers={"If-Match": api.call("GET", path).headers["ETag"]}).status == 204


def test_of_two_changes_to_one_version_one_wins(api, make):
    path = f"/v1/sandboxes/{make(image='tiny')['id']}"
    for _ in range(10):
        tag = api.call("GET", path).headers["ETag"]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(
                lambda i: api.call("PATCH", path, {"metadata": {"same": "1"}}, headers={"If-Match": tag}),
                range(4)))
        assert sorted(r.status for r in replies) == [200, 412, 412, 412]


def test_an_etag_outlives_the_daemon(fresh):
    path = f"/v1/sandboxes/{fresh.api.create(image='tiny')['id']}"
    tag = fresh.api.call("PATCH", path, {"metadata": {"a": "b"}}).headers["ETag"]
    fresh.restart()
    assert fresh.api.call("GET", path).headers["ETag"] == tag
