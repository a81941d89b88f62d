"""Pull and push: a real registry on loopback, and one in between that misbehaves."""
import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import threading
import urllib.parse

import harness
import pytest
from harness import until
from registries import (DOCKER, MACHINE, OCI, Middle, Registry, basic, blob_path, packed, sha,
                        tar_of)

pytestmark = pytest.mark.skipif(not shutil.which("docker-registry"),
                                reason="docker-registry is not installed")

OTHER = "arm64" if MACHINE == "amd64" else "amd64"


@pytest.fixture(scope="module")
def upstream():
    r = Registry()
    yield r
    r.close()


@pytest.fixture(scope="module")
def puller():
    """A daemon that gives up on a silent registry soon."""
    d = harness.Daemon("--registry-timeout", "2")
    yield d
    d.close()


@pytest.fixture
def middle(upstream):
    m = Middle(upstream)
    yield m
    m.close()


@pytest.fixture(scope="module")
def tiny_layer(tiny_tar):
    return tiny_tar.read_bytes()


def pull(daemon, image, api=None, **more):
    """Every event of a pull."""
    with (api or daemon.api).stream("POST", "/v1/images/pull", {"image": image, **more}) as stream:
        return list(stream)


def pulled(daemon, image, **more):
    """The last event of a pull that went well."""
    events = pull(daemon, image, **more)
    assert events[-1]["type"] == "image", events[-3:]
    return events[-1]


def refused(daemon, status, code, image, **more):
    return daemon.api.refused(status, code, "POST", "/v1/images/pull", {"image": image, **more})


def failed(daemon, code, image, **more):
    """The pull fails in just this way, at once or on its way."""
    reply = daemon.api.call("POST", "/v1/images/pull", {"image": image, **more})
    error = json.loads(reply.body.splitlines()[-1])
    error = error.get("error", error)
    assert error["code"] == code, reply
    return error["message"]


def push(daemon, name, **more):
    path = f"/v1/images/{urllib.parse.quote(name, safe='')}/push"
    with daemon.api.stream("POST", path, more) as stream:
        return list(stream)


def get(daemon, name):
    return daemon.api.call("GET", f"/v1/images/{urllib.parse.quote(name, safe='')}")


def run(daemon, image, command):
    who = daemon.api.create(image=image)["id"]
    try:
        return daemon.api.out(who, command)
    finally:
        daemon.api.delete(who)


def states(events):
    """The last state of each layer."""
    return {e["digest"]: e["state"] for e in events if e["type"] == "layer"}


def noise(seed, n):
    """Bytes that do not shrink, the same for the same seed."""
    import random
    return random.Random(seed).randbytes(n)


# -- what works

@pytest.mark.parametrize("packing", ["gzip", "zstd", "none"])
def test_an_image_is_pulled_and_runs(puller, upstream, tiny_layer, packing):
    more = tar_of({"etc/hello": b"hello " + packing.encode(), "etc/.wh.hosts": b""})
    repo = f"run/{packing}"
    put = upstream.put_image(repo, [tiny_layer, more], packing=packing, tag="v1",
                             config={"Env": ["FROM_IMAGE=yes"], "WorkingDir": "/tmp"})
    events = pull(puller, f"{upstream.host}/{repo}:v1")
    last = events[-1]
    assert last["type"] == "image" and last["digest"] == put["digest"], events[-2:]
    assert last["image"]["name"] == f"{upstream.host}/{repo}:v1"
    assert last["image"]["digest"] == put["digest"] and last["image"]["layers"] == 2
    assert set(states(events).values()) <= {"done", "exists"} and len(states(events)) == 2
    out = run(puller, last["image"]["name"],
              "cat /etc/hello; ls /etc/hosts 2>&1 || true; echo $FROM_IMAGE; pwd")
    assert out.startswith("hello " + packing) and "No such file" in out
    assert out.endswith("yes\n/tmp\n")


def test_layers_that_are_here_are_not_fetched_again(puller, middle, upstream, tiny_layer):
    one, two = tar_of({"one": noise(1, 5000)}), tar_of({"two": noise(2, 5000)})
    upstream.put_image("again", [tiny_layer, one], tag="a")
    upstream.put_image("again", [tiny_layer, one, two], tag="b")
    pulled(puller, f"{middle.host}/again:a")
    before = len(middle.asked("GET", "/blobs/"))
    events = pull(puller, f"{middle.host}/again:b", name="again-b")
    assert sorted(states(events).values()) == ["done", "exists", "exists"]
    assert len(middle.asked("GET", "/blobs/")) == before + 2  # the configuration and one layer
    assert run(puller, "again-b", "ls /one /two").split() == ["/one", "/two"]


