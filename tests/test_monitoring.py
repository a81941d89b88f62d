"""The alert rules and the dashboard: well formed, tried with cases, and about metrics that there are."""
import json
import re
import shutil
import subprocess

import pytest

from harness import ROOT

RULES, CASES, DASHBOARD = (ROOT / "etc" / name for name in
                           ("prometheus/warren.rules.yml", "prometheus/warren.test.yml", "grafana/warren.json"))
NAME = re.compile(r"\bwarren_[a-z0-9_]+")


def promtool(*args, text=None):
    if not shutil.which("promtool"):
        pytest.skip("promtool is not here: apt-get install prometheus")
    done = subprocess.run(["promtool", *map(str, args)], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def exposed(api):
    """The names that a query may use: samples', not families'."""
    text = api.with_key(None).call("GET", "/metrics").body.decode()
    return set(re.findall(r"^([a-z_0-9]+)[{ ]", text, re.M)), text


def test_promtool_finds_nothing_wrong_with_our_metrics(api, tiny):
    _, text = exposed(api)
    assert not promtool("check", "metrics", text=text).strip()


def test_the_rules_are_sound_and_fire_when_they_should():
    assert "SUCCESS" in promtool("check", "rules", RULES)
    assert "SUCCESS" in promtool("test", "rules", CASES)
    rules, cases = (re.findall(r"(?:alert(?:name)?: |alertname=\")(Warren\w+)", p.read_text()) for p in (RULES, CASES))
    assert set(rules) == set(cases)  # each has a case


def test_each_metric_that_is_asked_for_is_there(api, tiny):
    names, _ = exposed(api)
    api.exec(tiny, ["true"])
    for path in (RULES, DASHBOARD):
        expressions = (re.findall(r"expr: (.*)", path.read_text()) if path == RULES else
                       [t["expr"] for p in json.loads(path.read_text())["panels"] for t in p.get("targets", [])])
        asked = {name for e in expressions for name in NAME.findall(e)}
        assert len(asked) > 10 and asked <= names, (path.name, asked - names)


def test_each_query_of_the_dashboard_can_be_read(tmp_path):
    """As Prometheus reads it: each becomes a rule."""
    board = json.loads(DASHBOARD.read_text())
    ids = [p["id"] for p in board["panels"]]
    assert len(ids) == len(set(ids)) and board["uid"] == "warren"
    rules = [{"record": f"panel:{n}", "expr": t["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")}
             for n, t in enumerate(t for p in board["panels"] for t in p.get("targets", []))]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML
    assert f"{len(rules)} rules found" in promtool("check", "rules", tmp_path / "rules.yml")
    shown = set()
    for p in board["panels"]:  # nothing lies on something else
        g = p["gridPos"]
        cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
        assert not cells & shown and g["x"] + g["w"] <= 24, p["title"]
        shown |= cells


def test_the_guide_names_each_alert():
    guide = (ROOT / "docs/operating.md").read_text()
    for alert in re.findall(r"alert: (\w+)", RULES.read_text()):
        assert alert in guide, alert
