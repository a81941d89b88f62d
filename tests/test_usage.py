"""What was used: counted once, whatever dies in between, and shown to nobody else."""
import datetime
import os
import signal

import pytest

import harness
from harness import until
from test_crash import all_pids_of, pid_inside

BURN = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"


@pytest.fixture
def metered(tiny_tar):
    """A daemon that reads counters every second."""
    with harness.running("--usage-interval", "1", images={"tiny": tiny_tar}) as d:
        yield d


def used(api, sandbox=None, **query):
    text = "&".join(f"{k}={v}" for k, v in ({"sandbox": sandbox} if sandbox else {}).items() | query.items())
    return api.ok("GET", f"/v1/usage?{text}")


def cpu(api, sandbox):
    return used(api, sandbox)["total"]["cpu_seconds"]


def counter(api, sandbox):
    """The control group's own."""
    return api.usage(sandbox)["cpu_us"] / 1e6


def test_cpu_is_counted_exactly_over_crashes(metered):
    api = metered.api
    box = api.create(image="tiny")["id"]
    api.out(box, BURN)
    until(lambda: cpu(api, box) > 0, "a first reading")
    api.out(box, BURN)  # before
    n = api.start(box, BURN + "; sleep 0.2;" + BURN)["process"]
    metered.restart()  # SIGKILL: the burning goes on meanwhile
    api.wait(box, n)
    api.out(box, BURN)  # and after
    first = counter(api, box)
    until(lambda: cpu(api, box) == pytest.approx(first, abs=1e-4), "all of it")
    metered.kill_keeper()
    api.out(box, BURN)
    second = counter(api, box)
    assert second > first
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    assert cpu(api, box) == pytest.approx(second, abs=1e-4)  # the stop itself brought the rest
    metered.restart()
    assert cpu(api, box) == pytest.approx(second, abs=1e-4)
    api.ok("POST", f"/v1/sandboxes/{box}/start")
    api.out(box, BURN)  # its counter began anew
    third = counter(api, box)
    metered.kill_everything()
    metered.start()
    api.delete(box)
    total = cpu(api, box)
    assert total == pytest.approx(second + third, abs=1e-3)
    metered.restart()
    assert cpu(api, box) == total


def test_a_short_life_is_counted_and_so_is_a_sudden_death(metered):
    api = metered.api
    short = api.create(image="tiny", name="short")["id"]
    api.out(short, BURN + "; dd if=/dev/zero of=/data bs=64k count=64 2>/dev/null; sync")
    want = counter(api, short)
    api.delete(short)
    row = used(api, short)["sandboxes"][0]
    assert row["sandbox"] == short and row["name"] == "short"
    assert row["cpu_seconds"] == pytest.approx(want, abs=1e-3)
    assert row["memory_gib_seconds"] > 0 and row["disk_gib_seconds"] > 0
    assert (row["network_rx_bytes"], row["network_tx_bytes"]) == (0, 0)

    box = api.create(image="tiny")["id"]
    api.out(box, BURN)
    want = counter(api, box)
    os.kill(next(pid for pid in all_pids_of(box) if pid_inside(pid) == 1), signal.SIGKILL)
    until(lambda: api.get(box)["state"] == "stopped", "its end")
    assert cpu(api, box) == pytest.approx(want, abs=1e-3)


def test_a_stopped_one_uses_only_its_disk(metered):
    api = metered.api
    box = api.create(image="tiny")["id"]
    api.out(box, "dd if=/dev/zero of=/data bs=64k count=256 2>/dev/null; sync")
    until(lambda: used(api, box)["total"]["disk_gib_seconds"] > 0, "a reading of its disk")
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    before = used(api, box)["total"]
    metered.stop()
    metered.start()
    still = used(api, box)["total"]
    assert (still["cpu_seconds"], still["memory_gib_seconds"]) == (before["cpu_seconds"], before["memory_gib_seconds"])
    api.ok("POST", f"/v1/sandboxes/{box}/start")  # counts the time it was stopped
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    after = used(api, box)["total"]
    assert after["disk_gib_seconds"] > before["disk_gib_seconds"]


def test_teams_see_their_own(metered):
    api = metered.api
    keys = {}
    for team in ("red", "blue"):
        api.ok("POST", "/v1/teams", {"name": team})
        keys[team] = api.with_key(api.ok("POST", "/v1/keys", {"name": "k", "team": team})["key"])
    red, blue = keys["red"], keys["blue"]
    boxes = [red.create(image="tiny")["id"] for _ in range(3)]
    for box in boxes:
        red.out(box, BURN)
        red.delete(box)
    report = used(red)
    assert report["team"] == "red"
    assert [s["sandbox"] for s in report["sandboxes"]] == sorted(boxes)
    assert sum(s["cpu_seconds"] for s in report["sandboxes"]) == pytest.approx(
        report["total"]["cpu_seconds"], abs=1e-5)
    assert used(blue)["sandboxes"] == [] and used(blue)["total"]["cpu_seconds"] == 0
    blue.refused(404, "sandbox_not_found", "GET", f"/v1/usage?sandbox={boxes[0]}")
    blue.refused(404, "sandbox_not_found", "GET", "/v1/usage?sandbox=" + "a" * 20)
    blue.refused(403, "forbidden", "GET", "/v1/usage?team=red")
    blue.refused(403, "forbidden", "GET", "/v1/usage?team=nosuch")
    assert used(api, team="red")["total"] == report["total"]
    api.refused(404, "team_not_found", "GET", "/v1/usage?team=nosuch")
    assert api.ok("GET", "/v1/usage", headers={"X-Warren-Team": "red"})["total"] == report["total"]
    # pages
    first = used(red, limit=2)
    assert [s["sandbox"] for s in first["sandboxes"]] == sorted(boxes)[:2]
    rest = used(red, limit=2, cursor=first["next_cursor"])
    assert [s["sandbox"] for s in rest["sandboxes"]] == sorted(boxes)[2:] and not rest["next_cursor"]
    assert rest["total"] == report["total"]


def test_ranges_and_steps(api, make):
    box = make(image="tiny")["id"]
    api.out(box, BURN)
    api.delete(box)
    now = datetime.datetime.now(datetime.timezone.utc)
    stamp = lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: E731
    hour = datetime.timedelta(hours=1)
    report = used(api, box, step="hour")
    assert len(report["steps"]) == 1 and report["steps"][0]["cpu_seconds"] > 0
    assert report["from"].endswith(":00:00.000Z") and report["to"].endswith(":00:00.000Z")
    assert used(api, box, to=stamp(now - 2 * hour))["total"]["cpu_seconds"] == 0
    assert used(api, box, **{"from": stamp(now - hour)}, to=stamp(now + hour), step="day")["steps"]
    for query in ("from=yesterday", "step=week", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
                  "fish=1", "limit=0", "cursor=%21", "from=1971-01-01T00:00:00Z&step=hour"):
        api.refused(400, "invalid_query", "GET", f"/v1/usage?{query}")
    api.refused(404, "sandbox_not_found", "GET", "/v1/usage?sandbox=nosuch")
