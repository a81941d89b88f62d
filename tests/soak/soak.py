#!/usr/bin/env python3
"""Long runs on a daemon of their own: thousands of rounds, and everything countable the same before and after.

    ROUNDS=10000   create, exec, delete
    EXECS=100000   commands in sandboxes that stay
    KILLS=100      SIGKILL to warrend, keeper or broker at random moments, while rounds go on
    JOBS=4         at the same time
    SEED           of the random moments; printed, so that a run can be repeated

Prints a table and ends with 1 where something is left over. Sizes that history alone explains (events, usage) are
shown and not judged.
"""
import collections
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402

ROUNDS, EXECS, KILLS, JOBS = (int(os.environ.get(n, d)) for n, d in
                              (("ROUNDS", 10000), ("EXECS", 100000), ("KILLS", 100), ("JOBS", 4)))
SEED = int(os.environ.get("SEED", time.time()))
# Tables of past events, which have bounds of their own.
HISTORY = {"events", "usage", "gone sandboxes", "meters"}
SETTLE_S = 120
RSS_SLACK = 1.25  # and RSS_SLACK_KB: an allocator keeps some of what it had
RSS_SLACK_KB = 16 * 1024
FD_SLACK = 2  # connections that are kept for the next request
NETWORK_ERRORS = (OSError, http.client.HTTPException, AssertionError, ValueError, KeyError)


def status_of(pid, member):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(member + ":"):
            return int(line.split()[1])
    return 0


def processes(daemon):
    """Pids by role of the daemon's own lasting processes."""
    keeper = daemon.keeper()
    found = {"warrend": daemon.process.pid, "keeper": keeper}
    for i, pid in enumerate(p for p in daemon.keepers() if p != keeper):
        found[f"sweeper {i}" if i else "sweeper"] = pid
    for i, pid in enumerate(daemon.pids("warren-broker")):
        found[f"broker {i}" if i else "broker"] = pid
    for i, pid in enumerate(daemon.launcher()):
        found[f"launcher {i}"] = pid
    return found


