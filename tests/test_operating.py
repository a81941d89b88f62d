"""What the operator's guide promises."""
import pathlib
import shutil
import subprocess

import pytest


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