def test_an_index_gives_this_machines_image(puller, upstream, tiny_layer):
    mine = upstream.put_image("multi", [tiny_layer, tar_of({"arch": MACHINE.encode()})], "mine")
    other = upstream.put_image("multi", [tiny_layer, tar_of({"arch": OTHER.encode()})], "other",
                               arch=OTHER)
    for kind, tag in ((f"{OCI}index.v1+json", "oci"), (f"{DOCKER}list.v2+json", "docker")):
        upstream.put_manifest("multi", tag, {"schemaVersion": 2, "mediaType": kind, "manifests": [
            {**other, "platform": {"os": "linux", "architecture": OTHER}},
            {**mine, "platform": {"os": "linux", "architecture": MACHINE}}]}, kind)
        where = f"{upstream.host}/multi:{tag}"
        assert pulled(puller, where)["digest"] == mine["digest"]
        assert run(puller, where, "cat /arch") == MACHINE
        last = pulled(puller, where, platform=f"linux/{OTHER}", name="other")
        assert last["digest"] == other["digest"] and last["image"]["architecture"] == OTHER
    error = refused(puller, 400, "unsupported_platform", where, platform="linux/s390x")
    assert f"linux/{MACHINE}" in error["message"]
    # A single image of another kind is no better.
    refused(puller, 400, "unsupported_platform", f"{upstream.host}/multi:other")


def test_a_digest_names_an_image(puller, upstream, tiny_layer):
    put = upstream.put_image("exact", [tiny_layer], "old")
    upstream.put_image("exact", [tiny_layer, tar_of({"new": b""})], "old")
    last = pulled(puller, f"{upstream.host}/exact@{put['digest']}")
    assert last["digest"] == put["digest"]
    assert last["image"]["name"] == f"{upstream.host}/exact:sha256-{put['digest'][7:19]}"
    refused(puller, 424, "registry_not_found", f"{upstream.host}/exact@sha256:{'0' * 64}")


def test_what_was_pulled_is_pushed_with_the_same_digest(puller, upstream, tiny_layer):
    for packing in ("gzip", "zstd"):
        layers = [tiny_layer, tar_of({"x": noise(packing, 3000)})]
        put = upstream.put_image(f"round/{packing}", layers, packing=packing)
        name = pulled(puller, f"{upstream.host}/round/{packing}")["image"]["name"]
        events = push(puller, name, image=f"{upstream.host}/round/copy:{packing}")
        assert events[-1]["type"] == "image", events[-1]
        assert events[-1]["digest"] == put["digest"]
        assert set(states(events).values()) == {"exists"}  # mounted from the other repository
        assert upstream.manifest("round/copy", packing).body == \
            upstream.manifest(f"round/{packing}", "latest").body


def test_an_imported_image_comes_back_as_it_went(puller, upstream, tiny_tar):
    puller.api.import_image("mine", tiny_tar)
    where = f"{upstream.host}/imported:1"
    events = push(puller, "mine", image=where)
    assert events[-1]["type"] == "image", events[-1]
    assert set(states(events).values()) == {"done"}
    assert events[-1]["reference"] == where
    assert set(states(push(puller, "mine", image=where)).values()) == {"exists"}
    # Elsewhere, where nothing is here yet.
    with contextlib.closing(harness.Daemon()) as other:
        last = pulled(other, where)
        assert last["digest"] == events[-1]["digest"]
        assert run(other, where, "echo runs") == "runs\n"
        assert push(other, where)[-1]["digest"] == last["digest"]


def test_a_default_registry_stands_in(upstream, tiny_layer):
    put = upstream.put_image("plain/name", [tiny_layer], "v")
    with contextlib.closing(harness.Daemon("--default-registry", upstream.host)) as d:
        last = pulled(d, "plain/name:v")
        assert last["digest"] == put["digest"] and last["image"]["name"] == "plain/name:v"
        assert last["reference"] == f"{upstream.host}/plain/name:v"
        assert push(d, "plain/name:v")[-1]["digest"] == put["digest"]


# -- who may

def test_a_password_is_asked_for_and_kept_to_ourselves(puller, tiny_layer):
    with contextlib.closing(Registry({"me": "s3cret-w0rd"})) as guarded:
        puller.api.import_image("mine", tiny_layer_path(puller, tiny_layer))
        where = f"{guarded.host}/kept/private"
        assert push(puller, "mine", image=where, username="me",
                    password="s3cret-w0rd")[-1]["type"] == "image"
        for more in ({}, {"username": "me", "password": "wrong"},
                     {"username": "you", "password": "s3cret-w0rd"}):
            refused(puller, 424, "registry_unauthorized", where, **more)
        assert pulled(puller, where, username="me", password="s3cret-w0rd")
        log = puller.log()
        assert "s3cret-w0rd" not in log and basic("me", "s3cret-w0rd")[6:] not in log
    puller.api.refused(400, "missing_field", "POST", "/v1/images/pull",
                       {"image": where, "password": "x"})


