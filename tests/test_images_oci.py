"""Layered images: docker save archives and OCI layouts in, what each layer means, and back out."""
import concurrent.futures
import gzip
import io
import json
import os
import signal
import struct
import tarfile

import pytest

from harness import until
from images import (Image, busybox, directory, entry, gz, hardlink, layout, sha, symlink, tar, tree_of,
                    zstd)
from test_images import blobs, trees


@pytest.fixture(scope="module")
def first():
    return busybox()


@pytest.fixture
def put(api, request):
    """Import bytes under a name; they are gone after the test."""
    names = []

    def put_one(name, data, **more):
        image = api.ok("PUT", f"/v1/images/{name}", data, timeout=120, **more)
        names.append(name)
        return image
    yield put_one
    for name in names:
        api.call("DELETE", f"/v1/images/{name}")


@pytest.fixture
def run(api, put, make):
    """A sandbox on an image of these layers; answers what a command prints."""
    def run_one(name, data, command, **more):
        put(name, data)
        return api.out(make(image=name)["id"], command, **more)
    return run_one


def refuse(daemon, data, *words, code="invalid_image"):
    """The import fails with these words, and nothing of it is left."""
    before = set(trees(daemon)), blobs(daemon)
    error = daemon.api.refused(400, code, "PUT", "/v1/images/refused", data)
    for word in words:
        assert word in error["message"], error
    until(lambda: (set(trees(daemon)), blobs(daemon)) == before, "nothing is left")
    assert daemon.api.call("GET", "/v1/images/refused").status == 404


# -- forms

@pytest.mark.parametrize("packing", ["", "gzip", "zstd"])
def test_an_oci_layout_comes_in_however_it_is_packed(api, put, make, first, packing):
    image = Image(first, tar(entry("etc/two", packing)), packing=packing)
    got = put("packed", layout(image))
    assert (got["digest"], got["id"], got["layers"]) == (sha(image.manifest), sha(image.config), 2)
    assert (got["os"], got["created_at"]) == ("linux", "2024-05-06T07:08:09.000Z")
    assert api.out(make(image="packed")["id"], "cat /etc/two") == packing
    detail = api.ok("GET", "/v1/images/packed")["layer_list"]
    assert [x["digest"] for x in detail] == [sha(b) for b in image.blobs]
    assert [x["diff_id"] for x in detail] == [sha(t) for t in image.tars]
    assert [x["created_by"] for x in detail] == ["step 0", "step 1"]
    assert detail[0]["size_bytes"] >= os.path.getsize("/bin/busybox") > detail[1]["size_bytes"]


@pytest.mark.parametrize("outer", [lambda d: d, gz, zstd])
def test_a_docker_archive_comes_in(run, first, outer):
    image = Image(first, tar(entry("etc/two", "2")))
    assert run("docked", outer(image.docker()), "cat /etc/two") == "2"


def test_a_docker_archive_with_links_for_layers_that_come_twice(run, first):
    image = Image(first, tar(entry("etc/two", "2")))
    a, b = (sha(t)[7:] for t in image.tars)
    data = tar(entry("x/layer.tar", first), symlink(f"{a}/layer.tar", "../x/layer.tar"),
               entry(f"{b}/layer.tar", image.tars[1]), entry("c.json", image.config),
               entry("manifest.json", json.dumps([{"Config": "c.json", "RepoTags": None, "Layers": [
                   f"{a}/layer.tar", f"{b}/layer.tar"]}])))
    assert run("linked", data, "cat /etc/two") == "2"


def test_this_machines_platform_is_taken_from_an_index(put, daemon, first):
    right, wrong = Image(first), Image(tar(entry("wrong")), arch="s390x")
    assert put("multi", layout(wrong, right))["digest"] == sha(right.manifest)
    assert put("multi", layout(wrong, right, nested=True))["digest"] == sha(right.manifest)
    refuse(daemon, layout(wrong), "s390x", code="unsupported_platform")


def test_of_several_images_the_name_decides(put, daemon, first):
    one, two = Image(first), Image(first, tar(entry("two")))
    assert put("thing%3Atwo", layout(one, two, refs=["one", "two"]))["digest"] == sha(two.manifest)


