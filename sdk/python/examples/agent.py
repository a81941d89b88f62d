"""A small agent: it looks at a failing test, edits the code, and tries again until it passes.

The "model" is a list of edits so that this runs anywhere; put a real one in its place: it gets the
test's output and answers with the next edit.
"""
from warren_sandbox import Client

PROJECT = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef mean(xs):\n    return sum(xs) / 0\n",
    "check.py": "from calc import add, mean\nassert add(2, 3) == 5, 'add'\n"
                "assert mean([1, 3]) == 2, 'mean'\nprint('all good')\n",
}


def model(output):
    """The next edit for what the test said: (file, old text, new text)."""
    if "add" in output:
        return "calc.py", "a - b", "a + b"
    if "ZeroDivisionError" in output:
        return "calc.py", "/ 0", "/ len(xs)"
    raise SystemExit(f"the model does not know what to do about: {output}")


with Client().sandboxes.create(timeout_s=300) as box:
    box.files.write_many({f"/root/project/{name}": text for name, text in PROJECT.items()})
    for turn in range(1, 6):
        test = box.run("python3 check.py", cwd="/root/project", timeout=30)
        print(f"turn {turn}: exit code {test.exit_code}")
        if test.ok:
            break
        name, old, new = model(test.stderr.strip().splitlines()[-1])
        done = box.files.replace(f"/root/project/{name}", old, new)
        print(f"  {name}: {old!r} -> {new!r}, {done.count} place(s)")
        assert done.count == 1
    assert test.stdout == "all good\n", test.stderr
print("done")
