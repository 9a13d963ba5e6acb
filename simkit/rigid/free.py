"""Free motion of bodies under loads, without contacts, by any integrator."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.settings import word
from simkit.core.status import Status
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.integrators import INTEGRATORS, integrator_named
from simkit.rigid.parts import HELD, SHAPES, TILTED_DISKS, UNEVEN_SPHERES
from simkit.rigid.scene import Memory, Setting


@part(keys={"integrator": word("integrator", tuple(INTEGRATORS), "velocity_verlet")})
@dataclasses.dataclass(frozen=True)
class Free:
    """Motion under loads alone.

    Attributes:
        integrator: "semi_implicit_euler", "velocity_verlet" or "runge_kutta".

    Raises:
        UserError: if there is no integrator of that name.

    Example:
        >>> fall = rigid.Scene(
        ...     params={"gravity": 9.81, "time_step": 0.01},
        ...     bodies=rigid.sphere(1.0, 0.1),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, (0.0, 0.0, 10.0)),
        ...     dynamics=rigid.Free("velocity_verlet"),
        ...     loads=(rigid.gravity(),),
        ... )
        >>> run = simkit.run(rigid.simulate(fall), steps=100)
        >>> print(f"{float(run['position'][-1, 0, 2]):.3f} m, by hand {10 - 9.81 / 2:.3f} m")
        5.095 m, by hand 5.095 m
    """

    integrator: str = "velocity_verlet"

    def __post_init__(self) -> None:
        """Refuse an unknown integrator before anything is compiled."""
        integrator_named(self.integrator)

    @property
    def supports(self) -> frozenset[str]:
        """Return every shape; planes and joints are not supported."""
        return SHAPES | {HELD, UNEVEN_SPHERES, TILTED_DISKS}

    def start(self, motion: Motion, setting: Setting) -> Memory:
        """Return an empty memory: free motion depends on the present state only."""
        del motion, setting
        return ()

    def step(
        self, motion: Motion, memory: Memory, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Memory]:
        """Return the motion one step later."""
        advance = integrator_named(self.integrator)
        return advance(motion, setting.bodies, setting.load, time, time_step), memory

    def diagnose(self, motion: Motion, memory: Memory, setting: Setting) -> dict[str, jax.Array]:
        """Return no diagnostics: contacts are not detected."""
        del motion, memory, setting
        return {}

    def status(self, memory: Memory) -> jax.Array:
        """Return OK: this method has no failure of its own."""
        del memory
        return jnp.int32(Status.OK)

    def check(self, motion: Motion, setting: Setting) -> None:
        """Accept any start."""
        del motion, setting
