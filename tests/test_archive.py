"""Checkpoints and sandboxes in object storage: there and back, little sent twice, nothing lost when it fails."""
import contextlib
import json
import random
import sys

import pytest

import harness
import openapi_kit
from harness import until
from s3_kit import s3  # noqa: F401 - a fixture

pytestmark = pytest.mark.timeout(harness.DEADLINE * 12)  # the first of them installs the storage
CHUNKS = "pre/chunks/"
ID = "another0000000000000"  # the beginning of one's
# Everything that a box can hold and a layer of an image cannot is among these.
FILES = """
set -e
mkdir -p /root/d /opt/box && cd /root/d
dd if=/dev/urandom of=noise bs=1024 count=3000 2>/dev/null
echo text > plain; ln plain hard; ln -s plain soft; mkfifo fifo; touch .wh.odd
chmod 4751 plain; chown 12:34 noise; touch -d '2001-02-03 04:05:06' noise
echo kept > /etc/added; rm /bin/vi; rm -r /home/user && mkdir /home/user && touch /home/user/new
chmod 711 /
"""
LOOK = """
cd /root/d && ls -ln --full-time . | grep -v '^total' | sed 's/  */ /g'; sha256sum noise plain | cut -c1-64
readlink soft; cat /etc/added; ls /bin/vi 2>/dev/null; ls -A /home/user; stat -c %a /
"""


@pytest.fixture(scope="module")
def home(s3, tiny_tar, tmp_path_factory):  # noqa: F811
    """A daemon with object storage."""
    keys = s3.credentials(tmp_path_factory.mktemp("keys") / "credentials")
    with harness.running("--archive", f"s3://{s3.bucket}/pre", "--archive-endpoint", s3.url, "--archive-region",
                         s3.region, "--archive-credentials", keys, images={"tiny": tiny_tar}) as d:
        d.s3 = s3
        yield d


@pytest.fixture(autouse=True)
def calm(s3):  # noqa: F811
    yield
    s3.gate.clear()


@pytest.fixture
def box(home):
    """One with files of every kind; `look` tells whether they are as they were."""
    who = home.api.create(image="tiny")["id"]
    sh(home, who, FILES)
    yield who
    home.api.call("DELETE", f"/v1/sandboxes/{who}")
    for c in home.api.ok("GET", "/v1/checkpoints")["checkpoints"]:
        home.api.call("DELETE", f"/v1/checkpoints/{c['id']}")


def sh(home, who, script):
    return home.api.out(who, ["sh", "-c", script])


def look(home, who):
    return sh(home, who, LOOK)


def take(home, who, **body):
    return home.api.ok("POST", f"/v1/sandboxes/{who}/checkpoints", body)["id"]


def run(home, path, body=None):
    """The last event of what is told line by line."""
    with home.api.stream("POST", path, body or {}) as stream:
        return list(stream)[-1]


def archive(home, c, **body):
    last = run(home, f"/v1/checkpoints/{c}/archive", body)
    assert last["type"] == "checkpoint", last
    return last


def fails(home, code, path, body=None):
    reply = home.api.call("POST", path, body or {})
    error = json.loads(reply.body.splitlines()[-1])
    error = error.get("error", error)
    assert error["code"] == code, reply
    return error["message"]


def copy_of(home, c):
    """A new sandbox from a checkpoint, looked at."""
    who = home.api.ok("POST", f"/v1/checkpoints/{c}/sandboxes", {})["id"]
    try:
        return look(home, who)
    finally:
        home.api.delete(who)


def get(home, c):
    return home.api.ok("GET", f"/v1/checkpoints/{c}")


