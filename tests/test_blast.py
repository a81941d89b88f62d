"""What a sandbox did, as the kernel and its disk tell it."""
import pathlib
import uuid

import pytest

from harness import until


def by_path(items):
    return {x["path"]: x for x in items}


def test_files_that_changed(api, box):
    api.out(box, ["sh", "-c", "echo more >> /etc/hosts; mkdir -p /srv/a; echo 12345 > /srv/a/new; rm /etc/shells; "
                              "touch -r /etc/passwd /tmp/ref; sed -i s/root/ROOT/ /etc/group; "
                              "touch -r /tmp/ref /etc/group; echo x > /srv/gone; rm /srv/gone"])
    told = api.ok("GET", f"/v1/sandboxes/{box}/changes")
    files = by_path(told["changes"])
    assert files["/etc/hosts"]["change"] == "changed"
    assert files["/etc/hosts"]["size_bytes"] == files["/etc/hosts"]["size_before_bytes"] + 5
    assert files["/etc/group"]["change"] == "changed"  # the time that it claims is the old one
    assert files["/srv/a"]["type"] == "directory"
    assert files["/srv/a/new"]["change"] == "added" and files["/srv/a/new"]["size_bytes"] == 6
    assert files["/etc/shells"]["change"] == "removed"
    assert "/srv/gone" not in files and "/etc/passwd" not in files
    assert told["removed"] == 1 and not told["more"]
    few = api.ok("GET", f"/v1/sandboxes/{box}/changes?limit=1")
    assert len(few["changes"]) == 1 and few["more"] and few["added"] == told["added"]
    api.refused(400, "invalid_query", "GET", f"/v1/sandboxes/{box}/changes?limit=0")


def test_programs_are_counted_however_short_their_life(api, box):
    api.out(box, ["sh", "-c", "for i in 1 2 3 4 5; do /bin/true; done; cp /bin/true '/tmp/a b'; '/tmp/a b'; sh -c /bin/false || :"])
    told = api.ok("GET", f"/v1/sandboxes/{box}/blast")
    if "tracefs" not in pathlib.Path("/proc/filesystems").read_text():
        pytest.skip("this kernel has no tracepoints")
    assert told["programs_counted"]
    ran = by_path(told["programs"])
    assert ran["/bin/true"]["count"] == 5
    assert ran["/tmp/a b"]["count"] == 1 and ran["/bin/false"]["count"] == 1
    assert ran["/bin/true"]["first_at"] <= ran["/bin/true"]["last_at"]
    assert not any("init" in path for path in ran)
    api.ok("POST", f"/v1/sandboxes/{box}/stop")  # it is remembered
    told = api.ok("GET", f"/v1/sandboxes/{box}/blast")
    assert by_path(told["programs"])["/bin/true"]["count"] == 5 and told["state"] == "stopped"


def test_ports_that_are_open(api, box):
    api.start(box, ["python3", "-m", "http.server", "8123", "--bind", "127.0.0.1"])
    until(lambda: [p["port"] for p in api.ok("GET", f"/v1/sandboxes/{box}/blast")["ports"]] == [8123])
    assert "python" in api.ok("GET", f"/v1/sandboxes/{box}/blast")["ports"][0]["program"]


def test_volumes_and_with_whom(api):
    name = "v" + uuid.uuid4().hex[:10]
    api.ok("POST", "/v1/volumes", {"name": name})
    one, two = (api.create(image="base", volumes=[{"volume": name, "path": "/data"}])["id"] for _ in range(2))
    try:
        volumes = api.ok("GET", f"/v1/sandboxes/{one}/blast")["volumes"]
        assert volumes == [{"volume": name, "path": "/data", "read_only": False, "shared_with": [two]}]
    finally:
        api.delete(one)
        api.delete(two)
        api.ok("DELETE", f"/v1/volumes/{name}")


def test_nobody_elses(api, box):
    team = "t" + uuid.uuid4().hex[:8]
    api.ok("POST", "/v1/teams", {"name": team})
    other = api.with_key(api.ok("POST", "/v1/keys", {"team": team, "name": "other"})["key"])
    for what in ("blast", "changes"):
        other.refused(404, "sandbox_not_found", "GET", f"/v1/sandboxes/{box}/{what}")
