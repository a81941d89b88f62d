"""What the operator's guide promises."""
import os
import pathlib
import shutil
import subprocess

import pytest

import harness
from harness import BUILD, ROOT, counting, until


def backup(daemon, *args):
    done = subprocess.run([ROOT / "build-aux/backup", "--data", daemon.data, "--run", daemon.run, *args],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "WARREN_LIBEXEC": str(BUILD)})
    return done


def test_a_copy_of_the_data_directory_is_a_backup(fresh, tmp_path):
    api = fresh.api
    who = api.create(image="tiny", name="kept")["id"]
    v = api.ok("POST", "/v1/volumes", {"name": "box", "size_mb": 64})["id"]
    api.exec(who, "echo mine > /root/note")
    fresh.stop()
    fresh.teardown()
    data, copy = pathlib.Path(fresh.data), tmp_path / "copy"
    if not (data / "pool.img").exists():
        pytest.skip("the pool is part of the host's own btrfs")
    subprocess.run(["cp", "-a", "--sparse=always", "--reflink=auto", data, copy], check=True, timeout=120)
    shutil.rmtree(data)
    subprocess.run(["cp", "-a", "--sparse=always", "--reflink=auto", copy, data], check=True, timeout=120)
    fresh.start()
    assert api.get("kept")["state"] == "stopped"
    api.ok("POST", f"/v1/sandboxes/{who}/start")
    assert api.out(who, ["cat", "/root/note"]) == "mine\n"
    assert api.ok("GET", "/v1/volumes/box")["id"] == v


def fill(api, tiny_tar):
    """Of each kind that is kept something; the sandbox goes on writing."""
    who = api.create(image="tiny", name="kept", disk_mb=64)["id"]
    api.exec(who, "echo mine > /root/note; head -c 5000000 /dev/urandom > /root/big; ln -s note /root/link; "
                  "mkdir /root/secret; chmod 700 /root/secret; chown 1000:1000 /root/secret")
    api.ok("POST", f"/v1/sandboxes/{who}/checkpoints", {"name": "early"})
    api.exec(who, "echo later > /root/note; rm -f /bin/wget")
    api.ok("POST", f"/v1/sandboxes/{who}/commit", {"name": "layered"})
    api.ok("POST", "/v1/volumes", {"name": "box", "size_mb": 64})
    seen = api.create(image="tiny", name="seer", volumes=[{"volume": "box", "path": "/box"}])["id"]
    api.exec(seen, "echo inside > /box/file; sync")
    api.ok("POST", "/v1/volumes/box/checkpoints", {"name": "then"})
    api.exec(seen, "echo changed > /box/file")
    api.ok("POST", "/v1/secrets", {"name": "token", "value": "s3cret"})
    api.start(who, counting("/root/ticks", 0.01))
    until(lambda: api.exec(who, "cat /root/ticks")["exit_code"] == 0, "the writer")
    return who, seen


