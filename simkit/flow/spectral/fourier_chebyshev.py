"""Two-dimensional flow between two walls to spectral accuracy: time step, start, measurements and simulation."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev

from simkit.core.arguments import check_number
from simkit.core.formulation import computed_once, precise_product
from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, number, row, several, whole, word
from simkit.core.simulation import Params, Simulation, described
from simkit.errors import UserError
from simkit.flow.diagnosis.measures import flow_quantities
from simkit.flow.grid import MAX_CELLS
from simkit.flow.spectral.orr_sommerfeld import derivative_matrix, lobatto_points
from simkit.flow.spectral.stokes_modes import (
    Base,
    StokesModes,
    advection,
    fields,
    gauss_points,
    like,
    linear_advection,
    stokes_modes,
)

type Slopes = tuple[jax.Array, jax.Array]
GAMMA = 1767732205903 / 4055673282236
WEIGHTS = (1471266399579 / 7840856788654, -4482444167858 / 7529755066697, 11266239266428 / 11593286722821, GAMMA)
EXPLICIT = (
    (0.0, 0.0, 0.0, 0.0),
    (2 * GAMMA, 0.0, 0.0, 0.0),
    (5535828885825 / 10492691773637, 788022342437 / 10882634858940, 0.0, 0.0),
    (6485989280629 / 16251701735622, -4246266847089 / 9704473918619, 10755448449292 / 10357097424841, 0.0),
)
IMPLICIT = (
    (0.0, 0.0, 0.0, 0.0),
    (GAMMA, GAMMA, 0.0, 0.0),
    (2746238789719 / 10658868560708, -640167445237 / 6845629431997, GAMMA, 0.0),
    WEIGHTS,
)


def additive_runge_kutta(
    rate: Callable[[jax.Array], jax.Array], values: jax.Array, stiffness: jax.Array, time_step: jax.Array
) -> jax.Array:
    """Return ``values`` one time step later.

        dq/dt = rate(q) - stiffness q

    ``rate`` is evaluated four times, explicitly; the damping is implicit and may be arbitrarily stiff. Of third order
    in both parts; steady solutions are preserved exactly. Stable for oscillations ``rate = i omega q`` up to
    ``omega dt = 2.48``.

    Args:
        rate: the slow part.
        values: q, any shape.
        stiffness: not negative, broadcast to the shape of ``values``.
        time_step: dt.

    Reference: ARK3(2)4L[2]SA of Kennedy and Carpenter, Appl. Numer. Math. 44, 139 (2003),
    doi:10.1016/S0168-9274(02)00138-1.
    """
    explicit, implicit, weights = (np.asarray(table, dtype=values.dtype) for table in (EXPLICIT, IMPLICIT, WEIGHTS))
    known, diagonal = np.tril(implicit, -1), np.diag(implicit)

    def stage(slopes: Slopes, row: tuple[jax.Array, ...]) -> tuple[Slopes, None]:
        slow, damping = slopes
        index, of_slow, of_damping, own = row
        change = _combine(of_slow, slow) + _combine(of_damping, damping)
        here = (values + time_step * change) / (1 + time_step * own * stiffness)
        return (slow.at[index].set(rate(here)), damping.at[index].set(-stiffness * here)), None

    nothing = jnp.zeros((len(weights), *values.shape), values.dtype)
    rows = tuple(jnp.asarray(column) for column in (np.arange(len(weights)), explicit, known, diagonal))
    (slow, damping), _ = jax.lax.scan(stage, (nothing, nothing), rows)
    return values + time_step * _combine(weights, slow + damping)


def _combine(weights: jax.Array | np.ndarray, slopes: jax.Array) -> jax.Array:
    return jnp.tensordot(weights, slopes, 1, precision=jax.lax.Precision.HIGHEST)


def projection(modes: StokesModes, points: tuple[int, int], profile: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the amplitudes ``(n,)`` of the mean modes that come nearest to a profile u(y) (of degree below ny)."""
    y, weights = gauss_points(points)
    return modes.at(y, 1)[0] @ (weights * profile(y))


