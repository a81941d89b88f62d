"""E2B's packages in the releases that are tested, and the table that is made from what the tests saw."""
import collections
import functools
import json
import os
import re
import shutil
import subprocess

from harness import ROOT

HERE = ROOT / "tests/e2b"
TABLE = ROOT / "docs/compatibility.md"
PACKAGES = ("e2b", "@e2b/code-interpreter", "@e2b/desktop")
SETS = ("latest", "middle", "oldest")
FILES = sorted(p.name for p in HERE.glob("*.test.mjs"))
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
    shutil.copytree(HERE, top, ignore=shutil.ignore_patterns("node_modules", "sets"))
    for file in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "sets" / name / file, top)
    npm(top, "ci")
    return top


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

Made by `./dev compat` from a run of `tests/e2b/` with the unmodified packages against a real daemon; the tests compare it with
what they see. **yes**: at least one test shows it, and none fails. **in part**, **no**: Warren refuses what it lacks in words (see below).
**–**: this release of the package has no such thing.
"""


def render(results):
    """docs/compatibility.md for {set: [result]}."""
    table = cells(results)
    shown = [s for s in reversed(SETS) if s in results]
    text = HEAD
    for package in PACKAGES:
        rows = {f: c for (p, f), c in sorted(table.items()) if p == package}
        if not rows:
            continue
        text += f"\n## {package}\n\n| feature | {' | '.join(versions(s)[package] for s in shown)} |\n"
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
