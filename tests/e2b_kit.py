"""E2B's packages in the releases that are tested, and the table that is made from what the tests saw."""
import collections
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess

import harness
from harness import ROOT

HERE = ROOT / "tests/e2b"
TABLE = ROOT / "docs/compatibility.md"
PACKAGES = ("e2b", "@e2b/code-interpreter", "@e2b/desktop")
SETS = ("latest", "middle", "oldest")
FILES = sorted(p.name for p in HERE.glob("*.test.mjs"))
# The Python clients: their newest release, by their synchronous and by their asynchronous classes.
PYTHON = HERE / "python"
FLAVOURS = ("sync", "async")
PYTHON_PACKAGES = ("e2b", "e2b-code-interpreter", "e2b-desktop")
PYTHON_FILES = sorted(p.name for p in PYTHON.glob("*.py") if p.name not in ("lib.py", "surface.py"))
# The built-in image that a file of tests stands on, by the first word of its name.
IMAGES = {"desktop": "desktop", "interpreter": "code-interpreter"}
# Files whose tests do to the daemon what others would suffer from: the arguments of one of their own.
OWN = {"limits.test.mjs": ("--rate-limit", "5", "--rate-burst", "60", "--pool", "0")}


@functools.cache
def versions(name):
    """The exact release of each package in the set of that name."""
    return json.loads((HERE / "sets" / name / "package.json").read_text())["dependencies"]


def npm(where, *args):
    done = subprocess.run(["npm", *args, "--no-audit", "--no-fund"], cwd=where, capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def install(top, name):
    """The packages of the set's lock file beside a copy of the tests; nothing is written into the tree."""
    shutil.copytree(HERE, top, ignore=shutil.ignore_patterns("node_modules", "sets", "python"))
    for file in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "sets" / name / file, top)
    npm(top, "ci")
    return top


def python_versions():
    """The exact release of each Python package, and of all that they stand on."""
    return dict(line.split("==") for line in (PYTHON / "requirements.txt").read_text().split())


def install_python():
    """A virtual environment with the Python packages, made once for each list of them; its interpreter. Debian's pip does
    as it lies there: neither `pip` nor python3-venv needs to be installed."""
    def made(at):
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", at], check=True, timeout=60)
        wheel = next(pathlib.Path("/usr/share/python-wheels").glob("pip-*.whl"))
        done = subprocess.run([at / "bin/python", f"{wheel}/pip", "install", "--no-deps", "--only-binary", ":all:", "--quiet",
                               "--no-cache-dir", "--disable-pip-version-check", "-r", PYTHON / "requirements.txt"],
                              capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    version = subprocess.check_output(["/usr/bin/python3", "--version"])
    return str(harness.cached("e2b-python", (PYTHON / "requirements.txt").read_bytes() + version, made) / "bin/python")


def find_node(top):
    """A node that the clients take: they want 20 or later, and Debian 12 has 18."""
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
    if int(version.strip("v\n").split(".")[0]) >= 20:
        return "node"
    younger = "node-linux-" + {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
    top.mkdir()
    npm(top, "install", "--no-save", f"{younger}@22")
    return str(top / "node_modules" / younger / "bin/node")


def bring_image(daemon, name):
    """The image that these tests stand on, with its templates, as a user brings it. Once a daemon."""
    image = IMAGES.get(re.match("[a-z]+", name)[0])
    if image and daemon.api.call("GET", f"/v1/templates/{image}").status == 404:
        done = subprocess.run([ROOT / "images/warren-image", image], capture_output=True, text=True, timeout=1800,
                              env={**os.environ, "WARREN_SOCKET": f"{daemon.run}/warren.sock"})
        assert done.returncode == 0, done.stderr[-2000:]


def names(daemon):
    """Names under a domain, by TLS: e2b before 2.8 knows no E2B_SANDBOX_URL, before 2.4 no E2B_API_URL, and
    code-interpreter before 2.7 reaches its port by name alone. The variables that say where."""
    return {"E2B_DOMAIN": f"{daemon.domain}:{daemon.tls_port}", "NODE_EXTRA_CA_CERTS": str(daemon.cert)}


def environment(daemon):
    """What a user sets; and WARREN_URL for the tests that look from the other side."""
    return {**os.environ, "E2B_API_KEY": daemon.key, "E2B_API_URL": f"{daemon.url}/e2b",
            "E2B_SANDBOX_URL": f"{daemon.url}/e2b", "E2B_VOLUME_API_URL": f"{daemon.url}/e2b",
            "E2B_VALIDATE_API_KEY": "false",  # releases 2.30 to 2.45 insist on keys of E2B's form
            "WARREN_URL": daemon.url, "WARREN_SOCKET": f"{daemon.run}/warren.sock",
            "WARREN_LAUNCHERS": ",".join(map(str, daemon.launcher())),
            "WARREN_KEEPERS": ",".join(map(str, daemon.keepers()))}


def run(node, top, name, daemon, names):
    """Run one file of tests; what each of them showed. `names` are the variables of the domain."""
    results = top / f"{name}.results"
    results.unlink(missing_ok=True)
    # Old releases leave timers behind that would keep node waiting for a minute.
    done = subprocess.run([node, "--import", "./names.mjs", "--test-force-exit", "--test-reporter=tap", name], cwd=top,
                          capture_output=True, text=True, timeout=400,
                          env={**environment(daemon), **names, "E2B_RESULTS": str(results)})
    failed = "\n".join(line for line in done.stdout.splitlines() if line.startswith("not ok"))
    assert done.returncode == 0, f"{failed}\n{done.stdout[-6000:]}{done.stderr[-1000:]}"
    return [json.loads(line) for line in results.read_text().splitlines()]


def run_python(python, flavour, name, daemon, place):
    """Run one file of the Python clients' tests; what each of them showed."""
    results = place / f"{name}.{flavour}.results"
    done = subprocess.run([python, "-B", PYTHON / name, flavour], capture_output=True, text=True, timeout=400, cwd=place,
                          env={**environment(daemon), "E2B_RESULTS": str(results)})
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-3000:]}"
    return [json.loads(line) for line in results.read_text().splitlines()]


