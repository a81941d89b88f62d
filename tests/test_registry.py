"""Pull and push: a real registry on loopback, credentials, and where the daemon may be sent."""
import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import urllib.parse

import harness
import pytest
from registries import (DOCKER, MACHINE, OCI, Middle, Registry, basic, blob_path, packed, sha, tar_of)
from registry_kit import (daemon_error, failed, get, middle, noise, pull, pulled, puller, push,
                           refused, run, states, tiny_layer, upstream)

pytestmark = pytest.mark.skipif(not shutil.which("docker-registry"),
                                reason="docker-registry is not installed")

OTHER = "arm64" if MACHINE == "amd64" else "amd64"



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


def test_docker_hub_is_the_default_registry(tiny_layer):
    unset = {"WARREN_DEFAULT_REGISTRY": None}
    with contextlib.closing(harness.Daemon("--registry-allow", "elsewhere.example", env=unset)) as d:
        d.api.ok("POST", "/v1/teams", {"name": "guests"})
        key = d.api.ok("POST", "/v1/keys", {"name": "k", "team": "guests", "role": "member"})
        guest = d.api.with_key(key["key"])
        error = guest.refused(403, "forbidden", "POST", "/v1/images/pull", {"image": "python:3.12"})
        assert "docker.io" in error["message"]
        error = guest.refused(403, "forbidden", "POST", "/v1/images/pull", {"image": "other.example/python:3.12"})
        assert "docker.io" not in error["message"]


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
