"""The pages of the API: their examples do what they show, and their links lead somewhere."""
import re
import subprocess

import pytest

import harness
from harness import DEADLINE, ROOT

INDEX = ROOT / "docs/api.md"
PAGES = re.findall(r"^\| \[[^\]]+\]\(api/([a-z]+)\.md\)", INDEX.read_text(), re.M)


def examples(page):
    """The first block of a page."""
    return re.search(r"\n\n((?:    .*\n)+)", (ROOT / f"docs/api/{page}.md").read_text())[1]


def test_every_page_is_in_the_index():
    assert sorted(PAGES) == sorted(p.stem for p in (ROOT / "docs/api").glob("*.md"))


@pytest.mark.timeout(DEADLINE * 20)
def test_the_examples_work_in_the_order_of_the_pages():
    function = re.search(r"^    (api\(\) .*)$", INDEX.read_text(), re.M)[1]
    with harness.running() as daemon:
        for page in PAGES:
            lines = [line.strip() for line in examples(page).splitlines()]
            assert lines and all(" /" in line or " '/" in line for line in lines), page
            for line in lines:
                done = subprocess.run(["bash", "-e", "-c", f"{function}\n{line}"], capture_output=True, text=True, timeout=DEADLINE * 2,
                                      env={"PATH": "/usr/bin:/bin", "URL": daemon.url, "KEY": daemon.key})
                assert done.returncode == 0, (page, line, done.stdout, done.stderr)


def anchors(text):
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ (.*)$", text, re.M)}


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")]:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            to = (page.parent / name).resolve() if name else page
            assert to.exists(), (page.name, target)
            assert not anchor or anchor in anchors(to.read_text()), (page.name, target)
