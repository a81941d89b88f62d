"""The JavaScript client: compiled, its own tests run under node against a real daemon, its examples."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from harness import ROOT, until

SDK = ROOT / "sdk/typescript"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package, built; nothing is written into the tree."""
    top = tmp_path_factory.mktemp("ts") / "package"
    shutil.copytree(SDK, top, ignore=shutil.ignore_patterns("node_modules", "dist"))
    for command in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "build"]):
        done = subprocess.run(command, cwd=top, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return top


@pytest.fixture
def node(package, daemon, tiny_tar):
    def run(*args, **env):
        everything = {**os.environ, "WARREN_URL": daemon.url, "WARREN_API_KEY": daemon.key,
                      "WARREN_SOCKET": f"{daemon.run}/warren.sock", "WARREN_TINY": str(tiny_tar), **env}
        return subprocess.run(["node", *map(str, args)], cwd=package, env=everything,
                              capture_output=True, text=True, timeout=400)
    return run


@pytest.mark.parametrize("name", sorted(p.name for p in (SDK / "test").glob("*.test.mjs")))
def test_under_node(node, name):
    done = node("--test", "--test-reporter=tap", f"test/{name}")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.M).group(1)) > 5, done.stdout[-2000:]
    assert re.search(r"^# fail 0$", done.stdout, re.M)


@pytest.mark.parametrize("name", sorted(p.name for p in (SDK / "examples").glob("*.mjs")))
def test_examples(node, name):
    done = node(f"examples/{name}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("done"), done.stdout


def test_the_readme_runs(node, package):
    code = (SDK / "README.md").read_text().split("```js\n")[1].split("```")[0]
    (package / "readme.mjs").write_text(code)
    done = node("readme.mjs")
    assert done.returncode == 0, done.stderr
    assert "42" in done.stdout


def test_a_stream_survives_a_restart_of_the_daemon(package, fresh):
    """What was printed while nobody listened arrives too, once and in order."""
    program = """
import { Client } from "warren-sandbox";
import fs from "node:fs";
const client = new Client({ retries: 8 });
const box = await client.create({ image: "tiny" });
const process_ = await box.processes.start("while read x; do i=$((i+1)); echo line $i; done", { stdin: true });
const stream = await process_.output();
await process_.write("a\\nb\\n");
let seen = "";
for await (const event of stream) {
  if (event.type !== "stdout") continue;
  seen += event.text;
  if (seen === "line 1\\nline 2\\n") {
    console.log("kill");
    fs.readSync(0, Buffer.alloc(1));
    for (;;) try { if ((await client.health()).keeper) break; } catch {}
    await process_.write("c\\n", { eof: true });
  }
}
console.log(JSON.stringify([seen, stream.exit.exit_code]));
"""
    (package / "restart.mjs").write_text(program)
    child = subprocess.Popen(
        ["node", "restart.mjs"], cwd=package, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "WARREN_URL": fresh.url, "WARREN_API_KEY": fresh.key})
    try:
        assert child.stdout.readline() == "kill\n"
        fresh.process.send_signal(signal.SIGKILL)
        fresh.process.wait()
        fresh.start()
        child.stdin.write("x")
        child.stdin.close()
        assert child.stdout.read() == '["line 1\\nline 2\\nline 3\\n",0]\n'
        assert until(lambda: child.poll() is not None and child.returncode == 0, "the program's end")
    finally:
        child.kill()
        child.wait()


def test_nothing_but_the_language_is_needed(package):
    """No dependency, no Node in what browsers load, no host in the lock file."""
    import json
    assert "dependencies" not in json.loads((SDK / "package.json").read_text())
    for path in (package / "dist").glob("*.js"):
        if path.name != "node.js":
            assert "node:" not in path.read_text(), path.name
    assert "resolved" not in (SDK / "package-lock.json").read_text()
