"""Every fuzz target runs for a moment, on the same inputs each time: it builds, and finds nothing at once. `./dev fuzz`
is longer and finds new ones."""
import re
import shutil
import subprocess

import pytest

from harness import ROOT

TARGETS = sorted(p.name.removesuffix("_fuzz.c") for p in (ROOT / "fuzz").glob("*_fuzz.c"))


@pytest.mark.slow
@pytest.mark.timeout(1500)  # the first time, everything is compiled once more
def test_no_target_breaks_in_a_moment():
    if not shutil.which("clang"):
        pytest.skip("clang is not here; ./dev installs it")
    result = subprocess.run([ROOT / "build-aux/fuzz", "same"], capture_output=True, text=True,
                            timeout=1400)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
    ran = re.findall(r"^-- (\w+),", result.stdout, re.M)
    assert sorted(ran) == TARGETS
    counts = [int(n) for n in re.findall(r"executed_units: *(\d+)", result.stdout)]
    assert len(counts) == len(TARGETS) and all(n > 100 for n in counts), result.stdout[-3000:]