def test_there_and_back(home, box):
    want = look(home, box)
    c = take(home, box)
    done = archive(home, c, keep_local=False)
    assert done["checkpoint"]["local"] is False and done["checkpoint"]["archived_at"]
    assert done["pieces_moved"] > 0 and done["bytes_moved"] > 2_900_000
    assert not get(home, c)["local"]
    sh(home, box, "rm -r /root/d; chmod 755 /")
    home.api.ok("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": c})
    assert look(home, box) == want and get(home, c)["local"]
    # Once more, and to a new sandbox.
    assert archive(home, c, keep_local=False)["pieces_moved"] == 0
    assert copy_of(home, c) == want
    kinds = [e["type"] for e in home.api.events(sandbox=box)["events"]]
    assert kinds.count("checkpoint.archived") == 1 and kinds.count("checkpoint.fetched") == 2


def test_what_is_there_is_not_sent_again(home, box, s3):  # noqa: F811
    sh(home, box, "dd if=/dev/urandom of=/root/more bs=1048576 count=12 2>/dev/null")
    first = archive(home, take(home, box))
    s3.gate.clear()
    sh(home, box, "echo one more > /root/d/last")
    second = archive(home, take(home, box))
    # The pieces around the new file and its directory; and the image's layers are not looked at again.
    assert second["pieces_moved"] * 2 < second["pieces"] and second["bytes_moved"] * 2 < first["bytes_moved"]
    assert s3.gate.count("PUT", CHUNKS) == second["pieces_moved"]
    assert s3.gate.count("PUT", "/layers/") == 0


def test_two_share_and_the_last_removes(home, box, s3):  # noqa: F811
    a, b = take(home, box), take(home, box)
    archive(home, a)
    archive(home, b)
    stored = s3.keys_of(CHUNKS)
    home.api.ok("DELETE", f"/v1/checkpoints/{a}/archive")
    assert get(home, a)["archived_at"] is None and get(home, a)["local"]
    until(lambda: not s3.keys_of("pre/locks/"), "the end of a collection")
    assert home.admin.ok("POST", "/v1/archives/collect", {}) == {"pieces": 0, "bytes": 0, "busy": False}
    assert s3.keys_of(CHUNKS) == stored
    archive(home, b, keep_local=False)
    home.api.refused(409, "checkpoint_away", "DELETE", f"/v1/checkpoints/{b}/archive")
    home.api.ok("DELETE", f"/v1/checkpoints/{b}")
    until(lambda: not s3.keys_of("pre/"), "an empty bucket")


def test_nobody_collects_while_somebody_archives(home, box, s3):  # noqa: F811
    s3.put("pre/chunks/ab/" + "ab" * 32, b"nobody's")
    s3.put("pre/locks/archive-" + "a" * 20, b"")
    assert home.admin.ok("POST", "/v1/archives/collect", {})["busy"]
    s3.drop("pre/locks/archive-" + "a" * 20)
    assert home.admin.ok("POST", "/v1/archives/collect", {})["pieces"] == 1
    s3.put("pre/locks/collect", b"")
    with home.api.stream("POST", f"/v1/checkpoints/{take(home, box)}/archive", {}) as stream:
        assert next(stream)["stage"] == "wait"
        s3.drop("pre/locks/collect")
        assert list(stream)[-1]["type"] == "checkpoint"


