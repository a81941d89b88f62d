"""The life of a sandbox, through E2B's Python client."""
import datetime
import os
import random
import uuid

import e2b
from e2b import (AuthenticationException, FileNotFoundException, InvalidArgumentException, SandboxException,
                 SandboxNotFoundException, SandboxNotRunningException, SandboxQuery, SandboxState, TimeoutException)
from lib import Blocking, Sandbox, Secret, SYNC, create, fails, main, test, until

GONE = "iaaaaaaaaaaaaaaaaaaa"


async def out(sandbox, command, **options):
    return (await sandbox.commands.run(command, **options)).stdout


@test("sandbox.create :: create, connect, look, kill")
async def _():
    sbx = await create(metadata={"app": "first"}, envs={"FROM": "create"}, timeout=120)
    assert await sbx.is_running()
    info = await sbx.get_info()
    assert (info.sandbox_id, info.state, info.metadata) == (sbx.sandbox_id, SandboxState.RUNNING, {"app": "first"})
    assert info.end_at > info.started_at and info.cpu_count >= 1 and info.memory_mb > 0
    again = await Sandbox.connect(sbx.sandbox_id)
    assert await out(again, "echo $FROM $E2B_SANDBOX_ID") == f"create {sbx.sandbox_id}\n"
    assert await Sandbox.kill(sbx.sandbox_id)
    assert not await Sandbox.kill(sbx.sandbox_id)
    assert not await sbx.is_running()


@test("sandbox.create :: the default template, and one of another image")
async def _():
    sbx = await Sandbox.create()
    assert (await sbx.get_info()).template_id == "base"
    await sbx.kill()
    error = await fails(SandboxException, Sandbox.create("no-such-template"), "no-such-template")
    assert error.status_code == 404


@test("sandbox.create idempotency_key :: one sandbox however often it is asked for")
async def _():
    key = str(uuid.uuid4())
    first = await create(idempotency_key=key)
    second = await create(idempotency_key=key)
    assert first.sandbox_id == second.sandbox_id
    assert (await create(idempotency_key=str(uuid.uuid4()))).sandbox_id != first.sandbox_id


@test("sandbox.create allow_internet_access :: without it nothing goes out")
async def _():
    sbx = await create(allow_internet_access=False)
    assert (await sbx.get_info()).allow_internet_access is False
    assert await out(sbx, "(echo > /dev/tcp/192.0.2.1/80) 2>/dev/null || echo closed") == "closed\n"


@test("sandbox.create network :: what goes out, and who comes in")
async def _():
    sbx = await create(network={"deny_out": ["0.0.0.0/0"], "allow_out": ["192.0.2.7"], "allow_public_traffic": False})
    assert sbx.traffic_access_token
    network = (await sbx.get_info()).network
    assert network["allow_out"] == ["192.0.2.7"] and network["deny_out"] == ["0.0.0.0/0"], network
    await sbx.update_network({"deny_out": ["198.51.100.0/24"]})
    network = (await sbx.get_info()).network
    assert network["deny_out"] == ["198.51.100.0/24"] and not network.get("allow_out"), network
    await fails(SandboxNotFoundException, Sandbox.update_network(GONE, {}))


@test("sandbox.create iam :: tokens of identity are refused in words")
async def _():
    iam = {"tokens": {"aws": e2b.Secret.iam_token(audience="sts.example.com", token_type="JWT-SVID")}}
    await fails(SandboxException, Sandbox.create("base", iam=iam), "iam")
    return "tokens of identity"


@test("sandbox.create lifecycle :: at its end it is paused, and resumed by a call")
async def _():
    sbx = await create(timeout=2, lifecycle={"on_timeout": {"action": "pause", "mode": "filesystem"}})
    await sbx.files.write("kept", "yes")

    async def paused():
        return (await sbx.get_info()).state == SandboxState.PAUSED
    await until(paused, "its pause")
    await fails(SandboxNotRunningException, sbx.commands.run("true"))
    await sbx.connect(timeout=60)
    assert await sbx.files.read("kept") == "yes"


