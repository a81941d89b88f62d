"""Files, one by one and in bulk: a directory goes in, is worked on, and comes out again."""
import pathlib
import tempfile

from warren_sandbox import Client

with Client().sandboxes.create(timeout_s=300) as box, tempfile.TemporaryDirectory() as here:
    box.files.write("notes/today.txt", "buy milk\n")
    box.files.append("notes/today.txt", "buy bread\n")
    print(box.files.read_text("notes/today.txt"), end="")
    print([e.name for e in box.files.list("notes")], box.files.stat("notes/today.txt").size)

    source = pathlib.Path(here, "source")
    (source / "data").mkdir(parents=True)
    for n in range(100):
        (source / "data" / f"{n}.txt").write_text(f"number {n}\n")
    sent = box.files.upload_dir(source, "/root/work")
    print("sent", sent.files, "files,", sent.bytes, "bytes")
    assert sent.files == 100

    found = box.files.search("/root/work", "number 7")
    print(len(found.matches), "matches")
    assert len(found.matches) == 11

    box.run("cat data/*.txt | wc -l > count", cwd="/root/work", check=True)
    files, size, left_out = box.files.download_dir("/root/work", pathlib.Path(here, "back"))
    print("got", files, "files,", size, "bytes")
    assert pathlib.Path(here, "back/count").read_text().strip() == "100" and not left_out
print("done")
