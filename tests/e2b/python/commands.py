"""Commands and terminals, through E2B's Python client."""
import asyncio
import hashlib

from e2b import (CommandExitException, InvalidArgumentException, NotFoundException, PtySize, SandboxException,
                 TimeoutException)
from lib import SYNC, create, fails, main, test, until

sbx = None


async def box():
    global sbx
    sbx = sbx or await create(envs={"FROM": "sandbox"})
    return sbx


@test("commands.run :: both streams and the exit code")
async def _():
    r = await (await box()).commands.run("echo out; echo err >&2; echo $FROM")
    assert (r.stdout, r.stderr, r.exit_code, r.error) == ("out\nsandbox\n", "err\n", 0, None)


@test("commands.run :: a command that fails is a CommandExitException with its output")
async def _():
    e = await fails(CommandExitException, (await box()).commands.run("echo some; echo bad >&2; exit 3"))
    assert (e.exit_code, e.stdout, e.stderr) == (3, "some\n", "bad\n")
    assert (await fails(CommandExitException, sbx.commands.run("no-such-program"))).exit_code == 127


@test("commands.run on_stdout, on_stderr :: output comes while the command runs")
async def _():
    seen = []
    release = "/tmp/release"

    async def run():
        return await (await box()).commands.run(f"echo first; while [ ! -e {release} ]; do sleep 0.02; done; echo err >&2",
                                                on_stdout=lambda t: seen.append(t), on_stderr=lambda t: seen.append(t))
    running = asyncio.create_task(run())
    await until(lambda: seen == ["first\n"], "the first line")
    await sbx.files.write(release, "")
    assert (await running).exit_code == 0 and seen == ["first\n", "err\n"]


@test("commands.run user, cwd, envs :: they are the caller's")
async def _():
    r = await (await box()).commands.run("id -un; pwd; echo $MINE $FROM", user="root", cwd="/tmp", envs={"MINE": "ours"})
    assert r.stdout == "root\n/tmp\nours sandbox\n"
    await fails(InvalidArgumentException, sbx.commands.run("true", cwd="/nope"), "/nope")
    await fails(Exception, sbx.commands.run("true", user="nobody-here"), "invalid username: 'nobody-here'")


@test("commands.run timeout :: a command over its time is ended")
async def _():
    await fails(TimeoutException, (await box()).commands.run("exec sleep 77", timeout=0.5))

    async def gone():
        return not [p for p in await sbx.commands.list() if "exec sleep 77" in p.args]
    await until(gone, "its end")


@test("commands.run background, list, kill :: a handle has the pid, what runs is listed and ended")
async def _():
    handle = await (await box()).commands.run("sleep 600", background=True, timeout=0)
    [p] = [p for p in await sbx.commands.list() if p.pid == handle.pid]
    assert p.cmd == "/bin/bash" and p.args == ["-l", "-c", "sleep 600"]
    assert await handle.kill()
    await fails(CommandExitException, handle.wait())
    assert not await sbx.commands.kill(handle.pid)


@test("commands.connect :: another client gets the output so far and what follows")
async def _():
    handle = await (await box()).commands.run("echo before; read line; echo got $line", background=True, stdin=True, timeout=0)
    await handle.disconnect()
    again = await sbx.commands.connect(handle.pid)
    await sbx.commands.send_stdin(handle.pid, "more\n")
    r = await again.wait()
    assert r.stdout.endswith("got more\n"), r
    await fails(NotFoundException, sbx.commands.connect(999999))


@test("commands.run retain_output :: what callers were told of is not kept")
async def _():
    seen = []
    r = await (await box()).commands.run("echo told", on_stdout=lambda t: seen.append(t), retain_output=False)
    assert r.stdout is None and seen == ["told\n"]


@test("commands.send_stdin, close_stdin :: by pid and by handle")
async def _():
    handle = await (await box()).commands.run("cat", background=True, stdin=True, timeout=0)
    await sbx.commands.send_stdin(handle.pid, "by pid\n")
    await handle.send_stdin(b"by handle\n")
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "by pid\nby handle\n"
    other = await sbx.commands.run("cat", background=True, stdin=True, timeout=0)
    await sbx.commands.close_stdin(other.pid)
    assert (await other.wait()).stdout == ""
    await fails(SandboxException, sbx.commands.send_stdin(999999, "x"))


