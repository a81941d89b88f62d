"""Run a command and wait for it."""
import pytest


def test_argv_and_shell(api, tiny):
    r = api.exec(tiny, ["echo", "a  b", "$HOME"])
    assert (r["exit_code"], r["stdout"], r["stderr"], r["reason"], r["signal"], r["truncated"]) == \
        (0, "a  b $HOME\n", "", "exit", None, False)
    assert r["duration_ms"] >= 0 and r["process"] >= 1 and r["pid"] > 1 and r["cpu_us"] >= 0
    assert api.out(tiny, "echo $((6 * 7)) | cat") == "42\n"


@pytest.mark.parametrize("code", [0, 1, 2, 126, 127, 128, 255])
def test_exit_codes_pass_as_they_are(api, tiny, code):
    r = api.exec(tiny, f"exit {code}")
    assert (r["exit_code"], r["reason"], r["signal"]) == (code, "exit", None)


@pytest.mark.parametrize("name,number", [("KILL", 9), ("TERM", 15), ("SEGV", 11)])
def test_a_signal_is_named(api, tiny, name, number):
    r = api.exec(tiny, f"kill -{name} $$")
    assert (r["exit_code"], r["reason"], r["signal"]) == (128 + number, "signal", "SIG" + name)


def test_stdout_and_stderr_are_apart(api, tiny):
    r = api.exec(tiny, "echo out; echo err >&2")
    assert (r["stdout"], r["stderr"]) == ("out\n", "err\n")


def test_stdin_is_fed_and_closed(api, tiny):
    assert api.out(tiny, ["cat"], stdin="hello\n") == "hello\n"
    assert api.out(tiny, ["wc", "-c"], stdin="x" * 500_000).strip() == "500000"
    assert api.out(tiny, ["cat"]) == ""  # none given: nothing to read


def test_more_stdin_than_the_program_reads(api, tiny):
    assert api.out(tiny, ["head", "-c", "3"], stdin="x" * 1_000_000) == "xxx"


def test_users_by_name_and_number(api, tiny):
    for user, want in (("root", "0 0"), ("user", "1000 1000"), ("1000", "1000 1000"),
                       ("1000:0", "1000 0"), ("1234:4321", "1234 4321"), ("0", "0 0")):
        assert api.out(tiny, "echo $(id -u) $(id -g)", user=user).strip() == want, user


def test_a_program_that_cannot_start_is_an_error_of_its_own(api, tiny):
    path = f"/v1/sandboxes/{tiny}/exec"
    api.refused(400, "program_not_found", "POST", path, {"argv": ["no-such-program"]})
    api.refused(400, "program_not_found", "POST", path, {"argv": ["/bin/no-such-program"]})
    api.refused(400, "program_not_executable", "POST", path, {"argv": ["/etc/passwd"]})
    api.refused(400, "program_not_executable", "POST", path, {"argv": ["/etc"]})
    api.refused(400, "workdir_not_found", "POST", path, {"argv": ["true"], "cwd": "/nowhere"})
    api.refused(400, "workdir_not_found", "POST", path, {"argv": ["true"], "cwd": "/etc/passwd"})
    api.refused(400, "user_not_found", "POST", path, {"argv": ["true"], "user": "nobody-here"})
    assert api.exec(tiny, "no-such-program")["exit_code"] == 127  # the shell's own word


def test_a_script_with_a_missing_interpreter(api, tiny):
    api.out(tiny, "printf '#!/no/such\\n' > /tmp/s; chmod +x /tmp/s")
    api.refused(400, "program_not_found", "POST", f"/v1/sandboxes/{tiny}/exec", {"argv": ["/tmp/s"]})


def test_a_timeout_kills_all_that_was_started(api, tiny):
    r = api.exec(tiny, "sleep 1111 & (setsid sleep 1112 &) ; echo begun; sleep 1113", timeout_s=0.3)
    assert (r["reason"], r["stdout"], r["exit_code"]) == ("timeout", "begun\n", 137)
    assert r["duration_ms"] >= 290
    assert "sleep 111" not in api.out(tiny, ["ps"])