def test_latest_is_the_same_as_no_tag(api, put, first):
    assert put("tagged%3Alatest", layout(Image(first)))["name"] == "tagged"
    assert api.ok("GET", "/v1/images/tagged%3Alatest")["name"] == "tagged"
    api.refused(400, "invalid_reference", "PUT", "/v1/images/No%20Name", b"x")
    api.refused(400, "invalid_reference", "PUT", "/v1/images/a%2F..%2Fb", b"x")


# -- what a layer means

def test_whiteouts_hide_what_is_below(run, first):
    below = tar(directory("d"), entry("d/a"), entry("d/b"), directory("e"), entry("e/x"), entry("gone"))
    above = tar(entry("d/.wh.a"), entry(".wh.gone"), entry(".wh.e"), entry("d/c"))
    assert run("hidden", layout(Image(first, below, above)),
               "cd / && find d e gone 2>/dev/null || true").split() == ["d", "d/b", "d/c"]


@pytest.mark.parametrize("late", [False, True])
def test_an_opaque_directory_shows_its_own_layer_alone(run, first, late):
    below = tar(directory("d"), entry("d/old"), directory("d/sub"), entry("d/sub/old"))
    mark, own = [entry("d/.wh..wh..opq")], [entry("d/new"), directory("d/sub"), entry("d/sub/new")]
    above = tar(directory("d"), *(own + mark if late else mark + own))
    assert run("opaque", layout(Image(first, below, above)), "cd / && find d -type f | sort").split() \
        == ["d/new", "d/sub/new"]


def test_a_whiteout_does_not_hide_its_own_layer(run, first):
    above = tar(entry("f", "mine"), entry(".wh.f"))
    assert run("own", layout(Image(first, tar(entry("f", "old")), above)), "cat /f") == "mine"


def test_files_directories_and_links_replace_each_other(run, first):
    below = tar(entry("a", "file"), directory("b"), entry("b/x"), symlink("c", "etc"), directory("k"), entry("k/1"))
    above = tar(directory("a"), entry("a/in", "1"), entry("b", "2"), directory("c"), entry("c/in", "3"),
                directory("k", mode=0o700), entry("k/2"))
    out = run("replaced", layout(Image(first, below, above)),
              "cat /a/in /b /c/in; test -e /etc/in && echo through; ls /k; stat -c %a /k")
    assert out == "1231\n2\n700\n"


def test_entries_go_through_links_of_lower_layers_and_stay_inside(run, first):
    below = tar(directory("usr"), directory("usr/lib"), symlink("lib", "usr/lib"), symlink("abs", "/usr/lib"),
                symlink("up", "../../../usr"))
    above = tar(entry("lib/a", "1"), entry("abs/b", "2"), entry("up/lib/c", "3"))
    out = run("through", layout(Image(first, below, above)),
              "cat /usr/lib/a /usr/lib/b /usr/lib/c; for l in lib abs up; do readlink /$l; done")
    assert out == "123usr/lib\n/usr/lib\n../../../usr\n"
    assert not os.path.exists("/usr/lib/a") and not os.path.exists("/usr/lib/c")


def test_hard_links_across_layers_are_the_same_file(run, first):
    below = tar(entry("data", "x" * 5000))
    above = tar(hardlink("other", "data"), entry("new", "n"), hardlink("twin", "/new"))
    out = run("hard", layout(Image(first, below, above)), "stat -c '%h %i' /data /other /new /twin")
    a, b, c, d = out.split("\n")[:4]
    assert a == b and a.startswith("2 ") and c == d and c.startswith("2 ")


def test_owners_modes_times_and_names_are_kept(run, first):
    deep = "d/" + "x" * 120 + "/" + "y" * 150
    above = tar(entry("s", mode=0o6755), entry("u", uid=1000, gid=65535, mtime=86400), symlink("l", "s", uid=7),
                directory("t", mode=0o1777, mtime=172800), entry("t/f"), entry(deep, "deep"),
                entry("n\u00e4me \u4e16", "utf8"), entry("p", type=tarfile.FIFOTYPE, mode=0o620))
    out = run("kept", layout(Image(first, above)),
              f"stat -c '%a %u:%g %Y' /s /u /t; stat -c %u /l; cat '/{deep}' '/n\u00e4me \u4e16'; stat -c %F%a /p")
    assert out == ("6755 0:0 1700000000\n644 1000:65535 86400\n1777 0:0 172800\n7\ndeeputf8fifo620\n")


