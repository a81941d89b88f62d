"""Every byte that a team stores counts for its disk quota, also while it arrives; and archives have bounds."""
import concurrent.futures
import gzip
import hashlib
import io
import os
import tarfile
import urllib.parse

import pytest

import harness

MIB = 1 << 20


def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def noise(mib):
    return tar_of({"etc/hostname": b"noise", "noise": os.urandom(mib * MIB)})


def put(api, name, data, **more):
    return api.call("PUT", f"/v1/images/{name}", data, timeout=300, headers={"Content-Type": "application/octet-stream"}, **more)


@pytest.fixture
def team(fresh):
    def make(name, disk_mb):
        fresh.api.ok("POST", "/v1/teams", {"name": name, "quotas": {"disk_mb": disk_mb}})
        return fresh.api.with_key(fresh.api.ok("POST", "/v1/keys", {"name": f"{name}-key", "team": name})["key"])
    return make


def stored(fresh, name):
    shown = fresh.api.ok("GET", f"/v1/teams/{name}")
    assert sum(shown["disk"].values()) == shown["in_use"]["disk_mb"]
    return shown["disk"]


def blobs(fresh):
    return sorted(p.name for p in (fresh.data / "blobs").rglob("*") if p.is_file())


def test_images_count_and_more_than_the_quota_is_refused(fresh, team):
    red = team("red", 60)
    assert put(red, "one", noise(10)).status == 201
    took = stored(fresh, "red")
    assert 20 <= took["images_mb"] <= 22 and took["coming_mb"] == 0  # as it came, and unpacked
    before = blobs(fresh)
    got = put(red, "two", noise(25))  # it fits as it comes, and not unpacked
    assert (got.status, got.json["error"]["code"]) == (403, "quota_exceeded"), got
    for word in ("'red'", "60", "disk_mb", "delete", "image prune"):
        assert word in got.json["error"]["message"]
    got = put(red, "two", noise(100))  # is cut while it comes
    assert (got.status, got.json["error"]["code"]) == (403, "quota_exceeded"), got
    assert stored(fresh, "red") == took and blobs(fresh) == before
    red.refused(404, "image_not_found", "GET", "/v1/images/two")
    red.refused(403, "quota_exceeded", "POST", "/v1/sandboxes", {"image": "tiny", "disk_mb": 50})
    fresh.restart()
    assert stored(fresh, "red") == took
    red.ok("DELETE", "/v1/images/one")
    assert set(stored(fresh, "red").values()) == {0}


def test_a_layer_counts_once_in_a_team_and_in_each_team(fresh, team):
    red, blue = team("red", 100), team("blue", 15)
    data = noise(10)
    assert put(red, "one", data).status == 201
    took = stored(fresh, "red")["images_mb"]
    assert put(red, "two", data).status == 201
    assert stored(fresh, "red")["images_mb"] == took
    assert fresh.api.call("PUT", "/v1/images/shared?public=true", data, headers={"Content-Type": "application/octet-stream"}).status == 201
    assert stored(fresh, "blue")["images_mb"] == 0  # to use it costs nothing
    blue.refused(403, "quota_exceeded", "POST", "/v1/images/shared/tag", {"name": "mine"})
    red.ok("POST", "/v1/images/shared/tag", {"name": "mine"})
    assert stored(fresh, "red")["images_mb"] == took


def test_layers_that_a_sandbox_keeps_of_a_replaced_image_still_count(fresh, team):
    red = team("red", 100)
    with open(harness.tiny_image(fresh.data.parent / "tiny.tar"), "rb") as f:
        whole = io.BytesIO(f.read())
    with tarfile.open(fileobj=whole, mode="a") as tar:
        info = tarfile.TarInfo("noise")
        info.size = 10 * MIB
        tar.addfile(info, io.BytesIO(os.urandom(info.size)))
    assert put(red, "app", whole.getvalue()).status == 201
    box = red.create(image="app", disk_mb=16)["id"]
    took = stored(fresh, "red")["images_mb"]
    assert put(red, "app", noise(1)).status == 201
    assert stored(fresh, "red")["images_mb"] > took
    fresh.restart()
    assert stored(fresh, "red")["images_mb"] > took
    red.delete(box)


def test_two_imports_at_once_do_not_both_get_the_last_of_the_quota(fresh, team):
    red = team("red", 60)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:  # each takes 22
        results = list(pool.map(lambda i: put(red, f"p{i}", noise(10)), range(3)))
    good = [r for r in results if r.status == 201]
    assert 1 <= len(good) <= 2, results
    assert all(r.json["error"]["code"] == "quota_exceeded" for r in results if r.status != 201), results
    took = stored(fresh, "red")
    assert took["images_mb"] <= 60 and took["coming_mb"] <= 40
    fresh.api.ok("POST", "/v1/images/prune", {})
    assert stored(fresh, "red")["coming_mb"] == 0


def test_uploads_for_builds_count(fresh, team):
    red = team("red", 20)

    def upload(mib):
        data = os.urandom(mib * MIB)
        digest = hashlib.sha256(data).hexdigest()
        link = red.call("GET", f"/e2b/templates/any/files/{digest}")
        url = urllib.parse.urlsplit(link.json["url"])
        return red.with_key(None).call("PUT", f"{url.path}?{url.query}", data)
    assert upload(8).status == 200
    assert stored(fresh, "red")["uploads_mb"] == 8
    assert upload(30).status == 429  # as E2B says it
    assert upload(8).status == 200
    assert upload(8).status == 429
    fresh.restart()
    took = stored(fresh, "red")
    assert (took["uploads_mb"], took["coming_mb"]) == (16, 0)


def test_checkpoints_count(fresh, team):
    red = team("red", 100)
    box = red.create(image="tiny", disk_mb=32)["id"]
    red.out(box, ["/bin/sh", "-c", "head -c 20000000 /dev/urandom > /big; sync"])
    red.ok("POST", f"/v1/sandboxes/{box}/checkpoints", {})
    took = stored(fresh, "red")["checkpoints_mb"]
    assert 19 <= took <= 24
    fresh.api.ok("PATCH", "/v1/teams/red", {"quotas": {"disk_mb": 40}})
    red.refused(403, "quota_exceeded", "POST", f"/v1/sandboxes/{box}/checkpoints", {})


def test_an_archive_holds_no_more_than_so_many_times_its_size(fresh):
    bomb = gzip.compress(tar_of({"zeros": bytes(200 * MIB)}), 9)
    got = put(fresh.api, "bomb", bomb)
    assert (got.status, got.json["error"]["code"]) == (400, "invalid_image") and "image-ratio" in got.json["error"]["message"], got
    inner = {"manifest.json": b"[]", "zeros": bytes(200 * MIB)}
    got = put(fresh.api, "bomb", gzip.compress(tar_of(inner), 9))
    assert got.status == 400 and "image-ratio" in got.json["error"]["message"], got


def test_a_layer_has_a_size_whatever_the_quota(tiny_tar):
    with harness.running("--image-layer-mb", "8", images={"tiny": tiny_tar}) as daemon:
        got = put(daemon.api, "large", noise(9))
        assert (got.status, got.json["error"]["code"]) == (413, "layer_too_large"), got
        assert put(daemon.api, "small", noise(7)).status == 201
        many = put(daemon.api, "many", tar_of({"etc/hostname": b"x", **{f"etc/n{i}": b"" for i in range(20000)}}))  # nothing but entries
        assert many.json["error"]["code"] == "layer_too_large", many