def test_damage_is_found_and_changes_nothing(home, box, s3):  # noqa: F811
    want = look(home, box)
    c = take(home, box)
    archive(home, c, keep_local=False)
    big = max(s3.keys_of(CHUNKS), key=s3.keys_of(CHUNKS).get)
    good = s3.get(big)
    damaged = bytearray(good)
    damaged[len(good) // 2] ^= 1
    for body in (bytes(damaged), good[:-1], None):
        s3.drop(big)
        if body is not None:
            s3.put(big, body)
        for path, ask in ((f"/v1/checkpoints/{c}/fetch", {}), (f"/v1/checkpoints/{c}/sandboxes", {}),
                          (f"/v1/sandboxes/{box}/restore", {"checkpoint": c})):
            message = fails(home, "archive_corrupt", path, ask)
            assert big.removeprefix("pre/") in message
        assert not get(home, c)["local"] and home.api.get(box)["state"] == "running"
    s3.put(big, good)
    manifest = f"pre/archives/default/{c}"
    text = s3.get(manifest)
    for other in (b"", b"{", text.replace(b'"format":1', b'"format":2'), text.replace(b'"pieces":[[', b'"pieces":[[1,'),
                  text.replace(c.encode(), b"z" * 20), text.replace(b'"comment":""', b'"comment":"changed"')):
        s3.put(manifest, other)
        fails(home, "archive_corrupt", f"/v1/checkpoints/{c}/fetch")
    s3.put(manifest, text)
    assert copy_of(home, c) == want


def adopt(home, s3, c, change):  # noqa: F811
    """The same archive under another id, changed, and taken over: as another daemon's would be."""
    other = ID[:-len(c) // 2] + c[-(len(c) // 2):]
    manifest = json.loads(s3.get(f"pre/archives/default/{c}"))
    manifest["id"] = other
    change(manifest)
    s3.put(f"pre/archives/default/{other}", json.dumps(manifest).encode())
    done = run(home, f"/v1/archives/{other}/import")
    assert done["type"] == "checkpoint", done
    return done["checkpoint"]


def test_no_room_on_the_way_back(home, box, s3):  # noqa: F811
    sh(home, box, "dd if=/dev/urandom of=/root/large bs=1048576 count=24 2>/dev/null")
    want = look(home, box)
    c = take(home, box)
    archive(home, c, keep_local=False)
    other = adopt(home, s3, c, lambda m: m["spec"].update(disk_bytes=16 << 20))["id"]  # its files have more
    fails(home, "no_space", f"/v1/checkpoints/{other}/fetch")
    assert not get(home, other)["local"]
    assert copy_of(home, c) == want


def test_a_bad_line_is_tried_again(home, box, s3):  # noqa: F811
    want = look(home, box)
    dice = random.Random(7)
    sh(home, box, "dd if=/dev/urandom of=/root/more bs=1048576 count=8 2>/dev/null")  # of several pieces
    for kind, match in (("cut_in", "PUT .*/chunks/"), ("status", "PUT .*/chunks/"), ("cut", "list-type"),
                        ("status", "PUT .*/archives/"), ("cut", "GET .*/archives/")):
        s3.gate.fault(kind, match=match, at=dice.randrange(1, 100_000 if kind == "cut_in" else 300), status=503)
    c = take(home, box)
    archive(home, c, keep_local=False)
    for kind in ("cut", "status", "cut", "corrupt"):
        s3.gate.fault(kind, match="GET .*/chunks/", at=dice.randrange(400, 2_000_000))
    # What came damaged once is not asked for again: the caller is told, and the next try is right.
    fails(home, "archive_corrupt", f"/v1/checkpoints/{c}/fetch")
    run(home, f"/v1/checkpoints/{c}/fetch")
    assert get(home, c)["local"] and copy_of(home, c) == want


def test_a_storage_that_fails_for_good_costs_nothing(home, box, s3):  # noqa: F811
    want = look(home, box)
    c = take(home, box)
    s3.gate.fault("status", match="PUT .*/archives/", times=100)
    fails(home, "archive_failed", f"/v1/checkpoints/{c}/archive", {"keep_local": False})
    assert get(home, c)["local"] and get(home, c)["archived_at"] is None
    s3.gate.clear()
    # It took a piece and does not have it: what is only here is not given up.
    s3.gate.fault("missing", match=f"GET .*/archives/default/{c}")
    fails(home, "archive_failed", f"/v1/checkpoints/{c}/archive", {"keep_local": False})
    assert get(home, c)["local"] and not s3.keys_of("pre/locks/")
    archive(home, c, keep_local=False)
    s3.gate.fault("status", match="DELETE", times=100)
    home.api.refused(424, "archive_failed", "DELETE", f"/v1/checkpoints/{c}")
    s3.gate.clear()
    assert copy_of(home, c) == want
    home.api.refused(404, "checkpoint_not_found", "POST", "/v1/checkpoints/nothing/archive", {})


def test_a_sandbox_sleeps_there(home, box, s3):  # noqa: F811
    want = look(home, box)
    last = run(home, f"/v1/sandboxes/{box}/archive")
    assert last["type"] == "sandbox" and last["sandbox"]["state"] == "archived", last
    assert home.api.get(box)["state"] == "archived"
    listed = {state: [s["id"] for s in home.api.ok("GET", f"/v1/sandboxes?state={state}")["sandboxes"]] for state in ("archived", "stopped")}
    assert box in listed["archived"] and box not in listed["stopped"]
    (c,) = home.api.ok("GET", f"/v1/sandboxes/{box}/checkpoints")["checkpoints"]
    assert c["reason"] == "archive" and not c["local"]
    home.api.refused(409, "checkpoint_in_use", "DELETE", f"/v1/checkpoints/{c['id']}")
    home.api.refused(409, "sandbox_archived", "POST", f"/v1/sandboxes/{box}/checkpoints", {})
    assert run(home, f"/v1/sandboxes/{box}/archive")["sandbox"]["state"] == "archived"
    home.restart()
    assert home.api.get(box)["state"] == "archived"
    assert home.api.ok("POST", f"/v1/sandboxes/{box}/start")["state"] == "running"
    assert look(home, box) == want
    # The next one replaces it.
    sh(home, box, "echo more > /root/d/more")
    run(home, f"/v1/sandboxes/{box}/archive")
    (other,) = home.api.ok("GET", f"/v1/sandboxes/{box}/checkpoints")["checkpoints"]
    assert other["id"] != c["id"]
    home.api.delete(box)
    until(lambda: not s3.keys_of("pre/"), "an empty bucket")


def test_another_machine_takes_it_over(home, box, s3, tmp_path):  # noqa: F811
    want = look(home, box)
    c = take(home, box, name="moved", comment="to elsewhere")
    archive(home, c)
    keys = s3.credentials(tmp_path / "credentials")
    with contextlib.closing(harness.Daemon(
            "--archive", f"s3://{s3.bucket}/pre", "--archive-endpoint", s3.url, "--archive-region", s3.region,
            "--archive-credentials", keys)) as other:
        (there,) = other.api.ok("GET", "/v1/archives")["archives"]
        assert there["id"] == c and not there["known"]
        assert c in other.cli("archive", "ls").stdout
        other.api.refused(404, "archive_not_found", "POST", f"/v1/archives/{'a' * 20}/import", {})
        done = other.cli("archive", "import", c)
        assert done.returncode == 0 and c in done.stdout, done
        mine = get(other, c)
        assert mine["name"] == "moved" and mine["comment"] == "to elsewhere" and not mine["local"]
        assert mine["reason"] == "import"
        assert copy_of(other, c) == want
        assert not s3.gate.count("DELETE", "/archives/")


def test_commands(home, box):
    want = look(home, box)
    c = take(home, box)
    done = home.cli("archive", "--keep", c)
    assert done.returncode == 0 and c in done.stdout and "pieces moved" in done.stdout, done
    assert get(home, c)["local"]
    assert home.cli("archive", c).returncode == 0 and not get(home, c)["local"]
    assert home.cli("archive", "fetch", c).returncode == 0 and get(home, c)["local"]
    assert home.cli("archive", "rm", c).returncode == 0 and not get(home, c)["archived_at"]
    assert home.cli("archive", box).returncode == 0 and home.api.get(box)["state"] == "archived"
    assert home.cli("start", box).returncode == 0 and look(home, box) == want


def test_as_described(home, box):
    """Every call's answer, held against openapi.json."""
    contract = openapi_kit.Contract(json.loads((harness.ROOT / "src/front/native/openapi.json").read_text()))
    api = openapi_kit.Checked(home.api, contract)
    c = take(home, box)
    api.lines("POST", f"/v1/checkpoints/{c}/archive", {"keep_local": False})
    api.lines("POST", f"/v1/checkpoints/{c}/fetch", {})
    api.ok("GET", "/v1/archives")
    api.lines("POST", f"/v1/archives/{c}/import", {})
    assert api.call("DELETE", f"/v1/checkpoints/{c}/archive").status == 204
    api.ok("POST", "/v1/archives/collect", {})
    api.lines("POST", f"/v1/sandboxes/{box}/archive", {})
    api.ok("GET", f"/v1/sandboxes/{box}")
    driven = {"archiveCheckpoint", "fetchCheckpoint", "unarchiveCheckpoint", "listArchives", "importArchive",
              "collectArchives", "archiveSandbox"}
    assert all(any(s < 400 for s in contract.exercised.get(o, ())) for o in driven), contract.exercised


def test_python_client(home, box):
    sys.path.insert(0, str(harness.ROOT / "sdk/python"))
    import warren_sandbox
    with warren_sandbox.Client(home.url, home.key) as client:
        mine = client.sandboxes.get(box)
        assert mine.archive().state == "archived"
        assert mine.start().state == "running"
        kept = mine.checkpoint("kept")
        assert client.checkpoints.archive("kept").local
        away = client.checkpoints.archive("kept", keep_local=False)
        assert away.id == kept.id and not away.local and away.archived_at
        assert client.checkpoints.fetch("kept").local
        client.checkpoints.unarchive("kept")
        assert client.checkpoints.get("kept").archived_at is None


def test_without_a_storage(api):
    for method, path in (("GET", "/v1/archives"), ("POST", f"/v1/archives/{'a' * 20}/import")):
        api.refused(501, "archive_unavailable", method, path, {} if method == "POST" else None)


@pytest.mark.parametrize("who", ["daemon", "keeper"])
def test_killed_at_any_moment(home, box, s3, who):  # noqa: F811
    """Before or after, never between: the checkpoint is whole, here or there, and the bucket holds nothing else."""
    want = look(home, box)
    c = take(home, box)
    dice = random.Random(who)
    for way in ("archive", "fetch", "archive", "fetch"):
        # At the k-th request, whatever that is.
        s3.gate.fault("slow", match="^(?!DELETE).*chunks|archives", at=0.3, times=1000)
        path = f"/v1/checkpoints/{c}/{way}"
        with home.api.stream("POST", path, {"keep_local": False} if way == "archive" else {}) as stream:
            steps = dice.randrange(1, 5)
            for event in stream:
                steps -= 1
                if steps == 0 or event["type"] != "progress":
                    break
            if who == "daemon":
                home.kill()
            else:
                home.kill_keeper()
                for _ in stream:
                    pass
        s3.gate.clear()
        if who == "daemon":
            home.start()
        home.wait_healthy()
        now = get(home, c)
        assert now["local"] or now["archived_at"]
        assert copy_of(home, c) == want
        archive(home, c, keep_local=way == "fetch")
        assert copy_of(home, c) == want
        archive(home, c, keep_local=way == "fetch" or who == "keeper" and dice.random() < 0.5)


def count_on(home, box):
    process = home.api.start(box, ["sh", "-c", harness.counting("/root/n", 0.02)])["process"]
    return process, until(lambda: number(home, box), "a number")


def number(home, box):
    return int(home.api.exec(box, ["cat", "/root/n"])["stdout"] or 0)


def test_memory_goes_along(home, box, s3):  # noqa: F811
    process, _ = count_on(home, box)
    reply = home.api.call("POST", f"/v1/sandboxes/{box}/checkpoints", {"memory": True})
    if reply.status == 501:
        pytest.skip("no working CRIU here")
    c = reply.json["id"]
    seen = number(home, box)
    done = archive(home, c, keep_local=False)
    assert done["checkpoint"]["memory"] and not done["checkpoint"]["local"]
    home.api.ok("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": c})
    # The same process counts on.
    assert home.api.process(box, process)["state"] == "running"
    until(lambda: number(home, box) > seen, "a larger number")
    # Who takes it over does not know who wrote it: CRIU, which has rights, never reads that.
    other = adopt(home, s3, c, lambda m: None)
    assert not other["memory"] and other["memory_bytes"] == 0
    copy = home.api.ok("POST", f"/v1/checkpoints/{other['id']}/sandboxes", {})["id"]
    assert get(home, other["id"])["local"] and number(home, copy) > 0
    assert "echo $i" not in home.api.out(copy, ["ps"])
    home.api.delete(copy)


def test_a_paused_one_goes_there_too(home, box, s3):  # noqa: F811
    want = look(home, box)
    process, first = count_on(home, box)
    reply = home.api.call("POST", f"/v1/sandboxes/{box}/pause", {})
    if reply.status == 501:
        pytest.skip("no working CRIU here")
    assert reply.status == 200, reply
    last = run(home, f"/v1/sandboxes/{box}/archive")
    assert last["type"] == "sandbox" and last["sandbox"]["state"] == "archived", last
    home.restart()
    assert home.api.get(box)["state"] == "archived"
    assert home.api.ok("POST", f"/v1/sandboxes/{box}/start")["state"] == "running"
    assert look(home, box) == want and home.api.process(box, process)["state"] == "running"
    until(lambda: number(home, box) > first + 5, "a larger number")
    until(lambda: not s3.keys_of("pre/archives"), "no archive of what it was resumed from")


@pytest.mark.parametrize("how", ["stop", "cold"])
def test_an_archived_one_that_was_paused_gives_up_its_memory_and_keeps_its_files(home, box, s3, how):  # noqa: F811
    """Nothing has them but the archive of its pause."""
    want = look(home, box)
    reply = home.api.call("POST", f"/v1/sandboxes/{box}/pause", {})
    if reply.status == 501:
        pytest.skip("no working CRIU here")
    assert run(home, f"/v1/sandboxes/{box}/archive")["sandbox"]["state"] == "archived"
    end = f"/v1/sandboxes/{box}/stop" if how == "stop" else f"/v1/sandboxes/{box}/resume?memory=false"
    s3.gate.fault("missing", match="GET .*/chunks/", times=1000)
    assert home.api.call("POST", end).code == "archive_corrupt"
    s3.gate.clear()
    assert home.api.get(box)["state"] == "archived" and s3.keys_of("pre/archives")
    home.api.ok("POST", end)
    home.api.ok("POST", f"/v1/sandboxes/{box}/start")
    assert look(home, box) == want
    until(lambda: not s3.keys_of("pre/archives"), "no archive of what it was resumed from")


def test_files_of_a_pause_that_is_archived_are_restored_without_its_memory(home, box):
    want = look(home, box)
    reply = home.api.call("POST", f"/v1/sandboxes/{box}/pause", {})
    if reply.status == 501:
        pytest.skip("no working CRIU here")
    assert run(home, f"/v1/sandboxes/{box}/archive")["type"] == "sandbox"
    (there,) = home.api.ok("GET", "/v1/archives")["archives"]
    home.api.ok("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": there["id"], "memory": False})
    assert look(home, box) == want
    assert home.api.ok("GET", "/v1/archives")["archives"] == []  # nobody needs it any more


