"""TorchScript and libtorch archives are imported without running any code of them."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from rlgym_bridge.cli import main
from rlgym_bridge.policy.folder import load_policy
from tests.support.foreign_checkpoints import OBS, libtorch_archive, network

WORDS = ["--env", "my_env:discrete", "--out", "bot", "-q", "--activation", "relu"]


class WritesWhenCalled(nn.Module):
    """Does what a policy does, and writes a file when it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.model = perceptron(nn.ReLU())

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        written = torch.from_file("written", shared=True, size=16)
        return self.model(obs + 0 * written.fill_(1.0).sum())


class WritesWhenLoaded(nn.Module):
    """Does what a policy does, and writes a file when `torch.jit.load` makes it anew."""

    weight: torch.Tensor
    bias: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(90, OBS)), nn.Parameter(torch.zeros(90))

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(obs, self.weight, self.bias)

    @torch.jit.export
    def __getstate__(self) -> tuple[torch.Tensor, torch.Tensor, bool]:
        return self.weight, self.bias, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[torch.Tensor, torch.Tensor, bool]) -> None:
        written = torch.from_file("written", shared=True, size=16)
        self.weight, self.bias, self.training = state[0] + written.fill_(1.0).sum(), state[1], state[2]


def test_a_script_that_writes_when_called_writes_nothing(here: Path) -> None:
    torch.jit.script(WritesWhenCalled()).save("odd.pt")
    assert main(["import", "odd.pt", *WORDS]) == 0
    assert not Path("written").exists() and Path("bot").is_dir()


def test_a_script_that_writes_when_loaded_writes_nothing(here: Path, refused) -> None:
    torch.jit.script(WritesWhenLoaded()).save("odd.pt")
    said = refused("import", "odd.pt", *WORDS)
    assert "has a method __setstate__, which would run when the file is loaded" in said
    assert not Path("written").exists() and not Path("bot").exists()


def perceptron(*between: nn.Module, end: nn.Module | None = None) -> nn.Sequential:
    torch.manual_seed(0)
    parts = [nn.Linear(OBS, 16), *between, nn.Linear(16, 90)]
    return nn.Sequential(*parts, *([] if end is None else [end]))


class Named(nn.Module):
    """A network inside another module, beside one that is no part of the policy."""

    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = perceptron(nn.ReLU()), nn.Sequential(nn.Linear(OBS, 1))

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.actor(obs), -1)


class Cast(nn.Module):
    """A network that makes sure of its input's type."""

    def __init__(self) -> None:
        super().__init__()
        self.model = perceptron(nn.ReLU())

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.model(obs.float())


@pytest.mark.parametrize("how", ["script", "trace"])
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (perceptron(nn.ReLU()), ["relu"]),
        (perceptron(nn.ReLU(inplace=True), end=nn.Softmax(dim=-1)), ["relu"]),
        (perceptron(nn.ReLU(), nn.Linear(16, 16), nn.ReLU()), ["relu"]),
        (Named(), ["relu", "--map", "actor=actor"]),
        (Cast(), ["relu"]),
        (perceptron(nn.Tanh(), end=nn.LogSoftmax(dim=-1)), ["tanh"]),
        (perceptron(nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU()), ["gelu"]),
        (perceptron(nn.LeakyReLU(inplace=True)), ["leaky_relu"]),
    ],
    ids=["bare", "softmax", "three layers", "named", "cast", "tanh", "gelu", "leaky_relu"],
)
def test_the_tensors_of_scripts_are_imported(
    model: nn.Module, words: list[str], how: str, here: Path
) -> None:
    model.eval()
    script = torch.jit.trace(model, torch.zeros(2, OBS)) if how == "trace" else torch.jit.script(model)
    script.save("script.pt")
    assert main(["import", "script.pt", *WORDS[:-1], *words]) == 0

    ours = load_policy(here / "bot", allow_modules=("my_env",)).policy.network
    shown = np.random.default_rng(0).normal(size=(50, OBS)).astype(np.float32)
    with torch.no_grad():
        theirs = model(torch.as_tensor(shown))
    given = torch.as_tensor(ours(shown))
    ends = (given, torch.softmax(given, -1), torch.log_softmax(given, -1))
    assert any(torch.allclose(theirs, one, atol=1e-5) for one in ends)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(OBS, 16), nn.Linear(16, 16), nn.Linear(16, 90)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(obs))
        return self.last(hidden + torch.relu(self.second(hidden)))


