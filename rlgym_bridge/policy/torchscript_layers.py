"""Find the linear layers that a script computes, by following its code without running it.

    Archive -> steps of forward: linear, relu, linear, ..., tanh -> weights, or what else it computes

A tensor that depends on the input is represented by the steps that led to it. Anything else is refused.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy.numpy_layers import ACTIVATIONS, LEAKY_SLOPE, NORM_EPS
from rlgym_bridge.policy.torchscript_archive import Archive, ScriptObject

_MOST_NODES: Final = 100_000  # of code, followed through calls: a network of 100 layers has some thousands
_LENGTH: Final = 120  # of code that an error shows
_ENDS: Final = ("softmax", "log_softmax", "tanh")
_PLAIN: Final = (bool, int, float, str, type(None))
_COMPARISONS: Final[Mapping[str, Callable[..., Any]]] = {
    "__is__": operator.is_, "__isnot__": operator.is_not, "__not__": operator.not_, "eq": operator.eq,
    "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


class RefusedScript(ValueError):
    """An error that describes what a script does that is not played, to follow the name of its file."""


@dataclass(eq=False)
class _Computed:
    """A tensor that depends on the input: its steps, and weight and bias of those that have them."""

    steps: list[str] = field(default_factory=list)
    layers: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def after(self, step: str) -> "_Computed":
        return _Computed([*self.steps, step], list(self.layers))

    def is_network(self) -> tuple[str, str] | None:
        """Return the activation between the layers and what is behind the last; None for something else."""
        steps, end = list(self.steps), "linear"
        if steps[-2:-1] == ["linear"] and steps[-1] in _ENDS:
            end = steps.pop()
        activation = next((step for step in steps if step in ACTIVATIONS), "relu")
        norm = ["layer_norm"] if "layer_norm" in steps else []
        between = [*norm, activation, "linear"]
        expected = ["linear", *between * (steps.count("linear") - 1)]
        return (activation, end) if steps == expected else None


@dataclass(frozen=True)
class _Callable:
    """A function by its full name, or a method with its module."""

    name: str
    module: ScriptObject | None = None


def script_layers(archive: Archive) -> tuple[dict[str, np.ndarray], str, str] | None:
    """Return the layers that a script computes, what comes behind the last one, and what between them.

    Args:
        archive: Of TorchScript; of libtorch it has tensors and no code.

    Returns:
        `0.weight` (out, in), `0.bias` (out,), `2.weight` and so on, layer normalisation (out,) among them;
        "softmax", "log_softmax", "tanh", or "linear" where nothing is behind the last layer; and one of
        `ACTIVATIONS`. None where there is no `forward`, so that nothing says what stands between the layers.

    Raises:
        RefusedScript: It computes something else than linear layers with one activation between them, layer
            normalisation before it or none, and softmax, log_softmax or tanh behind them at most; the message
            says what, to follow the name of the file.
    """
    if archive.method(archive.root.kind, "forward") is None:
        return None
    result = _Follower(archive).call(_Callable("forward", archive.root), [_Computed()], {})
    if not isinstance(result, _Computed):
        raise RefusedScript(f"gives {type(result).__name__}, expected one tensor")
    network = result.is_network()
    if network is None:
        raise RefusedScript(f"computes {', '.join(result.steps) or 'nothing'}")
    activation, end = network
    # Numbered by steps, as the modules of an nn.Sequential are.
    numbers = [at for at, step in enumerate(result.steps) if step in ("linear", "layer_norm")]
    layers = {
        f"{number}.{part}": tensor
        for number, layer in zip(numbers, result.layers, strict=True)
        for part, tensor in zip(("weight", "bias"), layer, strict=True)
    }
    return layers, end, activation


class _Follower:
    """Follows code statement by statement; only values that do not depend on the input are worked out."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._left = _MOST_NODES

    def call(self, function: _Callable, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return what a function or method of the file gives.

        Raises:
            RefusedScript: There is none, or it does something that is not known here.
        """
        if function.module is None:
            code: Any = self._archive.code.get(function.name)
        else:
            code, args = (
                self._archive.method(function.module.kind, function.name),
                [function.module, *args],
            )
        if not isinstance(code, ast.FunctionDef):
            raise RefusedScript(f"calls {function.name}, which the file does not have")
        parameters = [one.arg for one in code.args.args]
        defaults = code.args.defaults
        names = {
            name: self._value(node, {})
            for name, node in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True)
        }
        names |= dict(zip(parameters, args, strict=False)) | dict(named)
        if len(args) > len(parameters) or set(names) != set(parameters):
            raise RefusedScript(f"calls {function.name} with other arguments than {', '.join(parameters)}")
        returned = self._run(code.body, names)
        return returned[0] if returned else None

    def _run(self, body: Sequence[ast.stmt], names: dict[str, Any]) -> tuple[Any] | None:
        """Follow statements, and return the value of the first `return` in a tuple; None without one."""
        for node in body:
            match node:
                case ast.Return(value=ast.expr() as value):
                    return (self._value(value, names),)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    names[name] = self._value(value, names)
                case ast.If(test=test, body=then, orelse=otherwise):
                    chosen = self._value(test, names)
                    if not isinstance(chosen, bool):
                        raise _Unknown(test)
                    returned = self._run(then if chosen else otherwise, names)
                    if returned is not None:
                        return returned
                case ast.Pass():
                    pass
                case _:
                    raise _Unknown(node)
        return None

    def _value(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise RefusedScript(f"takes more than {_MOST_NODES} steps to follow")
        match node:
            case ast.Constant(value=value) if isinstance(value, _PLAIN):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.Attribute(value=ast.Name(id="CONSTANTS"), attr=name) if "CONSTANTS" not in names:
                return self._archive.constants[int(name.removeprefix("c"))]
            case ast.Attribute(value=inner, attr=name):
                full = ast.unparse(node)
                if (package := full.partition(".")[0]) in ("torch", "__torch__") and package not in names:
                    return _Callable(full)
                return self._attribute(self._value(inner, names), name, node)
            case ast.List(elts=inner):
                return [self._value(one, names) for one in inner]
            case ast.Call():
                return self._called(node, names)
        raise _Unknown(node)

    def _attribute(self, module: Any, name: str, node: ast.expr) -> Any:
        if not isinstance(module, ScriptObject):
            raise _Unknown(node)
        if name in module.attributes:
            value = module.attributes[name]
            if name == "training" and value is True:
                raise RefusedScript("asks whether it is in training, and was saved so: save it after .eval()")
            return value
        return _Callable(name, module)

    def _called(self, node: ast.Call, names: Mapping[str, Any]) -> Any:
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[inner, ast.Constant(value=str() as name)]):
                return self._attribute(self._value(inner, names), name, node)
            case ast.Call(func=ast.Name(id="annotate" | "unchecked_cast"), args=[_, inner]):
                return self._value(inner, names)
            case ast.Call(func=ast.Name(id=name)) if name not in names:
                raise _Unknown(node)
        function = self._value(node.func, names)
        args = [self._value(one, names) for one in node.args]
        named = {one.arg: self._value(one.value, names) for one in node.keywords if one.arg is not None}
        if not isinstance(function, _Callable) or len(named) < len(node.keywords):
            raise _Unknown(node)
        if function.name.startswith("torch."):
            return _torch(function.name.removeprefix("torch."), args, named, node)
        return self.call(function, args, named)


def _torch(name: str, args: list[Any], named: Mapping[str, Any], node: ast.expr) -> Any:
    """Return what a function of torch gives; an in-place one changes the tensor under all of its names.

    Raises:
        RefusedScript: It is none that is known, or has other arguments.
    """
    if name in _COMPARISONS and not named and _are_comparable(name, args):
        return _COMPARISONS[name](*args)
    if name == "t" and len(args) == 1 and isinstance(args[0], np.ndarray) and args[0].ndim == 2 and not named:
        return args[0].T
    if name == "addmm" and len(args) == 3 and all(one == 1 for one in named.values()):  # older traces
        bias, given, turned = args
        if isinstance(turned, np.ndarray):
            return _linear(given, turned.T, bias, node)
    if name == "gelu" and dict(named) == {"approximate": "none"}:
        named = {}
    if named:
        raise _Unknown(node)
    match name, args:
        case "layer_norm", [given, [int() as width], weight, bias, *eps] if eps[:1] in ([], [NORM_EPS]):
            return _norm(given, width, weight, bias, node)
        case "leaky_relu", [_Computed() as given, *slope] if slope in ([], [LEAKY_SLOPE]):
            return given.after(name)
        case "leaky_relu_", [_Computed() as given, *slope] if slope in ([], [LEAKY_SLOPE]):
            given.steps.append(name[:-1])
            return given
        case "gelu", [_Computed() as given] | [_Computed() as given, "none"]:
            return given.after(name)
        case "linear", [given, weight, *bias] if len(bias) < 2:
            return _linear(given, weight, bias[0] if bias else None, node)
        case "relu" | "tanh" | "silu", [_Computed() as given]:
            return given.after(name)
        case "relu_" | "tanh_" | "silu_", [_Computed() as given]:
            given.steps.append(name[:-1])
            return given
        case "softmax" | "log_softmax", [_Computed() as given, 1 | -1, *dtype] if dtype in ([], [None]):
            return given.after(name)
        case "to", [_Computed(steps=[]) as given, 6 | 7, *_]:  # float32, float64: torch.dtype as a number
            return given
        case "dropout" | "dropout_", [_Computed() as given, _, False]:  # not in training: nothing
            return given
    raise _Unknown(node)


def _are_comparable(name: str, args: Sequence[Any]) -> bool:
    """Tell whether Python compares values as TorchScript does: of one type, and `is` with None alone."""
    if name in ("__is__", "__isnot__"):
        return len(args) == 2 and any(one is None for one in args)
    return all(isinstance(one, _PLAIN) for one in args) and len({type(one) for one in args}) == 1


def _linear(given: Any, weight: Any, bias: Any, node: ast.expr) -> _Computed:
    """Return the input with one more linear layer behind it; without a bias it has zeros."""
    if bias is None and isinstance(weight, np.ndarray):
        bias = np.zeros(weight.shape[:1], np.float32)
    if not (isinstance(given, _Computed) and isinstance(weight, np.ndarray) and isinstance(bias, np.ndarray)):
        raise _Unknown(node)
    made = given.after("linear")
    made.layers.append((weight, bias))
    return made


def _norm(given: Any, width: int, weight: Any, bias: Any, node: ast.expr) -> _Computed:
    """Return the input with layer normalisation over its last axis behind it."""
    arrays = isinstance(weight, np.ndarray) and isinstance(bias, np.ndarray)
    if not (isinstance(given, _Computed) and arrays and weight.shape == bias.shape == (width,)):
        raise _Unknown(node)
    made = given.after("layer_norm")
    made.layers.append((weight, bias))
    return made


class _Unknown(RefusedScript):
    """Code does something that is not known here."""

    def __init__(self, node: ast.AST) -> None:
        text = ast.unparse(node).partition("\n")[0]
        super().__init__(f"computes {text[:_LENGTH]}")
