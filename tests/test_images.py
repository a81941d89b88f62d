"""Images: what an import leaves, and what a removal gives back."""
import os
import tarfile

from harness import until


def trees(daemon):
    """What the keeper stores, seen through its own mount namespace."""
    return os.listdir(f"/proc/{daemon.keepers()[0]}/root{daemon.data}/pool/images")


def test_a_removed_image_gives_its_tree_back(fresh, tiny_tar):
    before = set(trees(fresh))
    fresh.api.import_image("short-lived", tiny_tar)
    assert len(set(trees(fresh)) - before) == 1
    fresh.api.ok("DELETE", "/v1/images/short-lived")
    until(lambda: set(trees(fresh)) == before, "the tree is gone")


def test_an_image_in_use_stays(fresh, tiny_tar):
    fresh.api.import_image("used", tiny_tar)
    who = fresh.api.create(image="used")["id"]
    fresh.api.refused(409, "image_in_use", "DELETE", "/v1/images/used")
    fresh.api.ok("DELETE", f"/v1/sandboxes/{who}")
    fresh.api.ok("DELETE", "/v1/images/used")


def test_a_bad_import_leaves_nothing(fresh, tmp_path):
    before = set(trees(fresh))
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
    assert not os.path.exists("/etc/escaped")
