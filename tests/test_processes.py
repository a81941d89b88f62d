"""Commands that go on: streams, input, signals, terminals, and coming back to them."""
import pytest

from harness import data_of, output_of, until


def follow(api, who, n, since=0):
    with api.output(who, n, since) as stream:
        return [e for e in stream if e["type"] != "ping"]


def test_exec_streams_events_in_order(api, tiny):
    with api.stream("POST", f"/v1/sandboxes/{tiny}/exec",
                    {"shell": "echo one; sleep 0.05; echo two >&2; sleep 0.05; echo three"}) as s:
        events = list(s)
    assert [e["type"] for e in events] == ["start", "stdout", "stderr", "stdout", "exit"]
    assert [data_of(e) for e in events[1:4]] == [b"one\n", b"two\n", b"three\n"]
    assert [e["offset"] for e in events[1:4]] == [0, 4, 8]
    assert events[0]["process"] >= 1 and events[0]["pid"] > 1
    assert (events[-1]["exit_code"], events[-1]["reason"], events[-1]["signal"]) == (0, "exit", None)


def test_output_arrives_while_the_command_runs(api, tiny):
    with api.stream("POST", f"/v1/sandboxes/{tiny}/exec", {"shell": "echo begun; cat /tmp/gate-not-there 2>/dev/null; sleep 600"}) as s:
        n = s.until(type="start")["process"]
        assert data_of(s.until(type="stdout")) == b"begun\n"
        api.signal(tiny, n, "SIGKILL", "tree")
        assert s.until(type="exit")["signal"] == "SIGKILL"


def test_start_list_get_wait(api, tiny):
    p = api.start(tiny, ["sh", "-c", "read x; exit 7"], stdin=True, label="mine", user="user")
    n = p["process"]
    assert (p["state"], p["label"], p["user"], p["pty"]) == ("running", "mine", "user", False)
    assert p["argv"] == ["sh", "-c", "read x; exit 7"]
    listed = api.ok("GET", f"/v1/sandboxes/{tiny}/processes")["processes"]
    assert [q["process"] for q in listed] == [n]
    api.stdin(tiny, n, b"go\n")
    ended = api.wait(tiny, n)
    assert (ended["state"], ended["exit_code"], ended["reason"]) == ("ended", 7, "exit")
    assert ended["ended_at"] and api.process(tiny, n)["exit_code"] == 7


def test_all_lists_what_was_not_started_through_the_api_too(api, tiny):
    n = api.start(tiny, "sleep 777 & sleep 778; true")["process"]

    def all_of():
        return api.ok("GET", f"/v1/sandboxes/{tiny}/processes?all=true")["processes"]
    rows = until(lambda: (r := all_of()) and any(p["argv"] == ["sleep", "777"] for p in r) and
                 any(p["argv"] == ["sleep", "778"] for p in r) and r)
    child = next(p for p in rows if p["argv"] == ["sleep", "777"])
    parent = next(p for p in rows if p["process"] == n)
    assert child["process"] is None and child["ppid"] == parent["pid"]
    assert child["rss_bytes"] >= 0 and child["cpu_us"] >= 0


def test_a_list_tells_cpu_and_memory(api, box):
    n = api.start(box, ["python3", "-c", "b = b'x' * (20 << 20); print(sum(range(10**6)), flush=True); "
                        "import time; time.sleep(600)"])["process"]
    until(lambda: api.process(box, n)["output_bytes"])
    p = next(p for p in api.ok("GET", f"/v1/sandboxes/{box}/processes")["processes"] if p["process"] == n)
    assert p["rss_bytes"] > 20 << 20 and p["cpu_us"] > 1000