def mean_flow(modes: StokesModes, points: tuple[int, int]) -> Callable[[jax.Array, Base], dict[str, jax.Array]]:
    """Return ``(mean amplitudes (n,), base) -> {name: number}`` for the flow averaged along the channel.

    The names are ``bulk_velocity``, ``centerline_velocity``, ``energy`` (kinetic, per unit volume and density), and
    ``slopes (2,)``, du/dy on the lower and on the upper wall.
    """
    y, weights = gauss_points(points)
    at_gauss, at_center = modes.at(y, 1)[0], modes.at(np.zeros(1), 1)[0]
    at_walls = modes.at(np.array([-1.0, 1.0]), 2)[0]

    def run(mean: jax.Array, base: Base) -> dict[str, jax.Array]:
        profile = base(like(mean, y)) + precise_product(mean, like(mean, at_gauss))
        walls = jnp.asarray([-1, 1], mean.dtype)
        base_slopes = jax.jvp(base, (walls,), (jnp.ones_like(walls),))[1]
        return {
            "bulk_velocity": precise_product(profile, like(mean, weights)) / 2,
            "centerline_velocity": (base(jnp.zeros(1, mean.dtype)) + precise_product(mean, like(mean, at_center)))[0],
            "energy": precise_product(profile**2, like(mean, weights)) / 4,
            "slopes": base_slopes + precise_product(mean, like(mean, at_walls)),
        }

    return run


def extremes(
    modes: StokesModes, points: tuple[int, int], length: float
) -> Callable[[jax.Array, Base, jax.Array], dict[str, jax.Array]]:
    """Return ``(amplitudes, base, time step) -> {"divergence": ..., "courant_number": ...}``, largest over the points.

    The divergence is that of the values of u and v at nx by ny points, differentiated as a Fourier series and as a
    polynomial. The Courant number is ``dt max(|u|/dx + |v|/dy)`` with the distances between those points.
    """
    y = lobatto_points(points[1])
    velocity = fields(modes, np.arange(points[0]) * length / points[0], y)
    turns = 2j * np.pi / length * np.fft.fftfreq(points[0], 1 / points[0])[:, None]
    along = np.real(np.fft.ifft(turns * np.fft.fft(np.eye(points[0]), axis=0), axis=0))
    across = derivative_matrix(points[1])

    def run(amplitudes: jax.Array, base: Base, time_step: jax.Array) -> dict[str, jax.Array]:
        u, v, _ = velocity(amplitudes)
        divergence = precise_product(like(u, along), u)
        divergence += precise_product(v, like(v, across.T))
        # The barrier keeps this from being fused differently, and so rounded differently, in different programs.
        total, v = computed_once((u + base(like(u, y)), v))
        crossed = jnp.abs(total) / (length / points[0]) + jnp.abs(v) / like(v, np.gradient(y))
        return {"divergence": jnp.max(jnp.abs(divergence)), "courant_number": time_step * jnp.max(crossed)}

    return run


def turn(before: jax.Array, after: jax.Array) -> jax.Array:
    """Return the phase angle that a harmonic with amplitudes ``(2, n)`` travels downstream, in radians, at most pi."""
    sine = jnp.sum(before[0] * after[1] - before[1] * after[0])
    cosine = jnp.sum(before * after)
    still = sine**2 + cosine**2 == 0
    return jnp.arctan2(jnp.where(still, 0, sine), jnp.where(still, 1, cosine))


def growth(before: jax.Array, after: jax.Array) -> jax.Array:
    """Return half the logarithm of the ratio of two energies, that of the amplitudes; zero without energy."""
    none = (before <= 0) | (after <= 0)
    return jnp.log(jnp.where(none, 1, after) / jnp.where(none, 1, before)) / 2


# Wavelengths for which the wave can be continued over all these Reynolds numbers, from well below the critical 5772.
LENGTHS = (5.0, 16.0)
REYNOLDS = (2000.0, 50000.0)
REFERENCE = 10000.0
# Interpolation in log(Re): its error falls by ten or more for every three nodes, to 1e-8 or less at 32.
NODES = 32


