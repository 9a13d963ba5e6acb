"""Two-dimensional flow between two plane walls, to spectral accuracy."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.pytree import pytree
from simkit.core.quantities import described
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.flow.diagnosis.quantities import flow_quantities
from simkit.flow.spectral.additive_runge_kutta import additive_runge_kutta
from simkit.flow.spectral.chebyshev import lobatto_points
from simkit.flow.spectral.galerkin import Base, advection, fields, like
from simkit.flow.spectral.measures import extremes, growth, mean_flow, projection, turn
from simkit.flow.spectral.stokes_modes import StokesModes, stokes_modes
from simkit.flow.spectral.tollmien_schlichting import REYNOLDS, tollmien_schlichting_wave

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

    Reference, for the wave: Orszag, J. Fluid Mech. 50, 689 (1971), doi:10.1017/S0022112071002842.
    """
    points, cells = _pair("points", points, (4, 8), "[16, 49]"), _pair("cells", cells, (1, 1), "[96, 64]")
    if points[0] % 2:
        raise UserError(f"points = {list(points)} has an odd number along the channel; choose for example [16, 49]")
    numbers = points[0] // 2 * points[1] ** 2
    if numbers > MAX_NUMBERS:
        raise UserError(
            f"points = {list(points)} make tables of {numbers:.3g} numbers, more than {MAX_NUMBERS:.3g}; "
            "choose fewer, for example [64, 129]"
        )
    if isinstance(length, bool) or not isinstance(length, int | float) or not 0 < length < math.inf:
        raise UserError(f"length = {length!r} is not a positive number; choose for example length = 6.283185307179586")
    if start not in STARTS:
        raise UserError(f"start = {start!r} is unknown; choose 'tollmien_schlichting', 'laminar' or 'rest'")
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
            "poiseuille_deviation": jnp.max(jnp.abs(off_steady @ like(off_steady, mean_profiles))),
            **largest(amplitudes, base, params["time_step"]),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        effective = float(params["reynolds"] * params["forcing"])
        if wave is not None and not REYNOLDS[0] * (1 - 1e-6) <= effective <= REYNOLDS[1] * (1 + 1e-6):
            raise UserError(
                f"reynolds * forcing = {effective:g} is out of [{REYNOLDS[0]:g}, {REYNOLDS[1]:g}], where the "
                "Tollmien-Schlichting wave is known; choose a value in that range, or start = 'laminar'"
            )

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


def _pair(name: str, value: tuple[int, int], least: tuple[int, int], example: str) -> tuple[int, int]:
    if (
        not isinstance(value, list | tuple)
        or len(value) != 2
        or any(isinstance(n, bool) or not isinstance(n, int) or n < low for n, low in zip(value, least, strict=True))
    ):
        raise UserError(
            f"{name} = {value!r} is not two integers of at least {least[0]} and {least[1]}; "
            f"choose for example {name} = {example}"
        )
    return value[0], value[1]
