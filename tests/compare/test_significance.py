"""Claims need blocks of time that agree beyond chance."""

import numpy as np
import pytest

from rlgym_bridge.compare.findings.comparison_result import Fit
from rlgym_bridge.compare.findings.gaps import suggest_convention
from rlgym_bridge.compare.findings.missing_inputs import Worth
from rlgym_bridge.compare.findings.sentences import told_fit
from rlgym_bridge.compare.findings.significance import LEVEL, flip_test, sign_test
from rlgym_bridge.compare.fit.clock_fit import ClockFit
from rlgym_bridge.compare.fit.input_lag import LagFit
from rlgym_bridge.compare.fit.state_age import OffsetFit


def test_half_of_the_blocks_is_chance_and_all_of_them_is_not():
    assert sign_test(10, 9) == pytest.approx(0.5)
    assert sign_test(10, 0) == pytest.approx(2**-10)
    assert sign_test(0, 0) == 1.0


def test_differences_of_both_signs_are_chance():
    assert flip_test(np.array([1.0, -1.0, 0.5, -0.5])) > 0.4
    assert flip_test(np.zeros(30)) == 1.0


@pytest.mark.parametrize("blocks", [8, 30])
def test_blocks_that_all_improve_are_beyond_chance(blocks):
    assert flip_test(np.linspace(1, 2, blocks)) == pytest.approx(max(2.0**-blocks, 2e-5), rel=0.01)


def test_the_flip_test_claims_as_often_as_its_level_says():
    random = np.random.default_rng(0)
    chances = [flip_test(random.standard_t(2, 12)) for _ in range(400)]
    assert np.mean(np.array(chances) < 0.05) == pytest.approx(0.05, abs=0.03)


def test_a_control_that_hurts_half_the_windows_is_not_wrong():
    few = Worth(0, "jump", 0.1, 0.47, 19, sign_test(10, 9), LEVEL / 16)
    many = Worth(0, "jump", 0.1, 0.1, 19, sign_test(17, 2), LEVEL / 16)
    assert not few.wrong and many.wrong


def test_a_lag_below_zero_suggests_the_convention_of_inputs():
    assert 'inputs = "applied"' in suggest_convention(-1) and "1 tick late" in suggest_convention(-1)
    assert suggest_convention(0) == suggest_convention(3) == ""


def test_no_lag_is_printed_where_none_was_fitted():
    lag = LagFit(0, 0.0, 3, {})
    fit = Fit("made", ClockFit(1.0, np.inf, 0), OffsetFit(), lag, None, False, 0)
    assert "0 ticks" not in told_fit(fit) and "how late inputs act is not known" in told_fit(fit)