def test_attributes_capabilities_and_holes_are_kept(daemon, put, first):
    capability = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)  # cap_net_bind_service=ep
    info, data = entry("f", "x", mode=0o755)
    info.pax_headers = {"SCHILY.xattr.user.color": "blue", "SCHILY.xattr.trusted.overlay.opaque": "y",
                        "SCHILY.xattr.security.capability": capability.decode("latin-1")}
    plain = tar((info, data))
    # A hole of a gigabyte, as GNU tar writes it.
    sparse, _ = entry("big", "1\n1073741824\n4096\n".encode().ljust(512, b"\0") + b"e" * 4096)
    sparse.name = "GNUSparseFile.0/big"
    sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "big",
                          "GNU.sparse.realsize": str(1073741824 + 4096)}
    holes = tar((sparse, "1\n1073741824\n4096\n".encode().ljust(512, b"\0") + b"e" * 4096))
    got = put("marked", layout(Image(first, plain, holes)))
    tree = tree_of(daemon, "marked")
    assert os.getxattr(f"{tree}/f", "user.color") == b"blue"
    assert os.getxattr(f"{tree}/f", "security.capability")[4:8] == capability[4:8]
    assert "trusted.overlay.opaque" not in os.listxattr(f"{tree}/f")
    big = os.stat(f"{tree}/big")
    assert big.st_size == 1073741824 + 4096 and big.st_blocks * 512 <= 65536
    with open(f"{tree}/big", "rb") as f:
        f.seek(1073741824)
        assert f.read() == b"e" * 4096
    assert got["size_bytes"] < 64 << 20


def test_devices_are_left_out(run, first):
    above = tar(entry("dev0", type=tarfile.CHRTYPE, devmajor=1, devminor=1),
                entry("dev1", type=tarfile.BLKTYPE, devmajor=8, devminor=0), entry("after", "ok"))
    assert run("devices", layout(Image(first, above)), "ls /dev0 /dev1 2>/dev/null; cat /after; true") == "ok"


# -- what is refused

@pytest.mark.parametrize("bad, word", [
    ([entry("../escape")], "leads out"),
    ([entry("a/../../escape")], "leads out"),
    ([hardlink("shadow", "../../../etc/shadow")], "leads out"),
    ([hardlink("nothing", "not/there")], "not there"),
    ([hardlink("dir", "etc")], "not there"),
    ([entry(".wh...")], "hides nothing"),
    ([entry(".wh..")], "hides nothing"),
    ([entry(".wh.")], "hides nothing"),
    ([entry("d/../.wh.x")], "leads out"),
    ([entry("f"), entry("f/below")], "not a directory"),
    ([entry("x", uid=70000)], "65535"),
    ([symlink("etc2", "nowhere"), entry("etc2/x")], "etc2"),
    ([symlink("dev", "/tmp")], "not a directory"),
])
def test_a_layer_that_leads_astray_is_refused(daemon, first, bad, word):
    refuse(daemon, layout(Image(first, tar(*bad))), word)


def test_a_link_out_of_the_tree_leads_back_into_it(run, first, tmp_path):
    target = f"{tmp_path}/host-file"
    above = tar(symlink("out", str(tmp_path)), symlink("etc/up", "../../../../../.."))
    more = tar(entry("etc/up/via-up", "2"), entry(".wh.none"))
    assert run("inside", layout(Image(first, above, more)), "cat /via-up") == "2"
    assert not os.path.exists(target) and not os.path.exists("/via-up")


