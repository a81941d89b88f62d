"""`warren checkpoint` and its neighbours."""
import json
import uuid

from harness import until


def lines(run):
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def one(run):
    out = lines(run)
    assert len(out) == 1
    return out[0]


def test_a_tree_by_hand(daemon, api):
    name = "c" + uuid.uuid4().hex[:8]
    box = api.create(name=name)["id"]
    boxes = [box]
    try:
        api.out(box, ["sh", "-c", "echo one > /root/x"])
        first = one(daemon.cli("checkpoint", name, "--name", "first", "-m", "before", "--metadata", "k=v"))
        got = json.loads(daemon.cli("checkpoint", "get", f"{name}:first").stdout)
        assert (got["id"], got["comment"], got["metadata"]) == (first, "before", {"k": "v"})
        api.out(box, ["sh", "-c", "echo two > /root/x"])
        second = one(daemon.cli("checkpoint", "create", name))
        copies = lines(daemon.cli("fork", "--count", "2", name))
        boxes += copies
        assert len(set(copies)) == 2
        assert one(daemon.cli("restore", name, "first")) == box
        assert api.out(box, ["cat", "/root/x"]) == "one\n"
        old = one(daemon.cli("restore", "--new", "--name", name + "-old", name, "first"))
        boxes.append(old)
        assert api.out(name + "-old", ["cat", "/root/x"]) == "one\n"
        third = one(daemon.cli("checkpoint", name))

        tree = lines(daemon.cli("checkpoints", name))
        assert len(tree) == 5 and tree[0].startswith("CHECKPOINT")
        assert tree[1].startswith("● " + first) and name + "-old" in tree[1] and "before" in tree[1]
        assert tree[2].startswith("├─● " + second)
        assert tree[3].startswith("│ │ ") and " fork " in tree[3]
        assert all(copy in tree[3] for copy in copies)
        assert tree[4].startswith("└─● " + third) and tree[4].split()[-2] == name
        # A copy stands in the same tree; a stranger does not.
        assert [row.split()[:3] for row in lines(daemon.cli("checkpoints", copies[0]))] == \
            [row.split()[:3] for row in tree]
        assert {c["id"] for c in json.loads(daemon.cli("--json", "checkpoints", name).stdout)} >= {first, second, third}
        assert first in daemon.cli("checkpoint", "ls").stdout

        assert one(daemon.cli("checkpoint", "rm", second)) == second
        assert tree[1].split()[1] in daemon.cli("checkpoints", name).stdout
        assert api.ok("GET", f"/v1/checkpoints/{tree[3].split()[2]}")["parent"] == first
    finally:
        for b in boxes:
            api.delete(b)
        for c in api.ok("GET", f"/v1/sandboxes/{box}/checkpoints")["checkpoints"]:
            api.ok("DELETE", f"/v1/checkpoints/{c['id']}")


def test_which_one_is_meant(daemon, api, make):
    a, b = make()["id"], make()["id"]
    name = "c" + uuid.uuid4().hex[:8]
    mark = api.ok("POST", f"/v1/sandboxes/{a}/checkpoints", {"name": name})["id"]
    assert api.ok("GET", f"/v1/checkpoints/{name}")["id"] == mark
    twin = api.ok("POST", f"/v1/sandboxes/{b}/checkpoints", {"name": name})["id"]
    api.refused(409, "ambiguous_name", "GET", f"/v1/checkpoints/{name}")
    assert api.ok("GET", f"/v1/checkpoints/{a}:{name}")["id"] == mark
    assert api.ok("GET", f"/v1/checkpoints/{name}?sandbox={b}")["id"] == twin
    for nobody in (f"{b}:", ":", f":{name}", "x" * 100 + ":" + name, f"{a}:{name}:"):
        api.refused(404, "checkpoint_not_found", "GET", f"/v1/checkpoints/{nobody}")
    bad = daemon.cli("restore", a, "--name", "x", name)
    assert bad.returncode == 2 and "--new" in bad.stderr
    assert "ambiguous" not in daemon.cli("restore", a, name).stderr
    until(lambda: api.get(a)["checkpoint"] == mark)
    for c in (mark, twin):
        api.ok("DELETE", f"/v1/checkpoints/{c}")
    missing = daemon.cli("checkpoint", "rm", mark)
    assert missing.returncode == 1 and "no checkpoint" in missing.stderr
