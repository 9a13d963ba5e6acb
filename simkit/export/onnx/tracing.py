"""Traced programs: equations, their inputs and outputs, loops, branches and calls."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import source_info_util
from jax._src.interpreters import partial_eval as private_partial_eval
from jax.core import Tracer
from jax.interpreters import partial_eval

from simkit.core.dependence import sizes_of_scan
from simkit.core.formulation import whole_arrays
from simkit.errors import UserError


@dataclasses.dataclass(frozen=True)
class Aval:
    """Shape and type of a value.

    Attributes:
        shape: its size in each dimension.
        dtype: NumPy's type of its elements; for random keys uint32.
        key: the random number generator of random keys, ``None`` for other arrays.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    key: Any = None


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


# Parameters under which JAX's versions store the program that a primitive calls.
_CALLED = ("call_jaxpr", "jaxpr", "fun_jaxpr", "call")
_CALLS = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "checkpoint",
    "remat",
    "remat2",
    "custom_jvp_call",
    "custom_jvp_call_jaxpr",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
    "custom_vmap_call",
    "composite",
    "eval_jaxpr",
    "linear_call",
)


@dataclasses.dataclass(frozen=True)
class Scan:
    """A loop of known length with the body ``(constants, carry, row of xs) -> (carry, row of ys)``.

    Attributes:
        constants: number of constants.
        carry: number of arrays of the state.
        length: number of iterations.
        reverse: whether the rows are taken from the last to the first.
        body: the program of one iteration.
    """

    constants: int
    carry: int
    length: int
    reverse: bool
    body: "Program"


@dataclasses.dataclass(frozen=True)
class While:
    """A loop of ``body(body_constants, carry)`` while ``test(test_constants, carry)`` is true.

    Attributes:
        test: program of the condition.
        test_constants: number of its constants.
        body: program of one iteration.
        body_constants: number of its constants.
    """

    test: "Program"
    test_constants: int
    body: "Program"
    body_constants: int


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
            yield (
                Equation(raw.primitive.name, dict(raw.params), inputs, outputs, _line(raw), raw),
                list(raw.invars),
                list(raw.outvars),
            )


def trace(function: Callable[..., Any], *arguments: Any) -> tuple[Program, Any]:
    """Return a function as a program without dead code, and the structure of its result.

    Args:
        function: of trees of arrays.
        *arguments: trees of arrays, or of their shapes and types.

    Raises:
        UserError: if the function uses an array of a surrounding transformation of JAX.
    """
    with whole_arrays():
        closed, result = jax.make_jaxpr(function, return_shape=True)(*arguments)
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


def is_floor_remainder(equation: Equation) -> bool:
    """Return whether an equation calls ``jax.numpy.remainder`` of integers, by comparison of the whole jaxpr."""
    if equation.params.get("name") != "remainder" or len(equation.inputs) != 2:
        return False
    if equation.out.key is not None or equation.out.dtype.kind not in "iu" or (inner := called(equation)) is None:
        return False
    return str(inner.jaxpr) == str(_remainder(equation.inputs))


def applies_function(equation: Equation) -> bool:
    """Return whether a scatter that sets elements applies a function to them, as ``x.at[index].apply`` does."""
    jaxpr = equation.params["update_jaxpr"]
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    return jaxpr is not None and jaxpr.outvars[0] is not jaxpr.invars[1]


def _remainder(avals: Sequence[Aval]) -> Any:
    """Return the jaxpr of ``jax.numpy.remainder``."""
    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        made = Program(_lowered(jax.make_jaxpr(jnp.remainder)(*shapes)))
    (equation, _, _) = next(made.equations())
    inner = called(equation)
    return None if inner is None else inner.jaxpr


def defined(equation: Equation) -> Program | None:
    """Return the definition of another library's primitive by other primitives, ``None`` if it has none."""
    raw = equation.raw
    # What has an effect, such as printing, would have it while it is traced, and never again.
    if any(aval.key for aval in equation.inputs) or raw.effects:
        return None
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in equation.inputs]
    # Its lowering to other primitives (an implicit solve, in newer versions of JAX), or its implementation.
    for definition in (getattr(raw.primitive, name, None) for name in ("to_lojax", "impl")):
        if definition is None:
            continue
        try:
            with jax.enable_x64(True):
                made = jax.make_jaxpr(lambda *values, of=definition: of(*values, **raw.params))(*shapes)
                lowered = Program(_lowered(made))
        except Exception:  # JAX raises many kinds where a primitive has no definition for tracers
            continue
        if not _uses(lowered, equation.name):
            return lowered
    return None


def evaluated(equation: Equation, values: Sequence[Any]) -> list[Any]:
    """Return the results of an equation whose primitive calls no other program.

    Args:
        equation: to compute.
        values: its arguments, arrays or tracers.
    """
    primitive = equation.raw.primitive
    results = primitive.bind(*values, **equation.raw.params)
    return list(results) if primitive.multiple_results else [results]


def scan(equation: Equation) -> Scan:
    """Return the parts of a ``scan``."""
    params = equation.params
    return Scan(*sizes_of_scan(params), params["length"], params["reverse"], Program(params["jaxpr"]))


def while_loop(equation: Equation) -> While:
    """Return the parts of a ``while``."""
    params = equation.params
    test, body = Program(params["cond_jaxpr"]), Program(params["body_jaxpr"])
    return While(test, params["cond_nconsts"], body, params["body_nconsts"])


def branches(equation: Equation) -> list[Program]:
    """Return the branches of a ``cond``."""
    return [Program(branch) for branch in equation.params["branches"]]


def linear_solve(equation: Equation) -> tuple[Program, int, int]:
    """Return the solver of a ``custom_linear_solve``, and the range ``[first, end)`` of the arguments that it uses."""
    lengths, jaxprs = equation.params["const_lengths"], equation.params["jaxprs"]
    first = lengths.matvec + lengths.vecmat
    return Program(jaxprs.solve), first, first + lengths.solve


def platform(equation: Equation) -> int:
    """Return the index of a ``platform_dependent``'s branch for any platform, or else of that for the CPU."""
    platforms = equation.params["platforms"]
    fit = [index for index, names in enumerate(platforms) if names is None or "cpu" in names]
    return next((index for index in fit if platforms[index] is None), fit[0])


def known_array(value: Any) -> tuple[np.ndarray, Any]:
    """Return a constant of a program as an array, and the generator of random keys (``None`` for other arrays)."""
    if hasattr(value, "dtype") and hasattr(value.dtype, "_impl"):
        return np.asarray(jax.random.key_data(value)), value.dtype._impl
    return np.asarray(value), None


def literal(variable: Any) -> Any:
    """Return the value of a literal, or ``None`` for a variable."""
    return variable.val if hasattr(variable, "val") else None


def aval_of(array: Any) -> Aval:
    """Return shape and type of an array, or of random keys."""
    dtype = array.dtype if hasattr(array, "dtype") else jax.dtypes.canonicalize_dtype(np.result_type(array))
    return _sized(np.shape(array), dtype)


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
    return Aval(tuple(shape), np.dtype(dtype))


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