def tiny_layer_path(daemon, data):
    path = daemon.dir / "tiny-layer.tar"
    path.write_bytes(data)
    return path


class Tokens:
    """A token server and the guard that wants its tokens."""

    def __init__(self, middle, uses=1000):
        self.middle, self.uses = middle, uses
        self.given, self.used, self.asked = 0, {}, []
        self.server = Middle()
        self.server.rules.append(self.give)
        middle.rules.insert(0, self.guard)

    def give(self, handler):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query)
        self.asked.append((query, handler.headers.get("Authorization")))
        if handler.headers.get("Authorization") not in (None, basic("me", "pw")):
            return handler.answer(401)
        self.given += 1
        name = ("token", "access_token")[self.given % 2]
        return handler.answer(200, {name: f"t{self.given}.abc", "expires_in": 300})

    def guard(self, handler):
        token = handler.headers.get("Authorization", "")
        with self.middle.lock:
            self.used[token] = self.used.get(token, 0) + 1
            good = token == f"Bearer t{self.given}.abc" and self.used[token] <= self.uses
        if good:
            return False
        return handler.answer(401, b"", WWW_Authenticate=(
            f'Bearer realm="http://{self.server.host}/token",service="the registry",'
            f'scope="repository:tok/en:pull"'))


def test_a_token_is_fetched_and_renewed(puller, middle, upstream, tiny_layer):
    layers = [tiny_layer] + [tar_of({f"f{i}": noise(f"t{i}", 100)}) for i in range(5)]
    put = upstream.put_image("tok/en", layers)
    tokens = Tokens(middle, uses=3)
    with contextlib.closing(tokens.server):
        last = pulled(puller, f"{middle.host}/tok/en", username="me", password="pw")
        assert last["digest"] == put["digest"]
        assert tokens.given > 1  # some ran out on the way
        query, authorization = tokens.asked[0]
        assert query == {"service": ["the registry"], "scope": ["repository:tok/en:pull"]}
        assert authorization == basic("me", "pw")
        # The password itself never went to the registry.
        assert all(not h.get("Authorization", "").startswith("Basic")
                   for _, h in middle.asked("GET", "/v2/"))
        refused(puller, 424, "registry_unauthorized", f"{middle.host}/tok/en", username="me",
                password="wrong")
        tokens.uses = 1000
        assert pulled(puller, f"{middle.host}/tok/en")  # anonymous tokens do
        assert tokens.asked[-1][1] is None


def test_a_token_server_that_gives_nonsense(puller, middle):
    answers = [b"", b"[]", b"{}", b'{"token": 5}', b'{"token": "a\\r\\nX: y"}', b"x" * 300000]
    server = Middle()
    server.rules.append(lambda h: h.answer(200, answers[0]))
    middle.rules.append(lambda h: h.answer(
        401, WWW_Authenticate=f'Bearer realm="http://{server.host}/"'))
    with contextlib.closing(server):
        while answers:
            failed(puller, "registry_failed", f"{middle.host}/x")
            answers.pop(0)
    for challenge in ("", "Negotiate", 'Bearer realm="ftp://x/"', 'Bearer realm="http://192.0.2.1/"',
                      'Bearer realm="', 'Bearer realm="http://u:p@127.0.0.1/"'):
        middle.rules[:] = [lambda h, c=challenge: h.answer(401, WWW_Authenticate=c)]
        error = daemon_error(puller, f"{middle.host}/x")
        assert error["code"] in ("registry_unauthorized", "registry_failed"), (challenge, error)


def daemon_error(daemon, image, **more):
    reply = daemon.api.call("POST", "/v1/images/pull", {"image": image, **more})
    assert reply.status in (400, 403, 424), reply
    return reply.json["error"]


def test_a_redirect_takes_no_credentials_along(puller, middle, upstream, tiny_layer):
    put = upstream.put_image("moved", [tiny_layer])
    elsewhere = Middle(upstream)

    def guard(handler):
        if handler.headers.get("Authorization") != basic("me", "pw"):
            return handler.answer(401, WWW_Authenticate='Basic realm="x"')
        if blob_path(handler):
            return handler.answer(307, Location=f"http://{elsewhere.host}{handler.path}")
        return False
    middle.rules.append(guard)
    with contextlib.closing(elsewhere):
        last = pulled(puller, f"{middle.host}/moved", username="me", password="pw")
        assert last["digest"] == put["digest"]
        went = elsewhere.asked("GET", "/blobs/")
        assert went and all("Authorization" not in headers for _, headers in went)


