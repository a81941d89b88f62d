"""`POST /v1/images/build` and `warren image build`: Dockerfiles into images, step by step."""
import contextlib
import gzip
import io
import json
import os
import shutil
import tarfile
import urllib.parse
import zlib

import pytest

import registries
from harness import Stream, until


def context_tar(files):
    """A tar of {name: text, bytes, (text, mode) or TarInfo}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, what in files.items():
            if isinstance(what, tarfile.TarInfo):
                tar.addfile(what)
                continue
            mode = 0o644
            if isinstance(what, tuple):
                what, mode = what
            data = what.encode() if isinstance(what, str) else what
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def path_of(name, **query):
    args = {f"arg.{k}": v for k, v in query.pop("args", {}).items()}
    return "/v1/images/build?" + urllib.parse.urlencode({"name": name, **query, **args})


class Build:
    """What a build said, and the image it made."""

    def __init__(self, events):
        self.events = events
        self.last = events[-1]

    @property
    def image(self):
        assert self.last["type"] == "image", self.last
        return self.last["image"]

    @property
    def error(self):
        assert self.last["type"] == "error", self.last
        return self.last

    def of(self, kind):
        assert self.last["type"] == "image", self.last
        return [e for e in self.events if e["type"] == kind]

    @property
    def log(self):
        return "".join(e["text"] for e in self.of("log"))

    @property
    def cached(self):
        return [e["n"] for e in self.of("cached")]


class Builder:
    def __init__(self, api, name):
        self.api, self.name = api, name

    def raw(self, files, **query):
        return self.api.call("POST", path_of(query.pop("name", self.name), **query),
                             files if isinstance(files, bytes) else context_tar(files))

    def __call__(self, dockerfile, files=None, **query):
        reply = self.raw({"Dockerfile": dockerfile, **(files or {})}, **query)
        if reply.status != 200:
            return Build([{"type": "error", "status": reply.status, **reply.json["error"]}])
        return Build([json.loads(line) for line in reply.body.splitlines()])

    def refused(self, dockerfile, files=None, code="invalid_dockerfile", line=None, **query):
        error = self(dockerfile, files, **query).error
        assert error["code"] == code, error
        assert error.get("line") == line or line is None, error
        return error["message"]

    def sh(self, script, name=None, **spec):
        """What a script prints in a new sandbox of the image."""
        box = self.api.create(image=name or self.name, **spec)["id"]
        try:
            out = self.api.ok("POST", f"/v1/sandboxes/{box}/exec", {"shell": script})
            assert out["exit_code"] == 0, out
            return out["stdout"]
        finally:
            self.api.ok("DELETE", f"/v1/sandboxes/{box}")


@pytest.fixture
def build(api, request):
    name = f"build-{zlib.crc32(request.node.name.encode()):08x}"
    yield Builder(api, name)
    api.call("DELETE", f"/v1/images/{name}")


def cells(daemon):
    """Every cell there is, also those that no list shows."""
    return set(os.listdir(daemon.run / "cells"))


# -- what the instructions do

def test_a_file_becomes_a_layer_and_a_command_another(build):
    made = build("FROM tiny\nCOPY hello /srv/\nRUN cat /srv/hello && echo more >>/srv/hello\n",
                 {"hello": "hello\n"})
    assert [e["text"] for e in made.of("step")] == [
        "FROM tiny", "COPY hello /srv/", "RUN cat /srv/hello && echo more >>/srv/hello"]
    assert [(e["n"], e["of"], e["line"]) for e in made.of("step")] == [(1, 3, 1), (2, 3, 2), (3, 3, 3)]
    assert made.log == "hello\n"
    assert [e["n"] for e in made.of("layer")] == [2, 3]
    assert made.image["name"] == build.name
    assert build.sh("cat /srv/hello") == "hello\nmore\n"


def test_output_comes_as_it_is_printed_on_both_streams(build):
    made = build("FROM tiny\nRUN echo out; echo err >&2\n")
    assert {(e["stream"], e["text"]) for e in made.of("log")} == {("stdout", "out\n"), ("stderr", "err\n")}


def test_the_configuration_is_the_dockerfiles(build, api):
    made = build("""\
