"""The probe: what is shown to components so that a change of theirs is noticed."""

import numpy as np
import pytest

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.spec import Components
from rlgym_bridge.policy.fingerprint import fingerprint, probe_states


def test_fingerprint_states_show_all_and_never_change():
    states = probe_states(2, 2, 0)
    for name in (
        "is_demoed",
        "is_flipping",
        "is_boosting",
        "is_supersonic",
        "on_ground",
        "can_flip",
        "has_flip",
    ):
        flags = np.stack([getattr(state, "car_" + name) for state in states])
        assert 0 < flags.mean() < 1, name
    assert all(0 < (state.pad_timer > 0).mean() < 1 for state in states)
    obs = np.stack([DefaultObs().build_batch(state) for state in states])
    assert obs.dtype == np.float32
    # Changing the states would refuse every policy saved before: count manifest.FORMAT up with them.
    np.testing.assert_allclose(obs[0, 0, 0, :3], (0.359234, -1.032778, 0.677943), atol=2e-6)
    np.testing.assert_allclose(np.abs(obs).astype(np.float64).sum(), 1100.216, rtol=1e-6)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (3, 3), (1, 2)])
def test_no_exchanged_or_turned_element_is_unnoticed(sizes):
    components = Components(DefaultObs(None), LookupTableAction())
    rows = np.array(fingerprint(components, [sizes], 0).observations)
    assert (np.abs(rows).max(0) > 1e-3).all()
    assert len(np.unique(rows.round(4), axis=1).T) == rows.shape[1] == DefaultObs(None).size(*sizes)