def test_where_the_daemon_may_be_sent(upstream, tiny_layer):
    upstream.put_image("reach", [tiny_layer])
    where = f"{upstream.host}/reach"
    with contextlib.closing(harness.Daemon("--registry-timeout", "2")) as d:
        d.api.ok("POST", "/v1/teams", {"name": "guests"})
        key = d.api.ok("POST", "/v1/keys", {"name": "guest", "team": "guests", "role": "member"})
        guest = d.api.with_key(key["key"])
        for image in (where, where.replace("127.0.0.1", "localhost"),
                      where.replace("127.0.0.1", "[::1]")):
            guest.refused(403, "forbidden", "POST", "/v1/images/pull",
                          {"image": image, "name": "x"})
        for image in ("169.254.169.254/latest/meta", "0.0.0.0:1/x", "[fe80::1]:80/x"):
            for api in (guest, d.api):
                api.refused(403, "forbidden", "POST", "/v1/images/pull",
                            {"image": image, "name": "x", "insecure": True})
        # A redirect leads no further than a name does.
        with contextlib.closing(Middle()) as trap:
            trap.rules.append(lambda h: h.answer(307, Location="http://169.254.169.254/secret")
                              if "/manifests/" in h.path else h.answer(200))
            d.api.refused(424, "registry_failed", "POST", "/v1/images/pull",
                          {"image": f"{trap.host}/x"})  # it is in the clear, too
            trap.rules[:] = [lambda h: h.answer(307, Location="https://169.254.169.254/secret")
                             if "/manifests/" in h.path else h.answer(200)]
            d.api.refused(403, "forbidden", "POST", "/v1/images/pull", {"image": f"{trap.host}/x"})
        d.stop()
        d.args += ["--registry-allow", f"registry.example, {upstream.host}"]
        d.start()
        assert pulled(d, where, api=guest)["type"] == "image"
        guest.refused(403, "forbidden", "POST", "/v1/images/pull", {"image": "other.example/x"})
        # What a guest pulled is the guests' own.
        assert get(d, where).status == 404


def test_knowing_a_digest_gives_nobody_a_layer(upstream, tiny_layer):
    """Layers are kept once; another team's is still fetched by whoever is not known to have it."""
    hidden = tar_of({"secret": noise("hidden", 1000)})
    upstream.put_image("hidden", [tiny_layer, hidden])
    with contextlib.closing(Middle(upstream)) as thief, \
            contextlib.closing(harness.Daemon("--registry-allow", thief.host)) as d:
        pulled(d, f"{upstream.host}/hidden")
        d.api.ok("POST", "/v1/teams", {"name": "thieves"})
        key = d.api.ok("POST", "/v1/keys", {"name": "k", "team": "thieves", "role": "member"})
        guest = d.api.with_key(key["key"])
        have_not = [lambda h: blob_path(h) == sha(packed(hidden)) and h.answer(404),
                    lambda h: blob_path(h) == sha(packed(hidden)) and
                    h.answer(200, b"x" * len(packed(hidden)))]
        for rule in have_not:
            thief.rules[:] = [rule]
            assert pull(d, f"{thief.host}/hidden", api=guest)[-1]["type"] == "error"
            assert guest.ok("GET", "/v1/images")["images"] == []
        thief.rules.clear()
        assert pull(d, f"{thief.host}/hidden", api=guest)[-1]["type"] == "image"
        # From here on it is theirs.
        thief.seen.clear()
        assert set(states(pull(d, f"{thief.host}/hidden", api=guest)).values()) == {"exists"}
        assert not thief.asked("GET", sha(packed(hidden)))


# -- what breaks

def cutter(at, times):
    """Cuts each blob's answer after `at` bytes, so many times in all."""
    left = [times]

    def rule(handler):
        if not blob_path(handler) or left[0] == 0:
            return False
        reply = handler.server_middle.fetch(handler)
        if len(reply.body) <= at:
            return False
        left[0] -= 1
        handler.send_response(reply.status)
        for name in ("Content-Range", "Content-Length"):
            if name in reply.headers:
                handler.send_header(name, reply.headers[name])
        handler.end_headers()
        handler.wfile.write(reply.body[:at])
        return handler.cut()
    return rule


def with_middle(middle, rule):
    def bound(handler):
        handler.server_middle = middle
        return rule(handler)
    middle.rules.append(bound)


def ranges(middle, digest):
    return [h.get("Range") for _, h in middle.asked("GET", digest)]


