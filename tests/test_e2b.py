"""E2B's own clients, unmodified, old and new, against a real daemon and real sandboxes: tests/e2b/*.test.mjs
under node, tests/e2b/python/*.py under Python. docs/compatibility.md says what they showed; `./dev compat` writes it."""
import os
import subprocess

import pytest

import e2b_kit as kit
import e2b_net
import e2b_surface as surface
import harness

STRICT = True  # whether a feature that is not in the table, or a name without a test, is a failure


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("e2b")


@pytest.fixture(scope="module")
def node(place):
    return kit.find_node(place / "node")


@pytest.fixture(scope="module")
def names(daemon):
    return kit.names(daemon)


@pytest.fixture(scope="module")
def seen():
    """{set: {file: [result]}}"""
    return {}


@pytest.fixture(scope="module", params=kit.SETS)
def package(request, place, seen):
    seen.setdefault(request.param, {})
    top = place / request.param
    return request.param, top if top.exists() else kit.install(top, request.param)


def run_alone(node, top, name, tiny_tar):
    with harness.running(*kit.OWN[name], domain="warren.test", images={"tiny": tiny_tar}) as own:
        return kit.run(node, top, name, own, kit.names(own))


@pytest.fixture(scope="module")
def network(place):
    with e2b_net.world(place / "net") as found:
        yield found


@pytest.mark.timeout(420)
@pytest.mark.parametrize("name", kit.FILES)
def test_with_the_official_client(package, node, daemon, tiny_tar, names, seen, name, request):
    release, top = package
    if name in kit.OWN:
        results = run_alone(node, top, name, tiny_tar)
    elif name == "network.test.mjs":
        own, place = request.getfixturevalue("network")
        results = kit.run(node, top, name, own, {**kit.names(own), **place})
    else:
        kit.bring_image(daemon, name)
        results = kit.run(node, top, name, daemon, names)
    assert results, "no test of lib.mjs ran"
    seen[release][name] = results


@pytest.fixture(scope="module")
def python():
    return kit.install_python()


@pytest.mark.timeout(420)
@pytest.mark.parametrize("name", kit.PYTHON_FILES)
@pytest.mark.parametrize("flavour", kit.FLAVOURS)
def test_with_the_official_python_client(python, place, daemon, seen, flavour, name):
    kit.bring_image(daemon, name)
    results = kit.run_python(python, flavour, name, daemon, place)
    assert results, "no test of lib.py ran"
    seen.setdefault(flavour, {})[name] = results


def test_the_table_says_what_was_seen(seen):
    """What is in docs/compatibility.md is what the tests of this run showed."""
    results = {s: sum(files.values(), []) for s, files in seen.items()}
    wanted = {**dict.fromkeys(kit.SETS, kit.FILES), **dict.fromkeys(kit.FLAVOURS, kit.PYTHON_FILES)}
    whole = {s: sorted(files) for s, files in seen.items()} == wanted
    text = kit.render(results)
    if os.environ.get("WARREN_COMPAT") == "write":
        assert whole, "the table is made from a run in which all passed"
        kit.TABLE.write_text(text)
    now, told = kit.read_table(text), kit.read_table(kit.TABLE.read_text())
    wrong = [f"{p} {f} {v}: seen '{now[p, f][v]}', told '{told[p, f].get(v)}'"
             for p, f in sorted(now.keys() & told.keys()) for v in now[p, f]
             if whole and now[p, f][v] != told[p, f].get(v)]
    if STRICT and whole:
        wrong += [f"{p} {f} is not told" for p, f in sorted(now.keys() - told.keys())]
        wrong += [f"{p} {f} is told and not seen" for p, f in sorted(told.keys() - now.keys())]
    assert not wrong, "docs/compatibility.md is out of date, run `./dev compat`:\n" + "\n".join(wrong)


@pytest.mark.parametrize("package", ["latest"], indirect=True)
def test_every_public_name_is_in_a_test(package):
    """Methods, options and errors that the newest packages declare."""
    missing = surface.missing(package[1] / "node_modules", kit.PACKAGES, kit.HERE)
    if STRICT:
        assert not missing, "no test names these:\n" + "\n".join(missing)


def test_every_public_name_of_python_is_in_a_test(python):
    """Methods and their options that the newest Python packages have."""
    done = subprocess.run([python, "-B", kit.PYTHON / "surface.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