def test_output_is_replayed_from_any_offset(api, tiny):
    n = api.start(tiny, "echo one; echo two >&2; echo three")["process"]
    api.wait(tiny, n)
    events = follow(api, tiny, n)
    assert output_of(events) == b"one\nthree\n" and output_of(events, "stderr") == b"two\n"
    assert events[-1]["type"] == "exit"
    # Which of two pipes was read first is chance; once read, the order stays.
    whole = b"".join(data_of(e) for e in events if "offset" in e)
    for since in range(len(whole) + 1):
        later = [e for e in follow(api, tiny, n, since) if "offset" in e]
        assert b"".join(data_of(e) for e in later) == whole[since:]
        assert not later or later[0]["offset"] == since
    assert [e["type"] for e in follow(api, tiny, n, since=14)][-1] == "exit"


def test_without_follow_the_answer_ends_at_once(api, tiny):
    n = api.start(tiny, "echo begun; exec sleep 600")["process"]
    until(lambda: api.process(tiny, n)["output_bytes"] == 6)
    with api.output(tiny, n, follow=False) as s:
        events = list(s)
    assert output_of(events) == b"begun\n" and "exit" not in [e["type"] for e in events]


def test_a_client_that_goes_away_does_not_stop_the_command(api, tiny):
    with api.stream("POST", f"/v1/sandboxes/{tiny}/exec",
                    {"shell": "echo a; sleep 0.3; echo b; sleep 0.1; echo c"}) as s:
        n = s.until(type="start")["process"]
        assert data_of(s.until(type="stdout")) == b"a\n"
    assert api.wait(tiny, n)["exit_code"] == 0
    assert output_of(follow(api, tiny, n, since=2)) == b"b\nc\n"


