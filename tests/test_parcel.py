"""A checkpoint as one file: out, and in again, here and elsewhere; and what is no such file."""
import hashlib
import http.client
import io
import json
import tarfile
import threading

import harness
import pytest

from harness import until
from registries import tar_of

SETUP = r"""
mkdir -p /srv/d /srv/opaque && echo deep > /srv/d/x && ln -s x /srv/d/link && ln /srv/d/x /srv/d/hard
printf 'old' > /root/state; chmod 4755 /srv/d/x; chown 1000:1000 /srv/d/x; mkfifo /srv/pipe
rm -r /home/user; rm /etc/hosts; rm -r /var; mkdir /var; echo new > /var/new
truncate -s 1G /srv/sparse; chmod 711 /
"""
LOOK = r"""
cat /root/state /var/new; ls -ln /srv/d | awk '{print $1,$2,$3,$4,$5,$9,$10,$11}'; stat -c '%a %F %s' / /srv/pipe /srv/sparse
ls -A /var /home; test ! -e /etc/hosts && echo gone; stat -c %y /srv/d/x
"""


def export(api, who, query=""):
    reply = api.call("GET", f"/v1/checkpoints/{who}/export{query}", timeout=120)
    assert reply.status == 200, reply
    return reply.body


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


def bring(api, data, query=""):
    return api.call("POST", f"/v1/checkpoints/import{query}", data,
                    headers={"Content-Type": "application/x-tar"}, timeout=120)


# Of what it is to be, nothing becomes more dangerous elsewhere.
ENDS = {"timeout_s": 36000, "on_timeout": "stop", "idle_timeout_s": 7200, "on_idle": "pause", "freeze_after_s": 3600,
        "preview": "private", "wake": "never"}


@pytest.fixture(scope="module")
def parcel(api):
    box = api.create(image="tiny", env={"A": "1"}, memory_mb=200, **ENDS)["id"]
    api.out(box, ["sh", "-ec", SETUP])
    seen = api.out(box, ["sh", "-c", LOOK])
    mark = api.ok("POST", f"/v1/sandboxes/{box}/checkpoints", {"name": "out", "comment": "c", "metadata": {"k": "v"}})
    data = export(api, mark["id"])
    yield box, mark, data, seen
    api.delete(box)
    api.ok("DELETE", f"/v1/checkpoints/{mark['id']}")


def test_the_same_here_and_elsewhere(api, parcel):
    box, mark, data, seen = parcel
    files = members(data)
    assert list(files)[0] == "checkpoint.json"
    for name, bytes_ in files.items():
        if name.startswith("blobs/"):
            assert hashlib.sha256(bytes_).hexdigest() == name.split("/")[-1]
    with harness.running() as other:
        for where in (api, other.api):
            made = bring(where, data)
            assert made.status == 201, made
            c = made.json
            assert (c["name"], c["comment"], c["metadata"], c["reason"]) == ("out", "c", {"k": "v"}, "import")
            copy = where.ok("POST", f"/v1/checkpoints/{c['id']}/sandboxes", {})
            assert copy["memory_mb"] == 200 and copy["env"] == {"A": "1"} and copy["image"] == "tiny"
            assert {k: copy[k] for k in ENDS} == ENDS
            assert where.out(copy["id"], ["sh", "-c", LOOK]) == seen
            where.delete(copy["id"])
            if where is api:
                # The same image: nothing differs, and the first can go back to it.
                # (But for what is too large to compare.)
                differ = api.ok("GET", f"/v1/checkpoints/{mark['id']}/diff?to={c['id']}")["changes"]
                assert [d["path"] for d in differ] == ["/srv/sparse"]
                api.out(box, ["rm", "/root/state"])
                api.ok("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": c["id"]})
                assert api.out(box, ["cat", "/root/state"]) == "old"
                api.ok("DELETE", f"/v1/checkpoints/{c['id']}")
            else:
                # It holds what it lies on, over a restart and another way out.
                other.kill()
                other.start()
                again = export(where, c["id"])
                assert len(members(again)) == len(files)


def test_without_its_image(api, parcel, fresh):
    _, mark, data, seen = parcel
    small = export(api, mark["id"], "?image=false")
    assert len(small) < len(data) / 2 and len(members(small)) == 2
    got = bring(api, small, "?name=again").json
    assert got["name"] == "again"
    api.ok("DELETE", f"/v1/checkpoints/{got['id']}")
    # tiny is made anew for each run of tests, so another daemon of this run has it too.
    assert bring(fresh.api, small).status == 201


