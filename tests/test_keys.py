"""Who may ask: keys, and the admin socket."""
import os
import sqlite3

from harness import KEY


def test_no_key_and_wrong_keys_are_refused(api):
    for key in (None, "x", "wrong-key-of-a-proper-length-000", KEY + "0", KEY[:-1], "warren_" + "0" * 40):
        reply = api.with_key(key).call("GET", "/v1/sandboxes")
        assert (reply.status, reply.code) == (401, "unauthorized")
        assert KEY not in reply.body.decode()


def test_every_path_but_two_needs_a_key(api):
    nobody = api.with_key(None)
    for method, path in (("GET", "/v1/sandboxes"), ("POST", "/v1/sandboxes"), ("GET", "/v1/events"),
                         ("GET", "/v1/images"), ("PUT", "/v1/images/x"), ("GET", "/v1/keys"),
                         ("POST", "/v1/keys"), ("GET", "/v1/host"), ("DELETE", "/v1/sandboxes/x"),
                         ("GET", "/v1/sandboxes/x/processes/1/output")):
        assert nobody.call(method, path, {} if method == "POST" else None).status == 401, path
    assert nobody.call("GET", "/v1/health").status == 200
    assert nobody.call("GET", "/metrics").status == 200


def test_odd_authorization_headers(api):
    nobody = api.with_key(None)
    for value in ("", "Bearer", "Bearer ", f"Basic {KEY}", KEY, "Bearer " + "x" * 5000, f"Bearer {KEY} x"):
        assert nobody.call("GET", "/v1/sandboxes", headers={"Authorization": value}).status == 401, value
    for header, value in (("X-API-Key", KEY), ("Authorization", f"bearer {KEY}")):
        assert nobody.call("GET", "/v1/sandboxes", headers={header: value}).status == 200, header


def test_a_key_is_issued_used_and_revoked(api):
    made = api.ok("POST", "/v1/keys", {"name": "laptop"})
    text = made["key"]
    prefix, _, digits = text.rpartition("_")
    assert prefix and len(digits) == 40 and not set(digits) - set("0123456789abcdef")
    mine = api.with_key(text)
    assert mine.call("GET", "/v1/sandboxes").status == 200
    for other in ("e2b_" + digits, "dtn_" + digits, digits):  # the prefix is decoration
        assert api.with_key(other).call("GET", "/v1/sandboxes").status == 200
    listed = api.ok("GET", "/v1/keys")["keys"]
    row = next(k for k in listed if k["id"] == made["id"])
    assert row["name"] == "laptop" and row["created_at"] and "key" not in row
    assert digits not in str(listed)
    api.ok("DELETE", f"/v1/keys/{made['id']}")
    assert mine.call("GET", "/v1/sandboxes").status == 401
    api.refused(404, "key_not_found", "DELETE", f"/v1/keys/{made['id']}")


def test_keys_are_stored_hashed(api, daemon):
    text = api.ok("POST", "/v1/keys", {"name": "secret"})["key"]
    digits = text.rpartition("_")[2]
    for top, _, files in os.walk(daemon.data / "state"):
        for name in files:
            data = open(os.path.join(top, name), "rb").read()
            assert digits.encode() not in data and KEY.encode() not in data
    assert digits not in daemon.log() and KEY not in daemon.log()


def test_a_key_survives_a_restart_and_so_does_its_end(fresh):
    kept = fresh.api.ok("POST", "/v1/keys", {"name": "kept"})
    revoked = fresh.api.ok("POST", "/v1/keys", {"name": "revoked"})
    fresh.api.ok("DELETE", f"/v1/keys/{revoked['id']}")
    fresh.restart()
    assert fresh.api.with_key(kept["key"]).call("GET", "/v1/sandboxes").status == 200
    assert fresh.api.with_key(revoked["key"]).call("GET", "/v1/sandboxes").status == 401


def test_the_admin_socket_trusts_root(daemon):
    assert daemon.admin.call("GET", "/v1/sandboxes").status == 200
    assert daemon.admin.with_key("wrong-but-who-cares-000").call("GET", "/v1/sandboxes").status in (200, 401)


def test_the_admin_socket_does_not_trust_others(daemon):
    """Another user's process: kept out by the file's mode or by the kernel's word on who it is."""
    import subprocess
    done = subprocess.run(
        ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "curl", "-s", "-o", "/dev/null",
         "-w", "%{http_code}", "--unix-socket", str(daemon.run / "warren.sock"),
         "http://x/v1/sandboxes"], capture_output=True, text=True, timeout=30)
    assert done.stdout in ("000", "401"), done


def test_the_state_is_readable_by_no_one_else(daemon):
    db = daemon.data / "state" / "warren.db"
    assert sqlite3.connect(f"file:{db}?mode=ro", uri=True).execute("select 1").fetchone() == (1,)
    reachable = all(os.stat(p).st_mode & 0o001 for p in (daemon.data, daemon.data / "state"))
    assert not reachable or not os.stat(db).st_mode & 0o004


def test_the_daemon_has_dropped_root(daemon):
    status = open(f"/proc/{daemon.process.pid}/status").read()
    fields = dict(line.split(":\t") for line in status.strip().split("\n") if ":\t" in line)
    assert "0" not in fields["Uid"].split() and "0" not in fields["Gid"].split()
    assert "0" not in fields["Groups"].split()
    for caps in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
        assert int(fields[caps], 16) == 0, caps
