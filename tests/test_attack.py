"""`warren attack` against a daemon of the tests' own: every wall holds, or its name stands below."""
import json
import shutil
import signal
import subprocess

import pytest

import harness

pytestmark = pytest.mark.timeout(harness.DEADLINE * 40)

# Walls that are known to be broken, and nothing else. An attempt that is named here and holds fails the test, so that
# whoever mends a wall takes its name out.
EXPECTED_TO_BREAK = set()


@pytest.fixture(scope="module")
def victim(tiny_tar):
    with harness.running("--share-volumes", "fenced", images={"tiny": tiny_tar}) as d:
        yield d


@pytest.fixture(scope="module")
def report(victim):
    """What a whole run says, and its exit code."""
    done = victim.cli("attack", "--image", "tiny", "--json", timeout=harness.DEADLINE * 40,
                      env={"WARREN_RUN": str(victim.run)})
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done.returncode


def names(report, verdict):
    return {a["name"] for a in report[0]["attempts"] if a["verdict"] == verdict}


def test_every_wall_holds_but_those_that_are_known(report):
    why = {a["name"]: a["why"] for a in report[0]["attempts"]}
    broke = names(report, "broke")
    unexpected = sorted(broke - EXPECTED_TO_BREAK)
    assert not unexpected, "\n" + "\n".join(f"{n}: {why[n]}" for n in unexpected)
    assert report[1] == (1 if broke else 0)


def test_what_is_expected_to_break_does(report):
    held = EXPECTED_TO_BREAK - names(report, "broke")
    assert not held, f"these walls hold now, take them off the list: {sorted(held)}"


def test_every_attempt_ran(report):
    assert not names(report, "error"), [a for a in report[0]["attempts"] if a["verdict"] == "error"]
    assert len(names(report, "held") | names(report, "broke")) > 120
    for a in report[0]["attempts"]:
        assert a["why"], a


def test_each_has_a_name_of_its_own(report):
    all_names = [a["name"] for a in report[0]["attempts"]]
    assert len(all_names) == len(set(all_names))


def test_neighbours_are_measured_under_abuse(report):
    measured = [a for a in report[0]["attempts"] if "neighbour" in a]
    assert len(measured) > 15
    for a in sorted(measured, key=lambda a: -a["neighbour"]["p50_ratio"]):
        print(f"{a['name']:24} p50 x{a['neighbour']['p50_ratio']:.1f}  p99 x{a['neighbour']['p99_ratio']:.1f}")


def test_nothing_is_left_of_a_run(victim, report):
    assert {t["name"] for t in victim.api.ok("GET", "/v1/teams")["teams"]} == {"default"}
    assert victim.api.list()["sandboxes"] == []


def test_the_list_needs_no_daemon(victim):
    done = victim.cli("attack", "--list", "--json", env={"WARREN_URL": "http://127.0.0.1:1"})
    assert done.returncode == 0, done.stderr
    assert {"name": "mount-proc", "category": "mounts", "title": "mount proc", "harmful": False} in json.loads(done.stdout)


def test_one_attempt_as_a_table(victim):
    done = victim.cli("attack", "--image", "tiny", "--only", "mount-proc")
    assert done.returncode == 0, done.stderr
    assert "mount-proc" in done.stdout and "held" in done.stdout and "1 held, 0 broke" in done.stdout


def test_a_flood_of_output_is_seen_to_flow(victim):
    """Its own word comes before the flood, of which only the latest is kept."""
    done = victim.cli("attack", "--image", "tiny", "--json", "--only", "output-flood", timeout=harness.DEADLINE * 4)
    seen = {a["name"]: a for a in json.loads(done.stdout)["attempts"]}["output-flood"]
    assert seen["verdict"] == "held" and seen["why"].startswith("2 taken"), seen


def test_a_signal_ends_it_and_nothing_is_left(victim):
    env = {**victim.cli_environment(), "WARREN_RUN": str(victim.run)}
    teams = lambda: {t["name"] for t in victim.api.ok("GET", "/v1/teams")["teams"]}  # noqa: E731
    with subprocess.Popen([str(harness.BUILD / "warren"), "attack", "--image", "tiny", "--only", "http"], env=env,
                          stdout=subprocess.PIPE, text=True) as run:
        harness.until(lambda: len(teams()) == 3, "both teams")
        run.send_signal(signal.SIGTERM)
        out, _ = run.communicate(timeout=harness.DEADLINE * 4)
    assert run.returncode in (1, 2) and "held" in out
    assert teams() == {"default"}


def test_what_could_harm_is_asked_for_apart(victim):
    done = victim.cli("attack", "--image", "tiny", "--only", "api-idle-connections")
    assert done.returncode == 0 and "not run: needs --harmful" in done.stdout


@pytest.mark.parametrize("name", ["api-idle-connections", "api-half-connections"])
def test_a_daemon_stands_what_could_harm_one(tiny_tar, name):
    """Each on a daemon that is killed afterwards: one with the hole does not end by itself."""
    d = harness.Daemon()
    try:
        d.api.import_image("tiny", tiny_tar)
        done = d.cli("attack", "--image", "tiny", "--harmful", "--json", "--only", name, timeout=harness.DEADLINE * 10)
        seen = {a["name"]: a for a in json.loads(done.stdout)["attempts"]}
        assert seen[name]["verdict"] == "held", seen[name]
    finally:
        d.kill_everything()
        assert d.teardown().returncode == 0
        harness.until_clean(d)
        shutil.rmtree(d.dir, ignore_errors=True)


def test_a_member_cannot_run_it(victim):
    victim.api.ok("POST", "/v1/teams", {"name": "plain"})
    key = victim.api.ok("POST", "/v1/keys", {"name": "k", "team": "plain"})["key"]
    done = victim.cli("attack", "--only", "mount-proc", env={"WARREN_API_KEY": key})
    victim.api.ok("DELETE", "/v1/teams/plain")
    assert done.returncode == 2 and "operator" in done.stderr


def test_an_unknown_name_is_told(victim):
    done = victim.cli("attack", "--only", "mount-everything")
    assert done.returncode == 2 and "--list" in done.stderr