def test_what_a_paused_one_needs_stays_there(home, box, s3):  # noqa: F811
    """A refused removal removes nothing, in the object storage neither."""
    process, first = count_on(home, box)
    reply = home.api.call("POST", f"/v1/sandboxes/{box}/pause", {})
    if reply.status == 501:
        pytest.skip("no working CRIU here")
    c = take(home, box, memory=True, name="kept")  # what the pause has
    assert not archive(home, c, keep_local=False)["checkpoint"]["local"]
    home.api.refused(409, "checkpoint_in_use", "DELETE", f"/v1/checkpoints/{c}")
    assert not get(home, c)["local"] and s3.keys_of("pre/archives")
    home.api.ok("POST", f"/v1/sandboxes/{box}/start")
    assert home.api.process(box, process)["state"] == "running"
    until(lambda: number(home, box) > first + 5, "a larger number")


def test_back_to_what_an_archived_one_goes_on_from(home, box):
    """The storage's list names it too; it goes once the sandbox runs."""
    process, first = count_on(home, box)
    reply = home.api.call("POST", f"/v1/sandboxes/{box}/pause", {})
    if reply.status == 501:
        pytest.skip("no working CRIU here")
    assert run(home, f"/v1/sandboxes/{box}/archive")["type"] == "sandbox"
    (there,) = home.api.ok("GET", "/v1/archives")["archives"]
    home.api.ok("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": there["id"]})
    assert home.api.process(box, process)["state"] == "running"
    until(lambda: number(home, box) > first + 5, "a larger number")
    until(lambda: not home.api.ok("GET", "/v1/archives")["archives"], "no archive of what it was resumed from")