def test_a_digest_is_no_key_to_what_others_have(api, parcel, tiny_tar, tmp_path):
    """Who knows what another team's layers are called does not have them by that."""
    secret = tmp_path / "private.tar"
    with tarfile.open(secret, "w") as tar:
        info = tarfile.TarInfo("etc/hush")
        info.size = 6
        tar.addfile(info, io.BytesIO(b"secret"))
    api.import_image("private", secret, public=False)
    box = api.create(image="private")["id"]
    mark = api.ok("POST", f"/v1/sandboxes/{box}/checkpoints", {})
    whole, small = export(api, mark["id"]), export(api, mark["id"], "?image=false")
    head = json.loads(members(small)["checkpoint.json"])
    api.ok("POST", "/v1/teams", {"name": "others"})
    other = api.with_key(api.ok("POST", "/v1/keys", {"name": "theirs", "team": "others"})["key"])
    files = members(small)
    layer = head["layers"][0]["digest"]
    none = {"digest": layer, "size": 1}
    for data in (small, changed(files, layers=[], files=none), changed(members(parcel[2]), files=none)):
        reply = bring(other, data)
        assert reply.status in (400, 404), reply
    assert other.ok("GET", "/v1/checkpoints")["checkpoints"] == []
    # The bytes themselves prove it; and whoever has files on it needs no more than its name.
    got = bring(other, whole)
    assert got.status == 201, got
    assert bring(other, small).status == 201
    api.delete(box)
    api.ok("DELETE", f"/v1/checkpoints/{mark['id']}")
    for c in other.ok("GET", "/v1/checkpoints")["checkpoints"]:
        other.ok("DELETE", f"/v1/checkpoints/{c['id']}")
    api.ok("DELETE", "/v1/images/private")
    api.ok("DELETE", "/v1/teams/others")


def test_by_hand(daemon, api, parcel, tmp_path):
    _, mark, _, _ = parcel
    file = tmp_path / "work.tar"
    assert daemon.cli("checkpoint", "export", "-o", str(file), mark["id"]).returncode == 0
    assert file.stat().st_size > 1000 and not list(tmp_path.glob("*.part"))
    made = daemon.cli("checkpoint", "import", "--name", "by-hand", str(file))
    assert made.returncode == 0, made.stderr
    assert json.loads(daemon.cli("checkpoint", "get", made.stdout.strip()).stdout)["name"] == "by-hand"
    assert daemon.cli("checkpoint", "rm", made.stdout.strip()).returncode == 0
    bad = daemon.cli("checkpoint", "import", "/bin/true")
    assert bad.returncode == 1 and "archive" in bad.stderr


def changed(parts, **changes):
    head = json.loads(parts["checkpoint.json"])
    head.update(changes)
    return tar_of({**parts, "checkpoint.json": json.dumps(head).encode()})


def test_what_is_no_such_file(api, parcel):
    files = members(parcel[2])
    head = json.loads(files["checkpoint.json"])
    blobs = [n for n in files if n.startswith("blobs/")]
    wrong = [
        b"", b"x" * 5000, tar_of({"checkpoint.json": b"{"}), tar_of({"bin/sh": b"x"}),
        tar_of({"checkpoint.json": b"[" * 100000}),
        tar_of({n: d for n, d in files.items() if n != "checkpoint.json"}),
        tar_of({**files, blobs[-1]: b"other bytes"}),
        parcel[2][:len(parcel[2]) // 2],
        changed(files, version=99), changed(files, format="x"), changed(files, spec=None),
        changed(files, spec={**head["spec"], "network": "perhaps * 443"}),
        changed(files, spec={**head["spec"], "memory_bytes": 1}),
        changed(files, spec={**head["spec"], "user": "x" * 5000}),
        changed(files, name="../x"), changed(files, comment="x" * 5000), changed(files, metadata=[1]),
        changed(files, layers=[{"digest": "x"}]), changed(files, layers=head["layers"] * 3000),
        changed(files, files={"digest": "sha256:" + "0" * 64}),
        changed(files, layers=[{**head["layers"][0], "diff_id": "sha256:" + "1" * 64}]),
    ]
    before = api.ok("GET", "/v1/checkpoints")["checkpoints"]
    for i, data in enumerate(wrong):
        reply = bring(api, data)
        assert 400 <= reply.status < 500, (i, reply)
    assert api.ok("GET", "/v1/checkpoints")["checkpoints"] == before
    api.refused(404, "checkpoint_not_found", "GET", "/v1/checkpoints/nothing/export")


def test_killed_on_the_way_in(fresh, parcel):
    """There, whole, or not there."""
    api, data, seen = fresh.api, parcel[2], parcel[3]
    for attempt in range(3):
        def put():
            try:
                bring(api, data)
            except (OSError, http.client.HTTPException):
                pass
        thread = threading.Thread(target=put)
        thread.start()
        threading.Event().wait(0.05 * (attempt + 1))
        fresh.kill()
        if attempt == 1:
            fresh.kill_keeper()
        thread.join()
        fresh.start()
        until(lambda: api.call("GET", "/v1/checkpoints").status == 200)
        for c in api.ok("GET", "/v1/checkpoints")["checkpoints"]:
            copy = api.ok("POST", f"/v1/checkpoints/{c['id']}/sandboxes", {})["id"]
            assert api.out(copy, ["sh", "-c", LOOK]) == seen
            api.delete(copy)
            api.ok("DELETE", f"/v1/checkpoints/{c['id']}")
    made = bring(api, data)
    assert made.status == 201, made
    until(lambda: fresh.stored("points") == {made.json["id"]}, "nothing else in the storage")
