"""Statistics of a flow between two walls: means over time and over the planes parallel to the walls."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import averaged
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain, velocity_on_sides
from simkit.flow.boundary.side_data import BoundaryVelocity, on_side
from simkit.flow.grid import Velocity, coordinates_along, end, like, points_along
from simkit.flow.operators.differences import (
    difference_at_centers,
    difference_at_faces,
    flux_at_faces,
    mean_at_centers,
    mean_at_faces,
    with_ends,
)
from simkit.flow.operators.diffusion import shear
from simkit.flow.stepping.stepper import FlowState
from simkit.flow.viscosity import Uniform, uniform

NAMES = "uvw"


@dataclasses.dataclass(frozen=True, eq=False)
class ChannelStatistics:
    """Averages of a flow that is periodic along every axis but the second, which has a wall at each end.

    With a bar for the mean over time and over x (and z), U = mean(u), u' = u - U::

        Reynolds stresses   mean(u'u'), mean(v'v'), mean(w'w'), mean(u'v')
        shear stress        nu dU/dy - mean(u'v')
        dissipation         nu mean(du'_i/dx_j du'_i/dx_j)

    They satisfy the discrete balances: ``mean(u'v')`` is the momentum that central advection carries through the faces
    between the layers of cells, so that ``dU/dt = d(shear stress)/dy - dp/dx`` holds to round-off; and the integral of
    the dissipation of mean flow and fluctuations is the work done by viscosity.

    Moments are taken of ``u - reference``, with a guess of U, so that float32 resolves the small differences.

    Attributes:
        domain: the domain.
        viscosity: a number, the name of a parameter or ``params -> number``.
        boundary: velocity on the sides, as for `simkit.flow.equations.Equations`; at rest by default.
        reference: ``(n,)`` profile of the first component; zero by default.

    Raises:
        UserError: if the domain is not a channel.

    Reference: Kim, Moin and Moser, J. Fluid Mech. 177, 133 (1987), doi:10.1017/S0022112087000892.
    """

    domain: Domain
    viscosity: Uniform
    boundary: Callable[[Params, jax.Array], BoundaryVelocity] | None = None
    reference: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Refuse domains that are not channels."""
        across, others = self.domain.sides[1], [pair for i, pair in enumerate(self.domain.sides) if i != 1]
        walls = [side for side in across or () if side.sticks and not side.enters]
        if len(walls) < 2 or any(pair is not None for pair in others):
            raise UserError(
                f"sides {self.domain.kinds} are not those of a channel; make y bounded by walls, others periodic"
            )

    def sample(self, state: FlowState, params: Params) -> Arrays:
        """Return the moments of one state, to be averaged.

        Args:
            state: state of the flow.
            params: parameters.
        """
        grid, velocity = self.domain.grid, state.velocity
        boundary = velocity_on_sides(self.boundary, self.domain, params, state.time[0])
        reference = like(velocity[0], np.zeros(grid.cells[1]) if self.reference is None else self.reference)
        u = velocity[0] - self._along_y(reference)
        v = velocity[1]
        slope = shear(velocity[0], 0, 1, boundary, self.domain)
        moments = {
            "u": _planes(u),
            "uu": _planes(u**2),
            "vv": _planes(mean_at_centers(v**2, 1, grid)),
            # On the inner faces, as in advection; the flux through walls is zero.
            "uv": _planes(flux_at_faces(v[:, 1:-1], 0, grid) * mean_at_faces(u, 1, grid)),
            "slope": _planes(slope),
            "step": _planes(self._steps(velocity[0], 0, boundary)),
            "strain": self._strain(velocity, boundary),
        }
        if grid.dimension == 3:
            moments |= {"w": _planes(velocity[2]), "ww": _planes(velocity[2] ** 2)}
        return moments

    def profiles(self, mean: Arrays, params: Params) -> Arrays:
        """Return the statistics across the channel from the means of samples.

        Returns:
            ``mean_velocity``, ``reynolds_stress_uu`` (``vv``, in three dimensions ``ww``) and ``dissipation`` at the
            cell centers ``(n,)``; ``reynolds_stress_uv`` and ``shear_stress`` on the faces ``(n + 1,)``.
        """
        nu, grid = uniform(self.viscosity, params, "the balance of a channel's statistics"), self.domain.grid
        uv = jnp.pad(mean["uv"], 1)
        of_mean_flow = _between_faces(mean["slope"] * mean["step"])
        profiles_by_name = {
            "mean_velocity": mean["u"] if self.reference is None else mean["u"] + like(mean["u"], self.reference),
            "reynolds_stress_uu": mean["uu"] - mean["u"] ** 2,
            "reynolds_stress_vv": mean["vv"],
            "reynolds_stress_uv": uv,
            "shear_stress": nu * mean["slope"] - uv,
            "dissipation": nu * (mean["strain"] - of_mean_flow),
        }
        if grid.dimension == 3:
            profiles_by_name["reynolds_stress_ww"] = mean["ww"] - mean["w"] ** 2
        return profiles_by_name

    def numbers(self, mean: Arrays, params: Params) -> Arrays:
        """Return the statistics that are single numbers from the means of samples.

        Returns:
            ``mean_bulk_velocity``, the flow rate per area; ``mean_wall_shear_stress`` of both walls, per density;
            ``friction_velocity``, its square root; ``friction_reynolds``, that times the half-width over the viscosity;
            ``mean_dissipation``, by the mean flow and the fluctuations, per volume and density.
        """
        nu, axis = uniform(self.viscosity, params, "the balance of a channel's statistics"), self.domain.grid.axes[1]
        share = like(mean["u"], axis.widths / axis.length)
        stress = nu * (mean["slope"][0] - mean["slope"][-1]) / 2
        velocity = jnp.sqrt(jnp.abs(stress))
        return {
            "mean_bulk_velocity": jnp.sum(share * self.profiles(mean, params)["mean_velocity"]),
            "mean_wall_shear_stress": stress,
            "friction_velocity": velocity,
            "friction_reynolds": velocity * (axis.length / 2) / nu,
            "mean_dissipation": nu * jnp.sum(share * mean["strain"]),
        }

    def _along_y(self, profile: jax.Array) -> jax.Array:
        return profile.reshape(self.domain.grid.along(np.empty(len(profile)), 1).shape)

    def _steps(self, f: jax.Array, component: int, boundary: BoundaryVelocity) -> jax.Array:
        """Return finite differences along y on all faces; on a wall, between the wall and the nearest points."""
        axis = self.domain.grid.axes[1]
        inner = difference_at_faces(f, 1, self.domain.grid)
        ends = []
        for side, half in ((0, axis.widths[0] / 2), (1, axis.widths[-1] / 2)):
            step = (end(f, 1, side) - self.domain.place(1, side).layer(f, on_side(boundary, 1, side)[component])) / half
            ends.append(-step if side else step)
        return with_ends(ends[0], inner, ends[1], 1)

    def _strain(self, velocity: Velocity, boundary: BoundaryVelocity) -> jax.Array:
        """Return the plane mean of the sum of squared derivatives; its integral is ``-<u . laplacian(u)>``."""
        grid = self.domain.grid
        total = jnp.zeros((), velocity[0].dtype)
        for i, f in enumerate(velocity):
            for j in range(grid.dimension):
                if i == j:
                    term = difference_at_centers(f, i, grid) ** 2
                elif j == 1:
                    product = shear(f, i, 1, boundary, self.domain) * self._steps(f, i, boundary)
                    term = mean_at_centers(product, 1, grid)
                else:
                    term = difference_at_faces(f, j, grid) ** 2
                    term = mean_at_centers(term, 1, grid) if i == 1 else term
                total = total + _planes(term)
        return total


