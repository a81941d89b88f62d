"""The two commands: what a stranger types first."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import urllib.request

import pytest

from harness import BUILD, ROOT, Daemon, free_port, leftovers, until


def dev(*args, env=None, timeout=900):
    return subprocess.run([str(ROOT / "dev"), *args], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, **(env or {})})


def test_help_names_every_command():
    done = dev("help")
    assert done.returncode == 0
    for command in "up down build image criu test recipes bench soak asan tsan fuzz lint fmt install package clean".split():
        assert re.search(rf"^  {command} ", done.stdout, re.M), command


def test_an_unknown_command_is_refused_with_the_help():
    done = dev("fly")
    assert done.returncode != 0
    assert "no command 'fly'" in done.stderr and "usage:" in done.stderr


def test_an_unknown_recipe_is_refused_with_the_names():
    done = subprocess.run([ROOT / "images/build", "../base"], capture_output=True, text=True)
    assert done.returncode == 2
    for name in "base code-interpreter claude desktop".split():
        assert name in done.stderr
        template = json.loads((ROOT / f"images/{name}.json").read_text())
        assert template["name"] == template["image"] == name and template["public"] is True


def test_a_recipe_needs_a_daemon_to_hand_it_to():
    done = subprocess.run([ROOT / "images/warren-image", "base"], capture_output=True, text=True,
                          env={**os.environ, "WARREN_SOCKET": "/nowhere/warren.sock"}, timeout=60)
    assert done.returncode == 1 and "no daemon answers at /nowhere/warren.sock" in done.stderr


def test_a_built_in_image_that_is_missing_says_how_to_get_it(api):
    error = api.refused(404, "image_not_found", "POST", "/v1/sandboxes", {"image": "desktop"})
    assert "sudo warren-image desktop" in error["message"]
    error = api.refused(404, "image_not_found", "POST", "/v1/sandboxes", {"image": "elsewhere"})
    assert "warren-image" not in error["message"]


def test_every_recipe_and_its_templates_have_that_cure(fresh, tmp_path):
    for recipe in (p.stem for p in (ROOT / "images").glob("*.sh")):
        for template in (json.loads(p.read_text())["name"] for p in (ROOT / "images").glob(f"{recipe}*.json")
                         if json.loads(p.read_text())["image"] == recipe):
            error = fresh.api.refused(404, "template_not_found", "POST", "/v1/sandboxes", {"template": template})
            assert f"sudo warren-image {recipe}`" in error["message"]
            reply = fresh.api.call("POST", "/e2b/v2/sandboxes", {"templateID": template})
            assert reply.status == 404 and f"sudo warren-image {recipe}`" in reply.json["message"], reply
    reply = fresh.api.call("POST", "/e2b/v2/sandboxes", {"templateID": "code-interpreter-v1"})
    assert reply.status == 404 and "sudo warren-image code-interpreter`" in reply.json["message"], reply
    # Nor does a build take a stranger's image of that name.
    done = fresh.cli("image", "build", "-t", "mine", "-f", "-", tmp_path, stdin="FROM desktop\n")
    assert done.returncode and "sudo warren-image desktop`" in done.stderr


def test_criu_is_set_up_once_and_its_record_names_what_runs():
    done = dev("criu", "--cached")
    assert done.returncode == 0, done.stderr
    record = pathlib.Path(done.stdout.strip()).read_text().splitlines()
    run = [line.removeprefix("run ") for line in record if line.startswith("run ")]
    assert subprocess.run([*run, "check"], capture_output=True, timeout=60).returncode == 0
    assert any(re.fullmatch(r"version [\d.]+", line) for line in record)


def test_without_criu_doctor_says_why(tmp_path):
    def memory(text):
        path = tmp_path / "record"
        path.write_text(text)
        done = subprocess.run([BUILD / "warren", "doctor", "--json"], capture_output=True,
                              text=True, env={**os.environ, "WARREN_CRIU": str(path)}, timeout=60)
        found = json.loads(done.stdout)
        return next(c for c in found["checks"] if c["name"] == "memory")
    found = memory("why the package source does not answer\n")
    assert found["status"] == "warning" and "does not answer" in found["detail"] and found["fix"]
    assert memory("version 9.9\nfrom afar\nrun /bin/true\n") == {
        "name": "memory", "status": "ok", "detail": "CRIU 9.9 from afar", "fix": None}


def test_ci_runs_the_tests():
    assert "./dev test" in (ROOT / ".ci/run").read_text()


def daemon_of(top):
    return int(pathlib.Path(f"{top}/data/warrend.pid").read_text())


@pytest.mark.skipif(BUILD != ROOT / "build", reason="another flavour of build is under test")
@pytest.mark.timeout(900)
def test_up_twice_and_down():
    """`up` answers with a sandbox's own words, again without work; `down` leaves only files."""
    with tempfile.TemporaryDirectory(prefix="wt-up-", dir="/tmp") as top:
        os.chmod(top, 0o755)
        port = free_port()
        link = pathlib.Path(f"{top}/bin/warren")
        env = {"WARREN_DATA": f"{top}/data", "WARREN_RUN": f"{top}/run", "WARREN_BIN": f"{top}/bin",
               "WARREN_LISTEN": f"127.0.0.1:{port}", "PATH": f"{top}/bin:{os.environ['PATH']}"}
        try:
            first = dev("up", env=env)
            assert first.returncode == 0, first.stderr
            assert re.search(r"Hello from [a-z][a-z0-9]{19}", first.stdout), first.stdout
            assert re.search(r"[\d.]+ ms to make a sandbox", first.stdout)
            key = re.search(r"^ +key +(\S+)", first.stdout, re.M).group(1)
            assert os.stat(f"{top}/data/first-key").st_mode & 0o077 == 0

            request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/sandboxes",
                                             headers={"Authorization": f"Bearer {key}"})
            assert urllib.request.urlopen(request, timeout=10).status == 200

            second = dev("up", env=env)
            assert second.returncode == 0, second.stderr
            assert "Handing the image" not in second.stderr
            assert key in second.stdout
            hello = re.compile(r"Hello from (\w+)")
            assert hello.search(second.stdout)[1] == hello.search(first.stdout)[1]  # not another one each time

            assert link.readlink() == ROOT / "build/warren"
            line = re.search(r"^ +sudo (warren .*run -- .*)$", second.stdout, re.M)[1]
            assert subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60,
                                  env={**os.environ, **env}).stdout == "42\n"
            link.unlink()
            link.write_text("installed")

            os.kill(stalled := daemon_of(top), signal.SIGSTOP)  # it lives and does not answer
            third = dev("up", env=env)
            assert third.returncode == 0, third.stderr
            assert f"(pid {stalled}) does not answer; replacing it" in third.stderr
            assert f"(pid {stalled}) does not stop; killing it" in third.stderr
            assert daemon_of(top) != stalled
            assert link.read_text() == "installed" and f"sudo {ROOT}/build/warren --socket" in third.stdout
            link.unlink()
            link.symlink_to(ROOT / "build/warren")
            os.kill(daemon_of(top), signal.SIGSTOP)
        finally:
            down = dev("down", env=env)
        assert down.returncode == 0, down.stderr
        assert "does not stop; killing it" in down.stderr
        assert not os.path.lexists(link)

        class Place:
            dir = top
        until(lambda: not leftovers(Place), "nothing left after down", 10)
        assert os.path.exists(f"{top}/data/first-key")
        assert dev("down", env=env).returncode == 0  # done twice is fine


def test_the_operators_own_key_is_taken_as_it_is():
    daemon = Daemon(key="any string of 20 or more characters")
    try:
        assert daemon.api.call("GET", "/v1/sandboxes").status == 200
        assert daemon.api.with_key("another string of 20 and more").call(
            "GET", "/v1/sandboxes").status == 401
    finally:
        daemon.close()
