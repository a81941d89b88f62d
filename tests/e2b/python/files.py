"""Files and volumes, through E2B's Python client."""
import asyncio
import io
import urllib.error
import urllib.request
import uuid

from e2b import (FileNotFoundException, FileType, FilesystemEventType, InvalidArgumentException, VolumeException,
                 VolumeNotFoundException, VolumePathNotFoundException, get_signature)
from lib import SYNC, Volume, create, fails, main, test, until

sbx = None


async def files():
    global sbx
    sbx = sbx or await create()
    return sbx.files


async def pieces(stream):
    """All that a stream of bytes gives."""
    if hasattr(stream, "__aiter__"):
        return b"".join([p async for p in stream])
    return await asyncio.to_thread(b"".join, stream)


@test("files.write, files.read :: text, bytes and streams, relative to the home")
async def _():
    f = await files()
    info = await f.write("note.txt", "hello")
    assert (info.path, info.name, info.type) == ("/home/user/note.txt", "note.txt", FileType.FILE)
    assert await f.read("/home/user/note.txt") == "hello"
    data = bytes(range(256)) * 400
    await f.write("deep/er/data.bin", data)
    assert await f.read("deep/er/data.bin", format="bytes") == data
    await f.write("from-a-file", io.BytesIO(data))
    assert await pieces(await f.read("from-a-file", format="stream")) == data
    await f.write("empty", "")
    assert await f.read("empty") == ""


@test("files.write gzip, use_octet_stream :: packed on the way, whole at its end")
async def _():
    f = await files()
    data = b"again and again " * 20_000
    await f.write("packed", data, gzip=True)
    assert await f.read("packed", format="bytes", gzip=True) == data
    await f.write("octets", data, use_octet_stream=True)
    assert await f.read("octets", format="bytes") == data


@test("files.write_files :: many at once")
async def _():
    f = await files()
    written = await f.write_files([{"path": f"many/{i}.txt", "data": f"n{i}"} for i in range(20)])
    assert [w.path for w in written] == [f"/home/user/many/{i}.txt" for i in range(20)]
    assert await f.read("many/19.txt") == "n19"


@test("files.write metadata :: kept with the file")
async def _():
    f = await files()
    info = await f.write("tagged", "x", metadata={"source": "tests"})
    assert info.metadata == {"source": "tests"}
    assert (await f.get_info("tagged")).metadata == {"source": "tests"}


@test("files.write user :: the file is that user's")
async def _():
    f = await files()
    await f.write("/root/secret", "x", user="root")
    info = await f.get_info("/root/secret", user="root")
    assert (info.owner, info.size, info.permissions) == ("root", 1, "-rw-r--r--")


@test("files.make_dir, list, rename, remove, exists :: directories")
async def _():
    f = await files()
    assert await f.make_dir("dir/sub")
    assert not await f.make_dir("dir/sub")
    await f.write("dir/sub/f", "x")
    assert [(e.name, e.path, e.type) for e in await f.list("dir", depth=2)] == [
        ("sub", "/home/user/dir/sub", FileType.DIR), ("f", "/home/user/dir/sub/f", FileType.FILE)]
    assert (await f.rename("dir/sub/f", "elsewhere/g")).path == "/home/user/elsewhere/g"
    await f.remove("dir")
    assert not await f.exists("dir") and await f.exists("elsewhere/g")
    await fails(FileNotFoundException, f.read("nope"))
    await fails(FileNotFoundException, f.list("nope"))
    await fails(FileNotFoundException, f.get_info("nope"))
    await fails(InvalidArgumentException, f.read("/home/user"))


class Watch:
    """A watch and all that it told: a stream in one flavour, looked for in the other."""

    async def start(self, path, **options):
        self.told = []
        if SYNC:
            self.handle = await (await files()).watch_dir(path, **options)
        else:
            self.handle = await (await files()).watch_dir(path, on_event=self.told.append, **options)
        return self

    async def tells(self, *wanted):
        """These follow each other in what it tells, with nothing between them."""
        async def look():
            if SYNC:
                self.told += await self.handle.get_new_events()
            said = [(e.type, e.name) for e in self.told]
            return any(tuple(said[i:i + len(wanted)]) == wanted for i in range(len(said)))
        try:
            await until(look, "", 20)
        except AssertionError:
            raise AssertionError(f"{wanted} is not in {self.told}") from None

    def entry(self, kind, name):
        return next(e.entry for e in self.told if (e.type, e.name) == (kind, name))


CREATE, CHMOD, WRITE, REMOVE, RENAME = (FilesystemEventType[n] for n in ("CREATE", "CHMOD", "WRITE", "REMOVE", "RENAME"))


