"""The policy folder: refused with the reason where code, files or parts do not fit."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.policy.folder import PolicyMismatch, load_policy
from tests.support.policy_folders import OBS_1V1, edit, make_module, random_weights, save, spec, zeros

# --- refused: the code changed -----------------------------------------------------------------------


BUILDER = """
import numpy as np
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.actions import LookupTableAction

class Obs(DefaultObs):
    {obs}

class Table(LookupTableAction):
    {table}
"""


def rewritten(tmp_path, monkeypatch, obs="pass", table="pass"):
    make_module(tmp_path, monkeypatch, "my_bot", BUILDER.format(obs=obs, table=table))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a policy of a user's own builder and parser."""
    rewritten(tmp_path, monkeypatch)
    import my_bot

    save(
        tmp_path / "p", obs=spec(my_bot.Obs, zero_padding=None), parser=spec(RepeatAction, spec(my_bot.Table))
    )
    load_policy(tmp_path / "p", ["my_bot"])
    return tmp_path / "p"


INIT = "def __init__(self, **a):\n        super().__init__(**a"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"obs": f"reads = ()\n    {INIT}, pos_coef=1 / 2301)"},
            r"not fit your my_bot:Obs: .* elements of the observation changed: ball/position/x was .*car 0.*"
            r"Use the code it was trained with, or train anew into another folder",
        ),
        (
            {
                "obs": "def build_batch(self, state, seats=None):\n"
                "        return np.pad(super().build_batch(state, seats), ((0, 0), (0, 0), (0, 1)))\n"
                "    def names(self, *a):\n        return (*super().names(*a), 'self/air_time')"
            },
            r"was 92 numbers and is 93 here; new here: self/air_time",
        ),
        (
            {
                "obs": "def names(self, *a):\n        x, y, *more = super().names(*a)\n"
                "        return (y, x, *more)"
            },
            r"number 0 was ball/position/x and is ball/position/y",
        ),
        (
            {"table": f"{INIT})\n        self._table = self._table[::-1]"},
            r"controls of the parser changed: throttle of the first row for probe",
        ),
        (
            {"table": f"{INIT})\n        self._table = self._table[:50]"},
            r"the parser had 90 probe actions .* and has 50 here",
        ),
    ],
    ids=["scale", "more elements", "order", "meaning of actions", "fewer actions"],
)
def test_code_that_changed_is_refused_by_what_changed(tmp_path, monkeypatch, folder, changes, message):
    rewritten(tmp_path, monkeypatch, **changes)
    with pytest.raises(PolicyMismatch, match=message):
        load_policy(folder, ["my_bot"])


def test_a_component_that_was_renamed_or_is_gone_is_refused(tmp_path, monkeypatch, folder):
    make_module(tmp_path, monkeypatch, "my_bot", "class Obs2: pass")
    with pytest.raises(ValueError, match=r"my_bot has no Obs, expected a function or class of that name"):
        load_policy(folder, ["my_bot"])
    del sys.modules["my_bot"]
    (tmp_path / "my_bot.py").unlink()
    with pytest.raises(
        ValueError,
        match=r"my_bot .* cannot be imported: .*expected it in the current folder or on PYTHONPATH",
    ):
        load_policy(folder, ["my_bot"])


@pytest.mark.parametrize("allow", [[], ["my"], ["my_bo"], ["my_bot.inner"], ["my_bot2"]])
def test_a_module_the_user_did_not_name_is_never_imported(tmp_path, monkeypatch, folder, allow):
    make_module(tmp_path, monkeypatch, "my_bot", "raise SystemExit('ran')")
    with pytest.raises(
        ValueError, match=r"importing it would run code of my_bot; .*allow_modules=\(\"my_bot\",\)"
    ):
        load_policy(folder, allow)
    assert "my_bot" not in sys.modules


def test_modules_given_as_a_text_are_refused(folder):
    with pytest.raises(ValueError, match=r"allow_modules is 'my_bot', expected a list of .*\['my_bot'\]"):
        load_policy(folder, allow_modules="my_bot")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("os:system", "may|would run code of os"),
        ("rlgym_bridgex:A", "would run code of rlgym_bridgex"),
        ("rlgym_bridge.game:Hitbox", "would run code of rlgym_bridge.game"),
        ("rlgym_bridge.components.default_obs:np", "expected a subclass of rlgym.api.ObsBuilder"),
        ("rlgym_bridge:LookupTableAction", "expected a subclass of rlgym.api.ObsBuilder"),
        ("rlgym_bridge.policy.folder:np.load", "is no name of the form"),
        ("rlgym_bridge..game:A", "is no name of the form"),
    ],
)
def test_a_name_that_is_no_component_is_refused(tmp_path, path, reason):
    save(tmp_path)
    edit(tmp_path, obs={"class": path, "args": {}})
    with pytest.raises(ValueError, match=reason):
        load_policy(tmp_path)


def test_arguments_the_component_does_not_take_are_refused(tmp_path):
    save(tmp_path)
    edit(tmp_path, obs={"class": "rlgym_bridge:DefaultObs", "args": {"padding": 3}})
    with pytest.raises(ValueError, match=r"DefaultObs cannot be made with \{'padding': 3\}"):
        load_policy(tmp_path)


