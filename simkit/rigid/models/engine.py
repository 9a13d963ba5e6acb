"""Interface of engines for articulated models, and an identity that notices when it is differentiated."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from simkit.core.parameter import Parameter
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Params
from simkit.core.status import Status
from simkit.errors import UserError, one_line
from simkit.rigid.models.sensors import Reading, Sensor

type Memory = Any


@pytree
class Links:
    """Positions, orientations and velocities of the B bodies of a model.

    Attributes:
        position: of the body frame in m, (B, 3).
        orientation: of the body frame, (B, 4).
        center: center of mass in m, (B, 3).
        velocity: of the center of mass in m/s, (B, 3).
        angular_velocity: in the world frame in rad/s, (B, 3).
    """

    position: jax.Array
    orientation: jax.Array
    center: jax.Array
    velocity: jax.Array
    angular_velocity: jax.Array


@dataclasses.dataclass(frozen=True)
class Engine:
    """A method of time stepping for a model, as pure functions; *memory* is the state that it carries.

    Attributes:
        start: ``(params, position, velocity) -> memory`` from coordinates (nq,) and velocities (nv,).
        advance: ``(params, memory, controls) -> memory``, one time step for each row of controls (n, nu).
        coordinates: ``memory -> (position, velocity)``, (nq,) and (nv,).
        links: ``(params, memory) -> Links``.
        contacts: ``(params, memory) -> (number, depth)``, int32 and the largest penetration in m.
        masses: ``params -> (mass, moments)`` in the engine, in kg (B,) and kg m^2 (B, 3).
        rotors: ``params -> armature``, inertia of rotors in the engine, (nv,).
        stiffness: ``params -> stiffness`` of the springs of joints with one coordinate, (S,).
        check: ``params -> None``; raises `UserError` for values that the engine cannot run with.
        touches: whether any pair of geoms can be in contact.
        parameters: of this engine, beside or in place of those that all engines have.
        members_last: whether ``advance`` takes many members at once, as a last axis of every array.
        status: ``memory -> code``, of a run whose state is finite.
        residual: ``memory -> speed`` in m/s by which contacts were left unsolved, or None.
        observe: ``(params, memory) -> {name: array}``, further observed arrays.
        measures: ``(params, memory) -> {name: scalar}``, further diagnostics.
        sensors: of the model.
        sense: ``(params, memory, control, time) -> Reading`` of the sensors.
    """

    start: Callable[[Params, jax.Array, jax.Array], Memory]
    advance: Callable[[Params, Memory, jax.Array], Memory]
    coordinates: Callable[[Memory], tuple[jax.Array, jax.Array]]
    links: Callable[[Params, Memory], Links]
    contacts: Callable[[Params, Memory], tuple[jax.Array, jax.Array]]
    masses: Callable[[Params], tuple[jax.Array, jax.Array]]
    rotors: Callable[[Params], jax.Array]
    stiffness: Callable[[Params], jax.Array]
    check: Callable[[Params], None]
    touches: bool
    parameters: Mapping[str, Parameter] = MappingProxyType({})
    members_last: bool = False
    status: Callable[[Memory], jax.Array] = lambda memory: jnp.int32(Status.OK)
    residual: Callable[[Memory], jax.Array] | None = None
    observe: Callable[[Params, Memory], Arrays] = lambda params, memory: {}
    measures: Callable[[Params, Memory], Arrays] = lambda params, memory: {}
    sensors: tuple[Sensor, ...] = ()
    sense: Callable[[Params, Memory, jax.Array, jax.Array], Reading] | None = None


def like[T](new: T, old: T) -> T:
    """Return arrays in the precision of others, without weak types, so that a step preserves types."""
    return jax.tree.map(lambda a, b: jax.lax.convert_element_type(a, b.dtype), new, old)


@contextlib.contextmanager
def supporting(name: str, lacking: Mapping[str, Any] = MappingProxyType({})) -> Iterator[None]:
    """Context manager that refuses a model with parts that an engine lacks, and words its own errors in one line.

    Args:
        name: of the engine.
        lacking: whether the model has each of the parts that the engine ignores in silence, or in words where.

    Raises:
        UserError: naming the part, or with the message of the engine's library.
    """
    others = {"mjx": "'mujoco'", "simkit": "'mjx' or 'mujoco'"}.get(name, "'simkit', 'mjx' or 'mujoco'")
    remedy = f"choose engine = {others}, or take it out of the model"
    if part := next((part for part, is_present in lacking.items() if is_present), None):
        where = f": {lacking[part]}" if isinstance(lacking[part], str) else ""
        raise UserError(f"{name} has no {part}{where}; {remedy}")
    try:
        yield
    except (NotImplementedError, RuntimeError, ValueError) as error:
        reason = one_line(error, 400).rstrip(".")
        raise UserError(f"{name} cannot follow this model: {reason}; {remedy}") from error


type Notice = Callable[[], None]


def silent() -> None:
    """Do nothing."""


def watched[T](tree: T, *, on_derivative: Notice = silent, on_reverse: Notice = silent) -> T:
    """Return a tree of arrays unchanged, and call a function if it is differentiated.

    Args:
        tree: any pytree of arrays.
        on_derivative: called while a derivative of any kind is traced; may raise.
        on_reverse: called while a derivative in reverse mode is traced; may raise.
    """

    def one(leaf: jax.Array) -> jax.Array:
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        return _primitive().bind(leaf, on_derivative=on_derivative, on_reverse=on_reverse)

    return jax.tree.map(one, tree)


@functools.cache
def _primitive() -> Any:
    identity = Primitive("watched")
    identity.def_impl(lambda x, **_: x)
    identity.def_abstract_eval(lambda x, **_: x)
    mlir.register_lowering(identity, lambda _, x, **__: [x])

    def batch(arguments: Any, axes: Any, **notices: Notice) -> Any:
        return identity.bind(arguments[0], **notices), axes[0]

    def differentiate(primals: Any, tangents: Any, **notices: Notice) -> Any:
        if isinstance(tangents[0], ad.Zero):
            return identity.bind(primals[0], **notices), tangents[0]
        notices["on_derivative"]()
        return identity.bind(primals[0], **notices), identity.bind(tangents[0], **notices)

    def transpose(cotangent: Any, _: Any, **notices: Notice) -> Any:
        notices["on_reverse"]()
        return [cotangent]

    batching.primitive_batchers[identity] = batch
    ad.primitive_jvps[identity] = differentiate
    ad.primitive_transposes[identity] = transpose
    return identity