@test("files.watch_dir :: a file that is written is told as E2B tells it")
async def _():
    f = await files()
    await f.make_dir("watched")
    w = await Watch().start("watched", recursive=True)
    await f.write("watched/a", "1")
    await w.tells((CREATE, "a"), (CHMOD, "a"), (WRITE, "a"))
    await f.write("watched/b", "1")
    await f.write("watched/a", "2")
    await w.tells((WRITE, "b"), (CHMOD, "a"), (WRITE, "a"))
    await f.make_dir("watched/later")
    await w.tells((CREATE, "later"))
    await f.write("watched/later/b", "2")
    await w.tells((WRITE, "later/b"))
    await f.rename("watched/a", "watched/c")
    await w.tells((RENAME, "a"), (CREATE, "c"))
    await f.remove("watched/c")
    await w.tells((REMOVE, "c"))
    await w.handle.stop()
    await fails(FileNotFoundException, Watch().start("nope"))


@test("files.watch_dir include_entry :: what it is now")
async def _():
    f = await files()
    await f.make_dir("described")
    w = await Watch().start("described", include_entry=True)
    await f.write("described/a", "12345")
    await w.tells((WRITE, "a"))
    assert w.entry(WRITE, "a").size == 5
    await w.handle.stop()


@test("files.watch_dir timeout, on_exit :: it ends by itself, and says so", only="async")
async def _():
    ended = []
    await (await files()).make_dir("ending")
    await sbx.files.watch_dir("ending", on_event=lambda e: None, on_exit=ended.append, timeout=0.5)
    await until(lambda: ended, "the end of the watch")


def fetch(url, data=None):
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/octet-stream"} if data else {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, b""


@test("download_url, upload_url :: links with a signature, and without a valid one")
async def _():
    f = await files()
    await f.write("linked.txt", "through a link")
    url = sbx.download_url("linked.txt", use_signature_expiration=60)
    assert fetch(url) == (200, b"through a link")
    assert fetch(url.replace("linked.txt", "note.txt"))[0] == 401
    assert fetch(sbx.download_url("linked.txt", use_signature_expiration=-10))[0] == 401
    assert fetch(sbx.upload_url("uploaded.txt"), b"sent")[0] == 200
    assert await f.read("uploaded.txt") == "sent"


@test("get_signature :: as E2B makes it")
async def _():
    # get_signature(path, operation, user, token): the vector of E2B's own documentation.
    assert get_signature("", "write", "", "tok123")["signature"] == "v1_IRUdH3q1eblRa51Oe8cPYb6nPrDFzSdh3EscgPkD+YA"


volume = None


async def kept():
    global volume
    volume = volume or await Volume.create("py" + uuid.uuid4().hex[:8])
    return volume


@test("Volume.create, connect, get_info, list :: a name, an id and a token")
async def _():
    v = await kept()
    assert v.token
    info = await Volume.get_info(v.volume_id)
    assert (info.volume_id, info.name, info.token) == (v.volume_id, v.name, v.token)
    assert v.name in [x.name for x in await Volume.list()]
    assert (await Volume.connect(v.volume_id)).name == v.name
    await fails(VolumeException, Volume.create(v.name))
    await fails(VolumeNotFoundException, Volume.get_info("aaaaaaaaaaaaaaaaaaaa"))


@test("volume.write_file, read_file :: text, bytes and streams; owner and mode as asked")
async def _():
    v = await kept()
    data = bytes(range(256)) * 1000
    await v.write_file("/text", "grüße")
    await v.write_file("/deep/er/bytes", data)
    await v.write_file("/file", io.BytesIO(data))
    assert await v.read_file("/text") == "grüße"
    assert await v.read_file("/deep/er/bytes", format="bytes") == data
    assert await pieces(await v.read_file("/file", format="stream")) == data
    await fails(VolumeException, v.write_file("/text", "two", force=False))
    info = await v.write_file("/text", "two", uid=1000, gid=1001, mode=0o640, force=True)
    assert (info.path, info.size, info.uid, info.gid, info.mode & 0o7777) == ("/text", 3, 1000, 1001, 0o640)
    await fails(VolumePathNotFoundException, v.read_file("/nope"))


@test("volume.make_dir, list, get_info, update_metadata, exists, remove :: what is in it")
async def _():
    v = await kept()
    await v.make_dir("/d/e", force=True)
    await v.write_file("/d/e/f", "x")
    assert [e.path for e in await v.list("/d")] == ["/d/e"]
    assert [e.path for e in await v.list("/d", depth=2)] == ["/d/e", "/d/e/f"]
    assert (await v.get_info("/d/e/f")).size == 1
    assert (await v.update_metadata("/d/e/f", mode=0o600)).mode & 0o7777 == 0o600
    assert await v.exists("/d/e/f")
    await v.remove("/d")
    assert not await v.exists("/d/e/f")
    await fails(VolumePathNotFoundException, v.remove("/d"))


@test("sandbox.create volume_mounts, Volume.destroy :: it outlives the sandboxes that have it")
async def _():
    v = await kept()
    await v.write_file("/in", "from outside")
    one = await create(volume_mounts={"/mnt/v": v})
    assert await one.files.read("/mnt/v/in") == "from outside"
    await one.files.write("/mnt/v/out", "from inside")
    await one.kill()
    assert await v.read_file("/out") == "from inside"
    assert await Volume.destroy(v.volume_id)
    assert not await Volume.destroy(v.volume_id)


main()
