"""Templates built through E2B's Python builder, and sandboxes made from them."""
import json
import pathlib
import random
import tempfile

import e2b
from e2b import BuildException, TemplateBuildStatus, wait_for_file, wait_for_port
from lib import Template, create, fails, main, native, test, until

MARK = f"py{random.randrange(10**9)}"
context = pathlib.Path(tempfile.mkdtemp(prefix="e2b-context-"))
(context / "tree").mkdir()
(context / "a.txt").write_text("one")
(context / "tree/b.txt").write_text("two")
(context / "tree/skip.log").write_text("not this")

# The builder speaks to nobody, and both flavours have the same.
def base(**options):
    return e2b.Template(file_context_path=str(context), **options).from_base_image()


async def build(template, name, **options):
    """What the log of the build said."""
    log = []
    await Template.build(template, name, on_build_logs=lambda entry: log.append(entry.message), **options)
    return log


async def out(name, command):
    return (await (await create(name)).commands.run(command)).stdout


@test("template.build :: steps become a template that sandboxes are made from")
async def _():
    name = f"steps-{MARK}"
    log = await build(base().set_envs({"GREETING": "hi"}).run_cmd(f"echo \"$GREETING\" # {MARK}")
                      .run_cmd(["cd /tmp", "pwd > /home/user/where"]).set_workdir("/srv").set_user("root"), name,
                      cpu_count=1, memory_mb=256, min_free_disk_mb=300)
    assert "hi" in log, log
    assert await out(name, "cat /home/user/where; id -un; pwd; echo $GREETING") == "/tmp\nroot\n/srv\nhi\n"
    info = await (await create(name)).get_info()
    assert (info.template_id, info.cpu_count, info.memory_mb) == (name, 1, 256)


@test("template.copy, copy_items, remove, rename, make_dir, make_symlink :: files and trees")
async def _():
    name = f"files-{MARK}"
    await build(base(file_ignore_patterns=["**/*.log"]).set_workdir("/home/user/app")
                .copy("a.txt", "/home/user/app/renamed.txt", mode=0o600)
                .copy_items([{"src": "tree", "dest": "/home/user/app/tree"}])
                .make_dir("/home/user/app/made", mode=0o700).rename("/home/user/app/renamed.txt", "/home/user/app/moved.txt")
                .make_symlink("moved.txt", "/home/user/app/link").run_cmd("touch gone").remove("/home/user/app/gone"), name)
    assert await out(name, "find . -mindepth 1 | sort; stat -c %a moved.txt made; cat link") == (
        "./link\n./made\n./moved.txt\n./tree\n./tree/b.txt\n600\n700\none")


@test("template.build :: a step that was done before is not done again")
async def _():
    def steps():
        return base().run_cmd(f"date +%N > /tmp/when # cache {MARK}")
    await build(steps(), f"first-{MARK}")
    log = await build(steps(), f"second-{MARK}")
    assert any(line.startswith("CACHED") for line in log), log
    assert await out(f"first-{MARK}", "cat /tmp/when") == await out(f"second-{MARK}", "cat /tmp/when")
    await build(steps(), f"fresh-{MARK}", skip_cache=True)
    assert await out(f"fresh-{MARK}", "cat /tmp/when") != await out(f"first-{MARK}", "cat /tmp/when")


@test("template.build_in_background, get_build_status :: looked at while it goes on")
async def _():
    info = await Template.build_in_background(base().run_cmd(f"echo behind # {MARK}"), f"behind-{MARK}")

    async def status():
        found = await Template.get_build_status(info, logs_offset=0)
        return found if found.status not in (TemplateBuildStatus.BUILDING, TemplateBuildStatus.WAITING) else None
    ended = await until(status, "the build's end", 80)
    assert ended.status == TemplateBuildStatus.READY, ended
    assert "behind" in [e.message for e in ended.log_entries]


@test("template.set_start_cmd, set_ready_cmd :: its sandboxes come with it running")
async def _():
    name = f"start-{MARK}"
    await build(base().set_start_cmd("python3 -m http.server 8123", wait_for_port(8123)), name)
    assert "200" in await out(name, "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8123/")
    await build(base().run_cmd("touch /home/user/there").set_ready_cmd(wait_for_file("/home/user/there")), f"ready-{MARK}")