def test_wrong_digests_are_refused(daemon, first):
    image = Image(first, tar(entry("etc/two", "2")))
    name = f"blobs/sha256/{sha(image.blobs[1])[7:]}"
    refuse(daemon, layout(image, members={name: gz(tar(entry("etc/two", "3")))}), "changed or cut")
    refuse(daemon, layout(image, drop=[name]), "missing")
    refuse(daemon, layout(image, drop=[f"blobs/sha256/{sha(image.config)[7:]}"]), "not in the archive")
    liar = Image(first, tar(entry("etc/two", "2")))
    liar.config = liar.config.replace(sha(liar.tars[1]).encode(), sha(b"another").encode())
    refuse(daemon, layout(liar), "its image says")
    refuse(daemon, liar.docker(), "its image says")
    short = Image(first, tar(entry("etc/two", "2")))
    short.config = Image(first).config
    refuse(daemon, layout(short), "2 layers")


def test_a_known_layer_is_no_cover_for_other_bytes(daemon, put, first):
    """The chain is there already; a blob that only claims to be it is still looked into."""
    put("honest", layout(Image(first)))
    liar = Image(first)
    liar.blobs = [gz(tar(entry("bin"), entry("evil")))]
    refuse(daemon, layout(liar), "its image says")


def test_truncated_layers_are_refused(daemon, first):
    for cut in (gz(first)[:-1000], zstd(first)[:-1000], first[:-5000]):
        image = Image(first)
        image.blobs, image.suffix = [cut], ""
        refuse(daemon, layout(image))
    refuse(daemon, layout(Image(first))[:-200_000])
    refuse(daemon, Image(first).docker()[:-700_000])


def test_json_of_any_shape_is_answered(daemon, first):
    image = Image(first)
    for bad in (b"", b"[]", b"{}", b"null", b"{" * 100_000, b'{"manifests": 3}', b'{"manifests": [3, null, {}]}',
                json.dumps({"manifests": [{"digest": "sha256:../../x", "size": 1}]}).encode(),
                json.dumps({"manifests": [{"digest": sha(b"?"), "size": -1}]}).encode()):
        reply = daemon.api.call("PUT", "/v1/images/refused", layout(image, members={"index.json": bad}))
        assert reply.status == 400 and reply.code in ("invalid_image", "unsupported_platform"), (bad[:40], reply)
    for bad in (b"{}", b"[]", b"[1]", b'[{"Config": 1}]', b'[{"Config": "a", "Layers": ["../../etc/passwd"]}]'):
        refuse(daemon, tar(entry("a", "{}"), entry("manifest.json", bad)))


def test_a_million_members_do_not_hold_the_daemon_up(daemon, tmp_path):
    names = tar(*(entry(f"m{i}") for i in range(12_000)))
    refuse(daemon, names, "10000 members")


# -- stored once

def test_shared_layers_take_their_room_once(fresh, first):
    ballast = tar(entry("ballast", os.urandom(8 << 20)))
    a, b = Image(first, ballast, tar(entry("a"))), Image(first, ballast, tar(entry("b")))
    used = lambda: os.statvfs(f"/proc/{fresh.keepers()[0]}/root{fresh.data}/pool")
    fresh.api.ok("PUT", "/v1/images/a", layout(a))
    before, n = used(), len(trees(fresh))
    got = fresh.api.ok("PUT", "/v1/images/b", layout(b))
    assert len(trees(fresh)) == n + 1
    assert (before.f_bfree - used().f_bfree) * before.f_frsize < 4 << 20
    assert got["shared_bytes"] >= 8 << 20
    fresh.api.ok("DELETE", "/v1/images/a")
    assert fresh.api.ok("GET", "/v1/images/b")["shared_bytes"] == 0
    assert fresh.api.out(fresh.api.create(image="b")["id"], "stat -c %s /ballast") == f"{8 << 20}\n"


def test_the_same_image_from_many_clients_at_once(fresh, first):
    data = layout(Image(first, tar(entry("etc/two", "2")), tar(entry("etc/three", "3"))))
    before = len(trees(fresh))
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda i: fresh.api.ok("PUT", f"/v1/images/c{i}", data, timeout=120), range(6)))
    assert len({g["digest"] for g in got}) == 1
    until(lambda: len(trees(fresh)) == before + 3, "one tree a layer")
    for i in range(6):
        fresh.api.ok("DELETE", f"/v1/images/c{i}")
    until(lambda: len(trees(fresh)) == before, "all trees are gone")
    fresh.api.ok("POST", "/v1/images/prune", {})
    assert len(blobs(fresh)["sha256"]) == 1  # tiny's


