"""The Python client's checkpoints against a real daemon: every method."""
import pytest

from sdk_kit import client, warren  # noqa: F401 - a fixture


def test_all_of_it(client):
    with client.sandboxes.create("tiny") as box:
        box.files.write("/root/state", "one\n")
        first = box.checkpoint("py-first", comment="c", metadata={"k": "v"})
        assert (first.sandbox, first.name, first.metadata, first.reason) == (box.id, "py-first", {"k": "v"}, "asked")
        assert first.frozen_ms is not None and first.created_at is not None
        box.files.write("/root/state", "two\n")
        diff = client.checkpoints.diff("py-first", box.id, "/root", text=True)
        assert (diff.changed, diff.changes[0].path) == (1, "/root/state")
        assert diff.changes[0].text == "@@ -1,1 +1,1 @@\n-one\n+two\n"
        assert box.restore("py-first").state == "running"
        assert box.files.read_text("/root/state") == "one\n"

        copies = box.fork(2)
        assert all(c.info.forked_from == box.id for c in copies)
        copies[1].files.write("/root/state", "best\n")
        assert copies[1].promote(end=True).id == box.id
        assert box.files.read_text("/root/state") == "best\n"
        copies[0].delete()

        with client.checkpoints.start(f"{box.id}:py-first", "py-old") as old:
            assert old.files.read_text("/root/state") == "one\n"
        with client.checkpoints.export("py-first") as file:
            data = b"".join(file.chunks())
        again = client.checkpoints.import_file(data, "py-again")
        assert (again.name, again.reason) == ("py-again", "import")
        with client.checkpoints.start(again.id) as copy:
            assert copy.files.read_text("/root/state") == "one\n"
        small = client.checkpoints.export("py-first", image=False).read()
        assert len(small) < len(data)
        made = [c.id for c in box.checkpoints()]
        assert first.id in made and {c.id for c in client.checkpoints.list()} >= set(made)
        assert client.checkpoints.get(first.id).comment == "c"
    for one in {c.id for c in client.checkpoints.list()} & {*made, again.id, *(c.info.checkpoint for c in copies)}:
        client.checkpoints.delete(one)
    with pytest.raises(warren.NotFound):
        client.checkpoints.get(first.id)