@test("template.exists, assign_tags, get_tags, remove_tags :: names")
async def _():
    name = f"tags-{MARK}"
    assert not await Template.exists(name) and not await Template.alias_exists(name)
    await build(base(), name, tags=["v1"])
    assert await Template.exists(name)
    await Template.assign_tags(f"{name}:v1", ["stable"])
    assert {"v1", "stable"} <= {t.tag for t in await Template.get_tags(name)}
    assert await out(f"{name}:stable", "echo here") == "here\n"
    await Template.remove_tags(name, ["stable"])
    assert "stable" not in {t.tag for t in await Template.get_tags(name)}


@test("template.from_template :: on what was built before")
async def _():
    await build(base().run_cmd("echo parent > /home/user/p"), f"parent-{MARK}")
    await build(e2b.Template().from_template(f"parent-{MARK}").run_cmd("cat p > child"), f"child-{MARK}")
    assert await out(f"child-{MARK}", "cat child") == "parent\n"


@test("template.from_dockerfile :: as it stands")
async def _():
    await build(e2b.Template().from_dockerfile("FROM e2bdev/base\nENV GREETING=docker\nRUN echo $GREETING > /tmp/said\n"),
                f"docker-{MARK}")
    assert await out(f"docker-{MARK}", "cat /tmp/said") == "docker\n"


@test("BuildException :: a step that fails is told in E2B's words")
async def _():
    name = f"fails-{MARK}"
    await fails(BuildException, build(base().run_cmd("exit 7"), name), "failed to run command 'exit 7'", "exit status 7")
    await fails(BuildException, build(base().run_cmd("whoami", user="root123"), name),
                "failed to run command 'whoami'", "invalid username: 'root123'")
    assert not [t for t in native("GET", "/v1/templates")["templates"] if t["name"] == name]


@test("template.pip_install, npm_install, bun_install, apt_install, git_clone :: run what they say, as whom they say")
async def _():
    # A program that writes down how it was called stands in for each: there is no index to fetch from.
    fake = ("for p in pip npm bun apt-get git; do printf '#!/bin/sh\\necho $(id -un): $(basename $0) \"$@\" >> /calls\\n'"
            " > /usr/local/bin/$p; chmod 755 /usr/local/bin/$p; done; touch /calls; chmod 666 /calls")
    await build(base().run_cmd(fake, user="root").pip_install(packages="numpy").pip_install(["a", "b"], g=False)
                .npm_install(["x", "y"], dev=True).bun_install("x", g=True)
                .apt_install(["vim"], no_install_recommends=True, fix_missing=True)
                .git_clone("https://example.test/r.git", "/srv/r", branch="main", depth=1), f"fakes-{MARK}")
    assert [" ".join(line.split()) for line in (await out(f"fakes-{MARK}", "cat /calls")).splitlines()] == [
        "root: pip install numpy", "user: pip install --user a b", "user: npm install --save-dev x y",
        "root: bun install -g x", "root: apt-get update",
        "root: apt-get install -y --no-install-recommends --fix-missing vim",
        "user: git clone https://example.test/r.git --branch main --single-branch --depth 1 /srv/r"]


@test("template.to_json, to_dockerfile :: say what was put together")
async def _():
    new = e2b.Template
    for begun, image in ((new().from_debian_image(variant="12"), "debian:12"), (new().from_ubuntu_image(), "ubuntu:"),
                         (new().from_fedora_image(), "fedora:"), (new().from_alpine_image(), "alpine:"),
                         (new().from_arch_image(), "archlinux:"), (new().from_python_image(version="3.12"), "python:3.12"),
                         (new().from_node_image(), "node:"), (new().from_bun_image(), "oven/bun:"),
                         (new().from_base_image(), "e2bdev/base")):
        text = e2b.Template.to_dockerfile(begun)
        assert text.startswith(f"FROM {image}"), text
    made = base().copy("a.txt", "/a", force_upload=True, resolve_symlinks=True).skip_cache().run_cmd("true")
    steps = json.loads(e2b.Template.to_json(made))["steps"]
    assert [s["type"] for s in steps] == ["COPY", "RUN"] and steps[1]["force"]


@test("template.from_image, from_aws_registry, from_gcp_registry :: an image that no registry here has is told by its name")
async def _():
    nowhere = "127.0.0.1:1/nothing"
    for template in (e2b.Template().from_image(nowhere, username="u", password="p"),
                     e2b.Template().from_aws_registry(nowhere, access_key_id="i", secret_access_key="s", region="r"),
                     e2b.Template().from_gcp_registry(nowhere, service_account_json={"a": 1})):
        await fails(BuildException, build(template, f"nowhere-{MARK}"))


main()