def test_a_broken_download_goes_on_where_it_broke(puller, middle, upstream, tiny_layer):
    big = tar_of({"big": noise("resume", 300_000)})
    put = upstream.put_image("cut", [tiny_layer, big])
    with_middle(middle, cutter(100_000, 3))
    last = pulled(puller, f"{middle.host}/cut")
    assert last["digest"] == put["digest"]
    asked = [r for r in ranges(middle, sha(packed(big))) + ranges(middle, sha(packed(tiny_layer)))
             if r]
    assert "bytes=100000-" in asked, asked
    assert run(puller, f"{middle.host}/cut", "sha256sum </big").split()[0] == \
        sha(noise("resume", 300_000))[7:]


def test_a_registry_without_ranges_is_asked_for_all_of_it(puller, middle, upstream, tiny_layer):
    big = tar_of({"big": noise("norange", 300_000)})
    put = upstream.put_image("norange", [big, tiny_layer])

    def whole(handler):
        if blob_path(handler) and "Range" in handler.headers:
            del handler.headers["Range"]
        return False
    middle.rules.append(whole)
    with_middle(middle, cutter(100_000, 1))
    assert pulled(puller, f"{middle.host}/norange")["digest"] == put["digest"]


def test_a_download_that_always_breaks_fails_and_is_continued_later(
        puller, middle, upstream, tiny_layer):
    big = tar_of({"big": noise("later", 2_000_000)})
    upstream.put_image("later", [big, tiny_layer])
    digest = sha(packed(big))
    stuck = []

    def rule(handler):
        if blob_path(handler) != digest or len(stuck) > 100:
            return False
        stuck.append(handler.headers.get("Range"))
        if len(stuck) > 1:
            return handler.cut()
        return cutter(500_000, 1)(handler)
    with_middle(middle, rule)
    failed(puller, "registry_failed", f"{middle.host}/later")
    assert get(puller, f"{middle.host}/later").status == 404
    stuck.extend([None] * 200)
    pulled(puller, f"{middle.host}/later")
    assert ranges(middle, digest)[-1] == "bytes=500000-"


def test_wrong_bytes_are_refused_and_leave_nothing(puller, middle, upstream, tiny_layer):
    big = tar_of({"big": noise("bad", 200_000)})
    upstream.put_image("bad", [big, tiny_layer])
    digest = sha(packed(big))
    spoil = [True]

    def rule(handler):
        if blob_path(handler) != digest or not spoil[0]:
            return False
        body = bytearray(middle.fetch(handler).body)
        body[1234] ^= 1
        return handler.answer(200, bytes(body))
    middle.rules.append(rule)
    assert digest in failed(puller, "invalid_image", f"{middle.host}/bad")
    assert get(puller, f"{middle.host}/bad").status == 404
    assert not list(puller.data.rglob(digest[7:]))
    spoil[0] = False
    pulled(puller, f"{middle.host}/bad")


def test_a_wrong_beginning_from_before_is_fetched_again(puller, middle, upstream, tiny_layer):
    big = tar_of({"big": noise("begin", 400_000)})
    upstream.put_image("begin", [big, tiny_layer])
    digest = sha(packed(big))
    count = [0]

    def rule(handler):
        if blob_path(handler) != digest:
            return False
        count[0] += 1
        if count[0] > 1:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", "400000")
        handler.end_headers()
        handler.wfile.write(b"\0" * 50_000)  # something else altogether, and then it breaks
        return handler.cut()
    middle.rules.append(rule)
    # Within one pull the bytes are this registry's own: they are continued, and found wrong.
    failed(puller, "invalid_image", f"{middle.host}/begin")
    pulled(puller, f"{middle.host}/begin")


def test_a_manifest_that_is_not_its_digest_is_refused(puller, middle, upstream, tiny_layer):
    put = upstream.put_image("swap", [tiny_layer], "a")
    other = upstream.put_image("swap", [tiny_layer, tar_of({"evil": b""})], "b")

    def rule(handler):
        if put["digest"] not in handler.path:
            return False
        handler.path = handler.path.replace(put["digest"], other["digest"])
        return False
    middle.rules.append(rule)
    refused(puller, 400, "invalid_image", f"{middle.host}/swap@{put['digest']}")
    kind = f"{OCI}index.v1+json"
    upstream.put_manifest("swap", "index", {"schemaVersion": 2, "mediaType": kind, "manifests": [
        {**put, "platform": {"os": "linux", "architecture": MACHINE}}]}, kind)
    refused(puller, 400, "invalid_image", f"{middle.host}/swap:index")


def manifest_with(layers, config=None):
    digest = "sha256:" + "a" * 64
    return {"schemaVersion": 2, "mediaType": f"{OCI}manifest.v1+json",
            "config": config or {"mediaType": f"{OCI}config.v1+json", "digest": digest, "size": 2},
            "layers": layers}