FROM tiny
ENV A=1 B="two words" C=$A.0
ENV OLD old style
LABEL org.example.a=x "with space"=y
EXPOSE 80 53/udp
VOLUME /data
USER user
WORKDIR /work
WORKDIR sub
STOPSIGNAL SIGINT
HEALTHCHECK --interval=5s CMD true
ENTRYPOINT ["/bin/sh", "-c"]
CMD ["echo hi"]
""")
    config = made.image["config"]
    assert {k: config["env"][k] for k in ("A", "B", "C")} == {"A": "1", "B": "two words", "C": ".0"}
    assert config["env"]["OLD"] == "old style"
    assert config["labels"] == {"org.example.a": "x", "with space": "y"}
    assert sorted(config["ports"]) == ["53/udp", "80/tcp"]
    assert config["user"] == "user" and config["workdir"] == "/work/sub"
    assert config["entrypoint"] == ["/bin/sh", "-c"] and config["cmd"] == ["echo hi"]
    assert build.sh("pwd; id -un; echo $B") == "/work/sub\nuser\ntwo words\n"
    history = api.ok("GET", f"/v1/images/{build.name}/history")["history"]
    assert history[0]["created_by"] == 'CMD ["echo hi"]' and history[0]["empty"]
    assert any(h["created_by"] == "WORKDIR sub" and not h["empty"] for h in history)


def test_env_is_as_it_was_when_the_instruction_began(build):
    made = build("FROM tiny\nENV a=hello\nENV a=bye b=$a\nRUN echo $a $b\n")
    assert made.log == "bye hello\n"


def test_arguments_count_where_they_are_declared(build):
    dockerfile = """\
ARG base=tiny
ARG outer=outer-default
FROM $base
ARG given=default
ARG outer
ARG TARGETARCH
RUN echo "$given $outer [$undeclared] $TARGETARCH" | sed 's/amd64\\|arm64/arch/'
ENV given=env
RUN echo $given
"""
    assert build(dockerfile).log == "default outer-default [] arch\nenv\n"
    made = build(dockerfile, args={"given": "g", "outer": "o", "undeclared": "u"})
    assert made.log.splitlines()[0] == "g o [] arch"
    assert [e["message"] for e in made.of("warning")] == ["no ARG asks for the argument 'undeclared'"]
    assert "given" not in made.image["config"]["env"] or made.image["config"]["env"]["given"] == "env"


def test_shell_and_exec_forms(build):
    made = build("""\
FROM tiny
RUN ["/bin/echo", "$HOME", "two  spaces"]
SHELL ["/bin/sh", "-exc"]
RUN echo shelled
CMD echo cmd
""")
    assert "$HOME two  spaces\n" in made.log and "+ echo shelled" in made.log
    assert made.image["config"]["cmd"] == ["/bin/sh", "-exc", "echo cmd"]


def test_heredocs(build):
    made = build("""\
FROM tiny
ARG who=world
RUN <<EOF
echo one
  echo "two $who"
EOF
RUN cat <<-A <<'B' >/both && cat /both
\tfirst $who
\tA
second $who
B
RUN <<EOF
#!/bin/sh -e
echo "script $0" | sed 's/ .*//'
EOF
COPY <<EOF /etc/motd
hello $who \\$who 'quoted'
EOF
COPY <<"one" <<two /docs/
raw $who
one
cooked $who
two
RUN cat /etc/motd /docs/one /docs/two; ls /dev/shm | wc -l
""")
    assert made.log == ("one\ntwo world\nsecond world\n".replace("second world", "second $who")
                        + "script\nhello world $who 'quoted'\nraw $who\ncooked world\n0\n")


def test_copy_follows_dockers_rules(build):
    made = build("""\
