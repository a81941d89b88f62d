"""`warren init`, `up` and `down`: the sandbox that a warren.toml describes."""
import json
import re
import subprocess

import pytest

from harness import BUILD, DEADLINE

SERVE = "exec nc -ll -p 8000 -e cat"


@pytest.fixture
def project(daemon, api, tmp_path):
    """A directory; `run` is the command in it, `write` its warren.toml."""
    class Project:
        dir = tmp_path / "proj"

        def run(self, *args):
            return subprocess.run([str(BUILD / "warren"), *map(str, args)], cwd=self.dir, text=True,
                                  capture_output=True, timeout=DEADLINE * 2, env=daemon.cli_environment())

        def write(self, text):
            (self.dir / "warren.toml").write_text(f'name = "proj"\nimage = "tiny"\n{text}\n')

        def up(self, *args):
            done = self.run("up", *args)
            assert done.returncode == 0, done.stderr
            return done

    p = Project()
    p.dir.mkdir()
    yield p
    for s in api.list(limit=1000)["sandboxes"]:
        if s["name"] == "proj":
            api.delete(s["id"])


def test_init_explains_every_key_and_up_takes_them(project):
    assert project.run("init").stdout == "warren.toml\n"
    text = (project.dir / "warren.toml").read_text()
    assert 'name = "proj"' in text
    assert project.run("init").returncode == 1 and (project.dir / "warren.toml").read_text() == text
    assert project.run("down").returncode == 0
    keys = re.findall(r"(?m)^#? ?((?!name)[a-z_]+ = .*)$", text)
    assert len(keys) > 15
    for line in keys:
        project.write(line if not line.startswith("image") else "")
        assert project.run("down").returncode == 0, line


def test_a_dockerfile_is_built_by_what_init_writes(project):
    (project.dir / "Dockerfile").write_text("FROM tiny\n")
    assert project.run("init").returncode == 0
    assert re.search(r'(?m)^build = "\."', (project.dir / "warren.toml").read_text())


def test_up_makes_a_sandbox_and_down_deletes_it(daemon, api, project):
    (project.dir / "src" / "sub").mkdir(parents=True)
    (project.dir / "src" / "sub" / "a").write_text("one")
    (project.dir / "one.txt").write_text("file")
    project.write('memory = "64m"\ncpus = 0.5\ncopy = ["src:/srv/app", "one.txt:/srv/"]\n'
                  'volumes = ["proj-data:/data"]\n[env]\nWORD = "first"')
    made = project.up().stdout.strip()
    s = api.get(made)
    assert (s["name"], s["memory_mb"], s["cpus"], s["env"]["WORD"]) == ("proj", 64, 0.5, "first")
    look = ["exec", "proj", "--", "sh", "-c"]
    assert daemon.cli(*look, "cat /srv/app/sub/a /srv/one.txt; echo kept > /data/x").stdout == "onefile"

    # Again: the same sandbox, with what the file says now.
    (project.dir / "src" / "sub" / "a").write_text("two")
    project.write('memory = "96m"\ncopy = ["src:/srv/app"]\nvolumes = ["proj-data:/data"]\n[env]\nWORD = "second"')
    daemon.cli("stop", "proj")
    assert project.up().stdout.strip() == made
    s = api.get(made)
    assert (s["state"], s["memory_mb"], s["env"]["WORD"]) == ("running", 96, "second")
    assert daemon.cli(*look, "cat /srv/app/sub/a; ls /srv/app").stdout == "twosub\n"

    # Anew, and away; the volume stays until it is to go.
    again = project.up("--recreate").stdout.strip()
    assert again != made and daemon.cli(*look, "cat /data/x; ls /srv/one.txt 2>&1 | wc -l").stdout == "kept\n1\n"
    assert project.run("down").stdout == "proj\n"
    assert project.run("down").stdout == ""
    assert "proj-data" in daemon.cli("volume", "ls").stdout
    assert project.run("down", "--volumes").returncode == 0
    assert "proj-data" not in daemon.cli("volume", "ls").stdout


def test_what_cannot_be_changed_is_told_of(project):
    project.write("")
    project.up()
    assert "--recreate" not in project.up().stderr
    project.write('workdir = "/srv"')
    assert "--recreate" in project.up().stderr


def running(daemon):
    """The processes that were started by clients, by label."""
    processes = daemon.api.ok("GET", "/v1/sandboxes/proj/processes")["processes"]
    return {p["label"]: p for p in processes if p["state"] == "running"}


def test_its_command_runs_once_and_again_when_it_changes(daemon, project):
    project.write(f'start = "{SERVE}"\nports = [8000]')
    assert re.search(r"port 8000 answers at https?://8000-\w+\.", project.up().stderr)
    first = running(daemon)["up"]["process"]
    project.up()
    assert running(daemon)["up"]["process"] == first
    project.up("--restart")
    second = running(daemon)["up"]["process"]
    assert second != first
    project.write('start = ["sleep", "1000"]')
    project.up()
    assert running(daemon)["up"]["argv"] == ["sleep", "1000"]
    project.write("")
    project.up()
    assert "up" not in running(daemon)


def test_a_command_that_ends_before_it_listens_is_told_of(project):
    project.write('start = "exit 3"\nports = [8000]')
    done = project.run("up")
    assert done.returncode == 1 and "warren logs proj" in done.stderr


def test_a_dockerfile_becomes_the_image(daemon, project):
    (project.dir / "Dockerfile").write_text("FROM tiny\nCOPY word /word\n")
    (project.dir / "word").write_text("built\n")
    (project.dir / "warren.toml").write_text('name = "proj"\nbuild = "."\n')
    project.up()
    assert daemon.cli("exec", "proj", "--", "cat", "/word").stdout == "built\n"
    (project.dir / "word").write_text("again\n")
    assert "--recreate" in project.up().stderr
    project.up("--recreate")
    assert daemon.cli("exec", "proj", "--", "cat", "/word").stdout == "again\n"
    project.run("down")
    assert daemon.cli("image", "rm", "project-proj").returncode == 0


def test_a_sandbox_of_somebody_else_is_left_alone(api, project):
    s = api.create(image="tiny", name="proj")
    project.write("")
    for command in "up", "down":
        done = project.run(command)
        assert done.returncode == 1 and "did not make" in done.stderr
    assert api.get(s["id"])["state"] == "running"


@pytest.mark.parametrize("text, says", [
    ("memroy = '1g'", "warren.toml:3: there is no key 'memroy'; did you mean 'memory'?"),
    ("memory = [", "line 4"), ("[env]\nA = 1", "env"), ("net = 'some'", "net")])
def test_a_wrong_file_makes_nothing(api, project, text, says):
    project.write(text)
    done = project.run("up")
    assert done.returncode == 1 and says in done.stderr
    assert "proj" not in {s["name"] for s in api.list(limit=1000)["sandboxes"]}


def test_json_is_the_sandbox(project):
    project.write("")
    assert json.loads(project.run("up", "--json").stdout)["name"] == "proj"


def test_without_a_file_init_is_named(project):
    done = project.run("up")
    assert done.returncode == 1 and "warren init" in done.stderr
