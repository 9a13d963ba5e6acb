"""Systems that are written out, and the same ones given as data: energies, forces and steps to round-off."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from simkit.molecular.dynamics import maxwell_boltzmann, velocity_verlet
from simkit.molecular.interactions.pair_interaction import full_lennard_jones
from simkit.molecular.interactions.stillinger_weber import BOND, STIFFNESS, stillinger_weber
from simkit.molecular.minimizers import Scale
from simkit.molecular.relaxation import relaxation
from simkit.molecular.structures.extended_xyz import parse_extended_xyz
from simkit.molecular.structures.lattices import face_centered_cubic
from simkit.molecular.systems.basin_hopping import cluster_model

pytestmark = pytest.mark.usefixtures("x64")

UNITS = {"epsilon": 1.3, "sigma": 0.8}
LJ = {"potential": "lennard_jones"}
# Radius of a close-packed ball of 13 atoms times the spread of the start, in units of sigma.
BALL = 1.25 * 2 ** (1 / 6) * (3 * 13 / (4 * np.pi * np.sqrt(2))) ** (1 / 3)
SILICON = Path(__file__).parents[3] / "data" / "silicon_vacancy_63.xyz"


def clusters():
    data = molecular.system(
        particles={"A": {"count": 13}},
        interactions=[LJ],
        start={"radius": f"{BALL}*sigma", "separation": 0},
        dimension=3,
        parameters=UNITS,
    )
    model = cluster_model(particles=13, potential="lennard_jones", spread=1.25)
    written = relaxation(model.interaction, model.start, params=model.params, scale=model.scale)
    return written, data


def structures():
    data = molecular.system(
        particles={"Si": {}},
        interactions=[{"potential": "stillinger_weber"}],
        start={"structure": SILICON.read_text(), "disorder": "disorder"},
        parameters={"epsilon": 2.0, "sigma": 2.1, "tetrahedral_strength": 22.0, "disorder": 0.02},
    )
    (structure,) = parse_extended_xyz(SILICON.read_text())
    written = relaxation(
        stillinger_weber(),
        lambda params, key: structure.position + displaced(params, key, structure.position.shape),
        params=data.params,
        scale=lambda params: Scale(BOND * params["sigma"], STIFFNESS * params["epsilon"] / params["sigma"] ** 2),
        cell=lambda params: jnp.asarray(structure.cell),
    )
    return written, data


def displaced(params, key, shape):
    return params["disorder"] * jax.random.uniform(key, shape, minval=-1, maxval=1)


@pytest.mark.parametrize("both", [clusters, structures])
def test_relaxations_begin_alike(both):
    written, data = both()
    params = written.with_params(
        **{name: value for name, value in data.params.items() if name in written.params}
    ).params
    first = begin(written, params)
    second = begin(data, data.params)
    shared = {"energy", "energy_per_particle", "max_force", "pressure", "volume", "position"} & set(first) & set(second)
    assert {"energy", "max_force", "position"} <= shared
    for name in shared:
        # Random starts overlap: their forces span many powers of ten.
        scale = np.abs(first[name]).max()
        np.testing.assert_allclose(second[name], first[name], rtol=2e-12, atol=1e-13 * scale, err_msg=name)


def begin(simulation, params):
    def told(params):
        state = simulation.init(params, jax.random.key(5))
        return simulation.diagnose(state, params) | simulation.observe(state, params)

    return jax.tree.map(np.asarray, jax.jit(told)(params))


def test_fluids_move_alike():
    sites = face_centered_cubic((3, 3, 3))
    unit, count = np.asarray(sites.position) / np.diag(np.asarray(sites.cell)), len(sites.position)

    def one(params):
        return jnp.ones_like(params["density"])

    def box(params):
        return jnp.ones(3) * (count / params["density"]) ** (1 / 3)

    written = velocity_verlet(
        full_lennard_jones(2.0, 2.4, capacity=count, skin=0.1, units=lambda params: (one(params), one(params))),
        lambda params, key: unit * box(params),
        params={"density": 0.86, "temperature": 0.9, "time_step": 0.005},
        cell=box,
        mass=one,
        velocity=lambda params, key: maxwell_boltzmann(
            key, params["temperature"], one(params), unit.shape, drift=False
        ),
    )
    data = molecular.system(
        particles={"A": {}},
        interactions=[LJ | {"values": {"epsilon": 1, "sigma": 1}, "cutoff": 2.4, "switch_on": 2.0 / 2.4, "tail": True}],
        start={"lattice": "face_centered_cubic", "repeats": [3, 3, 3]},
        cell={"density": "density"},
        task="dynamics",
        dynamics={"time_step": "time_step", "temperature": "temperature"},
        parameters={"density": 0.86, "temperature": 0.9, "time_step": 0.005},
    )
    ends = []
    for simulation in (written, data):

        def moved(params, simulation=simulation):
            state = simulation.init(params, jax.random.key(2))
            for _ in range(4):
                state = simulation.step(state, params)
            return simulation.diagnose(state, params)

        ends.append(jax.jit(moved)(simulation.params))
    for name in ("time", "energy", "kinetic_energy", "potential_energy", "pressure", "temperature"):
        assert float(ends[1][name]) == pytest.approx(float(ends[0][name]), rel=1e-12), name


def test_an_energy_by_expression_is_that_of_the_shipped_potential():
    shipped, typed = (
        molecular.system(
            particles={"A": {}},
            interactions=[kind | {"cutoff": "2.5*sigma"}],
            start={"lattice": "face_centered_cubic", "repeats": [4, 4, 4], "disorder": 0.1},
            cell={"density": 1.6},
            task="dynamics",
            dynamics={"time_step": 0.001},
            parameters=UNITS,
        )
        for kind in (LJ, {"energy": "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"})
    )
    key, found = jax.random.key(0), []
    for simulation in (shipped, typed):
        state = jax.jit(simulation.init)(simulation.params, key)
        energy = jax.jit(lambda s, p, simulation=simulation: simulation.diagnose(s, p)["potential_energy"])
        found.append((float(energy(state, simulation.params)), np.asarray(state.force)))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-14)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=0, atol=1e-14 * np.abs(found[0][1]).max())
