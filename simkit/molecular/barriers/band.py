"""Minimum energy paths and saddles by the climbing-image nudged elastic band, as a simulation."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once
from simkit.core.parameter import POSITIVE
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, number, whole
from simkit.core.simulation import Arrays, Equilibrium, Params, Quantity, Simulation
from simkit.core.status import Status, is_finite
from simkit.errors import UserError
from simkit.molecular import minimizers, spaces
from simkit.molecular.barriers.rates import attempt_frequency
from simkit.molecular.declarations import TOLERANCE
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import Minimizer, Scale, largest_norm
from simkit.molecular.relaxation.equilibrium import residual
from simkit.molecular.relaxation.landscape import Landscape
from simkit.molecular.spaces import Cell, check_frozen, checked_positions, frozen_mask

# Displacement of a particle, in units of the scale's length, below which two minima are one.
SAME_MINIMUM = 1e-3
# Largest force, in units of the tolerances, below which the highest image begins to climb: climbing far from the path
# may lead anywhere.
CLIMBING = 0.02
# Keys of a band, of the Python function and of scenario files.
KEYS = {
    "images": whole("structures along the path, both ends included", 9, low=3, high=1000),
    "spring": number("stiffness of the springs between images, in units of that of a bond", 0.1, POSITIVE),
    "path_tolerance": number(
        "largest force across the path at the images between ends and saddle, in the units of `force_tolerance`",
        1e-3,
        (POSITIVE[0], 0.999),
    ),
}

type Start = Callable[[Params, jax.Array], jax.Array]


@pytree
class BandState:
    """State of a nudged elastic band of M images of N particles.

    Attributes:
        descent: state of the minimizer over the images, one after the other, (M N, d).
        stationary: positions of the first minimum, the saddle and the last minimum, (3, N, d).
        climbing: int32, index of the highest image between the ends, at the end the saddle.
        climbs: whether it climbs, bool: once the path was near the minimum energy path.
        energy: of the images, (M,).
        neighbors: neighbor data of the interaction, with a leading axis of images.
        least_force: minimum over the iterations of the largest force.
        idle: int32, iterations since it fell.
    """

    descent: Any
    stationary: jax.Array
    climbing: jax.Array
    climbs: jax.Array
    energy: jax.Array
    neighbors: Any
    least_force: jax.Array
    idle: jax.Array


def nudged_forces(
    path: jax.Array, energy: jax.Array, force: jax.Array, climbing: jax.Array, spring: jax.Array
) -> jax.Array:
    """Return the forces that move images onto a minimum energy path, (M, N, d).

    Both ends feel the whole force. Images between feel its component across the path and the springs along it,
    ``F - (F . t) t + k (|R_(i+1) - R_i| - |R_i - R_(i-1)|) t``; the climbing image feels ``F - 2 (F . t) t``, and so
    moves up along the path to the saddle. The tangent t points to the neighbor of higher energy; at an extremum of the
    path it is a mean of both, weighted by the differences of energy.

    Args:
        path: positions of the images, (M, N, d).
        energy: (M,).
        force: on the images, (M, N, d).
        climbing: index of the climbing image; -1 for none.
        spring: k, energy / length^2.

    Example:
        >>> path = jnp.array([[[0.0]], [[1.0]], [[3.0]]])
        >>> energy, force = jnp.array([0.0, 1.0, 2.0]), jnp.array([[[0.0]], [[-1.0]], [[0.0]]])
        >>> pushed = molecular.barriers.nudged_forces(path, energy, force, climbing=-1, spring=2.0)
        >>> print(f"{float(pushed[1, 0, 0]):.1f}: the springs alone, of which one is longer by 1")
        2.0: the springs alone, of which one is longer by 1

    Reference: Henkelman, Uberuaga, Jonsson, J. Chem. Phys. 113, 9901 (2000), doi:10.1063/1.1329672; tangent of
    Henkelman and Jonsson, J. Chem. Phys. 113, 9978 (2000), doi:10.1063/1.1323224.
    """
    after, before = path[2:] - path[1:-1], path[1:-1] - path[:-2]
    rise, climb = energy[2:] - energy[1:-1], energy[1:-1] - energy[:-2]
    larger, smaller = jnp.maximum(jnp.abs(rise), jnp.abs(climb)), jnp.minimum(jnp.abs(rise), jnp.abs(climb))
    is_higher = energy[2:] > energy[:-2]
    at_extremum = jnp.where(is_higher, larger, smaller), jnp.where(is_higher, smaller, larger)
    ascends, descends = (rise > 0) & (climb > 0), (rise < 0) & (climb < 0)
    shares = [
        jnp.where(ascends, first, jnp.where(descends, 1 - first, weight))[:, None, None]
        for first, weight in zip((1.0, 0.0), at_extremum, strict=True)
    ]
    tangent = shares[0] * after + shares[1] * before

    def norms(vectors: jax.Array) -> jax.Array:
        return jnp.sqrt(jnp.sum(vectors**2, axis=(1, 2), keepdims=True))

    length = norms(tangent)
    tangent = tangent / jnp.where(length > 0, length, 1)
    inner = force[1:-1]
    along = jnp.sum(inner * tangent, axis=(1, 2), keepdims=True)
    is_climbing = (jnp.arange(1, len(path) - 1) == climbing)[:, None, None]
    pull = jnp.where(is_climbing, -along, spring * (norms(after) - norms(before)))
    return jnp.concatenate([force[:1], inner + (pull - along) * tangent, force[-1:]])


@dataclasses.dataclass(frozen=True)
class Band:
    """Parts of a nudged elastic band; see `nudged_elastic_band`.

    Attributes:
        landscape: energy over the positions, with the start of the first minimum.
        last: start of the last minimum.
        middle: guess of the saddle, or ``None`` for the mean of both starts.
        params: the default parameters.
        images: number of images M.
        spring: stiffness of the springs, in units of the scale's.
        minimizer: the method, not monotone.
        force_tolerance: largest force at the ends and the saddle.
        path_tolerance: largest force on the other images.
        mass: ``params -> mass`` for rates, or ``None``.
        temperature: ``params -> kT`` for rates, or ``None``.
        observe: further arrays of a frame, ``(position, cell, params) -> arrays``, or ``None``.
        dimensions: dimension names of the arrays from ``observe``.
    """

    landscape: Landscape
    last: Start
    middle: Start | None
    params: Any
    images: int
    spring: float
    minimizer: Minimizer
    force_tolerance: float
    path_tolerance: float
    mass: Callable[[Params], jax.Array] | None
    temperature: Callable[[Params], jax.Array] | None
    observe: Callable[[jax.Array, Cell, Params], Arrays] | None
    dimensions: Mapping[str, tuple[str, ...]]

    def cell(self, params: Params) -> Cell:
        """Return the cell, ``None`` in free space."""
        return None if self.landscape.cell is None else self.landscape.cell(params)

    def starts(self, params: Params, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return the starts of first minimum, saddle and last minimum, (N, d); each as the images nearest to the first.

        Raises:
            UserError: if they differ in shape, or a mask of frozen particles does not fit.
        """
        first = checked_positions(self.landscape.start(params, key))
        if self.landscape.frozen is not None:
            check_frozen(self.landscape.frozen, len(first))
        space = spaces.of_cell(self.cell(params), first.shape[1])

        def beside(start: Start) -> jax.Array:
            other = checked_positions(start(params, key))
            if first.shape != other.shape:
                counts = " and ".join(f"{len(each)} particles in {each.shape[1]} dimensions" for each in (first, other))
                raise UserError(f"the structures have {counts}; give both the same particles, in the same order")
            columns = tuple((other - first)[:, axis] for axis in range(first.shape[1]))
            return first + self.landscape.on_mobile(jnp.stack(space.nearest_image(columns), axis=1))

        last = beside(self.last)
        return first, (first + last) / 2 if self.middle is None else beside(self.middle), last

    def check(self, params: Params, key: jax.Array) -> None:
        """Refuse equal starts of both minima.

        Raises:
            UserError: if no particle moves from one to the other.
        """
        first, _, last = jax.jit(self.starts)(params, key)
        if float(largest_norm(last - first)) < SAME_MINIMUM * float(np.max(self.landscape.scale(params).length)):
            raise UserError("the first and the last minimum are one structure; move a particle in one of them")

    def evaluate(self, path: jax.Array, params: Params, neighbors: Any) -> tuple[jax.Array, jax.Array]:
        """Return energies, (K,), and forces, (K, N, d), of K images."""
        return jax.vmap(lambda position, near: self.landscape.evaluate(position, params, near))(path, neighbors)

    def refreshed(self, neighbors: Any, path: jax.Array, params: Params) -> Any:
        """Return the neighbors of images, refreshed."""
        refresh, cell = self.landscape.interaction.refresh, self.cell(params)
        return jax.vmap(lambda near, position: refresh(near, position, cell, params))(neighbors, path)

    def path(self, state: BandState) -> jax.Array:
        """Return the positions of all images, (M, N, d)."""
        path = state.descent.position.reshape(self.images, *state.stationary.shape[1:])
        return path.at[self.three(state.climbing)].set(state.stationary)

    def three(self, climbing: jax.Array) -> jax.Array:
        """Return the indices of the first image, the climbing one and the last, (3,)."""
        return jnp.stack([jnp.int32(0), climbing, jnp.int32(self.images - 1)])

    def pushed(
        self, path: jax.Array, params: Params, neighbors: Any, climbs: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return energies, (M,), the index of the highest image, and forces of the band, (M, N, d)."""
        energy, force = self.evaluate(path, params, neighbors)
        climbing = (jnp.argmax(energy[1:-1]) + 1).astype(jnp.int32)
        spring = self.spring * self.landscape.scale(params).stiffness
        return energy, climbing, nudged_forces(path, energy, force, jnp.where(climbs, climbing, -1), spring)

    def init(self, params: Params, key: jax.Array) -> BandState:
        """Return the images on straight lines from the first minimum over the middle to the last."""
        first, middle, last = computed_once(self.starts(params, key))
        share = jnp.linspace(0, 2, self.images, dtype=first.dtype)[:, None, None]
        path = first + jnp.minimum(share, 1) * (middle - first) + jnp.maximum(share - 1, 0) * (last - middle)
        prepare, cell = self.landscape.interaction.prepare, self.cell(params)
        neighbors = jax.vmap(lambda position: prepare(position, cell, params))(path)
        energy, climbing, force = self.pushed(path, params, neighbors, jnp.bool_(False))
        flat = (path.reshape(-1, path.shape[2]), energy.sum(), force.reshape(-1, path.shape[2]))
        return BandState(
            descent=self.minimizer.start(*flat, self.landscape.scale(params)),
            stationary=path[self.three(climbing)],
            climbing=climbing,
            climbs=jnp.bool_(False),
            energy=energy,
            neighbors=neighbors,
            # Not infinity: the status would be NON_FINITE.
            least_force=jnp.asarray(jnp.finfo(path.dtype).max, path.dtype),
            idle=jnp.int32(0),
        )

    def step(self, state: BandState, params: Params) -> BandState:
        """Return the state after one iteration of the minimizer, with one evaluation of every image."""
        path = state.descent.trial.reshape(self.images, *state.stationary.shape[1:])
        neighbors = self.refreshed(state.neighbors, path, params)
        energy, climbing, force = self.pushed(path, params, neighbors, state.climbs)
        flat = energy.sum(), force.reshape(-1, path.shape[2])
        largest = largest_norm(flat[1])
        return BandState(
            descent=self.minimizer.advance(state.descent, *flat, self.landscape.scale(params)),
            stationary=path[self.three(climbing)],
            climbing=climbing,
            climbs=state.climbs | (largest < CLIMBING * self.unit(params)),
            energy=energy,
            neighbors=neighbors,
            least_force=jnp.minimum(state.least_force, largest),
            idle=jnp.where(largest < state.least_force, 0, state.idle + 1),
        )

    def forces(self, state: BandState) -> jax.Array:
        """Return the largest force on a particle of each image, (M,)."""
        force = state.descent.force.reshape(self.images, *state.stationary.shape[1:])
        return jax.vmap(largest_norm)(force)

    def unit(self, params: Params) -> jax.Array:
        """Return the unit of the tolerances: stiffness times length of the scale."""
        length, stiffness = self.landscape.scale(params)
        return stiffness * length

    def status(self, state: BandState, params: Params) -> jax.Array:
        """Return the `simkit.core.status.Status` code, except that of a buffer overflow."""
        forces, unit = self.forces(state), self.unit(params)
        at_rest = state.climbs & (forces[self.three(state.climbing)] < self.force_tolerance * unit).all()
        at_rest &= (forces < self.path_tolerance * unit).all()
        apart = largest_norm(state.stationary[2] - state.stationary[0])
        is_between = apart > SAME_MINIMUM * self.landscape.scale(params).length
        is_between &= state.energy[state.climbing] > jnp.maximum(state.energy[0], state.energy[-1])
        code = jnp.where(state.idle >= self.minimizer.patience, jnp.int32(Status.STALLED), jnp.int32(Status.OK))
        # Both ends in one minimum, or no image above both: there is no saddle between them.
        found = jnp.where(is_between, jnp.int32(Status.CONVERGED), jnp.int32(Status.STALLED))
        code = jnp.where(at_rest, found, code)
        descent = state.descent
        finite = is_finite((descent.position, descent.force, descent.trial))
        return jnp.where(finite, code, jnp.int32(Status.NON_FINITE))

    def observed(self, state: BandState, params: Params) -> Arrays:
        """Return the arrays of a frame: the saddle, and positions, energies and length of the path."""
        cell, saddle, path = self.cell(params), state.stationary[1], self.path(state)
        squared = jnp.sum(jnp.diff(path, axis=0) ** 2, axis=(1, 2))
        legs = jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1)), 0)
        extra = {} if self.observe is None else self.observe(saddle, cell, params)
        # The stored energies, with derivatives: evaluated again, they would be rounded otherwise in other programs.
        energy = self.evaluate(path, params, self.refreshed(state.neighbors, path, params))[0]
        energy = state.energy + (energy - jax.lax.stop_gradient(energy))
        length = jnp.broadcast_to(self.landscape.scale(params).length, len(saddle)).astype(saddle.dtype)
        return spaces.in_cell(saddle, cell) | {
            "diameter": length,
            "path": path,
            "path_energy": energy,
            "path_length": jnp.concatenate([jnp.zeros_like(legs[:1]), jnp.cumsum(legs)]),
            **extra,
        }

    def diagnose(self, state: BandState, params: Params) -> Arrays:
        """Return iterations, energies of saddle and barriers, forces, and rates if there are masses."""
        near = jax.tree.map(lambda each: each[self.three(state.climbing)], state.neighbors)
        near = self.refreshed(near, state.stationary, params)
        # As in `observed`.
        energy = self.evaluate(state.stationary, params, near)[0]
        energy = state.energy[self.three(state.climbing)] + (energy - jax.lax.stop_gradient(energy))
        forces = self.forces(state)
        numbers = {
            "iteration": state.descent.iteration,
            "energy": energy[1],
            "barrier": energy[1] - energy[0],
            "reverse_barrier": energy[1] - energy[2],
            "energy_change": energy[2] - energy[0],
            "max_force": forces[self.three(state.climbing)].max(),
            "max_path_force": forces.max(),
            "saddle_image": state.climbing,
        }
        if self.mass is None:
            return numbers
        mass = self.mass(params)

        def measured() -> jax.Array:
            at = state.stationary[0], state.stationary[1], self.cell(params), params
            pair = tuple(jax.tree.map(lambda each, index=index: each[index], near) for index in (0, 1))
            return attempt_frequency(
                self.landscape.interaction, *at, mass=mass, frozen=self.landscape.frozen, neighbors=pair
            )

        is_at_rest = numbers["max_force"] < self.force_tolerance * self.unit(params)
        frequency = jax.lax.cond(is_at_rest & state.climbs, measured, lambda: jnp.asarray(jnp.nan, energy.dtype))
        numbers["attempt_frequency"] = frequency
        if self.temperature is not None:
            numbers["rate"] = frequency * jnp.exp(-numbers["barrier"] / self.temperature(params))
        return numbers

    def sized_like(self, state: BandState) -> Simulation:
        """Return the same simulation with neighbor lists as large as those of a state."""
        resize = self.landscape.interaction.sized_like
        assert resize is not None  # an interaction without it has no buffers
        landscape = dataclasses.replace(self.landscape, interaction=resize(state.neighbors))
        return dataclasses.replace(self, landscape=landscape).simulation()

    def residual(self, stationary: jax.Array, params: Params) -> jax.Array:
        """Return minus the forces at both minima and the saddle, with constraints on rigid motions, (3, N, d)."""
        # Frozen particles of all three follow the params as those of the first start do.
        return jax.vmap(functools.partial(residual, self.landscape), (0, None))(stationary, params)

    def simulation(self) -> Simulation:
        """Return the `Simulation` record."""
        return Simulation(
            init=self.init,
            step=self.step,
            observe=self.observed,
            diagnose=self.diagnose,
            params=self.params,
            converges=True,
            equilibrium=Equilibrium(
                unknowns=lambda state: state.stationary,
                residual=self.residual,
                replace=lambda state, stationary: dataclasses.replace(state, stationary=stationary),
                is_definite=False,
            ),
            status=self.status,
            sized_like=self.landscape.interaction.sized_like and self.sized_like,
            check=self.check,
            dimensions=spaces.dimensions_of(
                has_cell=self.landscape.cell is not None,
                diameter=("particle",),
                path=("image", "particle", "axis"),
                path_energy=("image",),
                path_length=("image",),
            )
            | dict(self.dimensions),
        )


def band_quantities(length: str = "length", energy: str = "energy", time: str = "time") -> dict[str, Quantity]:
    """Return the declarations of observed arrays and diagnostics of a band, by name.

    Args:
        length: unit of length.
        energy: unit of energy.
        time: unit of time.
    """
    table = {
        "energy": (energy, "energy of the saddle"),
        "barrier": (energy, "energy of the saddle above the first minimum"),
        "reverse_barrier": (energy, "energy of the saddle above the last minimum"),
        "energy_change": (energy, "energy of the last minimum above the first"),
        "max_path_force": (f"{energy}/{length}", "largest force on an image across the path"),
        "saddle_image": ("1", "index of the image at the saddle"),
        "attempt_frequency": (f"1/{time}", "attempt frequency of the rate, at rest"),
        "rate": (f"1/{time}", "rate of hops from the first to the last minimum, at rest"),
        "path": (length, "positions of the images"),
        "path_energy": (energy, "energy of the images"),
        "path_length": (length, "length of the path from the first minimum"),
    }
    return {name: Quantity(unit, doc) for name, (unit, doc) in table.items()}


@arguments(force_tolerance=TOLERANCE, **KEYS)
def nudged_elastic_band(
    interaction: Interaction,
    first: Start,
    last: Start,
    *,
    params: Any,
    scale: Callable[[Params], Scale],
    middle: Start | None = None,
    cell: Callable[[Params], jax.Array] | None = None,
    images: int = 9,
    spring: float = 0.1,
    minimizer: Minimizer | str = "fire",
    force_tolerance: float = 1e-8,
    path_tolerance: float = 1e-3,
    mass: Callable[[Params], jax.Array] | None = None,
    temperature: Callable[[Params], jax.Array] | None = None,
    frozen: Sequence[bool] | np.ndarray | None = None,
    observe: Callable[[jax.Array, Cell, Params], Arrays] | None = None,
    dimensions: Mapping[str, tuple[str, ...]] | None = None,
) -> Simulation:
    """Return the simulation of a climbing-image nudged elastic band between two minima.

    Both ends relax to their minima and the images between them to the minimum energy path (`nudged_forces`); near it,
    the highest image climbs to the saddle. It has converged when the forces at both minima and the saddle are within
    ``force_tolerance`` and those across the path within ``path_tolerance``; it has stalled when the largest force did
    not fall within the minimizer's patience, or both ends are in one minimum.

    Minima and saddle have implicit derivatives by all parameters; those of the saddle take MINRES, since its Hessian is
    indefinite, and are NaN where it is singular. The images between them are constants to derivatives.

    Args:
        interaction: energy of the particles.
        first: ``(params, key) -> position`` near the first minimum, (N, d).
        last: likewise near the last one, the same particles in the same order. In a cell the path leads to the nearest
            images. Frozen particles are where the first start has them.
        params: the default parameters, numbers, arrays or `simkit.core.parameter.Parameter`.
        scale: ``params -> Scale``: a particle diameter and the stiffness of a contact.
        middle: guess of the saddle, where straight lines between the minima would push particles through each other;
            ``None`` for the mean of both starts.
        cell: ``params -> cell``, constant during the relaxation; ``None`` for free space.
        images: number of structures along the path, ends included. Good values: 5 to 15, odd for symmetric paths.
        spring: stiffness of the springs, in units of the scale's. Good values: 0.01 to 1; it spaces the images and
            changes neither minima nor saddle.
        minimizer: one that is not monotone, since the forces of a band are no gradient, or its name.
        force_tolerance: largest force at minima and saddle, in units of the scale's stiffness times length. Good
            values: 1e-8 in float64, 1e-4 in float32.
        path_tolerance: largest force on the other images, in the same units.
        mass: ``params -> mass``, (N,) or one, for the attempt frequency of harmonic transition-state theory
            (`attempt_frequency`); ``None`` for no rates.
        temperature: ``params -> kT``, for the rate ``nu exp(-barrier / kT)``; ``None`` for no rate.
        frozen: mask of particles that do not move, (N,) booleans; ``None``: all move.
        observe: ``(position, cell, params) -> arrays``, further arrays of a frame, at the saddle.
        dimensions: dimension names of the arrays from ``observe``.

    Raises:
        UserError: if the minimizer is monotone, or there is a temperature without a mass; before a run, if both starts
            have different shapes or are one structure.

    Example:
        >>> double_well = molecular.interactions.user_energy(
        ...     lambda x, cell, p: p["depth"] * jnp.sum((x[:, 0] ** 2 - 1) ** 2 + x[:, 1] ** 2)
        ... )
        >>> hop = molecular.barriers.nudged_elastic_band(
        ...     double_well,
        ...     lambda params, key: jnp.array([[-1.1, 0.1]]),
        ...     lambda params, key: jnp.array([[0.9, 0.0]]),
        ...     params={"depth": 2.0},
        ...     scale=lambda params: molecular.minimizers.Scale(1.0, 8 * params["depth"]),
        ...     force_tolerance=1e-4,
        ... )
        >>> barrier, slope = simkit.value_and_grad(hop, "depth", objective="barrier", steps=2000)
        >>> print(f"barrier = depth = {barrier:.3f}, derivative {slope['depth']:.3f}")
        barrier = depth = 2.000, derivative 1.000

    Reference: see `nudged_forces`.
    """
    method = minimizers.by_name(minimizer) if isinstance(minimizer, str) else minimizer
    if method.monotone:
        raise UserError('the forces of a band are no gradient of an energy; choose minimizer = "fire" or "fire2"')
    if temperature is not None and mass is None:
        raise UserError("a rate at a temperature needs the mass of the particles; give mass = lambda params: ...")
    return Band(
        landscape=Landscape(
            interaction=interaction,
            start=first,
            scale=scale,
            cell=cell,
            relax_cell=False,
            isotropic=False,
            pressure=lambda params: jnp.zeros(()),
            frozen=frozen_mask(frozen),
            rattlers=None,
        ),
        last=last,
        middle=middle,
        params=params,
        images=images,
        spring=spring,
        minimizer=method,
        force_tolerance=force_tolerance,
        path_tolerance=path_tolerance,
        mass=mass,
        temperature=temperature,
        observe=observe,
        dimensions=dimensions or {},
    ).simulation()