def test_documents_that_are_bombs_or_nonsense(puller, middle):
    digest = "sha256:" + "b" * 64
    layer = {"mediaType": f"{OCI}layer.v1.tar+gzip", "digest": digest, "size": 10}
    cases = {
        "registry_failed": [b'{"x":"' + b"x" * (5 << 20) + b'"}'],
        "invalid_image": [
            b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000,
            {"schemaVersion": 1, "fsLayers": [], "history": []},
            manifest_with([]), manifest_with([layer] * 600),
            manifest_with([{**layer, "size": 1 << 60}]), manifest_with([{**layer, "size": -1}]),
            manifest_with([{**layer, "size": "10"}]), manifest_with([{**layer, "digest": "../x"}]),
            manifest_with([{**layer, "digest": "sha512:" + "b" * 128}]),
            manifest_with([{**layer, "urls": ["http://x.example/"]}]),
            manifest_with([{**layer, "mediaType": f"{OCI}layer.nondistributable.v1.tar"}]),
            manifest_with([layer], {"mediaType": f"{OCI}config.v1+json", "digest": digest,
                                    "size": 100 << 20}),
            manifest_with([layer], {"mediaType": "application/x-chart", "digest": digest,
                                    "size": 10}),
            {**manifest_with([layer]), "manifests": []},
        ],
        "unsupported_platform": [{"schemaVersion": 2, "manifests": []}],
    }
    for code, documents in cases.items():
        for document in documents:
            middle.rules[:] = [lambda h, d=document: h.answer(200, d) if "/manifests/" in h.path
                               else h.answer(404)]
            failed(puller, code, f"{middle.host}/bomb")


def test_a_layer_longer_than_it_says(puller, middle, upstream, tiny_layer):
    upstream.put_image("long", [tiny_layer, tar_of({"x": noise("long", 5000)})])
    digest = sha(packed(tar_of({"x": noise("long", 5000)})))
    middle.rules.append(lambda h: blob_path(h) == digest and
                        h.answer(200, middle.fetch(h).body + b"more" * 100_000))
    failed(puller, "invalid_image", f"{middle.host}/long")


def test_answers_without_end(puller, middle):
    middle.rules.append(lambda h: h.answer(307, Location=h.path + "x"))
    failed(puller, "registry_failed", f"{middle.host}/around")

    def heads(handler):
        handler.send_response(200)
        with contextlib.suppress(OSError):
            for i in range(5000):
                handler.send_header(f"X-{i}", "y" * 100)
            handler.end_headers()
        return handler.cut()
    middle.rules[:] = [heads]
    failed(puller, "registry_failed", f"{middle.host}/heads")


def test_a_registry_that_never_answers(puller, middle):
    silence = threading.Event()
    middle.rules.append(lambda h: silence.wait(harness.DEADLINE) and h.cut())
    message = failed(puller, "registry_failed", f"{middle.host}/silent")
    assert "does not answer" in message
    silence.set()


def test_nobody_is_there(puller):
    failed(puller, "registry_failed", f"127.0.0.1:{harness.free_port()}/x")
    failed(puller, "registry_failed", "no-such-host.invalid/x")


def test_names_that_are_none(puller, upstream):
    for image in ("", "UPPER/case", "r.example/", "r.example/a:b:c", "r.example/../x",
                  "http://r.example/x", "r.example/x@sha256:12", "r.example:99999/x", "a b"):
        reply = puller.api.call("POST", "/v1/images/pull", {"image": image})
        assert (reply.status, reply.code) == (400, "invalid_reference"), (image, reply)
    error = refused(puller, 400, "invalid_reference", "debian")
    assert "default-registry" in error["message"]
    refused(puller, 424, "registry_not_found", f"{upstream.host}/no/such")
    refused(puller, 400, "invalid_field", f"{upstream.host}/a", platform="linux/")
    puller.api.refused(400, "missing_field", "POST", "/v1/images/pull", {})
    puller.api.refused(404, "image_not_found", "POST", "/v1/images/no-such/push", {})


def test_a_certificate_is_checked_unless_told_otherwise(puller, tiny_layer):
    with contextlib.closing(Registry(tls=True)) as secret:
        put = secret.put_image("tls", [tiny_layer])
        message = failed(puller, "registry_failed", f"{secret.host}/tls")
        assert "certificate" in message
        last = pulled(puller, f"{secret.host}/tls", insecure=True)
        assert last["digest"] == put["digest"]
        assert push(puller, last["image"]["name"], insecure=True)[-1]["digest"] == put["digest"]


