"""Traced programs: equations, their inputs and outputs, loops, branches and calls."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import source_info_util
from jax._src.interpreters import mlir
from jax._src.interpreters import partial_eval as private_partial_eval
from jax.core import Tracer
from jax.interpreters import partial_eval

from simkit.core.formulation import formulated_for
from simkit.errors import UserError


@dataclasses.dataclass(frozen=True)
class Aval:
    """Shape and type of a value.

    Attributes:
        shape: its size in each dimension.
        dtype: NumPy's type of its elements; for random keys uint32, for bfloat16 float32.
        key: the random number generator of random keys, ``None`` for other arrays.
        short: whether the numbers are those of bfloat16. They are held in float32 and rounded after each operation,
            since onnxruntime has few kernels of bfloat16, and does not exchange it with Python.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    key: Any = None
    short: bool = False


@dataclasses.dataclass(frozen=True)
class Equation:
    """One application of a primitive.

    Attributes:
        name: of the primitive.
        params: its static parameters.
        inputs: shape and type of each argument.
        outputs: shape and type of each result.
        where: source line of the user's program, ``"file.py:12"``, or empty.
        raw: the equation of the jaxpr.
    """

    name: str
    params: dict[str, Any]
    inputs: tuple[Aval, ...]
    outputs: tuple[Aval, ...]
    where: str
    raw: Any

    @property
    def out(self) -> Aval:
        """The first result."""
        return self.outputs[0]


FLOAT32, SHORT = np.dtype(np.float32), np.dtype(jnp.bfloat16)
# Parameters under which JAX's versions store the program that a primitive calls.
_CALLED = ("call_jaxpr", "jaxpr", "fun_jaxpr", "call")
_CALLS = (
    *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2", "composite", "eval_jaxpr"),
    *("custom_jvp_call", "custom_jvp_call_jaxpr", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call"),
    "linear_call",
)


class Program:
    """A traced function."""

    def __init__(self, jaxpr: Any, constants: Sequence[Any] | None = None, *, ours: bool = False) -> None:
        """Wrap a jaxpr, closed or open.

        Args:
            jaxpr: of JAX.
            constants: of an open jaxpr.
            ours: whether the converter traced it, so that its source lines are not the user's.
        """
        self.ours = ours
        if constants is None:
            constants = list(getattr(jaxpr, "consts", ()))
        self.jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        self.constants = [*zip(self.jaxpr.constvars, constants, strict=True)]

    @property
    def inputs(self) -> list[Any]:
        """Variables of the arguments."""
        return list(self.jaxpr.invars)

    @property
    def outputs(self) -> list[Any]:
        """Variables or literals of the results."""
        return list(self.jaxpr.outvars)

    @property
    def input_avals(self) -> list[Aval]:
        """Shapes and types of the arguments."""
        return [_aval(variable) for variable in self.jaxpr.invars]

    @property
    def output_avals(self) -> list[Aval]:
        """Shapes and types of the results."""
        return [_aval(variable) for variable in self.jaxpr.outvars]

    def equations(self) -> Iterator[tuple[Equation, list[Any], list[Any]]]:
        """Yield each equation with the variables that it reads and those that it writes."""
        for raw in self.jaxpr.eqns:
            inputs, outputs = tuple(map(_aval, raw.invars)), tuple(map(_aval, raw.outvars))
            params = {name: FLOAT32 if _is_short(value) else value for name, value in raw.params.items()}
            equation = Equation(raw.primitive.name, params, inputs, outputs, _line(raw), raw)
            yield equation, list(raw.invars), list(raw.outvars)


def trace(function: Callable[..., Any], *arguments: Any) -> tuple[Program, Any]:
    """Return a function as a program without dead code, and the structure of its result.

    Args:
        function: of trees of arrays.
        *arguments: trees of arrays, or of their shapes and types.

    Raises:
        UserError: if the function returns no array, or uses one of a surrounding transformation of JAX.
    """
    with formulated_for("interpreter"):
        closed, result = jax.make_jaxpr(function, return_shape=True)(*arguments)
    if not closed.jaxpr.outvars:
        raise UserError("the function returns no array, so that no program can be made of it; return one")
    program = _without_dead_code(_lowered(closed))
    refuse_tracers([value for _, value in program.constants], "the function uses an array from outside of it, which")
    return program, jax.tree.structure(result)


def refuse_tracers(arrays: Sequence[Any], what: str) -> None:
    """Refuse arrays without numbers, which a function has while JAX transforms it.

    Args:
        arrays: to check.
        what: beginning of the message.

    Raises:
        UserError: if one is a tracer.
    """
    if any(isinstance(array, Tracer) for array in arrays):
        raise UserError(
            f"{what} is being traced by jax.jit, grad, vmap or another transformation, and onnxruntime runs outside of "
            "JAX; transform first, as in onnxjit(jax.grad(function)), or call it outside of the transformation"
        )


def program_of(function: Callable[..., Any], avals: Sequence[Aval]) -> Program:
    """Return a function of arrays as a program.

    Args:
        function: of as many arrays as there are avals; none of random keys.
        avals: shapes and types of its arguments.
    """
    # The types of the surrounding program are kept, whatever precision is set now.
    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        return Program(_lowered(jax.make_jaxpr(function)(*shapes)), ours=True)


def called(equation: Equation) -> Program | None:
    """Return the program of a primitive that only calls one (``jit``, ``custom_jvp_call``), ``None`` for others."""
    if equation.name not in _CALLS:
        return None
    inner = next((equation.params[name] for name in _CALLED if name in equation.params), None)
    return None if inner is None else Program(inner)


def applies_function(equation: Equation) -> bool:
    """Return whether a scatter that sets elements applies a function to them, as ``x.at[index].apply`` does."""
    jaxpr = equation.params["update_jaxpr"]
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    return jaxpr is not None and jaxpr.outvars[0] is not jaxpr.invars[1]


def defined(equation: Equation) -> Program | None:
    """Return the definition of a primitive by others, ``None`` if it has none."""
    raw = equation.raw
    if raw.effects:  # such as printing, which would happen while it is traced, and never again
        return None
    shapes = [jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype) for variable in raw.invars]
    # Its lowering to other primitives (an implicit solve, in newer versions of JAX), the function by which XLA computes
    # it (special functions, random gamma numbers, LU), or its implementation (primitives of other libraries).
    definitions = (getattr(raw.primitive, "to_lojax", None), *_lowerings(raw.primitive), raw.primitive.impl)
    for definition in definitions:
        if definition is None:
            continue
        try:
            with jax.enable_x64(True):
                made = jax.make_jaxpr(lambda *values, of=definition: of(*values, **raw.params))(*shapes)
                lowered = Program(_lowered(made), ours=True)
        except Exception:  # JAX raises many kinds where a primitive has no definition for tracers
            continue
        if not _uses(lowered, equation.name):
            return lowered
    return None