def with_statistics(simulation: Simulation, statistics: ChannelStatistics, *, every: int, skip: int) -> Simulation:
    """Return a flow that accumulates its statistics: `simkit.core.averages.averaged` with these samples.

    One step of it is ``every`` time steps and a sample. The profiles are observed over ``y`` and ``y_face``.

    Args:
        simulation: whose state is a `simkit.flow.stepping.stepper.FlowState`.
        statistics: statistics to accumulate.
        every: time steps between samples.
        skip: samples to discard at the start, while the flow settles.
    """
    axis = statistics.domain.grid.axes[1]
    on_faces = ("reynolds_stress_uv", "shear_stress")
    centered = ("mean_velocity", "dissipation", *(f"reynolds_stress_{name * 2}" for name in NAMES))
    names = (*on_faces, *(name for name in centered if statistics.domain.grid.dimension == 3 or name[-1] != "w"))
    return averaged(
        simulation,
        statistics.sample,
        every=every,
        skip=skip,
        observe=statistics.profiles,
        diagnose=statistics.numbers,
        dimensions={name: ("y_face",) if name in on_faces else ("y",) for name in names},
        coordinates=coordinates_along(y=axis) | points_along(y=axis),
    )


def _between_faces(profile: jax.Array) -> jax.Array:
    return (profile[:-1] + profile[1:]) / 2


def _planes(f: jax.Array) -> jax.Array:
    """Return the mean over all axes but the second."""
    return jnp.mean(f, axis=tuple(i for i in range(f.ndim) if i != 1))
