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

WORDS = ["--env", "my_env:discrete", "--out", "bot", "-q"]


class WritesWhenCalled(nn.Module):
    """Does what a policy does, and writes a file when it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Sequential(nn.Linear(OBS, 8), nn.ReLU(), nn.Linear(8, 90))

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


def test_a_script_that_writes_when_called_writes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.jit.script(WritesWhenCalled()).save("odd.pt")
    assert main(["import", "odd.pt", *WORDS]) == 2
    assert 'odd.pt computes torch.from_file("written", True, 16)'.replace('"', "'") in capsys.readouterr().err
    assert not Path("written").exists() and not Path("bot").exists()


def test_a_script_that_writes_when_loaded_writes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.jit.script(WritesWhenLoaded()).save("odd.pt")
    assert not Path("written").exists()
    assert main(["import", "odd.pt", *WORDS]) == 2
    assert "__torch__" in (said := capsys.readouterr().err) and "has a method __setstate__" in said
    assert not Path("written").exists() and not Path("bot").exists()


def perceptron(*between: nn.Module, end: nn.Module | None = None) -> nn.Sequential:
    torch.manual_seed(0)
    parts = [nn.Linear(OBS, 16), *between, nn.Linear(16, 90)]
    return nn.Sequential(*parts, *([] if end is None else [end]))


class Wrapped(nn.Module):
    """A network inside another module, with layers by names of their own, and a dropout that does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(OBS, 16), nn.Linear(16, 90, bias=False)
        self.drop, self.critic = nn.Dropout(0.5), nn.Linear(16, 1)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.last(self.drop(nn.functional.relu(self.first(obs)))), -1)


class Cast(nn.Module):
    """A network that makes sure of its input's type."""

    def __init__(self) -> None:
        super().__init__()
        self.model = perceptron(nn.ReLU())

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.model(obs.float())


class Multiplied(nn.Module):
    """Linear layers as older versions of torch traced them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(OBS, 16), nn.Linear(16, 90)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(torch.addmm(self.first.bias, obs, self.first.weight.t()))
        return torch.addmm(self.last.bias, hidden, self.last.weight.t())


@pytest.mark.parametrize("how", ["script", "trace", "freeze"])
@pytest.mark.parametrize(
    "model",
    [
        perceptron(nn.ReLU()),
        perceptron(nn.ReLU(inplace=True), end=nn.Softmax(dim=-1)),
        perceptron(nn.ReLU(), end=nn.LogSoftmax(dim=-1)),
        perceptron(nn.ReLU(), nn.Linear(16, 16), nn.ReLU()),
        nn.Linear(OBS, 90),
        Wrapped(),
        Cast(),
        Multiplied(),
        perceptron(nn.Tanh(), end=nn.Softmax(dim=-1)),
        perceptron(nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU()),
        perceptron(nn.LeakyReLU(inplace=True)),
        perceptron(nn.SiLU(inplace=True)),
    ],
    ids=[
        "bare", "softmax", "log_softmax", "three layers", "one layer", "wrapped", "cast", "multiplied",
        "tanh", "gelu", "leaky_relu", "silu",
    ],
)  # fmt: skip
def test_scripts_of_linear_layers_are_imported(model: nn.Module, how: str, here: Path) -> None:
    model.eval()
    script = torch.jit.trace(model, torch.zeros(2, OBS)) if how == "trace" else torch.jit.script(model)
    if how == "freeze":
        script = torch.jit.freeze(script)
    script.save("script.pt")
    assert main(["import", "script.pt", *WORDS]) == 0

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


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = perceptron(nn.ReLU())

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.model(obs * 0.5)


class Changing(nn.Module):
    """Computes something else for large observations, which single numbers may never show."""

    def __init__(self) -> None:
        super().__init__()
        self.model = perceptron(nn.ReLU())

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        given = self.model(obs)
        if bool(obs.max() > 100):
            given = -given
        return given


class Hidden(nn.Module):
    """A ReLU in place behind the last layer, under another name."""

    def __init__(self) -> None:
        super().__init__()
        self.model = perceptron(nn.ReLU())

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        given = self.model(obs)
        torch.relu_(given)
        return torch.tanh(given)


class OnACopy(nn.Module):
    """A ReLU in place on a copy, which is then left aside."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(OBS, 16), nn.Linear(16, 90)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        h = self.first(obs)
        copy = h.double()
        torch.relu_(copy)
        return self.last(h)