def test_a_command_is_over_when_it_ends_whatever_it_left_behind(api, tiny):
    r = api.exec(tiny, "sleep 1200 & echo done")
    assert (r["exit_code"], r["stdout"]) == (0, "done\n")
    assert "sleep 1200" in api.out(tiny, ["ps"])


def test_output_beyond_the_limit_is_cut_and_said_so(api, tiny):
    r = api.exec(tiny, "head -c 100000 /dev/zero | tr '\\0' x", output_limit=1000)
    assert r["truncated"] is True and r["stdout"] == "x" * 1000 and r["exit_code"] == 0


def test_megabytes_come_whole(api, tiny):
    r = api.exec(tiny, "yes 0123456789abcde | head -c 6000000; yes e | head -c 1000000 >&2")
    assert r["stdout"] == ("0123456789abcde\n" * 400_000)[:6_000_000]
    assert r["stderr"] == "e\n" * 500_000
    assert r["truncated"] is False


def test_bytes_that_are_no_text_come_encoded(api, tiny):
    import base64
    r = api.exec(tiny, "printf '\\377\\376\\001'; echo text >&2")
    assert base64.b64decode(r["stdout_b64"]) == b"\xff\xfe\x01" and "stdout" not in r
    assert r["stderr"] == "text\n"


def test_text_of_every_kind_comes_as_it_is(api, tiny):
    text = "tab\t quote\" back\\slash nul-free é ☃ 𝄞 \x7f \x1b[31m\r\n"
    assert api.out(tiny, ["cat"], stdin=text) == text
    assert api.out(tiny, ["printf", "%s", text]) == text


def test_arguments_up_to_the_kernels_limit(api, tiny):
    big = "x" * 100_000
    assert api.out(tiny, ["sh", "-c", "echo ${#1}", "sh", big]).strip() == "100000"
    assert api.out(tiny, ["sh", "-c", "echo $#", "sh"] + ["y" * 100] * 5000).strip() == "5000"
    api.refused(400, "argument_too_large", "POST", f"/v1/sandboxes/{tiny}/exec",
                {"argv": ["echo", "x" * 200_000]})  # one string: 128 KiB is all the kernel takes


def test_the_environment_is_clean(api, tiny):
    names = {line.split("=")[0] for line in api.out(tiny, ["env"]).split()}
    assert {"PATH", "HOME"} <= names
    assert names <= {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "HOSTNAME", "LANG", "TERM",
                     "SHLVL", "OMP_NUM_THREADS", "GOMAXPROCS"}


def test_orphans_are_reaped(api, tiny):
    api.out(tiny, "for i in 1 2 3 4 5; do (sleep 0.01 &) ; done")
    api.out(tiny, ["sleep", "0.3"])
    states = api.out(tiny, "cat /proc/[0-9]*/stat 2>/dev/null | awk '{print $3}'").split()
    assert "Z" not in states


def test_a_hundred_commands_one_after_the_other(api, tiny):
    for i in range(100):
        assert api.out(tiny, ["echo", str(i)]) == f"{i}\n"


def test_many_commands_at_once(api, tiny):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(16) as pool:
        outs = pool.map(lambda i: api.out(tiny, f"echo {i}; cat", stdin="-" * i), range(64))
        assert list(outs) == [f"{i}\n" + "-" * i for i in range(64)]


def test_the_base_image_has_what_it_promises(api, box):
    for program in ("bash", "python3", "python", "node", "npm", "git", "curl", "rg", "jq", "ps"):
        assert api.out(box, [program, "--version"], timeout=120), program
    assert api.out(box, ["python3", "-c", "print(6 * 7)"]) == "42\n"
    assert api.out(box, ["node", "-e", "console.log(6 * 7)"]) == "42\n"
    assert api.out(box, "git init -q /tmp/r && cd /tmp/r && git status --short | wc -l").strip() == "0"
    assert api.out(box, "ls /etc/ssl/certs/ca-certificates.crt")
