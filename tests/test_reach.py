"""A name means the team's own template or image, else the operator's, else nothing; `team/name` means another team's."""
import urllib.parse

import pytest

WICKED = {"start_command": ["/bin/sh", "-c", "echo acme > /owned; sleep 600"], "memory_mb": 96, "network": "open", "public": True}


def quoted(name):
    return urllib.parse.quote(name, safe="")


def team_of(api, name):
    api.ok("POST", "/v1/teams", {"name": name})
    return api.with_key(api.ok("POST", "/v1/keys", {"name": f"{name}-key", "team": name})["key"])


def e2b_create(api, name):
    return api.call("POST", "/e2b/sandboxes", {"templateID": name})


@pytest.fixture
def two(fresh, tiny_tar):
    """acme publishes what the operator has, or might have; blue asks for it."""
    acme, blue = team_of(fresh.api, "acme"), team_of(fresh.api, "blue")
    for name in ("base", "code-interpreter", "python"):
        acme.import_image(name, tiny_tar, public=True)
        acme.ok("POST", "/v1/templates", {"name": name, "image": name, **WICKED})
    fresh.api.ok("POST", "/v1/templates", {"name": "web", "image": "tiny", "memory_mb": 64, "public": True})
    acme.ok("POST", "/v1/templates", {"name": "web", "image": "tiny", **WICKED})
    return acme, blue


def test_a_teams_public_things_stand_in_for_nothing(fresh, two):
    acme, blue = two
    for _ in range(2):  # and again with rows that are read back in order of their owners
        assert blue.ok("GET", "/v1/templates/web")["team"] == "default"
        for path in ("base", "python", "code-interpreter"):
            blue.refused(404, "template_not_found", "GET", f"/v1/templates/{path}")
            blue.refused(404, "template_not_found", "POST", "/v1/sandboxes", {"template": path})
            blue.refused(404, "image_not_found", "POST", "/v1/sandboxes", {"image": path})
            blue.refused(404, "image_not_found", "GET", f"/v1/images/{path}")
            assert e2b_create(blue, path).status == 404
            assert blue.call("GET", f"/e2b/templates/aliases/{path}").status == 404
            assert blue.call("GET", f"/e2b/templates/{path}").status == 404
            assert blue.call("GET", f"/e2b/templates/{path}/tags").status == 404
        assert e2b_create(blue, "code-interpreter-v1").status == 404
        box = e2b_create(blue, "web").json["sandboxID"]
        shown = blue.get(box)
        assert (shown["memory_mb"], shown["template"]) == (64, "web")
        assert blue.exec(box, ["/bin/sh", "-c", "cat /owned"])["exit_code"] != 0
        blue.delete(box)
        listed = [t["name"] for t in blue.ok("GET", "/v1/templates")["templates"]]
        assert listed == sorted(listed) and {"web", "acme/web", "acme/base"} <= set(listed) and "base" not in listed
        images = [i["name"] for i in blue.ok("GET", "/v1/images")["images"]]
        assert {"tiny", "acme/base", "acme/python"} <= set(images) and "python" not in images
        theirs = [t["templateID"] for t in blue.call("GET", "/e2b/templates").json]
        assert "acme/web" in theirs and "web" in theirs and "base" not in theirs
        fresh.restart()


def test_another_teams_public_things_are_reached_by_its_name(fresh, two):
    acme, blue = two
    for _ in range(2):
        assert blue.ok("GET", f"/v1/templates/{quoted('acme/web')}")["name"] == "acme/web"
        assert blue.ok("GET", f"/v1/images/{quoted('acme/python')}")["team"] == "acme"
        box = blue.create(template="acme/web")
        assert (box["memory_mb"], box["template"]) == (96, "acme/web")
        blue.delete(box["id"])
        blue.delete(blue.create(image="acme/python")["id"])
        got = e2b_create(blue, "acme/web:default")
        assert got.status == 201 and got.json["templateID"] == "acme/web", got
        blue.delete(got.json["sandboxID"])
        alias = blue.call("GET", f"/e2b/templates/aliases/{quoted('acme/web')}")
        assert alias.status == 200 and alias.json["templateID"] == "acme/web", alias
        assert blue.call("GET", f"/e2b/templates/{quoted('acme/web')}/tags").status == 200
        blue.refused(404, "template_not_found", "DELETE", f"/v1/templates/{quoted('acme/web')}")
        blue.refused(403, "forbidden", "DELETE", f"/v1/images/{quoted('acme/python')}")
        assert blue.call("DELETE", f"/e2b/templates/{quoted('acme/web')}").status == 403
        fresh.restart()
    acme.ok("POST", "/v1/templates", {"name": "web", "image": "tiny"})  # private from now on
    blue.refused(404, "template_not_found", "POST", "/v1/sandboxes", {"template": "acme/web"})


def test_a_template_stands_on_the_image_that_its_maker_meant(fresh, two, tiny_tar):
    acme, blue = two
    blue.ok("POST", "/v1/templates", {"name": "mine", "image": "acme/python", "memory_mb": 64, "warm": 1})
    assert blue.ok("GET", "/v1/templates/mine")["image"] == "acme/python"
    fresh.restart()
    blue.delete(blue.create(template="mine")["id"])
    blue.refused(404, "image_not_found", "POST", "/v1/templates", {"name": "other", "image": "python"})


def test_an_own_image_goes_whoever_uses_that_name(fresh, two, tiny_tar):
    acme, blue = two
    fresh.api.import_image("python", tiny_tar)
    fresh.api.ok("POST", "/v1/templates", {"name": "py", "image": "python"})
    blue.ok("POST", "/v1/templates", {"name": "py", "image": "acme/python", "memory_mb": 64})
    box = fresh.api.create(image="python")["id"]  # of the same tree, but of the operator's image
    acme.refused(409, "image_in_use", "DELETE", "/v1/images/python")  # by a template of its own
    acme.ok("DELETE", "/v1/templates/python")
    acme.ok("DELETE", "/v1/images/python")
    assert acme.ok("GET", "/v1/images/python")["team"] == "default"
    blue.refused(404, "image_not_found", "POST", "/v1/sandboxes", {"template": "py"})
    fresh.api.refused(409, "image_in_use", "DELETE", "/v1/images/python")
    fresh.api.delete(box)


def test_a_build_begins_from_what_its_name_means(fresh, two):
    acme, blue = two

    def build(name, **body):
        got = blue.call("POST", "/e2b/v3/templates", {"name": name})
        return blue.call("POST", f"/e2b/v2/templates/{name}/builds/{got.json['buildID']}", body)
    assert build("one", fromTemplate="python").status == 404
    assert build("two", fromTemplate="acme/python").status == 202
    assert blue.call("POST", "/e2b/v3/templates", {"name": "acme/web"}).status == 403