@test("sandbox.pause :: the processes go on")
async def _():
    sbx = await create()
    handle = await sbx.commands.run("sleep 600", background=True, timeout=0)
    assert await sbx.pause(strict=True)
    assert not await sbx.pause()
    assert (await sbx.get_info()).state == SandboxState.PAUSED
    back = await Sandbox.connect(sbx.sandbox_id, timeout=60)
    assert handle.pid in [p.pid for p in await back.commands.list()]


@test("sandbox.pause mode :: files alone are kept")
async def _():
    sbx = await create()
    await sbx.commands.run("sleep 600", background=True, timeout=0)
    await sbx.files.write("kept", "yes")
    assert await sbx.pause(mode="filesystem")
    await sbx.connect(timeout=60)
    assert await sbx.files.read("kept") == "yes"
    assert await sbx.commands.list() == []


@test("sandbox.connect on_resume :: a new start from the disk, without the processes")
async def _():
    sbx = await create()
    await sbx.commands.run("sleep 600", background=True, timeout=0)
    await sbx.files.write("kept", "yes")
    await sbx.pause()
    back = await Sandbox.connect(sbx.sandbox_id, timeout=60, on_resume="reboot")
    assert await back.files.read("kept") == "yes"
    assert await back.commands.list() == []


@test("sandbox.connect timeout :: it makes a life longer, never shorter")
async def _():
    sbx = await create(timeout=120)
    before = (await sbx.get_info()).end_at
    await Sandbox.connect(sbx.sandbox_id, timeout=1)
    assert (await sbx.get_info()).end_at == before
    await sbx.connect(timeout=600)
    assert (await sbx.get_info()).end_at > before


@test("sandbox.create_snapshot, list_snapshots, delete_snapshot :: others start from it")
async def _():
    sbx = await create()
    await sbx.files.write("state", "then")
    name = f"py{random.randrange(10**9)}"
    snapshot = await sbx.create_snapshot(name=name)
    await sbx.files.write("state", "now")
    listed = await sbx.list_snapshots().next_items()
    assert snapshot.snapshot_id in [s.snapshot_id for s in listed]
    assert await (await create(snapshot.snapshot_id)).files.read("state") == "then"
    assert await (await create(name)).files.read("state") == "then"
    assert await Sandbox.delete_snapshot(snapshot.snapshot_id)
    assert not await Sandbox.delete_snapshot(snapshot.snapshot_id)


@test("sandbox.fork :: copies go on where it is")
async def _():
    sbx = await create()
    await sbx.files.write("mine", "shared")
    copies = await sbx.fork(count=2, timeout=60)
    assert len(copies) == 2 and sbx.sandbox_id not in {c.sandbox_id for c in copies}
    for copy in copies:
        assert await copy.files.read("mine") == "shared"
        await copy.kill()


@test("sandbox.set_timeout :: the time to live can be set and ends it")
async def _():
    sbx = await create(timeout=60)
    before = (await sbx.get_info()).end_at
    await sbx.set_timeout(600)
    assert (await sbx.get_info()).end_at > before
    await Sandbox.set_timeout(sbx.sandbox_id, 1)

    async def over():
        return not await sbx.is_running()
    await until(over, "its end")
    await fails(SandboxNotRunningException, sbx.commands.run("true"))
    await fails(SandboxNotRunningException, sbx.files.read("x"))
    await fails(SandboxNotFoundException, sbx.set_timeout(10))


@test("sandbox.list :: filters, order and pages")
async def _():
    mark = f"m {random.random()}&=%"
    ids = [(await create(metadata={"a key&": mark})).sandbox_id for _ in range(3)]
    query = SandboxQuery(metadata={"a key&": mark}, state=[SandboxState.RUNNING], template="base")
    pages = Sandbox.list(query=query, limit=2, order="asc")
    first = await pages.next_items()
    assert pages.has_next
    more = Sandbox.list(query=query, limit=2, order="asc", next_token=pages.next_token)
    rest = await pages.next_items()
    assert [s.sandbox_id for s in await more.next_items()] == ids[2:]
    assert [s.sandbox_id for s in first + rest] == ids and not pages.has_next
    assert await Sandbox.list(query=SandboxQuery(metadata={"a key&": "other"})).next_items() == []
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    assert await Sandbox.list(query=SandboxQuery(metadata={"a key&": mark}, started_after=later)).next_items() == []