def tollmien_schlichting_wave(
    modes: StokesModes, points: tuple[int, int], length: float
) -> Callable[[jax.Array], jax.Array]:
    """Return ``reynolds -> amplitudes (2, n)`` of the first harmonic: an eigenmode of the discrete flow.

    Eigenvectors are computed here, once, at Chebyshev nodes in the logarithm of the Reynolds number; the function
    interpolates, so it is differentiable and holds no eigenvalue solver. Beyond 2000 to 50000 it returns the wave at
    the nearer end. The modes' energy ``sum(amplitudes^2)`` is 1.

    Args:
        modes: the modes.
        points: ``(nx, ny)`` of those modes.
        length: wavelength, the period of the modes, 5 to 16 half-widths.

    Raises:
        UserError: if the wavelength is out of range.
    """
    check_number("length", length, *LENGTHS)
    operator, damping = linear_advection(modes, 1, points), np.diag(modes.decay[1])
    nodes = np.cos((np.arange(NODES) + 0.5) * np.pi / NODES)
    low, high = math.log(REYNOLDS[0]), math.log(REYNOLDS[1])
    reynolds = np.exp(low + (nodes + 1) / 2 * (high - low))
    eigenvalues, vectors = np.linalg.eig(operator - damping / REFERENCE)
    start = vectors[:, np.argmax(eigenvalues.real)]
    start = start / np.linalg.norm(start) * np.exp(-1j * np.angle(start[0]))
    table = np.empty((NODES, len(start)), dtype=complex)
    # From the reference node outward in both directions, each wave selected by its overlap with that of its neighbor.
    above = np.flatnonzero(reynolds >= REFERENCE)[::-1]
    for chain in (above, np.flatnonzero(reynolds < REFERENCE)):
        vector = start
        for node in chain:
            _, vectors = np.linalg.eig(operator - damping / reynolds[node])
            vector = vectors[:, np.argmax(np.abs(vector.conj() @ vectors))]
            table[node] = vector / (start.conj() @ vector)
    coefficients = np.linalg.solve(chebyshev.chebvander(nodes, NODES - 1), table)
    parts = np.stack([coefficients.real, -coefficients.imag], axis=1)  # amplitudes A = a - i b

    def run(reynolds: jax.Array) -> jax.Array:
        place = (2 * jnp.log(reynolds) - (low + high)) / (high - low)
        angle = jnp.arccos(jnp.clip(place, -1 + 1e-6, 1 - 1e-6))
        polynomials = jnp.cos(angle * np.arange(NODES))
        amplitudes = jnp.tensordot(polynomials, jnp.asarray(parts, reynolds.dtype), 1, precision="highest")
        return amplitudes / jnp.sqrt(jnp.sum(amplitudes**2))

    return run


# Numbers in a table of the modes, (nx/2) ny^2; finding them takes a time in proportion to (nx/2) ny^3.
MAX_NUMBERS = 2**24
STARTS = ("tollmien_schlichting", "laminar", "rest")
EDDIES_ACROSS = 4


@pytree
class SpectralState:
    """The state of a spectral flow.

    Attributes:
        amplitudes: ``(nk, 2, n)``, of the Stokes modes that make up the flow beyond its base, cosine and sine, unit U.
        phase: distance travelled by the first harmonic downstream, in radians.
        start_energy: energy of the first harmonic at the start.
        iteration: number of steps taken, int32.
    """

    amplitudes: jax.Array
    phase: jax.Array
    start_energy: jax.Array
    iteration: jax.Array


PARAMETERS = {
    "reynolds": Parameter(
        10000.0, POSITIVE, "1", "Reynolds number U h / nu, with the velocity U on the centerline and the half-width h"
    ),
    "forcing": Parameter(
        1.0,
        unit="2 U^2 / (h reynolds)",
        doc="mean pressure gradient per density; 1 sustains the velocity U on the centerline",
    ),
    "perturbation": Parameter(0.0001, unit="U", doc="root-mean-square speed of the wave at the start"),
    "wall_velocity": Parameter(0.0, unit="U", doc="velocity of the upper wall"),
    "time_step": Parameter(0.2, POSITIVE, "h/U", "time step; keep courant_number below 0.7"),
}


