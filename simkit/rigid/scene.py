"""A scene: bodies, their initial motion, planes, loads, and the method of time stepping."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import jax

from simkit.core.pytree import pytree
from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.joints.joint import Joint

type Memory = Any


@pytree
class Planes:
    """Fixed planes that bodies stay in front of, ``n . x >= d``, one number each along the first axis.

    Attributes:
        normal: n, unit vectors.
        offset: d in m.
        friction: coefficient; in a contact the larger of the two counts, so zero leaves it to the body.
        restitution: coefficient; likewise.
    """

    normal: Vector
    offset: jax.Array
    friction: jax.Array
    restitution: jax.Array


@dataclasses.dataclass(frozen=True)
class Load:
    """Something that acts on the bodies of one scene; `simkit.rigid.loads.wrench_of` maps it over members.

    Attributes:
        wrench: ``(motion, bodies, time, params) -> Wrench``, forces and torques.
        energy: ``(motion, bodies, params) -> J``, the potential energy, for a force that has one.
    """

    wrench: Callable[[Motion, Bodies, jax.Array, Params], Wrench]
    energy: Callable[[Motion, Bodies, Params], jax.Array] | None = None


def parameter_of_load(name: str, params: Params) -> jax.Array:
    """Return the parameter that a load was told the name of.

    Args:
        name: of the parameter.
        params: of the scene.

    Raises:
        UserError: if the scene has no such parameter.
    """
    if name not in params:
        raise UserError(
            f"a load reads the parameter '{name}', which the scene does not have{nearest(name, list(params))}"
        )
    return params[name]


@dataclasses.dataclass(frozen=True)
class Setting:
    """A scene at given parameters, as a method of time stepping sees it.

    Attributes:
        bodies: what moves.
        planes: what stands.
        load: ``(motion, time) -> Wrench``, all that acts.
        params: of the scene, for what else a method takes from them.
        joints: what holds bodies together.
    """

    bodies: Bodies
    planes: Planes
    load: Callable[[Motion, jax.Array], Wrench]
    params: Params
    joints: tuple[Joint, ...] = ()


class Dynamics(Protocol):
    """A method that follows the bodies of a scene in time.

    Its functions treat arrays as one number for each body along the first axis, and any axes that follow (members of
    an ensemble) alike.
    """

    @property
    def serves(self) -> Collection[str]:
        """Return which of `simkit.rigid.parts.PARTS` have an effect; `simkit.rigid.simulate` refuses the others."""
        ...

    def start(self, motion: Motion, setting: Setting) -> Memory:
        """Return what the method carries from step to step, a pytree of arrays (possibly empty)."""
        ...

    def step(
        self, motion: Motion, memory: Memory, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Memory]:
        """Return the motion one step later, and what is carried on."""
        ...

    def diagnose(self, motion: Motion, memory: Memory, setting: Setting) -> dict[str, jax.Array]:
        """Return what the method measures: where it looks for contacts, ``contacts`` and ``penetration`` in m."""
        ...

    def status(self, memory: Memory) -> jax.Array:
        """Return the code of `simkit.core.status.Status` that the method itself stands for, int32.

        A failure is one of the last step: the scene is then held as it was before that step, for good.
        """
        ...

    def check(self, motion: Motion, setting: Setting) -> None:
        """Refuse a start that the method could not go on from; on the host, with concrete numbers."""
        ...


@dataclasses.dataclass(frozen=True)
class Scene:
    """What `simkit.rigid.simulate` makes a simulation of: pure functions of the parameters, and a method.

    What the method does not support (joints, planes, a shape, friction, restitution) is refused by name.

    Attributes:
        params: default parameters, numbers, arrays or `simkit.core.parameter.Parameter`; ``time_step`` is one of them.
        bodies: ``params -> Bodies``.
        start: ``(params, bodies, key) -> Motion``.
        dynamics: how the bodies are followed in time.
        planes: ``params -> Planes``; none by default.
        joints: ``params -> (Joint, ...)``; none by default.
        loads: what acts on the bodies, gravity for instance.
        measures: ``(motion, bodies, time, params) -> {name: scalar}``, diagnostics of this scene.
        observe: ``(motion, bodies, time, params) -> {name: array}``, what frames hold beside the bodies.
        dimensions: names of the axes of what ``observe`` returns.
    """

    params: Mapping[str, Any]
    bodies: Callable[[Params], Bodies]
    start: Callable[[Params, Bodies, jax.Array], Motion]
    dynamics: Dynamics
    planes: Callable[[Params], Planes] | None = None
    joints: Callable[[Params], tuple[Joint, ...]] | None = None
    loads: tuple[Load, ...] = ()
    measures: Callable[[Motion, Bodies, jax.Array, Params], dict[str, jax.Array]] | None = None
    observe: Callable[[Motion, Bodies, jax.Array, Params], dict[str, jax.Array]] | None = None
    dimensions: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