@pytest.mark.timeout(harness.DEADLINE * 20)
def test_a_backup_of_a_daemon_at_work_brings_all_of_it_back(fresh, tiny_tar, tmp_path):
    if not shutil.which("btrfs"):
        pytest.skip("btrfs-progs is not here")
    api, copy = fresh.api, tmp_path / "copy"
    who, seen = fill(api, tiny_tar)
    asleep = None
    if api.ok("GET", "/v1/host")["features"]["memory_images"]:
        asleep = api.create(image="tiny", name="asleep")["id"]
        api.start(asleep, counting("/root/ticks", 0.01))
        until(lambda: api.exec(asleep, "cat /root/ticks")["exit_code"] == 0, "its program")
        api.ok("POST", f"/v1/sandboxes/{asleep}/pause")
    big = api.out(who, "sha256sum /root/big")
    made = backup(fresh, "make", copy)
    assert made.returncode == 0, made.stderr
    assert backup(fresh, "make", copy).returncode == 1  # never over another one
    ticks = int(api.out(who, "cat /root/ticks"))
    until(lambda: int(api.out(who, "cat /root/ticks")) > ticks, "the writer to go on")
    assert not fresh.pool("backup").exists()  # nothing is left of it
    assert copy.stat().st_mode & 0o077 == 0
    assert "is there already" in backup(fresh, "make", copy).stderr
    assert backup(fresh, "restore", copy).returncode == 1  # not over what is there
    api.create(image="tiny", name="too-late")

    fresh.stop()
    fresh.teardown()
    shutil.rmtree(fresh.data)
    restored = backup(fresh, "restore", copy)
    assert restored.returncode == 0, restored.stderr
    fresh.start()
    assert {b["name"] for b in api.ok("GET", "/v1/sandboxes")["sandboxes"]} == {"kept", "seer"} | ({"asleep"} if asleep else set())
    if asleep:  # its program goes on
        api.ok("POST", f"/v1/sandboxes/{asleep}/resume")
        ticked = int(api.out(asleep, "cat /root/ticks"))
        until(lambda: int(api.out(asleep, "cat /root/ticks")) > ticked, "it to count on")
    assert api.get("kept")["state"] == "stopped"
    for name in ("kept", "seer"):
        api.ok("POST", f"/v1/sandboxes/{name}/start")
    assert api.out(who, "cat /root/link") == "later\n" and api.out(who, "sha256sum /root/big") == big
    assert 0 < int(api.out(who, "cat /root/ticks")) <= ticks + 1  # whole, and of before
    assert api.out(who, "stat -c '%a %u' /root/secret; ls /bin/wget; true") == "700 1000\n"
    for sandbox, full in ((who, "/root/x"), (seen, "/box/x")):  # the limits hold
        api.exec(sandbox, f"head -c 100000000 /dev/zero > {full}; sync")
        assert int(api.out(sandbox, f"stat -c %s {full}")) < 64 << 20
        api.exec(sandbox, f"rm {full}; sync")
    api.ok("POST", f"/v1/sandboxes/{who}/restore", {"checkpoint": "early"})
    assert api.out(who, "cat /root/note") == "mine\n"
    assert api.out(seen, "cat /box/file") == "changed\n"
    layered = api.create(image="layered")["id"]
    assert api.out(layered, "cat /root/note; ls /bin/wget; true") == "later\n"
    api.delete(seen)
    until(lambda: api.call("POST", "/v1/volumes/box/restore", {"checkpoint": "then"}).status == 200, "the volume to be free")
    again = api.create(image="tiny", volumes=[{"volume": "box", "path": "/box"}])["id"]
    assert api.out(again, "cat /box/file") == "inside\n"
    assert [s["name"] for s in api.ok("GET", "/v1/secrets")["secrets"]] == ["token"]


def test_a_backup_that_is_not_whole_is_refused(fresh, tmp_path):
    (tmp_path / "half").mkdir()
    done = backup(fresh, "restore", tmp_path / "half")
    assert done.returncode == 1 and "is no whole backup" in done.stderr
    done = subprocess.run([ROOT / "build-aux/backup", "--data", tmp_path, "--run", tmp_path, "make", tmp_path / "x"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no daemon runs with" in done.stderr


def test_only_the_operator_copies_the_state(fresh):
    key = fresh.api.ok("POST", "/v1/keys", {"name": "member", "role": "member"})["key"]
    fresh.api.with_key(key).refused(403, "forbidden", "POST", "/v1/backup")


def test_a_teardown_needs_no_more_than_the_directories(fresh):
    """As a package that is removed does it, whatever control group the daemon was given."""
    fresh.api.create(image="tiny")
    fresh.stop()
    done = subprocess.run([BUILD / "warren-keeper", "--data", fresh.data, "--run", fresh.run, "--teardown"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not harness.until_clean(fresh)


def test_a_pool_is_enlarged_as_the_guide_says(fresh):
    before = fresh.api.ok("GET", "/v1/host")
    if not before["features"]["pool_image"]:
        pytest.skip("the pool is part of the host's own btrfs")
    fresh.stop()
    fresh.teardown()
    image = pathlib.Path(fresh.data) / "pool.img"
    os.truncate(image, image.stat().st_size + (1 << 30))
    done = subprocess.run([BUILD / "warren-keeper", "--data", fresh.data, "--run", fresh.run, "--with-pool",
                           "btrfs", "filesystem", "resize", "max", "."], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    fresh.start()
    assert fresh.api.ok("GET", "/v1/host")["pool_total_bytes"] == before["pool_total_bytes"] + (1 << 30)