@test("sandbox.get_metrics :: usage is measured")
async def _():
    sbx = await create()
    [m, *_] = await sbx.get_metrics()
    assert m.mem_total > 0 and m.disk_total > 0 and m.cpu_count >= 1 and m.mem_used > 0 and m.mem_cache >= 0
    soon = datetime.datetime.now() + datetime.timedelta(hours=1)
    assert await sbx.get_metrics(start=soon, end=soon + datetime.timedelta(hours=1)) == []


@test("sandbox.get_host :: a name for each port")
async def _():
    sbx = await create()
    assert sbx.get_host(3000) == f"3000-{sbx.sandbox_id}.{sbx.sandbox_domain}"
    assert sbx.get_mcp_url() == f"https://{sbx.get_host(50005)}/mcp"
    await fails(FileNotFoundException, sbx.get_mcp_token())  # no gateway was asked for


@test("errors :: a wrong key, and what is not there")
async def _():
    await fails(AuthenticationException, Sandbox.create("base", api_key="e2b_" + "0" * 40))
    await fails(SandboxNotFoundException, Sandbox.connect(GONE))
    await fails(SandboxNotFoundException, Sandbox.get_info(GONE))
    assert not await Sandbox.kill(GONE)
    await fails(InvalidArgumentException, create(idempotency_key="Not A Key"))
    await fails(SandboxException, Sandbox.create("base", timeout=-1))


@test("errors :: a sandbox killed under a command ends the call")
async def _():
    sbx = await create()
    handle = await sbx.commands.run("sleep 1000", background=True, timeout=0)
    await sbx.kill()
    await fails(TimeoutException, handle.wait())


@test("sandbox.git :: a repository is made, changed, branched and cloned")
async def _():
    sbx = await create()
    git = sbx.git
    await git.init("repo", initial_branch="main")
    await git.configure_user("Tester", "tester@example.com")
    await sbx.files.write("repo/a.txt", "one")
    assert [f.name for f in (await git.status("repo")).file_status] == ["a.txt"]
    await git.add("repo")
    await git.commit("repo", "first")
    await git.create_branch("repo", "other")
    assert (await git.branches("repo")).current_branch == "other"
    await git.checkout_branch("repo", "main")
    await git.clone("/home/user/repo", "copy")
    assert await sbx.files.read("copy/a.txt") == "one"
    assert (await git.status("copy")).is_clean


@test("E2B :: a client with options of its own")
async def _():
    client = e2b.E2B(api_key=os.environ["E2B_API_KEY"], api_url=os.environ["E2B_API_URL"],
                     sandbox_url=os.environ["E2B_SANDBOX_URL"], request_timeout=30)
    Own = Blocking(client.Sandbox) if SYNC else client.AsyncSandbox
    sbx = await create(Class=Own)
    assert await out(sbx, "echo here") == "here\n"
    wrong = e2b.E2B(api_key="e2b_" + "0" * 40)
    await fails(AuthenticationException, (Blocking(wrong.Sandbox) if SYNC else wrong.AsyncSandbox).create())


@test("Secret :: made, filled in on the way out, changed, listed and removed")
async def _():
    name = f"py{random.randrange(10**9)}"
    made = await Secret.create(name, "value-one", metadata={"for": "tests"})
    assert await Secret.exists(name) and made.name == name
    assert (await Secret.get_info(name)).metadata == {"for": "tests"}
    await Secret.update(name, "value-two")
    assert name in [s.name for s in await Secret.list().next_items()]
    sbx = await create(network={"rules": {"api.example.com": [
        {"transform": {"headers": {"Authorization": f"Bearer {Secret.fill(name)}"}}}]}})
    assert "value-two" not in str(await sbx.get_info())
    await sbx.kill()
    assert await Secret.destroy(name)
    assert not await Secret.destroy(name)


main()