FROM tiny
WORKDIR /w
COPY a.txt renamed.txt
COPY a.txt b.txt dir/
COPY *.txt /globbed/
COPY sub /tree
COPY sub/ deep/sub/
COPY ["with space", "/spaced out"]
COPY --chmod=4711 a.txt /moded
COPY --chown=user:user sub /owned/
COPY --chown=12:34 a.txt /numbers
COPY a.txt /etc
COPY ./sub/../a.txt /cleaned
COPY l?nk /followed
RUN cd / && find w globbed tree owned spaced* moded numbers etc/a.txt cleaned followed ! -type d | sort; \
    stat -c '%n %a %u:%g' /moded /numbers /owned /owned/in/x /w/renamed.txt /w /tree/run.sh; \
    readlink /tree/link; cat /followed
""", {"a.txt": "a", "b.txt": "b", "sub/in/x": "x", "sub/run.sh": ("#!", 0o755), "with space": "s",
      "sub/link": link("sub/link", "in/x"), "link": link("link", "b.txt")})
    lines = made.log.splitlines()
    assert lines[:17] == sorted([
        "w/renamed.txt", "w/dir/a.txt", "w/dir/b.txt", "globbed/a.txt", "globbed/b.txt", "tree/in/x",
        "tree/run.sh", "tree/link", "w/deep/sub/in/x", "w/deep/sub/run.sh", "w/deep/sub/link",
        "spaced out", "owned/in/x", "owned/run.sh", "owned/link", "moded", "numbers"]
        + ["etc/a.txt", "cleaned", "followed"])[:17]
    assert "/moded 4711 0:0" in lines and "/numbers 644 12:34" in lines
    assert "/owned 755 1000:1000" in lines and "/owned/in/x 644 1000:1000" in lines
    assert "/w/renamed.txt 644 0:0" in lines and "/tree/run.sh 755 0:0" in lines
    assert lines[-2:] == ["in/x", "b"]


def test_add_unpacks_archives(build):
    inner = context_tar({"in/side": "packed\n"})
    made = build("""\
FROM tiny
ADD plain.tar packed.tar.gz /out/
ADD note.gz /kept/
ADD text /kept/
RUN cat /out/in/side /out/more; zcat /kept/note.gz; cat /kept/text
""", {"plain.tar": inner, "packed.tar.gz": gzip.compress(context_tar({"more": "more\n"})),
      "note.gz": gzip.compress(b"only packed\n"), "text": "text\n"})
    assert made.log == "packed\nmore\nonly packed\ntext\n"


def test_stages(build):
    made = build("""\