def test_tags_history_and_removal(fresh, first):
    fresh.api.ok("PUT", "/v1/images/one", layout(Image(first, tar(entry("x", "x" * 9000)))))
    tagged = fresh.api.ok("POST", "/v1/images/one/tag", {"name": "host:5000/repo/one:v1"})
    assert tagged["name"] == "host:5000/repo/one:v1"
    names = [i["name"] for i in fresh.api.ok("GET", "/v1/images?name=host")["images"]]
    assert names == ["host:5000/repo/one:v1"]
    history = fresh.api.ok("GET", "/v1/images/one/history")["history"]
    assert [h["created_by"] for h in history] == ["step 1", "step 0"]
    assert history[0]["size_bytes"] == 12288 + 512 and not history[0]["empty"]
    who = fresh.api.create(image="one")["id"]
    fresh.api.refused(409, "image_in_use", "DELETE", "/v1/images/one")
    fresh.api.ok("DELETE", "/v1/images/host%3A5000%2Frepo%2Fone%3Av1")  # nothing was made under this name
    fresh.api.refused(409, "image_in_use", "DELETE", "/v1/images/one")
    fresh.api.ok("DELETE", f"/v1/sandboxes/{who}")
    fresh.api.ok("DELETE", "/v1/images/one")
    until(lambda: len(trees(fresh)) == 1, "only tiny's tree is left")


def test_a_replaced_image_lives_as_long_as_its_sandbox(fresh, first):
    fresh.api.ok("PUT", "/v1/images/it", layout(Image(first, tar(entry("v", "1")))))
    who = fresh.api.create(image="it")["id"]
    fresh.api.ok("PUT", "/v1/images/it", layout(Image(first, tar(entry("v", "2")))))
    fresh.api.ok("POST", "/v1/images/prune", {})
    fresh.api.ok("POST", f"/v1/sandboxes/{who}/stop")
    fresh.restart()
    fresh.api.ok("POST", f"/v1/sandboxes/{who}/start")
    assert fresh.api.out(who, "cat /v") == "1"
    n = len(trees(fresh))
    fresh.api.ok("DELETE", f"/v1/sandboxes/{who}")
    until(lambda: len(trees(fresh)) == n - 1, "its tree is gone")
    assert fresh.api.out(fresh.api.create(image="it")["id"], "cat /v") == "2"


# -- the configuration

def test_a_sandbox_starts_as_its_image_says(api, put, make, first):
    config = {"Env": ["PATH=/opt/bin:/bin", "GREETING=from image", "KEEP=1"], "User": "user",
              "WorkingDir": "/home/user", "Cmd": ["sh"], "Entrypoint": ["/bin/sh", "-c"],
              "ExposedPorts": {"80/tcp": {}}, "Labels": {"a": "b"}}
    extra = tar(directory("opt"), directory("opt/bin"), entry("opt/bin/tool", "#!/bin/sh\necho tool\n", mode=0o755))
    got = put("configured", layout(Image(first, extra, config=config)))["config"]
    assert got == {"env": {"PATH": "/opt/bin:/bin", "GREETING": "from image", "KEEP": "1"}, "user": "user",
                   "workdir": "/home/user", "cmd": ["sh"], "entrypoint": ["/bin/sh", "-c"], "ports": ["80/tcp"],
                   "labels": {"a": "b"}}
    who = make(image="configured", env={"GREETING": "from client"})["id"]
    assert api.out(who, ["tool"]) == "tool\n"
    assert api.out(who, "echo $GREETING $KEEP; id -u; pwd") == "from client 1\n1000\n/home/user\n"
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"env": {"GREETING": "patched"}})
    assert api.out(who, "echo $GREETING $KEEP", env={"KEEP": "2"}) == "patched 2\n"
    other = make(image="configured", user="root", workdir="/etc")["id"]
    assert api.out(other, "id -u; pwd") == "0\n/etc\n"


# -- crashes

def spool(daemon, data, name):
    """A PUT that has sent all but its last bytes."""
    connection = daemon.api.connect(60)
    connection.putrequest("PUT", f"/v1/images/{name}")
    for key, value in daemon.api.headers({"Content-Length": str(len(data))}).items():
        connection.putheader(key, value)
    connection.endheaders(data[:-100])
    return connection