def cells(results):
    """{(package, feature): {set: (verdict, [reason])}} of {set: [result]}."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for name, rows in results.items():
        for row in rows:
            found[row["package"], row["feature"]][name].append(row)
    return {key: {name: verdict(rows) for name, rows in sets.items()} for key, sets in found.items()}


def verdict(rows):
    """One cell: a feature works if a test shows it and none shows that it lacks something."""
    reasons = {o: sorted({r["reason"] for r in rows if r["outcome"] == o}) for o in ("lacks", "absent")}
    if reasons["lacks"]:
        works = any(r["outcome"] == "pass" for r in rows)
        return ("in part" if works else "no"), reasons["lacks"]
    if all(r["outcome"] == "absent" for r in rows):
        return "–", []
    return "yes", []


HEAD = """# Compatibility with E2B's packages

Made by `./dev compat` from a run of `tests/e2b/` with the unmodified packages, from npm and from PyPI, against a real daemon; the
tests compare it with what they see. **yes**: at least one test shows it, and none fails. **in part**, **no**: Warren refuses what it lacks in words (see below).
**–**: this release of the package has no such thing. The Python clients have synchronous and asynchronous classes: a column each.
"""


def columns(results):
    """{heading of a package's table: {set: heading of its column}}."""
    releases = [s for s in reversed(SETS) if s in results]
    flavours = [f for f in FLAVOURS if f in results]
    return {**{p: {s: versions(s)[p] for s in releases} for p in PACKAGES},
            **{f"{p} (Python)": {f: f"{python_versions()[p]} {f}" for f in flavours} for p in PYTHON_PACKAGES}}


def render(results):
    """docs/compatibility.md for {set: [result]}."""
    table = cells(results)
    text = HEAD
    for heading, shown in columns(results).items():
        rows = {f: c for (p, f), c in sorted(table.items()) if p == heading}
        if not rows:
            continue
        text += f"\n## {heading}\n\n| feature | {' | '.join(shown.values())} |\n"
        text += "|---" * (len(shown) + 1) + "|\n"
        missing = {}
        for feature, cell in rows.items():
            verdicts = [cell.get(s, ("", []))[0] for s in shown]
            text += f"| `{feature}` | {' | '.join(verdicts)} |\n"
            for _, reasons in cell.values():
                missing.setdefault(feature, set()).update(reasons)
        lines = [f"- `{f}`: {r}\n" for f, reasons in missing.items() for r in sorted(reasons)]
        text += "\nMissing:\n\n" + "".join(lines) if lines else ""
    return text


def read_table(text):
    """{(package, feature): {version: verdict}} of a rendered table."""
    found, package, columns = {}, None, []
    for line in text.splitlines():
        fields = [f.strip() for f in line.strip("|").split("|")]
        if line.startswith("## "):
            package = line[3:]
        elif line.startswith("| feature"):
            columns = fields[1:]
        elif line.startswith("| `"):
            found[package, fields[0].strip("`")] = dict(zip(columns, fields[1:]))
    return found