FROM tiny AS build
RUN mkdir /out && echo made >/out/it && chown 7:8 /out/it && ln /out/it /out/same
FROM tiny AS unused
RUN exit 1
FROM scratch
COPY --from=build /out /
COPY --from=tiny /bin/busybox /bin/sh
COPY --from=0 /out/it /again
CMD ["/bin/sh"]
""")
    assert made.last["type"] == "image", made.last
    assert [e["text"].split()[0] for e in made.of("step")] == ["FROM", "RUN", "FROM"] + ["COPY"] * 3 + ["CMD"]
    assert build.sh("cat /it /same /again; /bin/sh -c 'exec -a stat /bin/sh -c true'; "
                    "/bin/sh -c 'ls -ln /it' 2>/dev/null || true").startswith("made\nmade\nmade\n")


def test_a_target_ends_the_build_there(build):
    dockerfile = "FROM tiny AS one\nRUN echo 1 >/n\nFROM one AS two\nRUN echo 2 >/n\n"
    assert len(build(dockerfile, target="one").of("step")) == 2
    assert build.sh("cat /n") == "1\n"
    assert build(dockerfile).image
    assert build.sh("cat /n") == "2\n"
    assert "no stage 'three'" in build.refused(dockerfile, target="three")


def test_from_scratch(build):
    made = build("FROM scratch\nCOPY file /only\n", {"file": "alone"})
    assert made.image["layers"] == 1
    again = build(f"FROM {build.name}\nCOPY --from=tiny /bin/busybox /bin/busybox\n"
                  'RUN ["/bin/busybox", "cat", "/only"]\n', name=build.name + "-2")
    assert again.log == "alone"
    build.api.ok("DELETE", f"/v1/images/{build.name}-2")
    assert build.refused("FROM scratch\nENV a=b\n", code="build_failed")


def test_a_step_that_changes_nothing_makes_no_layer(build):
    made = build("FROM tiny\nRUN true\nWORKDIR /root\nRUN echo >/x\n", network="none")  # no resolver to be named
    assert [e["n"] for e in made.of("layer")] == [4]
    again = build("FROM tiny\nRUN true\nWORKDIR /root\nRUN echo >/x\n")
    assert again.cached == [2, 3, 4]
    assert again.image["layers"] == made.image["layers"]


# -- the cache

CACHED = "FROM tiny\nCOPY src /src\nRUN cat /src/a; date +%N >/stamp\n"


def test_the_cache_goes_by_content(build):
    first = build(CACHED, {"src/a": "one", "other": "x"})
    assert first.cached == []
    stamp = build.sh("cat /stamp")
    same = build(CACHED, {"src/a": "one", "other": "changed"})
    assert same.cached == [2, 3] and same.log == ""
    assert build.sh("cat /stamp") == stamp
    assert build(CACHED, {"src/a": "two", "other": "x"}).cached == []
    assert build(CACHED, {"src/a": ("one", 0o755)}).cached == []
    assert build(CACHED, {"src/b": "one", "src/a": "one"}).cached == []
    assert build(CACHED, {"src/a": "one"}).cached == [2, 3]


def test_a_build_from_the_cache_is_the_same_image(build):
    """Steps with a layer, without one, and that only configure, from two stages: id and digest are the same."""
    def ids(text, **query):
        image = build(text, {"a": "one"}, **query).image
        return image["id"], image["digest"], image["created_at"]
    text = ("FROM tiny AS one\nENV A=1\nRUN date +%N >/stamp\n"
            "FROM tiny\nRUN true\nWORKDIR /srv\nCOPY --from=one /stamp ./\nCOPY a ./\nLABEL x=y\n")
    first = ids(text)
    assert ids(text) == first
    assert ids(text.replace("x=y", "x=z"))[0] != first[0]
    assert ids(text.replace("RUN true", "RUN :"))[0] != first[0]
    assert ids(text) == first
    anew = ids(text, no_cache="true")
    assert anew[0] != first[0]
    assert ids(text) == anew  # the cache has the later one now


def test_times_do_not_count_and_order_does_not(build):
    def packed(mtime, names):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name in names:
                data = CACHED.encode() if name == "Dockerfile" else b"one"
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(data), mtime
                tar.addfile(info, io.BytesIO(data))
        return out.getvalue()

    names = ["Dockerfile", "src/a", "src/b", "src/c"]
    assert build.raw(packed(1, names)).status == 200
    reply = build.raw(packed(1000000000, names[::-1]))
    kinds = [json.loads(line)["type"] for line in reply.body.splitlines()]
    assert kinds.count("cached") == 2


def test_words_and_variables_count(build):
    dockerfile = "FROM tiny\nARG v=1\nRUN echo $v >/v\nRUN echo fixed >/f\n"
    build(dockerfile)
    assert build(dockerfile).cached == [3, 4]
    assert build(dockerfile, args={"v": "2"}).cached == []
    assert build.sh("cat /v") == "2\n"
    assert build(dockerfile.replace("fixed", "other")).cached == [3]
    assert build("FROM tiny\nENV x=y\nARG v=1\nRUN echo $v >/v\n").cached == []
    assert build(dockerfile, no_cache="true").cached == []


def test_a_failed_step_leaves_those_before_it_cached(build):
    bad = "FROM tiny\nRUN echo first >/1\nRUN echo second >/2; echo last words; exit 3\n"
    error = build(bad).error
    assert error["code"] == "build_failed" and error["line"] == 3
    assert "exit code 3" in error["message"] and "last words" in error["message"]
    good = build(bad.replace("exit 3", "exit 0"))
    assert good.cached == [2] and good.image


def wait_for_the_end(api, team="default"):
    """A build holds its layers until its cells are gone, a moment after its last event."""
    until(lambda: api.ok("GET", f"/v1/teams/{team}")["disk"]["builds_mb"] == 0, "the end of the builds")


def test_pruned_layers_are_made_again(build):
    build("FROM tiny\nRUN echo kept >/k\n")
    build.api.ok("DELETE", f"/v1/images/{build.name}")
    wait_for_the_end(build.api)
    build.api.ok("POST", "/v1/images/prune", {})
    made = build("FROM tiny\nRUN echo kept >/k\n")
    assert made.cached == [] and made.image
    assert build.sh("cat /k") == "kept\n"


def test_a_team_prunes_its_own_cache_alone(fresh):
    dockerfile = "FROM tiny\nRUN head -c 2000000 /dev/urandom >/k\n"
    teams = {}
    for name in ("red", "blue"):
        fresh.api.ok("POST", "/v1/teams", {"name": name, "quotas": {"disk_mb": 100000}})
        key = fresh.api.ok("POST", "/v1/keys", {"name": f"{name}-key", "team": name})["key"]
        teams[name] = Builder(fresh.api.with_key(key), "app")

    def cache_mb(name):
        return fresh.api.ok("GET", f"/v1/teams/{name}")["disk"]["images_mb"]
    for name, team in teams.items():
        assert team(dockerfile).cached == []
        team.api.ok("DELETE", "/v1/images/app")
        wait_for_the_end(fresh.api, name)
    assert cache_mb("red") >= 4 and cache_mb("blue") >= 4
    pruned = teams["red"].api.ok("POST", "/v1/images/prune", {})
    assert len(pruned["removed"]) == 1 and pruned["freed_bytes"] >= 2000000, pruned
    assert cache_mb("red") == 0 and cache_mb("blue") >= 4
    assert teams["red"].api.ok("POST", "/v1/images/prune", {}) == {"removed": [], "freed_bytes": 0}
    assert teams["blue"](dockerfile).cached == [2]
    assert teams["red"](dockerfile).cached == []


# -- .dockerignore

def test_dockerignore_is_applied_by_the_daemon_too(build):
    files = {".dockerignore": "*.log\n!keep.log\nnode_modules\n**/*.o\nDockerfile\n.dockerignore\n",
             "a.log": "", "keep.log": "", "node_modules/x": "", "src/a.o": "", "src/a.c": ""}
    made = build("FROM tiny\nCOPY . /c\nRUN cd /c && find . -type f | sort\n", files)
    assert made.log.split() == ["./keep.log", "./src/a.c"]
    message = build.refused("FROM tiny\nCOPY a.log /\n", files, code="build_failed", line=2)
    assert ".dockerignore" in message
    assert "not there" in build.refused("FROM tiny\nCOPY *.o /\n", files, code="build_failed")


def test_what_is_not_there_is_told_with_its_line(build):
    assert "'nope'" in build.refused("FROM tiny\n\nCOPY nope /\n", code="build_failed", line=3)
    assert "end in '/'" in build.refused("FROM tiny\nCOPY a b /c\n", {"a": "", "b": ""}, line=2)


# -- hostile contexts and Dockerfiles

@pytest.mark.parametrize("source", ["../x", "a/../../x", "..", "/../x/.."])
def test_nothing_outside_of_the_context_is_copied(build, source):
    error = build(f"FROM tiny\nCOPY {source} /x/\n", {"a/b": ""}).error
    assert error["code"] in ("invalid_dockerfile", "build_failed"), error


def test_links_in_a_context_lead_nowhere(build):
    files = {"etc": link("etc", "/etc"), "up": link("up", "../../../../etc/hostname"), "ok": "fine"}
    assert build("FROM tiny\nCOPY etc/passwd /stolen\n", files).error["code"] == "build_failed"
    assert build("FROM tiny\nCOPY up /stolen\n", files).error["code"] == "build_failed"
    made = build("FROM tiny\nCOPY . /c\nRUN readlink /c/etc; cat /c/ok\n", files)
    assert made.log == "/etc\nfine"


def test_hostile_archives_are_refused(build, daemon):
    before = cells(daemon)
    for files in ({"../escaped": "x"}, {"/etc/escaped": "x", "a": link("a", "../../b", tarfile.LNKTYPE)}):
        reply = build.raw({"Dockerfile": "FROM tiny\nCOPY . /c\n", **files})
        assert reply.status == 400, reply
    assert build.raw(b"this is no tar" * 1000).status == 400
    assert build.raw(b"").status == 400
    assert not os.path.exists("/etc/escaped")
    until(lambda: cells(daemon) <= before | cells_ready(daemon), "the build's cells are gone")


def cells_ready(daemon):
    return {s["id"] for s in daemon.api.ok("GET", "/v1/sandboxes")["sandboxes"]}


@pytest.mark.parametrize("dockerfile, line, says", [
    ("", None, "no FROM"),
    ("RUN x\n", 1, "before the first FROM"),
    ("FROM tiny\nFOO\n", 2, "no instruction"),
    ("FROM tiny\nRUN --mount=type=cache,target=/x true\n", 2, "BuildKit"),
    ("FROM tiny\n\nCOPY --link a b\n", 3, "BuildKit"),
    ("FROM tiny\nADD https://example.org/x /\n", 2, "context only"),
    ("FROM tiny\nONBUILD RUN x\n", 2, "ONBUILD"),
    ("FROM tiny\nEXPOSE http\n", 2, "port"),
    ("FROM tiny\nCOPY --chmod=rwx a b\n", 2, "octal"),
    ("FROM tiny\nSTOPSIGNAL SIGNOPE\n", 2, "signal"),
    ("FROM tiny\nENV a=${b\n", 2, "'}'"),
    ("FROM --platform=linux/s390x tiny\n", 1, "platform"),
    ("ARG v\nFROM $v\n", 2, "expands to nothing"),
    ("FROM tiny\nCOPY --from=9 a b\n", 2, "no stage"),
])
def test_errors_name_the_line(build, dockerfile, line, says):
    assert says in build.refused(dockerfile, {"a": ""}, line=line)


def test_errors_before_the_first_step_have_a_status(build):
    reply = build.raw({"Dockerfile": "FROM tiny\nFOO\n"})
    assert reply.status == 400 and reply.json["error"]["line"] == 2
    assert build.raw({"Other": "FROM tiny\n"}).code == "invalid_dockerfile"
    assert build.raw({"Dockerfile": "FROM tiny"}, dockerfile="../Dockerfile").code == "invalid_query"
    assert build.raw({"Dockerfile": "FROM tiny"}, name="No Such Name").code == "invalid_reference"
    assert build.api.call("POST", "/v1/images/build", b"").code == "invalid_query"
    assert build.api.call("POST", path_of("x", nonsense="1"), b"").code == "invalid_query"


def test_a_base_that_is_not_here(build):
    assert "warren image pull" in build.refused("FROM nobody/nothing:1\n", code="image_not_found", line=1)
    assert "warren image pull" in build.refused("FROM tiny\nCOPY --from=nobody/nothing a b\n",
                                           code="image_not_found", line=2)


@pytest.mark.skipif(not shutil.which("docker-registry"), reason="docker-registry is not installed")
def test_a_base_at_a_registry_is_pulled(build):
    with contextlib.closing(registries.Registry()) as registry:
        where = f"{registry.host}/base/tiny:1"
        build.api.call("POST", "/v1/images/tiny/push", {"image": where})
        made = build(f"FROM {where}\nCOPY --from={registry.host}/base/tiny:1 /etc/hosts /copied\nRUN cat /copied\n")
        assert "127.0.0.1 localhost\n" in made.log
        missing = build(f"FROM {registry.host}/none:1\n").error
        assert (missing["code"], missing["line"]) == ("registry_not_found", 1)
    build.api.ok("DELETE", f"/v1/images/{urllib.parse.quote(where, safe='')}")


def test_steps_fail_as_what_they_are(build):
    assert build("FROM tiny\nRUN [\"/no/such\"]\n").error["code"] == "build_failed"
    assert build("FROM tiny\nUSER nobody-here\nRUN true\n").error["code"] == "build_failed"
    assert "SIGKILL" in build("FROM tiny\nRUN kill -9 $$\n").error["message"]
    assert build("FROM tiny\nCOPY --chown=nobody-here a /\n", {"a": ""}).error["line"] == 2


def test_a_step_has_no_interface_and_is_root_only_inside(build):
    made = build("FROM tiny\nRUN id -u; ls /sys/class/net\n")
    assert made.log == "0\nlo\n"


# -- life

def test_builds_are_in_no_list_and_leave_no_event(fresh):
    before = fresh.api.ok("GET", "/v1/events")["next"]
    reply = fresh.api.call("POST", path_of("quiet"), context_tar({"Dockerfile": "FROM tiny\nRUN echo >/x\n"}))
    assert json.loads(reply.body.splitlines()[-1])["type"] == "image"
    assert fresh.api.ok("GET", "/v1/sandboxes?state=running,stopped")["sandboxes"] == []
    events = fresh.api.ok("GET", f"/v1/events?since={before}")["events"]
    assert {e["type"] for e in events} <= {"image.added"}
    assert "warren_builds_total 1\n" in fresh.api.call("GET", "/metrics").body.decode()


SLOW = "FROM tiny\nRUN echo first >/1\nRUN echo begun; while :; do sleep 0.1; done\n"


def begin(api, name):
    connection, response = api.open("POST", path_of(name), context_tar({"Dockerfile": SLOW}))
    assert response.status == 200
    stream = Stream(connection, response)
    stream.until(type="log", text="begun\n")
    return stream


def test_a_client_that_goes_away_ends_the_build(fresh):
    ready = cells(fresh)
    stream = begin(fresh.api, "gone")
    assert cells(fresh) - ready
    stream.close()
    until(lambda: not in_use(fresh), "the build's cells are gone")
    fresh.api.refused(404, "image_not_found", "GET", "/v1/images/gone")
    # What was done before is there for the next.
    reply = fresh.api.call("POST", path_of("gone"), context_tar(
        {"Dockerfile": SLOW.replace("while :; do sleep 0.1; done", "true")}))
    assert b'"cached"' in reply.body


def in_use(daemon):
    """Cells that somebody works in: not those that wait in the pool."""
    found = []
    for cell in cells(daemon):
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    with open(f"/proc/{entry}/cgroup") as f:
                        if cell in f.read() and "begun" in open(f"/proc/{entry}/cmdline").read():
                            found.append(cell)
    return found


def test_a_killed_daemon_leaves_no_cell_of_a_build(fresh):
    stream = begin(fresh.api, "cut")
    assert in_use(fresh)
    fresh.kill()
    stream.close()
    fresh.start()
    until(lambda: not in_use(fresh), "the build's cells are gone")
    assert fresh.api.ok("GET", "/v1/sandboxes")["sandboxes"] == []


def test_a_stopping_daemon_ends_its_builds(fresh):
    stream = begin(fresh.api, "stopped")
    assert fresh.stop() == 0
    stream.close()


def test_only_so_many_builds_at_once(fresh):
    streams = [begin(fresh.api, f"b{i}") for i in range(4)]
    try:
        fresh.api.refused(503, "capacity", "POST", path_of("b5"), context_tar({"Dockerfile": SLOW}))
    finally:
        for s in streams:
            s.close()

    def again():
        return fresh.api.call("POST", path_of("b5"), context_tar({"Dockerfile": "FROM tiny\nRUN echo >/x\n"})
                              ).status == 200
    until(again, "room for a build")


def test_builds_count_for_the_quota(fresh):
    fresh.api.ok("POST", "/v1/teams", {"name": "small", "quotas": {"memory_mb": 1024}})
    reply = fresh.api.call("POST", path_of("b"), context_tar({"Dockerfile": SLOW}),
                           headers={"X-Warren-Team": "small"})
    assert (reply.status, reply.code) == (403, "quota_exceeded")


# -- the command

def test_the_command_packs_a_directory(daemon, tmp_path, build):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main").write_text("main\n")
    (tmp_path / ("long" * 40)).write_text("long\n")
    (tmp_path / "secret").write_text("no\n")
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    os.symlink("src/main", tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".dockerignore").write_text("secret\nDockerfile\n.dockerignore\n")
    (tmp_path / "Dockerfile").write_text("FROM tiny\nARG v\nCOPY . /c\nRUN echo v=$v; cd /c; ls | cut -c1-8; "
                                         "stat -c %a run.sh; readlink link\n")
    out = daemon.cli("image", "build", "-t", build.name, "--build-arg", "v=7", tmp_path)
    assert out.returncode == 0, out.stderr
    assert "[4/4] RUN echo" in out.stderr and "  | v=7\n" in out.stderr
    assert build.name in out.stdout
    for line in ("link", "longlong", "run.sh", "src", "755", "src/main"):
        assert f"  | {line}\n" in out.stderr
    assert "secret" not in out.stderr and "pipe" not in out.stderr
    again = daemon.cli("--json", "image", "build", "-t", build.name, "--build-arg", "v=7", tmp_path)
    events = [json.loads(line) for line in again.stdout.splitlines()]
    assert [e["n"] for e in events if e["type"] == "cached"] == [3, 4]
    quiet = daemon.cli("image", "build", "-q", "-t", build.name, "--build-arg", "v=7", tmp_path)
    assert quiet.stdout.startswith("sha256:") and quiet.stderr == ""


def test_the_command_finds_its_dockerfile(daemon, tmp_path, build):
    context = tmp_path / "context"
    (context / "docker").mkdir(parents=True)
    (context / "docker" / "Inside").write_text("FROM tiny\nCOPY . /c\nRUN ls -A /c\n")
    outside = tmp_path / "Outside"
    outside.write_text("FROM tiny\nCOPY . /c\nRUN ls -A /c; echo outside\n")
    out = daemon.cli("image", "build", "-t", build.name, "-f", context / "docker" / "Inside", context)
    assert out.returncode == 0 and "  | docker\n" in out.stderr
    out = daemon.cli("image", "build", "-t", build.name, "-f", outside, context)
    assert "  | outside\n" in out.stderr and ".warren" not in out.stderr
    out = daemon.cli("image", "build", "-t", build.name, "-f", "-", context,
                     stdin="FROM tiny\nRUN echo piped\n")
    assert "  | piped\n" in out.stderr
    out = daemon.cli("image", "build", "-t", build.name, context)
    assert out.returncode == 1 and "-f names another" in out.stderr


def test_the_command_fails_with_the_build(daemon, tmp_path, build):
    (tmp_path / "Dockerfile").write_text("FROM tiny\nRUN echo why; exit 4\n")
    out = daemon.cli("image", "build", "-t", build.name, tmp_path)
    assert out.returncode == 1
    assert "step 2 (line 2) ended with exit code 4: why" in out.stderr
    (tmp_path / "Dockerfile").write_text("FROM tiny\nNOPE\n")
    out = daemon.cli("image", "build", "-t", build.name, tmp_path)
    assert out.returncode == 1 and "line 2: there is no instruction 'NOPE'" in out.stderr
    assert daemon.cli("image", "build", tmp_path).returncode == 2
