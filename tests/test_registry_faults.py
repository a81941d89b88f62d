"""Pull and push where something breaks: the connection, the bytes, the documents, the daemon."""
import contextlib
import json
import shutil
import threading

import harness
import pytest
from harness import until
from registries import MACHINE, OCI, Registry, blob_path, packed, sha, tar_of
from registry_kit import (failed, get, middle, noise, pull, pulled, puller, push, refused, run,
                           tiny_layer, upstream)

pytestmark = pytest.mark.skipif(not shutil.which("docker-registry"),
                                reason="docker-registry is not installed")


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


def halter(middle, digest, at, go, gone):
    """Sends `at` bytes of a blob and then nothing until the other side closes, which `gone` gets to know;
    not any more once `go` is set."""
    def rule(handler):
        if blob_path(handler) != digest or go.is_set():
            return False
        reply = middle.fetch(handler)
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        handler.wfile.write(reply.body[:at])
        handler.wfile.flush()
        gone.append(handler.connection.recv(1))
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
    with contextlib.closing(harness.Daemon("--default-registry", "none")) as alone:
        error = refused(alone, 400, "invalid_reference", "debian")
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
    middle.rules.append(halter(middle, digest, 600_000, go, gone))
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
    middle.rules.append(halter(middle, digest, 700_000, go, []))
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
