"""Random programs agree on the CPU, in strict mode, deferred, fused and compiled. ``random_programs.py`` runs any number."""
import pytest

import random_programs
from common import counter


@pytest.mark.parametrize("seed", sorted({*range(6), *random_programs.REGRESSIONS}))
def test_modes_agree(seed):
    problem = random_programs.check(seed, compiled=seed in (0, 1))
    assert problem is None, problem


def test_some_ran_fused():
    assert random_programs.check(3) is None
    before = counter("regions_fused")
    assert random_programs.check(3) is None
    assert counter("regions_fused") > before


@pytest.mark.slow
def test_many():
    for seed in range(1000, 2000):
        problem = random_programs.check(seed)
        assert problem is None, f"seed {seed}: {problem}"