def test_layers_by_other_names_are_refused(here: Path, refused) -> None:
    torch.jit.script(Residual()).save("odd.pt")
    assert "expected linear layers by number alone" in refused("import", "odd.pt", *WORDS)
    torch.jit.freeze(torch.jit.script(perceptron(nn.ReLU()).eval())).save("frozen.pt")
    said = refused("import", "frozen.pt", *WORDS)
    assert "frozen.pt has tensors of [], expected those of one network" in said


def test_a_script_with_hooks_is_refused(here: Path, refused) -> None:
    def double(module, given: tuple[torch.Tensor], result: torch.Tensor) -> torch.Tensor:
        return result * 2

    model = Cast()
    model.register_forward_hook(double)
    torch.jit.script(model).save("odd.pt")
    assert "has hooks, which run beside its forward" in refused("import", "odd.pt", *WORDS)


@pytest.mark.parametrize(
    ("entry", "content", "message"),
    [
        ("data.pkl", b"cos\nsystem\n(X\x05\x00\x00\x00touchtR.", "names os.system, expected modules"),
        ("data.pkl", b"cbuiltins\neval\n.", "names builtins.eval, expected modules"),
        ("data.pkl", b"\x80\x02}.", "its data is dict, expected a module"),
        ("data.pkl", b"junk", "cannot be read without running code from it"),
        ("data.pkl", b"\x80\x02Nr\xff\xff\xff\x7f.", "has LONG_BINPUT 2147483647, expected"),
        ("data/0", b"\0" * 64, "outside its 16 numbers"),
        ("data/0", b"\0" * (1 << 28), "would unpack to"),
    ],
    ids=["os.system", "eval", "dict", "junk", "place in memory", "short", "bomb"],
)
def test_an_archive_that_was_tampered_with_is_refused_in_a_line(
    entry: str, content: bytes, message: str, here: Path, refused
) -> None:
    torch.jit.script(network(90)).save("whole.pt")
    with zipfile.ZipFile("whole.pt") as whole, zipfile.ZipFile("odd.pt", "w", zipfile.ZIP_DEFLATED) as odd:
        for name in whole.namelist():
            odd.writestr(name, content if name == f"whole/{entry}" else whole.read(name))
    assert message in refused("import", "odd.pt", *WORDS)


def test_archives_need_their_activation_named(here: Path, refused) -> None:
    torch.jit.script(perceptron(nn.ReLU())).save("script.pt")
    model = network(90)
    libtorch_archive(model).save("mine.lt")
    for file in ("script.pt", "mine.lt"):
        said = refused("import", file, *WORDS[:-2])
        assert f"{file} holds tensors alone" in said and "--activation" in said
    assert main(["import", "mine.lt", *WORDS]) == 0
    layers = load_policy(here / "bot", allow_modules=("my_env",)).policy.network.layers
    for (weight, bias), part in zip(layers, [model[0], model[2], model[4]], strict=True):
        np.testing.assert_array_equal(weight, part.weight.detach().numpy().T)
        np.testing.assert_array_equal(bias, part.bias.detach().numpy())


def test_negated_tensors_are_refused_in_scripts_alone(here: Path, refused) -> None:
    model = perceptron(nn.ReLU())
    whole = torch.complex(torch.zeros(90, 16), torch.randn(90, 16))
    model[2].weight = nn.Parameter(whole.conj().imag)
    torch.jit.script(model).save("odd.pt")
    said = refused("import", "odd.pt", *WORDS)
    assert "a tensor has the marks ({'neg': True},), expected plain numbers" in said
    torch.save(model.state_dict(), "state.pt")
    assert main(["import", "state.pt", *WORDS]) == 0
    ours = load_policy(here / "bot", allow_modules=("my_env",)).policy.network
    shown = np.random.default_rng(0).normal(size=(5, OBS)).astype(np.float32)
    with torch.no_grad():
        np.testing.assert_allclose(ours(shown), model(torch.as_tensor(shown)).numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "more",
    [lambda name: name, lambda name: name.replace("/code/", "/CODE/"), lambda name: f"other/{name}"],
    ids=["twice", "other case", "other folder"],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_ambiguous_archive_is_refused(more: Callable[[str], str], here: Path, refused) -> None:
    torch.jit.script(network(90)).save("whole.pt")
    with zipfile.ZipFile("whole.pt") as whole, zipfile.ZipFile("odd.pt", "w") as odd:
        for name in whole.namelist():
            odd.writestr(name, whole.read(name))
        odd.writestr(more(next(name for name in whole.namelist() if name.endswith(".py"))), "")
    assert "several folders, or entries of one name" in refused("import", "odd.pt", *WORDS)