class Identical(nn.Module):
    """Asks whether two equal numbers are one object, of which Python and TorchScript think differently."""

    def __init__(self) -> None:
        super().__init__()
        self.model, self.n, self.m = perceptron(nn.ReLU()), 1000, 1000

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.model(obs) if self.n is self.m else -self.model(obs)


class Rounded(nn.Module):
    """Compares numbers that are equal as floats alone."""

    def __init__(self) -> None:
        super().__init__()
        self.model, self.whole, self.real = perceptron(nn.ReLU()), 2**53 + 1, 2.0**53

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.model(obs) if self.whole == self.real else -self.model(obs)


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (perceptron(), "computes linear, linear;"),
        (perceptron(nn.LeakyReLU(0.2)), "computes torch.leaky_relu(input, negative_slope);"),
        (perceptron(nn.GELU("tanh")), "computes torch.gelu(input, approximate='tanh');"),
        (perceptron(nn.ReLU(), nn.LayerNorm(16)), "computes linear, relu, layer_norm, linear;"),
        (perceptron(nn.LayerNorm(16, eps=1e-3), nn.ReLU()), "computes torch.layer_norm("),
        (perceptron(nn.ReLU(), end=nn.ReLU()), "computes linear, relu, linear, relu;"),
        (perceptron(nn.ReLU(), end=nn.Softmax(dim=0)), "computes torch.softmax(input, dim0);"),
        (perceptron(nn.ReLU(), nn.Dropout(0.5)), "asks whether it is in training, and was saved so"),
        (Residual(), "computes torch.add("),
        (Scaled(), "computes torch.mul(obs, 0.5);"),
        (Changing(), "computes bool(torch.gt(torch.max(obs), 100));"),
        (Hidden(), "computes linear, relu, linear, relu, tanh;"),
        (OnACopy(), "computes torch.to(h, 7);"),
        (Identical(), "computes torch.__is__(n, m);"),
        (Rounded(), "computes torch.eq(whole, real);"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, nn.Module) else None,
)
def test_a_script_of_other_computations_is_refused_with_them(
    model: nn.Module, found: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.jit.script(model).save("odd.pt")
    assert main(["import", "odd.pt", *WORDS]) == 2
    said = capsys.readouterr().err
    assert f"odd.pt {found}" in said and said.count("\n") == 1
    assert "; expected linear layers with one of relu, leaky_relu" in said


def test_a_script_with_hooks_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def double(module, given: tuple[torch.Tensor], result: torch.Tensor) -> torch.Tensor:
        return result * 2

    class Hooked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = perceptron(nn.ReLU())

        def forward(self, obs: torch.Tensor) -> torch.Tensor:
            return self.model(obs)

    model = Hooked()
    model.register_forward_hook(double)
    torch.jit.script(model).save("odd.pt")
    assert main(["import", "odd.pt", *WORDS]) == 2
    assert "has hooks, which run beside its forward" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("entry", "content", "message"),
    [
        ("constants.pkl", b"cos\nsystem\n(X\x05\x00\x00\x00touchtR.", "names os.system, expected modules"),
        ("constants.pkl", b"cbuiltins\neval\n.", "names builtins.eval, expected modules"),
        ("data.pkl", b"\x80\x02}.", "its data is dict, expected a module"),
        ("data.pkl", b"junk", "cannot be read without running code from it"),
        ("data.pkl", b"\x80\x02Nr\xff\xff\xff\x7f.", "has LONG_BINPUT 2147483647, expected"),
        ("data/0", b"\0" * 64, "outside its 16 numbers"),
        ("data/0", b"\0" * (1 << 28), "would unpack to"),
    ],
    ids=["os.system", "eval", "dict", "junk", "place in memory", "short", "bomb"],
)
def test_an_archive_that_was_tampered_with_is_refused_in_a_line(
    entry: str, content: bytes, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.jit.script(network(90)).save("whole.pt")
    with zipfile.ZipFile("whole.pt") as whole, zipfile.ZipFile("odd.pt", "w", zipfile.ZIP_DEFLATED) as odd:
        for name in whole.namelist():
            odd.writestr(name, content if name == f"whole/{entry}" else whole.read(name))
    assert main(["import", "odd.pt", *WORDS]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_an_archive_of_libtorch_needs_its_activation_named(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = network(90)
    libtorch_archive(model).save("mine.lt")
    assert main(["import", "mine.lt", *WORDS]) == 2
    assert "mine.lt holds tensors alone" in capsys.readouterr().err
    assert main(["import", "mine.lt", *WORDS, "--activation", "relu"]) == 0
    layers = load_policy(here / "bot", allow_modules=("my_env",)).policy.network.layers
    for (weight, bias), part in zip(layers, [model[0], model[2], model[4]], strict=True):
        np.testing.assert_array_equal(weight, part.weight.detach().numpy().T)
        np.testing.assert_array_equal(bias, part.bias.detach().numpy())


def test_negated_tensors_are_refused_in_scripts_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = perceptron(nn.ReLU())
    whole = torch.complex(torch.zeros(90, 16), torch.randn(90, 16))
    model[2].weight = nn.Parameter(whole.conj().imag)
    torch.jit.script(model).save("odd.pt")
    assert main(["import", "odd.pt", *WORDS]) == 2
    assert "a tensor has the marks ({'neg': True},), expected plain numbers" in capsys.readouterr().err
    torch.save(model.state_dict(), "state.pt")
    assert main(["import", "state.pt", "--activation", "relu", *WORDS]) == 0
    ours = load_policy(here / "bot", allow_modules=("my_env",)).policy.network
    shown = np.random.default_rng(0).normal(size=(5, OBS)).astype(np.float32)
    with torch.no_grad():
        np.testing.assert_allclose(ours(shown), model(torch.as_tensor(shown)).numpy(), atol=1e-5)


def test_a_script_whose_end_does_not_fit_the_actions_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.jit.script(perceptron(nn.ReLU(), end=nn.Tanh())).save("odd.pt")
    assert main(["import", "odd.pt", *WORDS]) == 2
    assert (
        "ends with tanh, and RepeatAction's actions (categorical) are played from" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "more",
    [lambda name: name, lambda name: name.replace("/code/", "/CODE/"), lambda name: f"other/{name}"],
    ids=["twice", "other case", "other folder"],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_ambiguous_archive_is_refused(
    more: Callable[[str], str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.jit.script(network(90)).save("whole.pt")
    with zipfile.ZipFile("whole.pt") as whole, zipfile.ZipFile("odd.pt", "w") as odd:
        for name in whole.namelist():
            odd.writestr(name, whole.read(name))
        odd.writestr(more(next(name for name in whole.namelist() if name.endswith(".py"))), "")
    assert main(["import", "odd.pt", *WORDS]) == 2
    assert "several folders, or entries of one name" in capsys.readouterr().err


def test_line_ends_for_python_alone_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.jit.script(network(90)).save("whole.pt")
    with zipfile.ZipFile("whole.pt") as whole, zipfile.ZipFile("odd.pt", "w") as odd:
        for name in whole.namelist():
            code = whole.read(name)
            odd.writestr(name, b"#\r\n" + code if name.endswith(".py") else code)
    assert main(["import", "odd.pt", *WORDS]) == 2
    assert "characters that end a line for some readers" in capsys.readouterr().err