def test_an_import_whose_client_leaves_is_nothing(fresh, first):
    before = set(trees(fresh)), blobs(fresh)
    connection = spool(fresh, layout(Image(first)), "half")
    until(lambda: blobs(fresh)["partial"], "bytes arrive")
    connection.close()
    until(lambda: (set(trees(fresh)), blobs(fresh)) == before, "nothing is left")


@pytest.mark.parametrize("who", ["keeper", "warrend", "everything"])
def test_a_kill_during_an_import_leaves_nothing_and_a_retry_works(fresh, first, who):
    image = Image(first, tar(*(entry(f"many/{i}", str(i)) for i in range(20_000))))
    data = layout(image)
    before = set(trees(fresh)), blobs(fresh)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        def attempt():
            try:
                return fresh.api.call("PUT", "/v1/images/half", data, timeout=60).status
            except OSError:
                return 0
        answer = pool.submit(attempt)
        until(lambda: any(t.endswith(".part") for t in trees(fresh)), "a tree is being filled")
        if who == "keeper":
            fresh.kill_keeper()
        elif who == "warrend":
            fresh.kill()
        else:
            fresh.kill_everything()
        status = answer.result(60)
    if who != "keeper":
        fresh.restart()
    fresh.wait_healthy()
    if status != 201:
        assert fresh.api.call("GET", "/v1/images/half").status == 404
        until(lambda: (set(trees(fresh)), blobs(fresh)) == before or who == "keeper", "nothing is left")
    assert fresh.api.ok("PUT", "/v1/images/half", data, timeout=60)["digest"] == sha(image.manifest)
    assert fresh.api.out(fresh.api.create(image="half")["id"], "cat /many/19999") == "19999"
    fresh.api.ok("POST", "/v1/images/prune", {})
    assert len(blobs(fresh)["sha256"]) == 3 and blobs(fresh)["partial"] == []


def test_images_are_found_again_after_a_restart(fresh, first):
    image = Image(first, tar(entry("etc/two", "2")), config={"Env": ["A=1"]})
    fresh.api.ok("PUT", "/v1/images/lasting", layout(image))
    before = fresh.api.ok("GET", "/v1/images/lasting")
    for end in (fresh.kill, fresh.kill_everything):
        end()
        fresh.start()
        assert fresh.api.ok("GET", "/v1/images/lasting") == before
    assert fresh.api.out(fresh.api.create(image="lasting")["id"], "cat /etc/two; echo $A") == "21\n"


# -- out again

def exported(api, name, form):
    reply = api.call("GET", f"/v1/images/{name}/export?format={form}", timeout=120)
    assert reply.status == 200
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as t:
        return reply.body, {m.name: t.extractfile(m).read() for m in t}


def test_an_export_gives_back_what_came_in(api, put, first):
    image = Image(first, tar(entry("etc/two", "2")), packing="zstd")
    put("round", layout(image))
    data, files = exported(api, "round", "oci")
    for name, content in image.members().items():
        assert files[name] == content
    index = json.loads(files["index.json"])["manifests"]
    assert [m["digest"] for m in index] == [sha(image.manifest)]
    assert exported(api, "round", "oci")[0] == data
    api.ok("DELETE", "/v1/images/round")
    assert put("round", data)["digest"] == sha(image.manifest)


def test_a_docker_export_is_what_docker_expects(api, put, first):
    image = Image(first, tar(entry("etc/two", "2")))
    put("repo%2Fdocked%3Av1", layout(image))
    data, files = exported(api, "repo%2Fdocked%3Av1", "docker")
    (entry_,) = json.loads(files["manifest.json"])
    assert entry_["RepoTags"] == ["repo/docked:v1"]
    assert files[entry_["Config"]] == image.config
    assert [sha(gzip.decompress(files[n])) for n in entry_["Layers"]] == [sha(t) for t in image.tars]
    api.ok("DELETE", "/v1/images/repo%2Fdocked%3Av1")
    assert put("repo%2Fdocked%3Av1", data)["id"] == sha(image.config)
    api.refused(400, "invalid_query", "GET", "/v1/images/repo%2Fdocked%3Av1/export?format=zip")