# --- refused: the files are not what they should be --------------------------------------------------


@pytest.mark.parametrize("name", ["policy.json", "fingerprint.json", "weights.safetensors"])
def test_a_missing_file_is_named(tmp_path, name):
    save(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{name} is missing; a policy folder holds"):
        load_policy(tmp_path)


def test_a_run_without_a_checkpoint_is_called_one(tmp_path):
    (tmp_path / "run.toml").write_text("modules = []\n")
    with pytest.raises(FileNotFoundError, match="is a training run that has no checkpoint yet"):
        load_policy(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("policy.json", r"policy\.json cannot be read: it is a named pipe, expected a file"),
        ("weights.safetensors", r"weights\.safetensors is a named pipe, expected weights"),
    ],
)
def test_a_pipe_in_place_of_a_file_is_named(tmp_path, name, problem):
    save(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=problem):
        load_policy(tmp_path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="devices of POSIX have names")
@pytest.mark.parametrize("name", ["policy.json", "fingerprint.json", "weights.safetensors"])
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/tty", "/dev/random"])
def test_a_link_to_a_device_in_place_of_a_file_is_not_read(tmp_path, name, device):
    save(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(device)
    with pytest.raises(ValueError, match=rf"{name} .*is no regular file, expected"):
        load_policy(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"format": 1, "seed": NaN}', "[" * 100_000, "\xff"])
def test_a_garbled_manifest_is_named(tmp_path, text):
    save(tmp_path)
    (tmp_path / "policy.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"policy\.json (is not readable|cannot be read|holds)"):
        load_policy(tmp_path)


@pytest.mark.parametrize("value", [2, "1", None, True, ...])
def test_an_unknown_format_is_refused_before_anything_else(tmp_path, value):
    save(tmp_path)
    edit(tmp_path, format=value, unheard_of=1)
    with pytest.raises(ValueError, match=r"policy\.json: format is .*, this checkout reads format 1"):
        load_policy(tmp_path)


def test_unknown_and_missing_keys_are_named(tmp_path):
    save(tmp_path)
    edit(tmp_path, unheard_of=1)
    with pytest.raises(ValueError, match=r"policy\.json has unknown unheard_of; its keys are"):
        load_policy(tmp_path)
    edit(tmp_path, unheard_of=..., seed=...)
    with pytest.raises(ValueError, match=r"policy\.json lacks seed"):
        load_policy(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("obs", {"class": "x"}), ("obs", {"class": "a:b", "args": []}), ("obs", {"class": "a", "args": {}}),
        ("parser", {"class": "a:b", "args": {}, "nested": 3}), ("obs", None), ("env", "module.function"),
        ("env", "a:b"), ("tick_skip", 0), ("tick_skip", 8.0), ("tick_skip", True), ("action_delay", -1),
        ("input_latency", "0"), ("distribution", "normal"), ("distribution", []), ("selection", "best"),
        ("seed", -1), ("obs_size", "92"), ("obs_names", [1]), ("obs_names", ["a"]), ("obs_normalisation", {}),
        ("obs_normalisation", {"mean": [0], "std": [0], "clip": 1}),
        ("obs_normalisation", {"mean": [0], "std": [1], "clip": 1}), ("team_sizes", []),
        ("team_sizes", [1, 1]), ("team_sizes", [[5, 1]]), ("team_sizes", [[0, 0]]), ("hitbox", "octopus"),
        ("probe", [[1]]),
        ("probe", {"observations": [["a"]], "controls": []}), ("versions", {"numpy": 1}), ("training", 3),
        ("weights_sha256", "abc"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_refused_with_its_key(tmp_path, key, value):
    save(tmp_path)
    edit(tmp_path, **{key: value})
    with pytest.raises(ValueError, match=rf"policy\.json: .*{key}.* expected"):
        load_policy(tmp_path)


def test_weights_of_another_save_are_refused(tmp_path):
    save(tmp_path / "a")
    save(tmp_path / "b", weights=random_weights(OBS_1V1, 90, seed=4))
    (tmp_path / "a" / "weights.safetensors").write_bytes(
        (tmp_path / "b" / "weights.safetensors").read_bytes()
    )
    size = (tmp_path / "a" / "weights.safetensors").stat().st_size
    with pytest.raises(
        PolicyMismatch,
        match=rf"weights\.safetensors \({size:,} bytes\) is not the file that "
        r"policy\.json was saved with: .* Copy all files again from one save, or take another checkpoint",
    ):
        load_policy(tmp_path / "a")


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"observations": [[1]]}', '{"controls": 2}'])
def test_a_garbled_fingerprint_is_refused(tmp_path, text):
    save(tmp_path)
    (tmp_path / "fingerprint.json").write_text(text)
    with pytest.raises(ValueError, match=r"fingerprint\.json (is|holds) .*"):
        load_policy(tmp_path)


def test_a_fingerprint_of_another_policy_is_refused(tmp_path):
    save(tmp_path / "a")
    save(
        tmp_path / "b",
        obs=spec(DefaultObs, zero_padding=1, pos_coef=0.5),
        weights=random_weights(OBS_1V1, 90),
    )
    (tmp_path / "a" / "fingerprint.json").write_bytes((tmp_path / "b" / "fingerprint.json").read_bytes())
    with pytest.raises(PolicyMismatch, match="elements of the observation changed"):
        load_policy(tmp_path / "a")


def with_weights(folder: Path, data: bytes) -> None:
    import hashlib

    (folder / "weights.safetensors").write_bytes(data)
    edit(folder, weights_sha256=hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("data", [b"", b"pickle\x80", b"\xff" * 100, (10**12).to_bytes(8, "little")])
def test_garbled_weights_are_refused(tmp_path, data):
    save(tmp_path)
    with_weights(tmp_path, data)
    with pytest.raises(ValueError, match=r"weights\.safetensors is not readable as safetensors"):
        load_policy(tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layers.1.bias": zeros(89)}, r"layers\.1\.bias is float32\(89,\), expected .*\(90\)"),
        ({"layers.1.weight": zeros(90, 31)}, r"layers\.1\.weight .* expected .*\(any, 32\)"),
        ({"layers.0.weight": zeros(32, 91)}, r"takes 91 numbers, the observation has 92"),
        ({"layers.0.weight": zeros(32, 92) + np.nan}, r"holds 2944 numbers that are not finite"),
        ({"layers.0.bias": np.zeros(32, np.int32)}, r"layers\.0\.bias is int32\(32,\), expected floating"),
        ({"layers.3.bias": zeros(3)}, r"tensors are .*layers\.3\.bias; expected layers\.0\.weight"),
        ({"log_std": zeros(8)}, r"tensors are .*log_std; expected"),
        (
            {"layers.1.weight": zeros(21, 32), "layers.1.bias": zeros(21)},
            r"the last layer gives 21 numbers, expected 90 for a categorical policy",
        ),
    ],
)
def test_unfit_weights_are_refused_when_loaded_or_saved(tmp_path, change, reason):
    weights = random_weights(OBS_1V1, 32, 90)
    save(tmp_path / "p", weights=weights)
    with_weights(tmp_path / "p", safetensors.numpy.save(weights | change))
    with pytest.raises(PolicyMismatch, match=reason):
        load_policy(tmp_path / "p")
    if not any(value.dtype.kind == "i" for value in change.values()):  # saving makes float32 of them
        with pytest.raises(PolicyMismatch, match=reason):
            save(tmp_path / "q", weights=weights | change)
        assert not (tmp_path / "q").exists()


# --- refused: what a trainer may get wrong -----------------------------------------------------------


def test_parts_that_contradict_each_other_are_not_saved(tmp_path):
    with pytest.raises(
        PolicyMismatch,
        match=r"tick_skip is 4 and the parser gives 8 ticks an action.* give tick_skip=8, or .*repeats=4\)",
    ):
        save(tmp_path, tick_skip=4)
    with pytest.raises(
        PolicyMismatch,
        match=r"distribution is gaussian, the parser's action space needs categ.* give one that fits",
    ):
        save(tmp_path, distribution="gaussian", parser=spec(RepeatAction, spec(LookupTableAction)))
    with pytest.raises(ValueError, match=r"team_sizes is empty"):
        save(tmp_path, team_sizes=[])
    with pytest.raises(ValueError, match=r"team_sizes is \(1, 1\), expected a list of pairs .*\[\(1, 1\)\]"):
        save(tmp_path, team_sizes=(1, 1))
    with pytest.raises(ValueError, match=r"hitbox is 'octopus', expected one of octane"):
        save(tmp_path, hitbox="octopus")
    with pytest.raises(ValueError, match=r"something JSON cannot"):
        save(tmp_path, training={"when": object()})
    assert not list(tmp_path.iterdir())


def test_components_that_cannot_be_named_are_not_saved():
    class Local(DefaultObs):
        pass

    with pytest.raises(ValueError, match=r"Local cannot be imported by name"):
        spec(Local)
    for nested in (LookupTableAction, LookupTableAction()):
        with pytest.raises(ValueError, match=r"nested in .*, expected ComponentSpec.of\(LookupTableAction\)"):
            spec(RepeatAction, nested)
    with pytest.raises(ValueError, match=r"expected JSON values"):
        spec(DefaultObs, zero_padding=np.ones(2))
    assert spec(DefaultObs, zero_padding=({"a": (1,)}, 2)).args == {"zero_padding": [{"a": [1]}, 2]}
    with pytest.raises(ValueError, match=r"expected JSON values"):
        spec(DefaultObs, pos_coef=float("nan"))


def test_a_key_that_stands_twice_is_named(tmp_path):
    save(tmp_path / "p")
    file = tmp_path / "p" / "policy.json"
    file.write_text(file.read_text().rstrip().removesuffix("}") + ', "selection": "argmax"}')
    with pytest.raises(ValueError, match=r"policy.json is not .* JSON: .* the key 'selection' twice"):
        load_policy(tmp_path / "p")