@test("commands.stream_input :: megabytes by one request, in order")
async def _():
    handle = await (await box()).commands.run("sha256sum | cut -c1-64", background=True, stdin=True, timeout=0)
    pieces = [bytes([i % 251]) * 10_000 for i in range(200)]
    if SYNC:
        await sbx.commands.stream_input(handle.pid, iter(pieces))
    else:
        async with sbx.commands.stream_input(handle.pid) as stream:
            for piece in pieces:
                await stream.send(piece)
    await handle.close_stdin()
    assert (await handle.wait()).stdout.strip() == hashlib.sha256(b"".join(pieces)).hexdigest()


@test("commands.run :: megabytes arrive whole, in any language")
async def _():
    r = await (await box()).commands.run("seq 1 200000")
    assert r.stdout == "".join(f"{i}\n" for i in range(1, 200001))
    text = "žluťoučký 你好 🙂"
    assert (await sbx.commands.run(f"printf %s '{text}'")).stdout == text


@test("commands.run :: many at once")
async def _():
    await box()
    results = await asyncio.gather(*(sbx.commands.run(f"echo {i}") for i in range(20)))
    assert [r.stdout for r in results] == [f"{i}\n" for i in range(20)]


@test("commands.run request_timeout :: it is for the start, not for the command")
async def _():
    assert (await (await box()).commands.run("sleep 1; echo done", request_timeout=0.9)).stdout == "done\n"


class Terminal:
    """A terminal and all that it showed."""

    async def open(self, **options):
        await box()
        self.shown = bytearray()
        if SYNC:
            self.handle = await sbx.pty.create(PtySize(rows=24, cols=80), **options)
            self.reading = asyncio.create_task(self.handle.wait(on_pty=self.shown.extend))
        else:
            self.handle = await sbx.pty.create(PtySize(rows=24, cols=80), on_data=self.shown.extend, **options)
            self.reading = asyncio.create_task(self.handle.wait())
        return self

    async def shows(self, text):
        await until(lambda: text in self.shown.decode(errors="replace"), f"{text!r} in {bytes(self.shown)!r}")


@test("pty.create, resize, send_stdin :: a terminal echoes, takes a size and ends")
async def _():
    t = await Terminal().open(cwd="/tmp", envs={"MINE": "ours"}, user="root", timeout=0)
    await sbx.pty.send_stdin(t.handle.pid, b"echo $MINE-$(pwd)-$(id -un)\n")
    await t.shows("ours-/tmp-root")
    await sbx.pty.resize(t.handle.pid, PtySize(rows=50, cols=132))
    await sbx.pty.send_stdin(t.handle.pid, b"stty size\n")
    await t.shows("50 132")
    await sbx.pty.send_stdin(t.handle.pid, b"exit\n")
    assert (await t.reading).exit_code == 0


@test("pty.stream_input :: keys by one request")
async def _():
    t = await Terminal().open(timeout=0)
    if SYNC:
        await sbx.pty.stream_input(t.handle.pid, iter([b"echo st", b"reamed-$((40+2))\n"]))
    else:
        async with sbx.pty.stream_input(t.handle.pid) as stream:
            await stream.send(b"echo st")
            await stream.send(b"reamed-$((40+2))\n")
            await stream.close()
    await t.shows("streamed-42")
    assert await sbx.pty.kill(t.handle.pid)
    await asyncio.gather(t.reading, return_exceptions=True)
    assert not await sbx.pty.kill(t.handle.pid)


@test("pty.connect :: another client goes on with it")
async def _():
    t = await Terminal().open(timeout=0)
    shown = bytearray()
    if SYNC:
        other = await sbx.pty.connect(t.handle.pid)
        reading = asyncio.create_task(other.wait(on_pty=shown.extend))
    else:
        other = await sbx.pty.connect(t.handle.pid, on_data=shown.extend)
        reading = asyncio.create_task(other.wait())
    await sbx.pty.send_stdin(t.handle.pid, b"echo both-$((40+2))\n")
    await t.shows("both-42")
    await until(lambda: b"both-42" in shown, "the other's")
    await sbx.pty.kill(t.handle.pid)
    await asyncio.gather(t.reading, reading, return_exceptions=True)


main()