# -- commit

def test_commit_makes_a_layer_of_what_changed(api, daemon, put, make, first):
    below = tar(directory("d"), entry("d/stays"), entry("d/goes"), directory("o"), entry("o/old"), entry("f", "old"))
    put("ground", layout(Image(first, below, config={"Env": ["A=1"], "Cmd": ["x"]})))
    who = make(image="ground")["id"]
    api.out(who, "rm /d/goes && rm -r /o && mkdir /o && echo new > /o/new && echo changed > /f &&"
                 "ln /f /twin && ln -s /f /soft && mkfifo /pipe && chmod 4711 /f && chown 5:6 /soft -h &&"
                 "dd if=/dev/zero of=/holes bs=1 count=1 seek=99999999 2>/dev/null && touch -d @1000 /d/stays")
    got = api.ok("POST", f"/v1/sandboxes/{who}/commit", {
        "name": "grown", "cmd": ["y"], "env": {"B": "2"}, "labels": {"k": "v"}, "workdir": "/d"})
    try:
        assert got["layers"] == 3 and got["config"]["env"] == {"A": "1", "B": "2"}
        assert (got["config"]["cmd"], got["config"]["labels"], got["config"]["workdir"]) == (["y"], {"k": "v"}, "/d")
        assert api.out(who, "cat /f") == "changed\n"  # it goes on
        new = make(image="grown")["id"]
        out = api.out(new, "ls /d /o; cat /f; stat -c '%a %h' /f; readlink /soft; stat -c %u:%g /soft;"
                           "stat -c %F /pipe; stat -c %s /holes; stat -c %Y /d/stays; echo $A$B; pwd")
        assert out == ("/d:\nstays\n\n/o:\nnew\nchanged\n4711 2\n/f\n5:6\nfifo\n100000000\n1000\n12\n/d\n")
        files = exported(api, "grown", "oci")[1]
        layer = gzip.decompress(files["blobs/sha256/" + api.ok("GET", "/v1/images/grown")["layer_list"][2]["digest"][7:]])
        with tarfile.open(fileobj=io.BytesIO(layer)) as t:
            names = t.getnames()
            assert {"d/.wh.goes", "o/.wh..wh..opq", "o/new"} <= set(names) and names == sorted(names)
            assert t.getmember("twin").islnk()
        assert len(files["blobs/sha256/" + api.ok("GET", "/v1/images/grown")["layer_list"][2]["digest"][7:]]) < 1 << 20
        assert os.stat(tree_of(daemon, "grown") + "/holes").st_blocks < 64  # a hole again
        newest = api.ok("GET", "/v1/images/grown/history")["history"][0]
        assert newest["created_by"] == f"warren commit {who}"
    finally:
        for box in api.list()["sandboxes"]:
            if box["image"] == "grown":
                api.delete(box["id"])
        api.ok("DELETE", "/v1/images/grown")


def test_a_large_hole_stays_one(api, daemon, make):
    who = make(image="tiny")["id"]
    api.out(who, "dd if=/dev/zero of=/huge bs=1 count=1 seek=1500000000 2>/dev/null; echo x >> /huge")
    got = api.ok("POST", f"/v1/sandboxes/{who}/commit", {"name": "holey"})
    try:
        huge = os.stat(tree_of(daemon, "holey") + "/huge")
        assert huge.st_size == 1500000003 and huge.st_blocks < 64
        assert api.ok("GET", "/v1/images/holey")["layer_list"][-1]["compressed_bytes"] < 1 << 16
        assert got["size_bytes"] < 64 << 20
    finally:
        api.ok("DELETE", "/v1/images/holey")


def test_commit_of_a_busy_sandbox_freezes_and_lets_it_go_on(api, tiny):
    n = api.start(tiny, "i=0; while true; do i=$((i+1)); echo $i > /tmp/count; done")["process"]
    until(lambda: api.out(tiny, "cat /tmp/count 2>/dev/null; true").strip(), "it counts")
    api.ok("POST", f"/v1/sandboxes/{tiny}/commit", {"name": "busy"})
    try:
        a = api.out(tiny, "cat /tmp/count")
        until(lambda: api.out(tiny, "cat /tmp/count") != a, "it goes on")
        assert api.process(tiny, n)["state"] == "running"
    finally:
        api.ok("DELETE", "/v1/images/busy")