def test_https_is_the_rule(puller, upstream):
    """A name that is not loopback is never asked in the clear, unless told so."""
    host = f"registry.invalid:{upstream.port}"
    message = failed(puller, "registry_failed", f"{host}/x")
    assert "no host" in message


# -- two at once, and ends

def test_two_pulls_of_the_same_image_fetch_it_once(puller, middle, upstream, tiny_layer):
    big = tar_of({"big": noise("twice", 300_000)})
    upstream.put_image("twice", [big, tiny_layer])
    digest = sha(packed(big))
    both = threading.Event()

    def slow(handler):
        if blob_path(handler) == digest:
            both.wait(harness.DEADLINE)
        return False
    middle.rules.append(slow)
    results = []
    threads = [threading.Thread(target=lambda n=n: results.append(
        pulled(puller, f"{middle.host}/twice", name=f"twice-{n}"))) for n in range(3)]
    for t in threads:
        t.start()
    until(lambda: len(middle.asked("GET", "/manifests/")) == 3, "all three have begun")
    both.set()
    for t in threads:
        t.join()
    assert len(results) == 3 and len({r["digest"] for r in results}) == 1
    assert len(middle.asked("GET", digest)) == 1


def test_a_client_that_leaves_ends_its_pull(puller, middle, upstream, tiny_layer):
    big = tar_of({"big": noise("leave", 2_000_000)})
    upstream.put_image("leave", [big, tiny_layer])
    digest = sha(packed(big))
    go, gone = threading.Event(), []

    def half(handler):
        if blob_path(handler) != digest or go.is_set():
            return False
        reply = middle.fetch(handler)
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        handler.wfile.write(reply.body[:600_000])
        handler.wfile.flush()
        gone.append(handler.connection.recv(1))  # until the other side closes
        return handler.cut()
    middle.rules.append(half)
    with puller.api.stream("POST", "/v1/images/pull", {"image": f"{middle.host}/leave"}) as stream:
        for event in stream:
            if event.get("digest") == digest and event["bytes"] >= 600_000:
                break
    until(lambda: gone, "the daemon hung up")
    assert get(puller, f"{middle.host}/leave").status == 404
    go.set()
    pulled(puller, f"{middle.host}/leave")
    assert ranges(middle, digest)[-1] == "bytes=600000-"


def test_a_pull_survives_the_daemons_death(middle, upstream, tiny_layer):
    big = tar_of({"big": noise("death", 2_000_000)})
    put = upstream.put_image("death", [tiny_layer, big])
    digest = sha(packed(big))
    go = threading.Event()

    def half(handler):
        if blob_path(handler) != digest or go.is_set():
            return False
        reply = middle.fetch(handler)
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        handler.wfile.write(reply.body[:700_000])
        handler.wfile.flush()
        handler.connection.recv(1)
        return handler.cut()
    middle.rules.append(half)
    with contextlib.closing(harness.Daemon()) as d:
        with d.api.stream("POST", "/v1/images/pull", {"image": f"{middle.host}/death"}) as stream:
            for event in stream:
                if event.get("digest") == digest and event["bytes"] >= 700_000:
                    break
            d.kill()
        go.set()
        d.start()
        assert get(d, f"{middle.host}/death").status == 404
        assert pulled(d, f"{middle.host}/death")["digest"] == put["digest"]
        assert ranges(middle, digest)[-1] == "bytes=700000-"
        assert run(d, f"{middle.host}/death", "wc -c </big").strip() == "2000000"


def test_a_daemon_that_is_told_to_stop_leaves_its_pulls(middle, upstream, tiny_layer):
    upstream.put_image("stop", [tiny_layer])
    asked = threading.Event()

    def hold(handler):
        if not blob_path(handler) or handler.path.endswith(config_digest):
            return False
        asked.set()
        handler.connection.recv(1)
        return handler.cut()
    config_digest = upstream.manifest("stop", "latest").json["config"]["digest"]
    middle.rules.append(hold)
    with contextlib.closing(harness.Daemon()) as d:
        with d.api.stream("POST", "/v1/images/pull", {"image": f"{middle.host}/stop"}):
            assert asked.wait(harness.DEADLINE)
            assert d.stop() == 0
        d.start()


def test_an_image_that_does_not_fit_is_refused_before_it_is_fetched(puller, middle):
    config = json.dumps({"os": "linux", "architecture": MACHINE, "config": {}, "rootfs": {
        "type": "layers", "diff_ids": [f"sha256:{i:064x}" for i in range(500)]}}).encode()
    manifest = manifest_with(
        [{"mediaType": f"{OCI}layer.v1.tar", "digest": f"sha256:{i:064x}", "size": 60 << 30}
         for i in range(500)],
        {"mediaType": f"{OCI}config.v1+json", "digest": sha(config), "size": len(config)})
    middle.rules.append(lambda h: h.answer(200, manifest) if "/manifests/" in h.path else
                        blob_path(h) == sha(config) and h.answer(200, config))
    assert "MiB" in failed(puller, "no_space", f"{middle.host}/huge")
    assert len(middle.asked("GET", "/blobs/")) == 1