def rows_of(daemon):
    """Rows of each table, of a copy: the daemon writes while we look."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="soak-") as d:
        for path in (daemon.data / "state").glob("*.db*"):
            with contextlib.suppress(OSError):
                shutil.copy(path, d)
        for path in pathlib.Path(d).glob("*.db"):
            with contextlib.closing(sqlite3.connect(path)) as db:
                for (name,) in db.execute("select name from sqlite_master where type='table'").fetchall():
                    found[name] = db.execute(f'select count(*) from "{name}"').fetchone()[0]
                # Rows of deleted sandboxes stay for some days, to say how they ended.
                found["gone sandboxes"] = db.execute("select count(*) from sandboxes where ended_ms > 0").fetchone()[0]
                found["sandboxes"] -= found["gone sandboxes"]
    return found


def subvolumes_of(daemon):
    done = subprocess.run(["nsenter", "-t", str(daemon.keeper()), "-m", "btrfs", "subvolume", "list", "-a",
                           str(daemon.data / "pool")], capture_output=True, text=True, timeout=harness.DEADLINE)
    return len(done.stdout.splitlines()) if done.returncode == 0 else -1


def files_below(top):
    return sum(len(files) for _, _, files in os.walk(top))


def groups_of(daemon):
    return sum(len(dirs) + 1 for top in harness.cgroups_of(daemon) for _, dirs, _ in os.walk(top))


def count(daemon):
    """Everything countable, by name."""
    counts = collections.OrderedDict()
    for role, pid in processes(daemon).items():
        counts[f"descriptors of {role}"] = len(os.listdir(f"/proc/{pid}/fd"))
        counts[f"resident KiB of {role}"] = status_of(pid, "VmRSS")
        counts[f"threads of {role}"] = status_of(pid, "Threads")
    counts["processes"] = len(harness.processes_of(daemon))
    counts["mounts of the keeper"] = len(pathlib.Path(f"/proc/{daemon.keeper()}/mountinfo").read_text().splitlines())
    counts["mounts of this machine"] = len(harness.mounts_of(daemon))
    counts["control groups"] = groups_of(daemon)
    counts["subvolumes"] = subvolumes_of(daemon)
    counts["loop devices"] = len(harness.loops_of(daemon))
    counts["files below data"] = files_below(daemon.data)
    counts["files below run"] = files_below(daemon.run)
    for name, n in sorted(rows_of(daemon).items()):
        counts[f"rows of {name}"] = n
    return counts


def judge(name, before, after):
    """The verdict on one line of the table: '' is fine."""
    if name.startswith("rows of ") and name[8:] in HISTORY:
        return "history"
    if before is None or after is None:
        return "" if name.startswith(("rows", "threads")) else "LEFT OVER"
    if name.startswith("resident"):
        return "GREW" if after > before * RSS_SLACK + RSS_SLACK_KB else ""
    if name.startswith(("descriptors", "threads", "processes")):
        return "GREW" if after > before + FD_SLACK else ""
    return "GREW" if after > before else ""


def compare(before, after):
    names = list(before) + [n for n in after if n not in before]
    return [(n, before.get(n), after.get(n), judge(n, before.get(n), after.get(n))) for n in names]


def settled(daemon, before):
    """Counts after the run, as soon as nothing is left over, or what is left when patience ends."""
    end = time.monotonic() + SETTLE_S
    while True:
        with contextlib.suppress(*NETWORK_ERRORS):
            table = compare(before, count(daemon))
            if not any(row[3].isupper() for row in table) or time.monotonic() > end:
                return table
        time.sleep(2)


def print_table(table):
    width = max(len(row[0]) for row in table)
    print(f"{'':{width}} {'before':>10} {'after':>10}")
    for name, before, after, word in table:
        print(f"{name:{width}} {'-' if before is None else before:>10} {'-' if after is None else after:>10}  {word}")


def round_trip(api):
    who = api.create(image="tiny")["id"]
    try:
        assert api.exec(who, ["echo", who])["stdout"].strip() == who
    finally:
        api.call("DELETE", f"/v1/sandboxes/{who}")


def many(what, times, one):
    """Make that many calls, JOBS at the same time; returns how many failed, and how long one took."""
    failed, began = 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for start in range(0, times, 1000):
            calls = [pool.submit(one) for _ in range(min(1000, times - start))]
            for call in concurrent.futures.as_completed(calls):
                failed += call.exception() is not None
            print(f"   {what}: {min(start + 1000, times)} of {times}, {failed} failed", flush=True)
    seconds = time.monotonic() - began
    print(f"-- {what}: {times} in {seconds:.0f} s ({times / seconds:.0f} a second), {failed} failed", flush=True)
    return failed


def random_kills(daemon, rng):
    """Rounds go on while one of the daemon's processes is killed every now and then. What a kill cuts may fail; what is
    left must not."""
    stop, lost, made = threading.Event(), [0], [0]

    def work():
        while not stop.is_set():
            try:
                round_trip(daemon.api)
                made[0] += 1
            except NETWORK_ERRORS:
                lost[0] += 1
                time.sleep(0.05)
    threads = [threading.Thread(target=work) for _ in range(JOBS)]
    for t in threads:
        t.start()
    killed = collections.Counter()
    for _ in range(KILLS):
        time.sleep(rng.uniform(0.05, 1.5))
        role = rng.choice(["warrend", "keeper", "broker"])
        if role == "warrend":
            daemon.kill()
            daemon.start()
        else:
            pids = daemon.keepers() if role == "keeper" else daemon.pids("warren-broker")
            for pid in pids[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            daemon.wait_healthy()
        killed[role] += 1
    stop.set()
    for t in threads:
        t.join()
    print(f"-- kills: {dict(killed)}; rounds meanwhile: {made[0]} whole, {lost[0]} cut", flush=True)


def delete_all(api):
    for sandbox in api.list(limit=1000)["sandboxes"]:
        api.call("DELETE", f"/v1/sandboxes/{sandbox['id']}")


def main():
    print(f"-- seed {SEED}", flush=True)
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="wt-soak-") as d:
        tiny = harness.tiny_image(pathlib.Path(d) / "tiny.tar")
        with harness.running("--rate-limit", "100000", "--rate-burst", "100000", images={"tiny": tiny}) as daemon:
            many("warming up", 40, lambda: round_trip(daemon.api))
            time.sleep(2)
            before = count(daemon)
            failed = many("create, exec, delete", ROUNDS, lambda: round_trip(daemon.api))
            stay = [daemon.api.create(image="tiny")["id"] for _ in range(JOBS)]
            failed += many("exec", EXECS, lambda: daemon.api.out(rng.choice(stay), ["true"]))
            delete_all(daemon.api)
            print_table(table := settled(daemon, before))
            left = [row[0] for row in table if row[3].isupper()]
            if KILLS:
                random_kills(daemon, rng)
                daemon.wait_healthy()
                delete_all(daemon.api)
                print_table(table := settled(daemon, before))
                left += [row[0] + " (after kills)" for row in table if row[3].isupper()]
    if failed:
        print(f"soak: {failed} requests failed", file=sys.stderr)
    if left:
        print(f"soak: left over: {', '.join(left)}", file=sys.stderr)
    return 1 if left or failed else 0


if __name__ == "__main__":
    sys.exit(main())
