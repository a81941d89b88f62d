"""Images: what an import leaves, and what a removal gives back."""
import io
import os
import tarfile

import pytest

from harness import until


def trees(daemon):
    """What the keeper stores, seen through its own mount namespace."""
    return os.listdir(f"/proc/{daemon.keepers()[0]}/root{daemon.data}/pool/images")


def blobs(daemon):
    return {n: os.listdir(daemon.data / "blobs" / n) for n in ("sha256", "partial")}


@pytest.fixture
def other_tar(tiny_tar, tmp_path):
    """The tiny image with one more file: another layer."""
    path = tmp_path / "other.tar"
    with tarfile.open(tiny_tar) as old, tarfile.open(path, "w") as new:
        for member in old:
            new.addfile(member, old.extractfile(member) if member.isreg() else None)
        info = tarfile.TarInfo("etc/other")
        info.size = 5
        new.addfile(info, io.BytesIO(b"other"))
    return path


def test_a_removed_image_gives_its_tree_and_its_bytes_back(fresh, other_tar):
    before, bytes_before = set(trees(fresh)), blobs(fresh)
    fresh.api.import_image("short-lived", other_tar)
    assert len(set(trees(fresh)) - before) == 1
    assert len(blobs(fresh)["sha256"]) == len(bytes_before["sha256"]) + 1
    fresh.api.ok("DELETE", "/v1/images/short-lived")
    until(lambda: set(trees(fresh)) == before, "the tree is gone")
    assert blobs(fresh) == bytes_before


def test_the_same_files_are_stored_once(fresh, tiny_tar):
    before = trees(fresh)
    again = fresh.api.import_image("again", tiny_tar)
    assert trees(fresh) == before
    first = fresh.api.ok("GET", "/v1/images/tiny")
    assert again["shared_bytes"] == again["size_bytes"] == first["shared_bytes"] > 0
    fresh.api.ok("DELETE", "/v1/images/tiny")
    assert trees(fresh) == before
    assert fresh.api.out(fresh.api.create(image="again")["id"], "echo ok") == "ok\n"


def test_an_image_in_use_stays(fresh, tiny_tar):
    fresh.api.ok("DELETE", "/v1/images/tiny")
    fresh.api.import_image("used", tiny_tar)
    who = fresh.api.create(image="used")["id"]
    fresh.api.refused(409, "image_in_use", "DELETE", "/v1/images/used")
    fresh.api.ok("DELETE", f"/v1/sandboxes/{who}")
    fresh.api.ok("DELETE", "/v1/images/used")


def test_another_import_of_a_used_tree_can_go(fresh, tiny_tar):
    fresh.api.import_image("twin", tiny_tar)
    who = fresh.api.create(image="tiny")["id"]
    fresh.api.ok("DELETE", "/v1/images/twin")
    assert fresh.api.out(who, "echo still there") == "still there\n"
    fresh.api.refused(409, "image_in_use", "DELETE", "/v1/images/tiny")


def test_a_bad_import_leaves_nothing(fresh, tmp_path):
    before, bytes_before = set(trees(fresh)), blobs(fresh)
    bad = tmp_path / "bad.tar"
    bad.write_bytes(b"this is no archive" * 100)
    with open(bad, "rb") as f:
        fresh.api.refused(400, "invalid_image", "PUT", "/v1/images/bad", f)
    upward = tmp_path / "upward.tar"
    with tarfile.open(upward, "w") as tar:
        tar.addfile(tarfile.TarInfo("../../etc/escaped"))
    with open(upward, "rb") as f:
        fresh.api.refused(400, "invalid_image", "PUT", "/v1/images/bad", f)
    until(lambda: set(trees(fresh)) == before, "the half-made trees are gone")
    assert blobs(fresh) == bytes_before
    assert not os.path.exists("/etc/escaped")
