"""Formulations for devices: the one place that decides between a CPU's and an accelerator's form of a kernel.

A CPU wants blocks that fit its cache, conditions that skip work and loops over rows. An accelerator pays about 9
microseconds for each turn of a loop and each condition, and wants few operations on whole arrays.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from simkit.core.devices import platform

# An interpreter is a runtime that executes one operation after the other, as onnxruntime does.
type Target = Literal["cpu", "accelerator", "interpreter"]

_TARGET: ContextVar[Target | None] = ContextVar("simkit_formulation", default=None)


def default_device() -> Target:
    """Return the kind of device on which programs of this process run unless they are lowered for another."""
    return _TARGET.get() or ("cpu" if platform() == "cpu" else "accelerator")


def by_device[T](*arguments: Any, cpu: Callable[..., T], accelerator: Callable[..., T]) -> T:
    """Return the result of one of two formulations, chosen when the program is lowered for a device.

    Only the formulation for a CPU is traced with the program; the other is traced if the program is lowered for an
    accelerator. A derivative is that of the formulation for `default_device`. Programs for interpreters contain the
    formulation for accelerators. Whatever that calls is formulated for accelerators too: see `is_for_accelerators`.

    Args:
        *arguments: pytrees of arrays and of anything else; the formulations must use no other traced values.
        cpu: formulation for CPUs.
        accelerator: formulation for all other devices, equal up to round-off, with the same shapes and types.

    Raises:
        TypeError: if a formulation uses a traced value that is no argument.

    Example:
        ``by_device(x, cpu=sum_in_blocks, accelerator=jnp.sum)``
    """
    target = _TARGET.get()
    leaves, structure = jax.tree.flatten(arguments)
    where = [n for n, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
    arrays = [leaves[n] for n in where]
    if target is None and not any(isinstance(array, Tracer) for array in arrays):
        target = default_device()
    if target == "cpu":
        return cpu(*arguments)
    if target is not None:
        with formulated_for(target):
            return accelerator(*arguments)
    for n in where:
        leaves[n] = None

    def with_arrays(function: Callable[..., T], arrays: Sequence[jax.Array]) -> T:
        given = dict(zip(where, arrays, strict=True))
        return function(*jax.tree.unflatten(structure, [given.get(n, leaf) for n, leaf in enumerate(leaves)]))

    program, shape = jax.make_jaxpr(lambda *arrays: with_arrays(cpu, arrays), return_shape=True)(*arrays)
    if any(isinstance(constant, Tracer) for constant in program.consts):
        raise TypeError("a formulation uses a traced value that is not among its arguments")
    is_double, precision = bool(jax.config.jax_enable_x64), jax.config.jax_default_matmul_precision

    def deferred(*arrays: jax.Array) -> list[jax.Array]:
        # Lowering may take place outside the contexts in which the program was traced.
        with jax.enable_x64(is_double), jax.default_matmul_precision(precision), formulated_for("accelerator"):
            return jax.tree.leaves(with_arrays(accelerator, arrays))

    results = _BY_DEVICE.bind(*arrays, cpu=program, accelerator=deferred)
    return jax.tree.unflatten(jax.tree.structure(shape), results)


def computed_once[T](tree: T) -> T:
    """Return arrays unchanged, behind an optimization barrier: computed once, in their own loop, and written to memory.

    Without it, XLA fuses the computation into every loop that uses the arrays and repeats it there, reads a fused
    concatenation with a branch per element, and folds constants at compile time, which may take seconds. Repeated
    computations may round in different ways: of an integer that several results share, or from program to program.

    Args:
        tree: pytree of arrays.
    """
    return jax.lax.optimization_barrier(tree)


def computed_once_on_cpu[T](tree: T) -> T:
    """Return arrays unchanged, on a CPU behind the barrier of `computed_once`; for speed only, not for rounding.

    On accelerators, where memory is slower than arithmetic, barriers of this kind took 15 to 21 % of a flow step.

    Args:
        tree: pytree of arrays.
    """
    if _TARGET.get() in ("accelerator", "interpreter"):
        return tree
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, _ONCE_ON_CPU.bind(*leaves)) if leaves else tree


def precise_product(*factors: jax.Array) -> jax.Array:
    """Return the matrix product ``a @ b @ ...`` in full precision, which accelerators do not use by default.

    There float32 factors are rounded to 10 bits (TF32): relative errors of 3e-4.

    Args:
        *factors: vectors and matrices, as for ``@``, multiplied from the left.
    """
    return functools.reduce(functools.partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST), factors)


def is_for_accelerators() -> bool:
    """Return whether the formulation for accelerators is being traced: `by_device` has chosen it further out.

    There loops of few turns are unrolled, and little work is done always rather than under a condition.
    """
    return _TARGET.get() == "accelerator"


def root(squared: jax.Array) -> jax.Array:
    """Return the square root of a sum of squares, with derivative zero at zero.

    NaN stays NaN: a comparison with zero would tell a state that is broken as one at rest.

    Args:
        squared: at least 0.
    """
    is_zero = squared == 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, squared)))


def prefers_whole_arrays() -> bool:
    """Return whether a program for an interpreter is being traced, which runs every operation of every turn separately.

    There few operations on whole arrays are faster than loops over their rows, while XLA fuses these. Used at trace
    time to choose between methods that differ in round-off only.
    """
    return _TARGET.get() == "interpreter"


@contextmanager
def formulated_for(target: Target) -> Iterator[None]:
    """Trace programs inside the block with the formulation for one target, whatever they are lowered for.

    JAX caches traced programs; the metadata set here keep these apart from those traced outside.

    Args:
        target: the kind of device or runtime.
    """
    token = _TARGET.set(target)
    try:
        with set_xla_metadata(simkit_formulation=target):
            yield
    finally:
        _TARGET.reset(token)


# Members per block: scenes of a few dozen contacts each then stay in a core's cache.
BLOCK = 128


def members_last[T](tree: T) -> T:
    """Return a pytree of arrays with the member axis moved from first to last."""
    return jax.tree.map(lambda array: jnp.moveaxis(array, 0, -1), tree)


def members_first[T](tree: T) -> T:
    """Return a pytree of arrays with the member axis moved from last to first."""
    return jax.tree.map(lambda array: jnp.moveaxis(array, -1, 0), tree)


def in_blocks[T](function: Callable[..., T], *trees: Any, block: int = BLOCK) -> T:
    """Return ``function(*trees)``, on a CPU computed one block of members after another, elsewhere at once.

    With blocks an accelerator computed 10 spheres in each of 1,024 scenes 14 times, and in 131,072 scenes 174 times,
    slower.

    Args:
        function: maps pytrees of arrays with a leading member axis to another such pytree, independently for each
            member; it uses no other traced values.
        *trees: its arguments.
        block: number of members per block.
    """
    count = jax.tree.leaves(trees)[0].shape[0]
    whole = count // block * block
    if count <= block:
        return function(*trees)

    def one_by_one(*trees: Any) -> T:
        blocks = jax.tree.map(lambda array: array[:whole].reshape(count // block, block, *array.shape[1:]), trees)
        results = jax.lax.map(lambda trees: function(*trees), blocks)
        results = jax.tree.map(lambda array: array.reshape(whole, *array.shape[2:]), results)
        if whole == count:
            return results
        rest = function(*jax.tree.map(lambda array: array[whole:], trees))
        return jax.tree.map(lambda head, tail: jnp.concatenate([head, tail]), results, rest)

    return by_device(*trees, cpu=one_by_one, accelerator=function)


def _by_device_primitive() -> Primitive:
    """Return the primitive of `by_device`; `jax.lax.platform_dependent` would trace both formulations every time."""

    def of_default_device(cpu: Any, accelerator: Callable[..., Any]) -> Callable[..., Any]:
        return jaxpr_as_fun(cpu) if default_device() == "cpu" else accelerator

    def evaluate(*arguments: Any, **formulations: Any) -> Any:
        return jax.jit(of_default_device(**formulations))(*arguments)

    def differentiate(primals: Any, tangents: Any, **formulations: Any) -> Any:
        # The derivative replaces the choice, so that residuals are stored and transposed as in any other program; what
        # does not depend on the varying arguments keeps a symbolic zero, which barriers cannot do without.
        program = jax.make_jaxpr(of_default_device(**formulations))(*primals)
        varies = [not isinstance(tangent, ad.Zero) for tangent in tangents]
        derived, depends = ad.jvp_jaxpr(program, varies, False)
        numbers = jaxpr_as_fun(derived)(
            *primals, *(t for t, is_varying in zip(tangents, varies, strict=True) if is_varying)
        )
        results, slopes = numbers[: len(depends)], iter(numbers[len(depends) :])
        return results, [
            next(slopes) if is_varying else ad.Zero(jax.typeof(result).to_tangent_aval())
            for result, is_varying in zip(results, depends, strict=True)
        ]

    def batch(arguments: Any, axes: Any, *, cpu: Any, accelerator: Callable[..., Any]) -> Any:
        program = jax.make_jaxpr(jax.vmap(jaxpr_as_fun(cpu), tuple(axes)))(*arguments)
        results = primitive.bind(*arguments, cpu=program, accelerator=jax.vmap(accelerator, tuple(axes)))
        return results, [0] * len(results)

    def transpose(cotangents: Any, *arguments: Any, cpu: Any, accelerator: Callable[..., Any]) -> Any:
        linear = [n for n, argument in enumerate(arguments) if ad.is_undefined_primal(argument)]
        constants = [None if n in linear else argument for n, argument in enumerate(arguments)]
        shapes = [jax.ShapeDtypeStruct(arguments[n].aval.shape, arguments[n].aval.dtype) for n in linear]

        def transposed(function: Callable[..., Any]) -> Callable[..., Any]:
            def pulled(cotangents: Any, constants: Any) -> Any:
                def of_linear(*values: jax.Array) -> Any:
                    replaced = dict(zip(linear, values, strict=True))
                    return function(*(replaced.get(n, constant) for n, constant in enumerate(constants)))

                return jax.linear_transpose(of_linear, *shapes)(cotangents)

            return pulled

        pulls = by_device(
            [ad.instantiate_zeros(cotangent) for cotangent in cotangents],
            constants,
            cpu=transposed(jaxpr_as_fun(cpu)),
            accelerator=transposed(accelerator),
        )
        results = dict(zip(linear, pulls, strict=True))
        return [results.get(n) for n in range(len(arguments))]

    def lower_for_cpu(*arguments: Any, cpu: Any, accelerator: Any) -> Any:
        return jaxpr_as_fun(cpu)(*arguments)

    def lower_for_accelerator(*arguments: Any, cpu: Any, accelerator: Callable[..., Any]) -> Any:
        return accelerator(*arguments)

    primitive = Primitive("by_device")
    primitive.multiple_results = True
    primitive.def_impl(evaluate)
    primitive.def_abstract_eval(lambda *arguments, cpu, accelerator: cpu.out_avals)
    ad.primitive_jvps[primitive] = differentiate
    ad.primitive_transposes[primitive] = transpose
    batching.primitive_batchers[primitive] = batch
    mlir.register_lowering(primitive, mlir.lower_fun(lower_for_accelerator, multiple_results=True))
    mlir.register_lowering(primitive, mlir.lower_fun(lower_for_cpu, multiple_results=True), platform="cpu")
    return primitive


def _once_on_cpu_primitive() -> Primitive:
    """Return the primitive of `computed_once_on_cpu`, with the rules of JAX's own barrier."""

    def of_nonzero(values: Any) -> list[Any]:
        nonzero = [value for value in values if not isinstance(value, ad.Zero)]
        results = iter(primitive.bind(*nonzero) if nonzero else ())
        return [value if isinstance(value, ad.Zero) else next(results) for value in values]

    primitive = Primitive("computed_once_on_cpu")
    primitive.multiple_results = True
    primitive.def_impl(lambda *arrays: arrays)
    primitive.def_abstract_eval(lambda *arrays: arrays)
    ad.primitive_jvps[primitive] = lambda primals, tangents: (primitive.bind(*primals), of_nonzero(tangents))
    ad.primitive_transposes[primitive] = lambda cotangents, *_: of_nonzero(cotangents)
    batching.primitive_batchers[primitive] = lambda arrays, axes: (primitive.bind(*arrays), axes)
    mlir.register_lowering(primitive, lambda _, *arrays: list(arrays))
    barrier = mlir.lower_fun(lambda *arrays: jax.lax.optimization_barrier(arrays), multiple_results=True)
    mlir.register_lowering(primitive, barrier, platform="cpu")
    return primitive


_BY_DEVICE, _ONCE_ON_CPU = _by_device_primitive(), _once_on_cpu_primitive()