@described(
    flow_quantities("h", "U"),
    vorticity_fluctuation=("U/h", "vorticity less its mean along the channel"),
    fluctuation_energy=("U^2", "kinetic energy of what varies along the channel"),
    growth_rate=("U/h", "growth rate of the first harmonic since the start"),
    phase_speed=("U", "speed of the wave's crests since the start"),
)
@arguments(
    points=row(
        "points along and across the channel",
        whole("along", low=4, high=MAX_NUMBERS, is_even=True),
        whole("across", low=8, high=MAX_NUMBERS),
    ),
    length=number("period along the channel, in half-widths", bounds=POSITIVE),
    start=word("what flows at first", STARTS),
    cells=several(whole("one number", low=1, high=MAX_CELLS), "cells along and across the channel", (2,)),
)
def spectral_channel(
    *,
    points: tuple[int, int] = (16, 49),
    length: float = 2 * math.pi,
    start: str = "tollmien_schlichting",
    cells: tuple[int, int] = (96, 64),
) -> Simulation:
    """Return plane channel flow by Fourier series and Chebyshev polynomials, from a wave, laminar flow or rest.

        du/dt + div(u u) = -grad(p) + 1/Re laplacian(u) + (2 F/Re, 0),   div(u) = 0,
        u = (0, 0) at y = -1,   u = (W, 0) at y = 1,   everything periodic in x

    The unit of length is the half-width h, the unit of velocity the centerline velocity U of the steady flow at F = 1
    (two thirds of it are the mean velocity): ``u = F (1 - y^2) + W (1 + y)/2``. Two-dimensional waves grow on it above
    Re = 5772.

    F is the parameter ``forcing`` and W ``wall_velocity``; all of `PARAMETERS` may be swept and differentiated.

    Diagnostics, besides those that explain themselves:
        growth_rate: that of the first harmonic since the start, ``log(amplitude ratio)/time``, unit U/h; 0 at first.
        phase_speed: mean speed of its crests since the start, unit U; 0 at first.
        fluctuation_energy: kinetic energy per unit volume of what varies along the channel, unit U^2.
        bulk_velocity: flow rate per unit area.
        wall_shear_stress: that on the lower wall, divided by density, unit U^2.
        net_force: driving force less the friction on both walls, per unit mass, unit U^2/h; zero in steady flow.
        divergence: its largest absolute value; rounding errors only.
        poiseuille_deviation: largest distance of the mean profile from the steady one above.

    The velocity is a sum of divergence-free modes that vanish on the walls, so that no pressure is needed; the modes
    are the decay modes of creeping flow, so that implicit viscosity is a division. Products are free of aliasing.

    Args:
        points: ``(nx, ny)``: nx/2 harmonics along the channel, the mean counted, and polynomials of degree below ny
            across it. nx even and at least 4, ny at least 8. A small wave needs nx = 4; its growth rate is right within
            1 % with ny = 33 at Re = 10000, within 1e-5 with 49.
        length: period along the channel, unit h; the wavelength of the wave, 5 to 16, if there is one.
        start: ``"tollmien_schlichting"``, laminar flow and the wave that grows fastest at Re F from 2000 to 50000;
            ``"laminar"`` or ``"rest"``, with random eddies.
        cells: numbers of equal cells, along and across the channel, at whose centers the flow is observed.

    Raises:
        UserError: if an argument is out of range, or no Tollmien-Schlichting wave of that length is known.

    Example:
        >>> channel = flow.spectral_channel(points=(4, 33), start="laminar", cells=(8, 8))
        >>> run = simkit.run(channel, steps=10, every=10, perturbation=0.0, reynolds=100.0)
        >>> print(f"{float(run['bulk_velocity'][-1]):.4f}, by hand {2 / 3:.4f}")
        0.6667, by hand 0.6667

    Reference, for the wave: Orszag, J. Fluid Mech. 50, 689 (1971), doi:10.1017/S0022112071002842.
    """
    numbers = points[0] // 2 * points[1] ** 2
    if numbers > MAX_NUMBERS:
        raise UserError(
            f"points = {list(points)} make tables of {numbers:.3g} numbers, more than {MAX_NUMBERS:.3g}; "
            "choose fewer, for example [64, 129]"
        )
    modes = stokes_modes(points, float(length))
    wave = tollmien_schlichting_wave(modes, points, length) if start == "tollmien_schlichting" else None
    x, y = (np.arange(cells[0]) + 0.5) * length / cells[0], -1 + (np.arange(cells[1]) + 0.5) * 2 / cells[1]
    at_cells, advect = fields(modes, x, y), advection(modes, points)
    averages, largest = mean_flow(modes, points), extremes(modes, points, float(length))
    parabola, ramp, uniform = (
        projection(modes, points, profile) for profile in (lambda y: 1 - y**2, lambda y: (1 + y) / 2, np.ones_like)
    )
    mean_profiles = modes.at(lobatto_points(points[1]), 1)[0]

    def init(params: Params, key: jax.Array) -> SpectralState:
        perturbation = params["perturbation"]
        shape = _eddies(modes, key, perturbation.dtype)
        if wave is not None:
            shape = jnp.zeros_like(shape).at[1].set(wave(params["reynolds"] * params["forcing"]))
        # The mean square of the speed is a fourth of the sum of squares: a half along the channel, a half across.
        amplitudes = 2 * perturbation * shape
        if start == "rest":
            mean = -like(perturbation, parabola) - params["wall_velocity"] * like(perturbation, ramp)
        else:
            mean = (params["forcing"] - 1) * like(perturbation, parabola)
        return SpectralState(
            amplitudes=amplitudes.at[0, 0].add(mean),
            phase=jnp.zeros_like(perturbation),
            start_energy=jnp.sum(amplitudes[1] ** 2),
            iteration=jnp.zeros((), jnp.int32),
        )

    def step(state: SpectralState, params: Params) -> SpectralState:
        viscosity = 1 / params["reynolds"]
        push = 2 * viscosity * (params["forcing"] - 1) * like(viscosity, uniform)
        stiffness = viscosity * like(viscosity, modes.decay[:, None])

        def rate(amplitudes: jax.Array) -> jax.Array:
            with jax.named_scope("advection"):
                return advect(amplitudes, _base(params)).at[0, 0].add(push)

        amplitudes = additive_runge_kutta(rate, state.amplitudes, stiffness, params["time_step"])
        return SpectralState(
            amplitudes=amplitudes,
            phase=state.phase + turn(state.amplitudes[1], amplitudes[1]),
            start_energy=state.start_energy,
            iteration=state.iteration + 1,
        )

    def observe(state: SpectralState, params: Params) -> dict[str, jax.Array]:
        u, v, vorticity = at_cells(state.amplitudes)
        height = like(u, y)
        # The barrier keeps this from being fused differently, and so rounded differently, in different programs.
        u, v = computed_once((u + _base(params)(height), v))
        return {
            "speed": jnp.sqrt(u**2 + v**2 + jnp.finfo(u.dtype).tiny),
            "vorticity": vorticity + 2 * height - params["wall_velocity"] / 2,
            "vorticity_fluctuation": vorticity - vorticity.mean(axis=0),
            "u": u,
            "v": v,
            "profile": u.mean(axis=0),
        }

    def diagnose(state: SpectralState, params: Params) -> dict[str, jax.Array]:
        amplitudes, viscosity, base = state.amplitudes, 1 / params["reynolds"], _base(params)
        time = state.iteration * params["time_step"]
        elapsed = jnp.where(state.iteration > 0, time, 1)
        averaged = averages(amplitudes[0, 0], base)
        lower, upper = averaged["slopes"]
        fluctuation_energy = jnp.sum(amplitudes[1:] ** 2) / 8
        off_steady = amplitudes[0, 0] - (params["forcing"] - 1) * like(viscosity, parabola)
        return {
            "time": time,
            "growth_rate": growth(state.start_energy, jnp.sum(amplitudes[1] ** 2)) / elapsed,
            # Without an initial wave the phase would be that of round-off.
            "phase_speed": jnp.where(state.start_energy > 0, state.phase * length / (2 * math.pi * elapsed), 0),
            "fluctuation_energy": fluctuation_energy,
            "kinetic_energy": averaged["energy"] + fluctuation_energy,
            "bulk_velocity": averaged["bulk_velocity"],
            "centerline_velocity": averaged["centerline_velocity"],
            "wall_shear_stress": viscosity * lower,
            "net_force": 2 * viscosity * params["forcing"] - viscosity * (lower - upper) / 2,
            "poiseuille_deviation": jnp.max(jnp.abs(precise_product(off_steady, like(off_steady, mean_profiles)))),
            **largest(amplitudes, base, params["time_step"]),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        if wave is not None:
            low, high = REYNOLDS[0] * (1 - 1e-6), REYNOLDS[1] * (1 + 1e-6)
            check_number("reynolds * forcing of the wave", params["reynolds"] * params["forcing"], low, high)

    plane = ("speed", "vorticity", "vorticity_fluctuation", "u", "v")
    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params=PARAMETERS,
        check=check,
        dimensions={name: ("x", "y") for name in plane} | {"profile": ("y",)},
        coordinates={"x": x, "y": y, "sides": np.array(["periodic", "periodic", "wall", "wall"])},
    )


def _base(params: Params) -> Base:
    """Return the base profile, to which the modes are added: the parabola and the linear profile of the moving wall."""
    return lambda y: 1 - y**2 + params["wall_velocity"] * (1 + y) / 2


def _eddies(modes: StokesModes, key: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Return random amplitudes ``(nk, 2, n)`` of the few slowest modes of every harmonic, their squares adding to 1."""
    count = min(EDDIES_ACROSS, modes.decay.shape[1])
    normal = jax.random.normal(key, (len(modes.decay) - 1, 2, count), dtype)
    drawn = normal / like(normal, modes.decay[1:, None, :count])
    drawn = drawn / jnp.sqrt(jnp.sum(drawn**2))
    return jnp.zeros((len(modes.decay), 2, modes.decay.shape[1]), dtype).at[1:, :, :count].set(drawn)
