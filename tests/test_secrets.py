"""Secrets: what goes in never comes out, not by the API and not from the disk."""
import uuid

import pytest


def fresh_name():
    return "s" + uuid.uuid4().hex[:10]


def test_a_secret_comes_and_goes_and_is_never_shown(api):
    name, value = fresh_name(), "hunter2-" + uuid.uuid4().hex
    made = api.call("POST", "/v1/secrets", {"name": name.upper(), "value": value, "metadata": {"for": "x"}})
    assert made.status == 201 and value.encode() not in made.body
    s = made.json
    assert (s["name"], s["version"], s["metadata"]) == (name, 1, {"for": "x"})
    api.refused(409, "name_taken", "POST", "/v1/secrets", {"name": name, "value": "x"})
    assert api.ok("PATCH", f"/v1/secrets/{name}", {"metadata": {}})["version"] == 1
    changed = api.ok("PATCH", f"/v1/secrets/{s['id']}", {"value": value + "2"})
    assert changed["version"] == 2 and changed["metadata"] == {}
    for path in (f"/v1/secrets/{name}", "/v1/secrets", f"/v1/secrets/{s['id']}", "/v1/events?limit=1000", "/v1/logs"):
        assert value.encode() not in api.call("GET", path).body
    assert name in [x["name"] for x in api.ok("GET", "/v1/secrets")["secrets"]]
    api.ok("DELETE", f"/v1/secrets/{name}")
    for method in ("GET", "DELETE"):
        api.refused(404, "secret_not_found", method, f"/v1/secrets/{s['id']}")


@pytest.mark.parametrize("body", [
    {}, {"name": "x"}, {"value": "x"}, {"name": "", "value": "x"}, {"name": "a b", "value": "x"},
    {"name": "sec_x", "value": "x"}, {"name": "a" * 20, "value": "x"}, {"name": "x" * 64, "value": "x"},
    {"name": "x", "value": ""}, {"name": "x", "value": "x" * 65537}, {"name": "x", "value": 5},
    {"name": "x", "value": "x", "metadata": {"k": "v" * 1025}}, {"name": "x", "value": "x", "metadata": {"k": 1}},
    {"name": "x", "value": "x", "metadata": {str(i): "" for i in range(33)}}, {"name": "x", "value": "x", "fish": 1}])
def test_odd_secrets_are_refused(api, body):
    assert api.call("POST", "/v1/secrets", body).status == 400


def test_another_team_sees_nothing_of_it(api):
    name, team = fresh_name(), fresh_name()
    mine = api.ok("POST", "/v1/secrets", {"name": name, "value": "x"})
    api.ok("POST", "/v1/teams", {"name": team})
    other = api.with_key(api.ok("POST", "/v1/keys", {"team": team, "name": "k"})["key"])
    for who in (name, mine["id"]):
        for method, body in (("GET", None), ("DELETE", None), ("PATCH", {"value": "y"})):
            other.refused(404, "secret_not_found", method, f"/v1/secrets/{who}", body)
    assert other.ok("GET", "/v1/secrets")["secrets"] == []
    other.ok("POST", "/v1/secrets", {"name": name, "value": "theirs"})
    api.ok("DELETE", f"/v1/teams/{team}")  # and its secrets with it
    assert api.ok("GET", f"/v1/secrets/{name}")["version"] == 1
    api.ok("DELETE", f"/v1/secrets/{name}")


def test_what_lies_on_disk_is_sealed_and_read_again(fresh):
    api, value = fresh.api, "hunter2-" + uuid.uuid4().hex
    api.ok("POST", "/v1/secrets", {"name": "kept", "value": value, "metadata": {"a": "b"}})
    fresh.kill()
    state = fresh.data / "state"
    for file in (f for f in state.iterdir() if f.is_file()):
        assert value.encode() not in file.read_bytes(), file
    key = state / "secrets.key"
    assert key.stat().st_size == 32 and key.stat().st_mode & 0o777 == 0o600
    fresh.start()
    s = api.ok("GET", "/v1/secrets/kept")
    assert s["version"] == 1 and s["metadata"] == {"a": "b"}
    assert api.ok("PATCH", "/v1/secrets/kept", {"value": "new"})["version"] == 2
