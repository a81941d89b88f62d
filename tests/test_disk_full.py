"""A disk that fills up: told before it is full, everywhere an operator looks; nothing new is made in the reserve, while
what runs can still write and everything can be deleted."""
import json
import shutil
import subprocess

import pytest

import harness
from harness import until
from test_metrics import value
from test_time_faults import SmallPool

pytestmark = pytest.mark.skipif(not shutil.which("mkfs.btrfs"), reason="mkfs.btrfs is not here")
RESERVE_MB = 64  # of 384


@pytest.fixture(scope="module")
def small(tiny_tar):
    d = SmallPool("--pool", "0", "--disk-reserve", str(RESERVE_MB))
    try:
        d.api.import_image("tiny", tiny_tar)
        yield d
    finally:
        d.close()


def fill(daemon, box, left_mb):
    """So much is free on the pool afterwards."""
    def written():
        free = value(daemon.api, "warren_disk_free_bytes", area="pool") / 2**20
        if free > left_mb + 4:
            daemon.api.out(box, f"head -c {int((free - left_mb) * 2**20 * 0.9)} /dev/urandom >> /root/fill; sync",
                           timeout=harness.DEADLINE * 4)
        return daemon.api.ok("GET", "/v1/host")["disk"]["pool"]["free_bytes"] / 2**20 <= left_mb + 4  # read anew
    until(written, "a fuller pool", harness.DEADLINE * 4)


def told(api, kind):
    return [e for e in api.events()["events"] if e["type"] == kind]


@pytest.mark.timeout(harness.DEADLINE * 20)
def test_a_disk_that_fills_up(small, tmp_path):
    api = small.api
    box = api.create(image="tiny", name="box", disk_mb=1024)["id"]
    early = api.ok("POST", f"/v1/sandboxes/{box}/checkpoints", {"name": "early"})["id"]
    assert api.ok("GET", "/v1/health")["disk"] == "ok" and value(api, "warren_disk_level", area="pool") == 0
    assert "fills up" not in small.cli("ls").stderr

    # low: people are told, and everything still works
    fill(small, box, RESERVE_MB * 2)
    assert api.ok("GET", "/v1/health")["disk"] == "low" and value(api, "warren_disk_level", area="pool") == 1
    event = until(lambda: told(api, "disk.low"), "the event")[-1]
    assert event["data"]["area"] == "pool" and event["data"]["reserve_bytes"] == RESERVE_MB << 20
    assert "the disk fills up area=pool" in small.log()
    assert "the disk of this Warren fills up" in small.cli("ls").stderr
    found = next(c for c in json.loads(small.cli("doctor", "--json").stdout)["checks"] if c["name"] == "disk")
    assert found["status"] == "warning" and "low" in found["detail"] and str(small.data) in found["detail"] and found["fix"]
    api.delete(api.create(image="tiny")["id"])

    # full: nothing new is made, in words; what is there goes on
    fill(small, box, RESERVE_MB - 16)
    assert api.ok("GET", "/v1/health")["disk"] == "full"
    until(lambda: told(api, "disk.full"), "the event")
    tar = tmp_path / "x.tar"
    subprocess.run(["tar", "-cf", tar, "-C", "/", "etc/hostname"], check=True)
    refusals = [("POST", "/v1/sandboxes", {"image": "tiny"}), ("PUT", "/v1/images/more", tar.read_bytes()),
                ("POST", f"/v1/sandboxes/{box}/checkpoints", {}), ("POST", f"/v1/sandboxes/{box}/fork", {"count": 1}),
                ("POST", "/v1/volumes", {"name": "v", "size_mb": 64}), ("POST", "/v1/checkpoints/import?name=x", b"x"),
                ("POST", f"/v1/sandboxes/{box}/commit", {"name": "more"}),
                ("POST", "/v1/images/build?name=more", tar.read_bytes())]
    for method, path, body in refusals:
        error = api.refused(507, "no_space", method, path, body)
        for word in ("nearly full", "MiB free of", f"last {RESERVE_MB} MiB are kept", "delete sandboxes"):
            assert word in error["message"], (path, error)
    assert api.out(box, "head -c 4000000 /dev/urandom > /root/more && sync && echo written") == "written\n"
    api.ok("PUT", f"/v1/sandboxes/{box}/files?path=/root/small", b"small")
    shown = small.cli("ls")
    assert "nothing new can be made until something is deleted" in shown.stderr and "box" in shown.stdout
    done = small.cli("doctor")
    assert done.returncode == 1 and "nothing new is made" in done.stdout
    created = small.cli("create", "--image", "tiny")
    assert created.returncode == 1 and "nearly full" in created.stderr

    # deleting always works, and makes room at once
    api.ok("DELETE", f"/v1/checkpoints/{early}")
    api.delete(box)
    made = until(lambda: next((r.json["id"] for r in [api.call("POST", "/v1/sandboxes", {"image": "tiny"})]
                               if r.status == 201), None), "room", harness.DEADLINE * 4)
    api.delete(made)
    until(lambda: api.ok("GET", "/v1/health")["disk"] == "ok", "the daemon to see it", harness.DEADLINE * 4)
    assert told(api, "disk.ok")


def test_the_reserve_can_be_set(small):
    host = small.api.ok("GET", "/v1/host")
    assert host["data_dir"] == str(small.data)
    assert host["disk"]["pool"]["reserve_bytes"] == RESERVE_MB << 20
    assert value(small.api, "warren_disk_reserve_bytes", area="pool") == RESERVE_MB << 20
    usual = subprocess.run([harness.BUILD / "warrend", "--disk-reserve", "much"], capture_output=True, text=True, timeout=60)
    assert usual.returncode == 2 and "--disk-reserve must be a number" in usual.stderr


def test_doctor_asks_the_daemon_over_a_url_too(small, monkeypatch):
    monkeypatch.setenv("WARREN_DATA", "/nowhere")  # what this command would guess is of no matter
    report = json.loads(small.cli("doctor", "--json").stdout)
    checks = {c["name"]: c for c in report["checks"]}
    assert str(small.data) in checks["disk"]["detail"] and "pool" in checks["disk"]["detail"]
    assert small.url in checks["daemon"]["detail"]
    assert checks["memory"]["detail"].endswith(report["host"]["criu"])