# -- pushing to one that breaks

def test_a_push_that_breaks_begins_again(puller, middle, upstream, tiny_tar):
    puller.api.import_image("mine", tiny_tar)
    broken = []

    def rule(handler):
        if handler.command == "PUT" and "/blobs/uploads/" in handler.path and len(broken) < 2:
            broken.append(handler.path)
            return handler.cut()
        if handler.command == "PUT" and "/manifests/" in handler.path and len(broken) < 3:
            broken.append(handler.path)
            return handler.answer(503)
        return False
    middle.rules.append(rule)
    last = push(puller, "mine", image=f"{middle.host}/broken/push:1")[-1]
    assert last["type"] == "image", last
    assert len(broken) == 3
    assert sha(upstream.manifest("broken/push", "1").body) == last["digest"]


def test_a_push_that_is_refused(puller, middle, upstream, tiny_tar):
    puller.api.import_image("mine", tiny_tar)
    middle.rules.append(lambda h: h.command == "POST" and h.answer(
        403, {"errors": [{"code": "DENIED", "message": "not\x1b[31m for you"}]}))
    last = push(puller, "mine", image=f"{middle.host}/denied")[-1]
    assert (last["type"], last["code"]) == ("error", "registry_unauthorized")
    assert "for you" in last["message"] and "\x1b" not in last["message"]
    puller.api.refused(400, "invalid_reference", "POST", "/v1/images/mine/push",
                       {"image": f"{middle.host}/denied@sha256:{'0' * 64}"})
    puller.api.refused(400, "invalid_reference", "POST", "/v1/images/mine/push", {})


# -- the command line

def test_the_command_pulls_and_pushes(puller, upstream, tiny_layer):
    put = upstream.put_image("cli", [tiny_layer, tar_of({"c": noise("cli", 2000)})])
    out = puller.cli("image", "pull", "--name", "from-cli", f"{upstream.host}/cli")
    assert out.returncode == 0, out
    assert out.stdout.startswith("from-cli  ") and put["digest"] in out.stdout
    assert "done" in out.stderr or "exists" in out.stderr
    assert "\x1b" not in out.stderr
    out = puller.cli("image", "push", "--to", f"{upstream.host}/cli:copy", "from-cli")
    assert out.stdout.split() == [f"{upstream.host}/cli:copy", put["digest"]]
    out = puller.cli("image", "pull", f"{upstream.host}/no/such")
    assert out.returncode == 1 and "no manifest" in out.stderr
    out = puller.cli("--json", "image", "pull", f"{upstream.host}/cli:copy")
    assert json.loads(out.stdout)["digest"] == put["digest"] and not out.stderr


def test_the_command_takes_a_password(puller, tiny_tar):
    puller.api.import_image("mine", tiny_tar)
    with contextlib.closing(Registry({"me": "pass word"})) as guarded:
        out = puller.cli("image", "push", "--to", f"{guarded.host}/p", "-u", "me",
                         "--password-stdin", "mine", stdin="pass word\n")
        assert out.returncode == 0, out
        out = puller.cli("image", "pull", f"{guarded.host}/p", env={
            "WARREN_REGISTRY_USERNAME": "me", "WARREN_REGISTRY_PASSWORD": "pass word"})
        assert out.returncode == 0, out
        assert puller.cli("image", "pull", f"{guarded.host}/p").returncode == 1


def test_a_terminal_sees_a_line_a_layer(puller, upstream, tiny_layer):
    layers = [tiny_layer] + [tar_of({f"l{i}": noise(f"tty{i}", 100)}) for i in range(3)]
    upstream.put_image("tty", layers)
    leader, follower = pty.openpty()
    process = subprocess.Popen([str(harness.BUILD / "warren"), "image", "pull", f"{upstream.host}/tty"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower,
                               env=puller.cli_environment(), text=True)
    os.close(follower)
    seen = b""
    with contextlib.suppress(OSError):  # EIO once the last writer is gone
        while chunk := os.read(leader, 65536):
            seen += chunk
    os.close(leader)
    assert process.wait(harness.DEADLINE) == 0
    process.stdout.close()
    last = re.split(r"\x1b\[\dA", seen.decode())[-1]  # the last time it was drawn
    assert last.count("sha256:") == 4 and last.count("done") + last.count("exists") == 4
