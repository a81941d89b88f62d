"""Builds of templates through E2B's interface: what its own client never sends, other teams, crashes, crowds."""
import contextlib
import hashlib
import io
import json
import tarfile
import urllib.parse

import pytest

import harness
from harness import until
from registries import Registry
from registry_kit import push


class Builder:
    """One team's templates; by default of the operator's."""

    def __init__(self, api):
        self.api = api

    def call(self, method, path, body=None, **more):
        return self.api.call(method, f"/e2b{path}", body, **more)

    def request(self, name, **more):
        got = self.call("POST", "/v3/templates", {"name": name, **more})
        assert got.status == 202, got
        return got.json["buildID"]

    def start(self, name, build, **body):
        body = body if "fromTemplate" in body else {"fromImage": "tiny", **body}
        return self.call("POST", f"/v2/templates/{name}/builds/{build}", body)

    def status(self, name, build, query=""):
        return self.call("GET", f"/templates/{name}/builds/{build}/status{query}")

    def wait(self, name, build):
        def ended():
            got = self.status(name, build).json
            return got if got["status"] in ("ready", "error") else None
        return until(ended, f"the build of {name}")

    def build(self, name, tags=(), **body):
        build = self.request(name, tags=list(tags))
        got = self.start(name, build, **body)
        assert got.status == 202, got
        return self.wait(name, build)

    def upload(self, name, files):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as tar:
            for path, text in files.items():
                info = tarfile.TarInfo(path)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text))
        return self.upload_raw(name, data.getvalue())

    def upload_raw(self, name, data):
        digest = hashlib.sha256(data).hexdigest()
        link = self.call("GET", f"/templates/{name}/files/{digest}")
        assert link.status == 201, link
        if not link.json["present"]:
            url = urllib.parse.urlsplit(link.json["url"])
            got = self.api.with_key(None).call("PUT", f"{url.path}?{url.query}", data)
            assert got.status == 200, got
        return digest


def run(*commands):
    return [{"type": "RUN", "args": [c]} for c in commands]


@pytest.fixture
def builder(api):
    return Builder(api)


@pytest.fixture
def other(api):
    """Another team's."""
    api.ok("POST", "/v1/teams", {"name": "rivals"})
    key = api.ok("POST", "/v1/keys", {"name": "rivals-key", "team": "rivals"})
    yield Builder(api.with_key(key["key"]))
    api.call("DELETE", "/v1/teams/rivals")


@pytest.mark.parametrize("home", [None, 0], ids=["no home", "root's home"])
def test_an_image_without_the_user_gets_one_with_a_home(builder, api, tmp_path, home):
    api.import_image("plain", harness.tiny_image(tmp_path / "plain.tar", home=home))
    end = builder.build("at-home", fromImage="plain", steps=run("pwd > where; id -un >> where; touch mine"))
    assert end["status"] == "ready", end
    sandbox = builder.call("POST", "/sandboxes", {"templateID": "at-home"}).json["sandboxID"]
    assert api.out(sandbox, "cat /home/user/where; stat -c %U /home/user /home/user/mine").split() == [
        "/home/user", "user", "user", "user"]
    api.delete(sandbox)
    assert builder.call("DELETE", "/templates/at-home").status == 204
    api.ok("DELETE", "/v1/images/plain")


BAD = [
    {"fromImage": None}, {"fromImage": "tiny", "fromTemplate": "x"}, {"fromImage": 3}, {"fromImage": "../x"}, {"fromImage": ""},
    {"steps": {}}, {"steps": [1]}, {"steps": [{}]}, {"steps": [{"type": "RUN"}]}, {"steps": [{"type": "RUN", "args": "true"}]},
    {"steps": [{"type": "RUN", "args": [1]}]}, {"steps": [{"type": "NOPE", "args": []}]},
    {"steps": [{"type": "COPY", "args": ["a", "b"]}]}, {"steps": [{"type": "COPY", "args": ["a", "b"], "filesHash": "../../x"}]},
    {"steps": [{"type": "COPY", "args": ["a"], "filesHash": "ab"}]}, {"steps": [{"type": "ENV", "args": ["A"]}]},
    {"steps": [{"type": "ENV", "args": ["A=B", "c"]}]}, {"steps": [{"type": "WORKDIR", "args": [""]}]}, {"steps": [{"type": "USER", "args": []}]},
    {"steps": [{"type": "RUN", "args": ["true"]}] * 1001}, {"startCmd": 1}, {"readyCmd": ["x"]},
    {"fromImageRegistry": {"type": "other"}}, {"fromImageRegistry": {"type": "registry", "username": 1}},
    {"fromImageRegistry": {"type": "aws"}},
]