def _lowerings(primitive: Any) -> Iterator[Callable[..., Any]]:
    """Yield the functions of arrays that JAX registers as lowerings of a primitive, for any platform or for the CPU."""
    for table in (mlir._lowerings, mlir._platform_specific_lowerings["cpu"]):
        rule = getattr(table.get(primitive), "rule", None)
        if rule is not None and getattr(rule, "__name__", "") == "f_lowered":
            yield inspect.getclosurevars(rule).nonlocals["fun"]


def random_program(equation: Equation, generator: Any) -> Program:
    """Return a primitive on random keys as a program of their words, uint32 ``(..., words)``.

    Args:
        equation: one of ``random_bits``, ``random_split``, ``random_fold_in``, ``random_seed``.
        generator: of the keys.
    """
    params = equation.params
    words = generator.key_shape
    functions = {
        "random_bits": lambda key: generator.random_bits(key, params["bit_width"], params["shape"]),
        "random_split": lambda key: generator.split(key, params["shape"]),
        "random_fold_in": generator.fold_in,
        "random_seed": generator.seed,
    }
    function = functions[equation.name]
    shape = np.broadcast_shapes(*(aval.shape for aval in equation.inputs))
    for _ in shape:
        function = jax.vmap(function)
    avals = [
        Aval((*shape, *words) if aval.key else shape, np.dtype(np.uint32) if aval.key else aval.dtype)
        for aval in equation.inputs
    ]
    return program_of(function, avals)


def _aval(variable: Any) -> Aval:
    return _sized(variable.aval.shape, variable.aval.dtype)


def _sized(shape: Any, dtype: Any) -> Aval:
    if hasattr(dtype, "_impl"):
        return Aval(tuple(shape), np.dtype(np.uint32), dtype._impl)
    if getattr(dtype, "name", "") == "float0":
        dtype = np.bool_
    if _is_short(np.dtype(dtype)):
        return Aval(tuple(shape), FLOAT32, short=True)
    return Aval(tuple(shape), np.dtype(dtype))


def _is_short(value: Any) -> bool:
    return isinstance(value, np.dtype) and value == SHORT


def _lowered(closed: Any) -> Any:
    """Return a jaxpr without high-level primitives, which newer versions of JAX define by others."""
    if getattr(closed, "is_high", False):
        return partial_eval.lower_jaxpr2(closed)  # pyright: ignore[reportAttributeAccessIssue]
    return closed


def _uses(program: Program, name: str) -> bool:
    return any(
        equation.name == name or ((inner := called(equation)) is not None and _uses(inner, name))
        for equation, _, _ in program.equations()
    )


def _without_dead_code(closed: Any) -> Program:
    program = Program(closed)
    if hasattr(private_partial_eval, "dce_jaxpr_consts"):
        used = [True] * len(program.outputs)
        smaller, kept, _ = private_partial_eval.dce_jaxpr_consts(program.jaxpr, used, instantiate=True)
        constants = [value for (_, value), keep in zip(program.constants, kept, strict=True) if keep]
        return Program(smaller, constants)
    return program


def _line(raw: Any) -> str:
    try:
        frame = source_info_util.user_frame(raw.source_info.traceback)
    except (AttributeError, TypeError):
        frame = source_info_util.user_frame(raw.source_info)  # the oldest supported version takes the whole record
    return "" if frame is None else f"{frame.file_name}:{frame.start_line}"
