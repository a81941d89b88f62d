"""`warren volume`, `warren secret`, and --volume."""
import json
import uuid


def test_volumes_by_hand(daemon):
    name = "c" + uuid.uuid4().hex[:8]
    assert daemon.cli("volume", "create", "--size", "64m", name).stdout == name + "\n"
    run = ("run", "--image", "tiny", "--volume")
    assert daemon.cli(*run, f"{name}:/data", "--", "sh", "-c", "echo kept > /data/x").returncode == 0
    assert daemon.cli(*run, f"{name}:/d:ro", "--", "cat", "/d/x").stdout == "kept\n"
    assert daemon.cli(*run, f"{name}:/d:ro", "--", "touch", "/d/y").returncode != 0
    bad = daemon.cli(*run, f"{name}", "--", "true")
    assert bad.returncode != 0 and "NAME:/PATH" in bad.stderr
    assert name in daemon.cli("volume", "ls").stdout
    assert daemon.cli("volume", "resize", name, "128m").returncode == 0
    assert json.loads(daemon.cli("volume", "get", name).stdout)["size_mb"] == 128
    assert daemon.cli("volume", "checkpoint", "--name", "one", "-m", "a word", name).stdout == "one\n"
    listed = daemon.cli("volume", "checkpoints", name).stdout
    assert "one" in listed and "a word" in listed
    assert daemon.cli(*run, f"{name}:/data", "--", "rm", "/data/x").returncode == 0
    assert daemon.cli("volume", "fork", name, "one", name + "-copy").stdout == name + "-copy\n"
    assert daemon.cli("volume", "restore", name, "one").returncode == 0
    for volume in (name, name + "-copy"):
        assert daemon.cli(*run, f"{volume}:/d", "--", "cat", "/d/x").stdout == "kept\n"
    assert daemon.cli("volume", "forget", name, "one").returncode == 0
    assert daemon.cli("volume", "restore", name, "one").returncode != 0
    assert daemon.cli("volume", "rm", name, name + "-copy").returncode == 0
    assert daemon.cli("volume", "rm", name).returncode != 0
    alone = daemon.cli("volume", "create", "--endpoint", "http://h", name)
    assert alone.returncode != 0 and "--bucket" in alone.stderr


def test_secrets_by_hand(daemon):
    name = "c" + uuid.uuid4().hex[:8]
    assert daemon.cli("secret", "set", name, stdin="hunter2\n").stdout == name + "\n"
    again = daemon.cli("--json", "secret", "set", name, stdin="hunter3")
    assert json.loads(again.stdout)["version"] == 2 and "hunter" not in again.stdout
    listed = daemon.cli("secret", "ls").stdout
    assert name in listed and "hunter" not in listed
    assert daemon.cli("secret", "set", name, stdin="").returncode != 0
    assert daemon.cli("secret", "rm", name).returncode == 0