def test_what_is_wrong_with_a_build_is_said(builder):
    for body in BAD:
        build = builder.request("wrong")
        got = builder.start("wrong", build, **body)
        if got.status == 202:  # what only the steps' own reader finds
            end = builder.wait("wrong", build)
            assert end["status"] == "error" and end["reason"]["message"], body
        else:
            assert got.status == 400 and got.json["code"] == 400 and got.json["message"], (body, got)
    end = builder.build("wrong", fromImage="claude")
    assert end["status"] == "error" and "sudo warren-image claude" in end["reason"]["message"], end
    for name in ("", "UP", "a/b/c", "x:y:z", ".", "..", "a" * 64, "x:" + "t" * 64, "ä"):
        assert builder.call("POST", "/v3/templates", {"name": name}).status == 400, name
    for more in ({"tags": "x"}, {"tags": [1]}, {"tags": ["a b"]}, {"tags": [f"t{i}" for i in range(17)]}, {"cpuCount": "2"},
                 {"cpuCount": 0}, {"memoryMB": 1}, {"memoryMB": 2 ** 40}, {"minFreeDiskMb": -1}):
        assert builder.call("POST", "/v3/templates", {"name": "wrong", **more}).status == 400, more
    for query in ("?logsOffset=-1", "?limit=101", "?level=loud"):
        assert builder.status("wrong", builder.request("wrong"), query).status == 400, query
    assert builder.call("GET", "/templates/wrong/files/XYZ").status == 400
    assert builder.call("DELETE", "/templates/wrong").status == 204


def test_a_build_is_started_once(builder):
    build = builder.request("once")
    assert builder.start("once", build).status == 202
    assert builder.start("once", build).json["code"] == 409
    assert builder.wait("once", build)["status"] == "ready"
    assert builder.start("once", build).json["code"] == 409
    assert builder.start("twice", build).json["code"] == 404
    assert builder.call("DELETE", "/templates/once").status == 204


def test_a_link_for_files_leads_to_where_it_was_asked_for(daemon):
    """At api.<domain> the clients know no mount."""
    for mount, host in (("/e2b", f"127.0.0.1:{daemon.port}"), ("", f"api.{daemon.domain}")):
        digest = hashlib.sha256(host.encode()).hexdigest()
        link = daemon.api.call("GET", f"{mount}/templates/named/files/{digest}", headers={"Host": host})
        assert link.status == 201, link
        url = urllib.parse.urlsplit(link.json["url"])
        assert (url.netloc, url.path) == (host, f"{mount}/templates/named/files/{digest}")
        sent = daemon.api.with_key(None).call("PUT", f"{url.path}?{url.query}", b"any", headers={"Host": host})
        assert sent.status == 200, sent