def test_commit_of_a_stopped_sandbox_and_bad_requests(api, make):
    who = make(image="tiny")["id"]
    api.out(who, "echo kept > /etc/kept")
    api.ok("POST", f"/v1/sandboxes/{who}/stop")
    api.ok("POST", f"/v1/sandboxes/{who}/commit", {"name": "stopped"})
    try:
        assert api.out(make(image="stopped")["id"], "cat /etc/kept") == "kept\n"
        api.refused(400, "missing_field", "POST", f"/v1/sandboxes/{who}/commit", {})
        api.refused(400, "invalid_reference", "POST", f"/v1/sandboxes/{who}/commit", {"name": "No Name"})
        api.refused(404, "sandbox_not_found", "POST", "/v1/sandboxes/none/commit", {"name": "x"})
    finally:
        for box in api.list()["sandboxes"]:
            if box["image"] == "stopped":
                api.delete(box["id"])
        api.ok("DELETE", "/v1/images/stopped")


def test_a_keeper_killed_during_a_commit_leaves_a_living_sandbox(fresh):
    who = fresh.api.create(image="tiny")["id"]
    fresh.api.out(who, "dd if=/dev/urandom of=/big bs=1M count=64 2>/dev/null")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(fresh.api.call, "POST", f"/v1/sandboxes/{who}/commit", {"name": "cut"})
        until(lambda: blobs(fresh)["partial"], "the layer is being written")
        fresh.kill_keeper()
        status = answer.result(60).status
    fresh.wait_healthy()
    assert fresh.api.out(who, "echo alive") == "alive\n"
    if status != 201:
        assert fresh.api.call("GET", "/v1/images/cut").status == 404
        assert blobs(fresh)["partial"] == []
    fresh.api.ok("POST", f"/v1/sandboxes/{who}/commit", {"name": "cut"})


# -- the command line

def test_the_command_line_has_all_of_it(daemon, first, tmp_path):
    image = Image(first, tar(entry("etc/two", "2")), config={"Env": ["A=1"], "Cmd": ["run", "it"]})
    source, out = tmp_path / "cli-made.tar", tmp_path / "out.tar"
    source.write_bytes(image.docker())

    def warren(*args, **more):
        done = daemon.cli(*args, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert warren("image", "import", source).startswith("cli-made  ")
    assert warren("image", "tag", "cli-made", "cli-made:two") == "cli-made:two\n"
    assert "cli-made:two" in warren("image", "ls")
    shown = warren("image", "inspect", "cli-made")
    assert f"id            {sha(image.config)}" in shown and "A=1" in shown and "run it" in shown
    assert "step 1" in warren("image", "history", "cli-made").splitlines()[1]
    warren("image", "export", "-o", out, "cli-made")
    with tarfile.open(out) as t:
        assert "oci-layout" in t.getnames()
    data = warren("image", "export", "--format", "docker", "cli-made", text=False)
    assert b"layer.tar" in data
    assert "layers removed" in warren("image", "prune")
    who = warren("create", "--image", "cli-made").strip()
    warren("exec", who, "--", "sh", "-c", "echo x > /etc/x")
    assert warren("commit", "-e", "B=2", "--cmd", "sh", "--cmd", "-l", who, "cli-commit").startswith("cli-commit ")
    got = daemon.api.ok("GET", "/v1/images/cli-commit")
    assert got["config"]["env"] == {"A": "1", "B": "2"} and got["config"]["cmd"] == ["sh", "-l"]
    warren("rm", "-f", who)
    warren("image", "rm", "cli-made", "cli-made:two", "cli-commit")
    gone = daemon.cli("image", "inspect", "cli-made")
    assert gone.returncode == 1 and "no image" in gone.stderr
    assert not out.with_suffix(".tar.part").exists()
    missing = daemon.cli("image", "export", "-o", tmp_path / "none.tar", "none")
    assert missing.returncode == 1 and not list(tmp_path.glob("none*"))