def test_what_was_paused_is_listed_where_it_is_taken_over(home, box, s3, tmp_path):  # noqa: F811
    """Its machine may be gone for good; a restart forgets nothing of it."""
    want = look(home, box)
    reply = home.api.call("POST", f"/v1/sandboxes/{box}/pause", {})
    if reply.status == 501:
        pytest.skip("no working CRIU here")
    assert run(home, f"/v1/sandboxes/{box}/archive")["type"] == "sandbox"
    keys = s3.credentials(tmp_path / "credentials")
    with contextlib.closing(harness.Daemon(
            "--archive", f"s3://{s3.bucket}/pre", "--archive-endpoint", s3.url, "--archive-region", s3.region,
            "--archive-credentials", keys)) as other:
        (there,) = other.api.ok("GET", "/v1/archives")["archives"]
        assert run(other, f"/v1/archives/{there['id']}/import")["type"] == "checkpoint"
        other.restart()
        (mine,) = other.api.ok("GET", "/v1/checkpoints")["checkpoints"]
        assert mine["id"] == there["id"] and not mine["memory"]
        assert copy_of(other, mine["id"]) == want


def test_who_wrote_an_archive_gets_no_secret_and_no_volume(home, box, s3):  # noqa: F811
    """A storage that others may write to says what a sandbox was, not what it may have here."""
    api = home.api
    api.ok("POST", "/v1/secrets", {"name": "token", "value": "hush"})
    api.ok("POST", "/v1/volumes", {"name": "data"})
    told = {"secret": "token", "host": "example.com"}
    keen = api.create(image="tiny", bindings=[told], volumes=[{"volume": "data", "path": "/data"}],
                      network={"preset": "open", "proxy": "http://me:hush@192.0.2.1:3128"},
                      timeout_s=3600, on_timeout="stop", preview="private")["id"]
    c = take(home, keen)
    archive(home, c)
    assert "hush" not in s3.get(f"pre/archives/default/{c}").decode()
    spec = api.get(keen)

    def change(manifest):
        manifest["spec"]["bindings"] = "token@example.com"
        manifest["spec"]["archived"] = True
    other = adopt(home, s3, c, change)
    made = api.ok("POST", f"/v1/checkpoints/{other['id']}/sandboxes", {})
    assert made["state"] == "running" and made["bindings"] == [] and made["volumes"] == []
    assert (made["on_timeout"], made["preview"]) == (spec["on_timeout"], spec["preview"]) == ("stop", "private")
    for who in (made["id"], keen):
        api.delete(who)
    api.ok("DELETE", "/v1/volumes/data")
    api.ok("DELETE", "/v1/secrets/token")


def test_one_that_goes_on_its_way_there_leaves_nothing(home, box, s3):  # noqa: F811
    c = take(home, box)
    last = s3.gate.fault("slow", match="PUT .*/archives/", at=2)
    with home.api.stream("POST", f"/v1/checkpoints/{c}/archive", {}) as stream:
        until(lambda: last.hits, "its manifest")
        home.api.ok("DELETE", f"/v1/checkpoints/{c}")
        end = list(stream)[-1]  # it was there already, if the removal came late
        assert end["type"] == "checkpoint" or end["code"] == "checkpoint_not_found"
    until(lambda: not s3.keys_of("pre/"), "an empty bucket")