def test_other_teams_see_nothing_of_it(builder, other):
    digest = builder.upload("ours", {"a.txt": b"secret"})
    copy = {"type": "COPY", "args": ["a.txt", "/a.txt", "", ""], "filesHash": digest}
    ours = builder.build("ours", steps=[copy])
    assert ours["status"] == "ready", ours
    build = ours["buildID"]
    assert other.call("GET", f"/templates/ours/files/{digest}").json["present"] is False
    stolen = other.build("theirs", steps=[copy])
    assert stolen["status"] == "error" and "upload" in stolen["reason"]["message"]
    for method, path, body in (("GET", f"/templates/ours/builds/{build}/status", None), ("GET", f"/templates/ours/builds/{build}/logs", None),
                               ("GET", "/templates/ours", None), ("GET", "/templates/aliases/ours", None), ("GET", "/templates/ours/tags", None),
                               ("DELETE", "/templates/ours", None), ("PATCH", "/v2/templates/ours", {"public": True}),
                               ("POST", "/templates/tags", {"target": "ours", "tags": ["x"]}), ("DELETE", "/templates/tags", {"name": "ours", "tags": ["x"]}),
                               ("POST", f"/v2/templates/ours/builds/{build}", {"fromImage": "tiny"})):
        got = other.call(method, path, body)
        assert got.status == got.json["code"] == 404, (method, path, got)
    assert other.call("POST", "/sandboxes", {"templateID": "ours"}).status == 404
    build = other.request("mine")
    assert other.start("mine", build, fromTemplate="ours").status == 404
    listed = [t["templateID"] for t in other.call("GET", "/templates").json]  # and public ones
    assert "ours" not in listed and {"mine", "theirs"} <= set(listed)
    # Made public it can be used, though its image is nobody else's.
    assert builder.call("PATCH", "/v2/templates/ours", {"public": True}).status == 200
    assert other.build("mine", fromTemplate="ours", steps=run("cat /a.txt"))["status"] == "ready"
    assert builder.call("DELETE", "/templates/ours").status == 204
    assert builder.call("GET", "/templates/ours").status == 404
    assert other.call("GET", "/templates").json
    for name in ("mine", "theirs"):
        assert other.call("DELETE", f"/templates/{name}").status == 204


def test_archives_that_lead_out_stay_in(builder):
    digest = builder.upload("out", {"../../etc/evil": b"x", "/etc/evil": b"y", "good": b"z"})
    end = builder.build("out", steps=[{"type": "COPY", "args": ["good", "/good", "", ""], "filesHash": digest}] + run("test ! -e /etc/evil"))
    if end["status"] == "error":  # refusing the archive is fine as well
        assert end["reason"]["step"] == "1" and "leads outside" in end["reason"]["message"], end
    digest = builder.upload_raw("out", b"\x1f\x8b no archive at all")
    end = builder.build("out", steps=[{"type": "COPY", "args": ["a", "/a", "", ""], "filesHash": digest}])
    assert end["status"] == "error" and end["reason"]["step"] == "1", end
    builder.call("DELETE", "/templates/out")


def test_a_log_has_pages_levels_and_an_end(builder):
    build = builder.request("loud")
    assert builder.start("loud", build, steps=run("i=0; while [ $i -lt 250 ]; do echo line $i; i=$((i+1)); done; printf '\\377bad\\n' >&2; head -c 9000 /dev/zero | tr '\\0' x")).status == 202
    assert builder.wait("loud", build)["status"] == "ready"
    lines = []
    while page := builder.status("loud", build, f"?logsOffset={len(lines)}").json["logEntries"]:
        assert len(page) <= 100
        lines += page
    texts = [x["message"] for x in lines]
    assert [t for t in texts if t.startswith("line ")] == [f"line {i}" for i in range(250)]
    assert sorted(len(t) for t in texts if t.startswith("xxx")) == [808, 4096, 4096]
    warned = builder.status("loud", build, "?level=warn").json["logEntries"]
    assert [x["message"] for x in warned] == ["\N{REPLACEMENT CHARACTER}bad"] and warned[0]["step"] == "1"
    logs = builder.call("GET", f"/templates/loud/builds/{build}/logs?limit=2").json["logs"]
    assert [x["message"] for x in logs] == texts[:2]
    builder.call("DELETE", "/templates/loud")


def test_more_builds_than_may_run_at_once_wait_their_turn(builder):
    builds = [(f"crowd{i}", builder.request(f"crowd{i}")) for i in range(7)]
    for name, build in builds:
        assert builder.start(name, build, force=True, steps=run("sleep 0.5")).status == 202
        assert builder.status(name, build).json["status"] in ("building", "ready")  # never again waiting
    assert {builder.wait(*b)["status"] for b in builds} == {"ready"}
    for name, _ in builds:
        assert builder.call("DELETE", f"/templates/{name}").status == 204