def test_what_the_ring_could_not_keep_is_said(api, tiny):
    total = 20_000_000
    n = api.start(tiny, f"yes 0123456789abcde | head -c {total}")["process"]
    api.wait(tiny, n)
    assert api.process(tiny, n)["output_bytes"] == total
    events = follow(api, tiny, n)
    dropped = [e for e in events if e["type"] == "dropped"]
    assert len(dropped) == 1 and dropped[0]["offset"] == 0
    kept = output_of(events)
    assert dropped[0]["bytes"] + len(kept) == total
    assert kept == (b"0123456789abcde\n" * (total // 16 + 1))[dropped[0]["bytes"] % 16:][:len(kept)]


def test_two_readers_see_the_same(api, tiny):
    n = api.start(tiny, "read x; seq 1 5000", stdin=True)["process"]
    with api.output(tiny, n) as one, api.output(tiny, n) as two:
        api.stdin(tiny, n, b"\n")
        want = "".join(f"{i}\n" for i in range(1, 5001)).encode()
        assert output_of(list(one)) == want
        assert output_of(list(two)) == want


def test_a_slow_reader_slows_the_command_and_nothing_else(api, daemon, tiny):
    """`yes` prints gigabytes a minute; held back, it stands still and the daemon stays small."""
    with api.stream("POST", f"/v1/sandboxes/{tiny}/exec", {"argv": ["yes"]}) as s:
        n = s.until(type="start")["process"]

        def held():
            before = api.process(tiny, n)["output_bytes"]
            api.out(tiny, ["sleep", "0.2"])
            return before > 0 and api.process(tiny, n)["output_bytes"] == before
        until(held, "back-pressure")
        assert api.process(tiny, n)["output_bytes"] < 32 << 20
        assert api.out(tiny, ["echo", "free"]) == "free\n"
        got = sum(len(data_of(next(s))) for _ in range(200))
        assert got > 0
    # With the reader gone it runs on, and only the ring remembers.
    before = api.process(tiny, n)["output_bytes"]
    until(lambda: api.process(tiny, n)["output_bytes"] > before + (8 << 20), "it to go on")
    rss = int(next(line for line in open(f"/proc/{daemon.process.pid}/status")
                   if line.startswith("VmRSS")).split()[1])
    assert rss < 200_000 or "san" in str(daemon.command("x")[0]), f"warrend holds {rss} kB"
    api.ok("DELETE", f"/v1/sandboxes/{tiny}/processes/{n}")
    assert api.wait(tiny, n)["signal"] == "SIGKILL"


def test_stdin_stays_open_until_it_is_closed(api, tiny):
    n = api.start(tiny, ["cat"], stdin=True)["process"]
    with api.output(tiny, n) as s:
        for word in (b"one\n", b"two\n", bytes(range(256))):
            api.stdin(tiny, n, word)
            got = b""
            while len(got) < len(word):
                got += data_of(s.until(type="stdout"))
            assert got == word
        api.stdin(tiny, n, b"end", eof=True)
        assert data_of(s.until(type="stdout")) == b"end"
        assert s.until(type="exit")["exit_code"] == 0
    api.refused(409, "process_ended", "POST", f"/v1/sandboxes/{tiny}/processes/{n}/stdin", b"more")


def test_stdin_that_is_not_open_is_refused(api, tiny):
    n = api.start(tiny, ["sleep", "600"])["process"]
    api.refused(409, "stdin_closed", "POST", f"/v1/sandboxes/{tiny}/processes/{n}/stdin", b"x")
    m = api.start(tiny, "exec sleep 600", stdin=True)["process"]
    api.stdin(tiny, m, b"", eof=True)
    api.refused(409, "stdin_closed", "POST", f"/v1/sandboxes/{tiny}/processes/{m}/stdin", b"x")


def test_a_megabyte_of_stdin_to_a_program_that_reads_late(api, tiny):
    n = api.start(tiny, "sleep 0.2; wc -c", stdin=True)["process"]
    api.stdin(tiny, n, b"z" * 1_000_000, eof=True)
    api.wait(tiny, n)
    assert output_of(follow(api, tiny, n)).strip() == b"1000000"


@pytest.mark.parametrize("sig,name", [("SIGTERM", "SIGTERM"), ("TERM", "SIGTERM"), (9, "SIGKILL"),
                                      ("SIGUSR1", "SIGUSR1")])
def test_signals_by_name_and_number(api, tiny, sig, name):
    n = api.start(tiny, ["sleep", "600"])["process"]
    api.signal(tiny, n, sig)
    ended = api.wait(tiny, n)
    assert (ended["reason"], ended["signal"]) == ("signal", name)
    api.refused(409, "process_ended", "POST", f"/v1/sandboxes/{tiny}/processes/{n}/signal",
                {"signal": "SIGTERM"})


def test_a_signal_can_be_caught(api, tiny):
    n = api.start(tiny, "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done")[
        "process"]
    with api.output(tiny, n) as s:
        assert data_of(s.until(type="stdout")) == b"ready\n"
        api.signal(tiny, n, "SIGINT")
        assert data_of(s.until(type="stdout")) == b"caught\n"
        assert s.until(type="exit")["exit_code"] == 3


def sleepers(api, who, word):
    return api.out(who, f"ps | grep -c '[s]leep {word}' || true").strip()


def test_scopes_process_group_tree(api, tiny):
    script = "trap '' TERM; sleep 9001 & setsid sleep 9002 & trap - TERM; echo up; wait"
    n = api.start(tiny, "sleep 9001 & echo up; wait")["process"]
    until(lambda: api.process(tiny, n)["output_bytes"] == 3)
    api.signal(tiny, n, "KILL", "process")
    api.wait(tiny, n)
    assert sleepers(api, tiny, 9001) == "1"  # the child was spared
    api.out(tiny, ["killall", "sleep"])

    n = api.start(tiny, "sleep 9001 & echo up; wait")["process"]
    until(lambda: api.process(tiny, n)["output_bytes"] == 3)
    api.signal(tiny, n, "KILL", "group")
    api.wait(tiny, n)
    until(lambda: sleepers(api, tiny, 9001) == "0", "the group's end")

    n = api.start(tiny, script)["process"]
    until(lambda: api.process(tiny, n)["output_bytes"] == 3)
    api.signal(tiny, n, "KILL", "tree")
    api.wait(tiny, n)
    until(lambda: sleepers(api, tiny, "900") == "0", "the tree's end")


def test_delete_kills_daemonised_descendants(api, tiny):
    n = api.start(tiny, "(setsid sh -c '(sleep 9003 &) ; sleep 9004' &) ; echo up; sleep 9005")[
        "process"]
    until(lambda: sleepers(api, tiny, "900") == "3")
    assert api.ok("DELETE", f"/v1/sandboxes/{tiny}/processes/{n}") is None
    until(lambda: sleepers(api, tiny, "900") == "0", "the end of all it started")


def test_a_terminal(api, tiny):
    p = api.start(tiny, ["sh", "-c", "tty; stty size; read line; echo got $line; stty size"],
                  pty={"rows": 30, "cols": 100})
    n = p["process"]
    with api.output(tiny, n) as s:
        got = b""
        while b"30 100\r\n" not in got:
            got += data_of(s.until(type="stdout"))
        assert b"/dev/pts/" in got
        api.ok("POST", f"/v1/sandboxes/{tiny}/processes/{n}/resize", {"rows": 40, "cols": 120})
        api.stdin(tiny, n, b"hello\n")
        rest = list(s)
        got = output_of(rest)
        assert b"got hello\r\n" in got and b"40 120\r\n" in got
        assert rest[-1]["type"] == "exit" and rest[-1]["exit_code"] == 0


def test_a_terminal_passes_control_c_and_resize_signals(api, tiny):
    n = api.start(tiny, ["sh", "-c", "trap 'echo winch' WINCH; trap 'echo int; exit 5' INT; echo up; "
                         "while :; do sleep 0.05; done"], pty={"rows": 24, "cols": 80})["process"]
    with api.output(tiny, n) as s:
        got = b""
        while b"up" not in got:
            got += data_of(s.until(type="stdout"))
        api.ok("POST", f"/v1/sandboxes/{tiny}/processes/{n}/resize", {"rows": 10, "cols": 20})
        while b"winch" not in got:
            got += data_of(s.until(type="stdout"))
        api.stdin(tiny, n, b"\x03")
        assert s.until(type="exit")["exit_code"] == 5


def test_resize_needs_a_terminal(api, tiny):
    n = api.start(tiny, ["sleep", "600"])["process"]
    api.refused(409, "not_a_terminal", "POST", f"/v1/sandboxes/{tiny}/processes/{n}/resize",
                {"rows": 10, "cols": 20})


def test_unknown_processes(api, tiny):
    for method, path, body in (("GET", "999", None), ("GET", "999/output", None),
                               ("GET", "999/wait", None), ("DELETE", "999", None),
                               ("POST", "999/signal", {"signal": 9}), ("POST", "999/stdin", b"x"),
                               ("POST", "999/resize", {"rows": 1, "cols": 1})):
        api.refused(404, "process_not_found", method, f"/v1/sandboxes/{tiny}/processes/{path}", body)


def test_an_ended_process_stays_until_128_others_ended(api, tiny):
    first = api.start(tiny, "echo first")["process"]
    api.wait(tiny, first)
    for _ in range(127):
        api.exec(tiny, ["true"])
    assert output_of(follow(api, tiny, first)) == b"first\n"
    for _ in range(3):
        api.exec(tiny, ["true"])
    api.refused(404, "process_not_found", "GET", f"/v1/sandboxes/{tiny}/processes/{first}")


def test_a_timeout_of_a_started_process(api, tiny):
    n = api.start(tiny, "sleep 9100 & sleep 9101", timeout_s=0.2)["process"]
    ended = api.wait(tiny, n)
    assert (ended["reason"], ended["exit_code"]) == ("timeout", 137)
    until(lambda: sleepers(api, tiny, "910") == "0")


def test_waiting_in_many_places(api, tiny):
    from concurrent.futures import ThreadPoolExecutor
    n = api.start(tiny, "read x; exit 4", stdin=True)["process"]
    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(api.wait, tiny, n) for _ in range(8)]
        api.stdin(tiny, n, b"\n")
        assert {w.result()["exit_code"] for w in waits} == {4}
