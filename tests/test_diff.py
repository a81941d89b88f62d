"""Which files differ between two states: checkpoints and sandboxes of one image."""
import json
import uuid
from urllib.parse import quote

import pytest

SETUP = r"""
mkdir -p /srv/app /srv/gone /srv/deep/er
seq 1 20 > /srv/app/numbers
printf 'no newline' > /srv/app/last
printf 'a\000b' > /srv/app/binary
echo x > /srv/gone/in
echo same > /srv/app/same
ln -s numbers /srv/app/link
echo deep > /srv/deep/er/x
chmod 600 /srv/app/same
"""
CHANGE = r"""
sed -i 's/^10$/ten/' /srv/app/numbers
printf 'no newline\n' > /srv/app/last
printf 'a\000c' > /srv/app/binary
rm -r /srv/gone
echo same > /srv/app/same.new && mv /srv/app/same.new /srv/app/same && chmod 600 /srv/app/same
chmod 755 /srv/deep/er/x
ln -sfn last /srv/app/link
mkfifo /srv/pipe
truncate -s 40G /srv/giant
echo new > "/srv/app/$(printf 'odd\n\033[31m')"
rm -f /etc/shells
"""


def diff(api, a, b, **query):
    parts = [("to", b)]
    for name, value in query.items():
        parts += [(name, v) for v in (value if isinstance(value, list) else [value])]
    return api.ok("GET", f"/v1/checkpoints/{a}/diff?" + "&".join(f"{n}={quote(str(v), safe='')}" for n, v in parts))


def told(answer):
    return {c["path"]: c["change"] for c in answer["changes"]}


@pytest.fixture(scope="module")
def states(api):
    box = api.create()["id"]
    api.out(box, ["sh", "-ec", SETUP])
    first = api.ok("POST", f"/v1/sandboxes/{box}/checkpoints", {"name": "n" + uuid.uuid4().hex[:8]})
    api.out(box, ["sh", "-ec", CHANGE])
    yield box, first
    api.delete(box)
    for c in api.ok("GET", f"/v1/sandboxes/{box}/checkpoints")["checkpoints"]:
        api.ok("DELETE", f"/v1/checkpoints/{c['id']}")


def test_what_changed_since(api, states):
    box, first = states
    answer = diff(api, first["name"], box)
    assert answer["from"] == {"checkpoint": first["id"]} and answer["to"] == {"sandbox": box}
    assert told(answer) == {
        "/etc/shells": "removed", "/srv/app/binary": "changed", "/srv/app/last": "changed",
        "/srv/app/link": "changed", "/srv/app/numbers": "changed", "/srv/app/odd\n\x1b[31m": "added",
        "/srv/deep/er/x": "changed", "/srv/giant": "added", "/srv/gone": "removed", "/srv/pipe": "added"}
    by = {c["path"]: c for c in answer["changes"]}
    assert (by["/srv/deep/er/x"]["mode_before"], by["/srv/deep/er/x"]["mode"]) == ("0644", "0755")
    assert (by["/srv/gone"]["type"], by["/srv/gone"]["mode"]) == ("directory", None)
    assert by["/srv/giant"]["size_bytes"] == 40 << 30 and by["/srv/pipe"]["type"] == "other"
    assert "text" not in by["/srv/app/numbers"]
    # The other way round, and nothing against itself.
    back = diff(api, box, first["id"])
    assert (back["added"], back["changed"], back["removed"]) == (3, 5, 3)  # /srv/gone, and what was in it
    assert told(diff(api, box, box)) == {} == told(diff(api, first["id"], first["id"]))


def test_how_texts_changed(api, states):
    box, first = states
    by = {c["path"]: c for c in diff(api, first["id"], box, text="true")["changes"]}
    assert by["/srv/app/numbers"]["text"] == "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
    assert by["/srv/app/last"]["text"] == \
        "@@ -1,1 +1,1 @@\n-no newline\n\\ No newline at end of file\n+no newline\n"
    assert by["/srv/app/link"]["text"].startswith("@@ -1,1 +1,1 @@\n-numbers\n")
    assert (by["/srv/app/binary"]["text"], by["/srv/app/binary"]["text_state"]) == (None, "binary")
    assert by["/srv/giant"]["text_state"] == "too_large"
    assert by["/srv/deep/er/x"]["text"] == "" and "text" not in by["/srv/pipe"] and "text" not in by["/srv/gone"]


def test_some_paths_only(api, states):
    box, first = states
    assert told(diff(api, first["id"], box, path=["/srv/deep", "/srv/app/./last/"])) == \
        {"/srv/deep/er/x": "changed", "/srv/app/last": "changed"}
    assert told(diff(api, first["id"], box, path="/srv/gone/in")) == {"/srv/gone": "removed"}
    assert told(diff(api, first["id"], box, path="/srv/ap")) == {}
    few = diff(api, first["id"], box, path="/", limit=2)
    assert len(few["changes"]) == 2 and few["more"] and few["changed"] > 2
    at = f"/v1/checkpoints/{first['id']}/diff?to={box}"
    api.refused(400, "invalid_path", "GET", at + "&path=srv")
    api.refused(400, "invalid_path", "GET", at + "&path=/" + "x" * 4200)
    api.refused(400, "invalid_query", "GET", f"/v1/checkpoints/{first['id']}/diff")
    api.refused(404, "checkpoint_not_found", "GET", f"/v1/checkpoints/nobody/diff?to={box}")


def test_two_copies_and_another_image(api, states):
    box, first = states
    made = api.ok("POST", f"/v1/sandboxes/{box}/fork", {"count": 2})["sandboxes"]
    a, b = (s["id"] for s in made)
    try:
        for copy in (a, b):
            api.out(copy, ["sh", "-c", f"printf {copy} > /srv/who; seq 1 5 > /srv/both"])
        api.out(b, ["sh", "-c", "echo more >> /srv/app/same"])
        assert told(diff(api, a, b)) == {"/srv/who": "changed", "/srv/app/same": "changed"}
        assert told(diff(api, first["id"], b, path="/srv/who")) == {"/srv/who": "added"}
    finally:
        api.delete(a)
        api.delete(b)
    other = api.create(image="tiny")["id"]
    try:
        api.refused(409, "different_images", "GET", f"/v1/checkpoints/{first['id']}/diff?to={other}")
    finally:
        api.delete(other)


def test_by_hand(daemon, states):
    box, first = states
    out = daemon.cli("diff", first["name"], box).stdout
    assert out.startswith("3 added, 5 changed, 2 removed") and "/srv/gone" in out
    assert "\x1b" not in out and "0644 -> 0755" in out
    patch = daemon.cli("diff", "--text", first["name"], box, "/srv/app/numbers", "/srv/app/binary").stdout
    assert "--- a/srv/app/numbers\n+++ b/srv/app/numbers\n@@ -7,7 +7,7 @@\n" in patch and "not text" in patch
    assert json.loads(daemon.cli("--json", "diff", first["name"], box).stdout)["changed"] == 5
    assert daemon.cli("diff", first["name"]).returncode == 2