def test_removing_a_template_ends_its_build(builder, api):
    build = builder.request("ended")
    assert builder.start("ended", build, steps=run("sleep 1000")).status == 202
    until(lambda: any("RUN sleep" in e["message"] for e in builder.status("ended", build).json["logEntries"])
          or builder.status("ended", build).json["status"] == "building", "the step")
    assert builder.call("DELETE", "/templates/ended").status == 204
    assert builder.status("ended", build).status == 404
    assert builder.build("ended", steps=run("true"))["status"] == "ready"
    assert api.ok("GET", "/v1/templates/ended")["image"].startswith("template/ended:")
    builder.call("DELETE", "/templates/ended")
    left = [i["name"] for i in api.ok("GET", "/v1/images")["images"] if i["name"].startswith("template/ended")]
    assert left == []


def test_a_rebuild_leaves_no_image_behind_and_the_old_one_stays_until_then(builder, api):
    assert builder.build("again", steps=run("echo 1 > /tmp/v"))["status"] == "ready"
    assert builder.build("again", steps=run("echo 2 > /tmp/v", "false"))["status"] == "error"
    made = builder.call("POST", "/sandboxes", {"templateID": "again", "timeout": 60})
    assert made.status == 201, made
    box = made.json["sandboxID"]
    assert api.out(box, ["cat", "/tmp/v"]) == "1\n"
    api.delete(box)
    assert builder.build("again", steps=run("echo 2 > /tmp/v"))["status"] == "ready"
    names = [i["name"] for i in api.ok("GET", "/v1/images")["images"] if i["name"].startswith("template/again:")]
    assert len(names) == 1
    builder.call("DELETE", "/templates/again")


def test_a_rebuild_from_the_cache_is_the_same_image(builder, api):
    def built(command):
        steps = [*run(command), {"type": "ENV", "args": ["A", "1"]}]
        assert builder.build("same", steps=steps)["status"] == "ready"
        return next(i["id"] for i in api.ok("GET", "/v1/images")["images"] if i["name"].startswith("template/same:"))
    first = built("date +%N >/tmp/stamp")
    assert built("date +%N >/tmp/stamp") == first
    assert built("date +%N >/tmp/other") != first
    builder.call("DELETE", "/templates/same")


def test_a_build_that_a_crash_cut_says_so(fresh):
    builder = Builder(fresh.api)
    assert builder.build("kept", tags=["v1"], steps=run("echo kept > /tmp/v"))["status"] == "ready"
    build = builder.request("cut")
    assert builder.start("cut", build, steps=run("sleep 1000")).status == 202
    until(lambda: builder.status("cut", build).json["status"] == "building", "the build")
    fresh.kill()
    fresh.start()
    end = builder.status("cut", build).json
    assert end["status"] == "error" and "restarted" in end["reason"]["message"]
    assert builder.call("POST", "/sandboxes", {"templateID": "cut"}).status == 404
    assert [t["tag"] for t in builder.call("GET", "/templates/kept/tags").json] == ["v1"]
    assert builder.build("cut", steps=run("true"))["status"] == "ready"
    made = builder.call("POST", "/sandboxes", {"templateID": "kept:v1", "timeout": 60}).json
    assert fresh.api.out(made["sandboxID"], ["cat", "/tmp/v"]) == "kept\n"
    fresh.api.delete(made["sandboxID"])


def test_an_image_behind_a_password_is_pulled_with_it(fresh):
    builder = Builder(fresh.api)
    with contextlib.closing(Registry({"me": "s3cret-w0rd"})) as guarded:
        where = f"{guarded.host}/kept/private"
        assert push(fresh, "tiny", image=where, username="me", password="s3cret-w0rd")[-1]["type"] == "image"
        sign_in = {"type": "registry", "username": "me", "password": "wrong"}
        end = builder.build("guarded", fromImage=where, fromImageRegistry=sign_in)
        assert end["status"] == "error" and end["reason"]["step"] == "base", end
        sign_in["password"] = "s3cret-w0rd"
        end = builder.build("guarded", fromImage=where, fromImageRegistry=sign_in, steps=run("echo here"))
        assert end["status"] == "ready", end
    assert "s3cret-w0rd" not in fresh.log()
    assert "s3cret-w0rd" not in json.dumps(builder.call("GET", "/templates/guarded").json)
