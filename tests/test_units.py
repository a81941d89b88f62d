"""Each unit test program of the build, so that one run and one summary cover everything."""
import subprocess

import pytest

from harness import BUILD

PROGRAMS = sorted(p for p in BUILD.glob("test-*") if p.is_file())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_unit(program):
    prefix = ["setarch", "-R"] if "tsan" in BUILD.name else []
    done = subprocess.run([*prefix, str(program)], capture_output=True, text=True, timeout=120,
                          errors="replace", cwd=BUILD)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_there_are_unit_tests():
    assert PROGRAMS, f"no test programs in {BUILD}; is libcmocka-dev installed?"
