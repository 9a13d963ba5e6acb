"""Embedded-atom energies: the published double sum, its derivatives, lists, and expressions of molecular.system."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.settings import read
from simkit.errors import UserError
from simkit.molecular import system
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS
from simkit.molecular.interactions import embedded_atom
from tests.molecular.dynamics.moving import floats
from tests.programs import operations_of
from tests.tables import every

COUNT, CUTOFF = 20, 2.2
SPECIES = np.arange(COUNT, dtype=np.int32) % 2
# Row a, column b of the amplitude: the density at species a by species b.
PARAMS = {
    "repulsion": np.array([[0.10, 0.12], [0.12, 0.15]]),
    "amplitude": np.array([[1.0, 0.7], [1.3, 0.8]]),
    "decay": np.asarray(2.3),
    "depth": np.asarray([1.1, 0.9]),
}


def fade(r):
    return (CUTOFF - r) ** 3 / CUTOFF**3


def binary(method):
    """Return a second-moment energy of two species, with densities that are not symmetric."""
    return embedded_atom(
        lambda r, amplitude, decay: amplitude * jnp.exp(-2 * decay * (r - 1)) * fade(r),
        lambda rho, depth: -depth * jnp.sqrt(rho),
        lambda r, repulsion, decay: 2 * repulsion * jnp.exp(-3 * decay * (r - 1)) * fade(r),
        cutoff=CUTOFF,
        parameters=["repulsion", "decay"],
        density_parameters=["amplitude", "decay"],
        embedding_parameters=lambda params: {"depth": params["depth"][SPECIES]},
        species=SPECIES,
        method=method,
        capacity=COUNT,
    )


def particles():
    cell = 5.0 * np.array([[1.0, 0, 0], [0.2, 1.1, 0], [-0.1, 0.3, 1.2]])
    return jnp.asarray(np.random.default_rng(1).uniform(-0.3, 1.1, (COUNT, 3)) @ cell), jnp.asarray(cell)


@pytest.fixture(scope="module")
def measured():
    """Return energy, slopes by position, strain and params, force and stress of both methods."""
    with jax.enable_x64(True):
        position, cell = particles()

        def computed(position, params):
            found = {}
            for method in ("all_pairs", "neighbor_list"):
                acts = binary(method)

                def energy(position, strain, params, acts=acts):
                    at = position + position @ strain, cell + cell @ strain, params
                    return acts.energy(*at, acts.prepare(*at))

                at = position, jnp.zeros((3, 3)), params
                slopes = jax.value_and_grad(energy, (0, 1, 2))(*at) if method == "neighbor_list" else (energy(*at),)
                neighbors = acts.prepare(position, cell, params)
                at = position, cell, params, neighbors
                found[method] = slopes, acts.force(*at), acts.stress(*at)
            return found

        params = jax.tree.map(jnp.asarray, PARAMS)
        program = jax.jit(computed).lower(position, params).compile({"xla_backend_optimization_level": 0})
        return program, position, cell, params


def test_derivatives_by_parameters_equal_central_differences(x64, measured):
    computed, position, _, params = measured
    along = jax.tree.map(lambda x: jnp.asarray(np.random.default_rng(4).normal(size=x.shape)), params)
    slopes = computed(position, params)["neighbor_list"][0][1][2]
    expected = sum(jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), slopes, along)))
    step = 1e-5
    ahead, behind = (
        computed(position, jax.tree.map(lambda x, d, s=s: x + s * d, params, along))["neighbor_list"][0][0]
        for s in (step, -step)
    )
    # Truncation 1e-10 times third derivatives of order 10^2.
    assert float((ahead - behind) / (2 * step)) == pytest.approx(float(expected), rel=1e-6)


def test_a_relabeling_of_particles_of_one_species_changes_nothing(x64, measured):
    computed, position, _, params = measured
    order = np.concatenate([np.random.default_rng(5).permutation(np.arange(s, COUNT, 2)) for s in (0, 1)])
    order = order.reshape(2, -1).T.ravel()
    (energy, _), force, _ = computed(position, params)["neighbor_list"]
    (other, _), moved, _ = computed(position[order], params)["neighbor_list"]
    assert float(other) == pytest.approx(float(energy), rel=1e-13)
    np.testing.assert_allclose(moved, force[order], rtol=0, atol=1e-12 * float(jnp.abs(force).max()))


def test_an_atom_without_neighbors_has_its_own_energy_and_no_force(x64):
    acts = embedded_atom(
        lambda r: jnp.exp(-r), lambda rho, e: e - jnp.sqrt(rho), lambda r: 0 * r, cutoff=1.5, embedding_parameters=["e"]
    )
    x, params = jnp.asarray([[0.0, 0.0], [9.0, 0.0]]), {"e": jnp.asarray(0.25)}
    energy, slopes = jax.value_and_grad(acts.energy, (0, 2))(x, None, params, ())
    assert float(energy) == 0.5 and float(slopes[1]["e"]) == 2.0
    assert not np.any(slopes[0]) and not np.any(acts.force(x, None, params, ()))


def test_a_force_on_an_accelerator_has_neither_conditions_nor_scattered_sums():
    position, cell = (jnp.asarray(each, jnp.float32) for each in particles())
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), PARAMS)
    acts = binary("neighbor_list")
    neighbors = jax.eval_shape(acts.prepare, position, cell, params)
    found = operations_of(acts.force, position, cell, params, neighbors)
    assert found["gather"] and not found["scatter"] and not found["case"] and not found["while"]
    assert jax.eval_shape(acts.force, position, cell, params, neighbors).dtype == jnp.float32


GUPTA = {
    "potential": "embedded_atom",
    "density": "xi_j**2*exp(-4*(r - 1))",
    "embedding": "-shift*xi*sqrt(rho)",
    "pair": "0.2*A_i*A_j*exp(-10*(r - 1))",
    "cutoff": 2.5,
}
ALLOY = {
    "particles": {
        "P": {"count": 2, "values": {"xi": 1.0, "A": 1.0}},
        "Q": {"count": 2, "values": {"xi": "strong", "A": 0.9}},
    },
    "relax": {"force_tolerance": 1e-6},
}
VALUES = {"strong": 1.2, "shift": 1.0}


def test_a_small_cell_of_an_alloy_has_the_energy_forces_and_stress_of_many(x64):
    basis = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]) * 1.5 + 0.1 * np.eye(4, 3)
    many = np.concatenate([basis + 1.5 * np.array(n) for n in np.ndindex(4, 4, 4)])
    order = np.argsort(np.arange(len(many)) % 4 // 2, kind="stable")

    def told(position, side, count):
        particles = {name: {**species, "count": count} for name, species in ALLOY["particles"].items()}
        start, cell = {"positions": position.tolist()}, {"lengths": [side] * 3}
        settings = {**ALLOY, "particles": particles, "interactions": [GUPTA], "start": start, "cell": cell}
        made = composition(read(settings, SETTINGS), floats(**VALUES))

        @jax.jit
        def at(params):
            where = made.placing.start(params, jax.random.key(0)), made.cell(params), params
            neighbors = made.interaction.prepare(*where)
            return [getattr(made.interaction, name)(*where, neighbors) for name in ("energy", "force", "stress")]

        return made.images, at(floats(**VALUES))

    images, (energy, force, stress) = told(basis, 1.5, 2)
    assert images == (4, 4, 4)
    none, (total, forces, stresses) = told(many[order], 6.0, 128)
    assert none is None and float(jnp.abs(forces).max()) > 0.1
    assert float(total) / 64 == pytest.approx(float(energy), rel=1e-13)
    np.testing.assert_allclose(forces[np.array([0, 1, 128, 129])], force, rtol=0, atol=1e-12)
    np.testing.assert_allclose(stresses, stress, rtol=0, atol=1e-12)


def test_the_scale_of_a_bond_is_that_of_an_atom_with_twelve_like_neighbors(x64):
    # U = 0.2 exp(-10 x) - 2 sqrt(12) exp(-2 x) / 12 with x = r - 1 shares the energy of the atom among its bonds.
    settings = {"particles": {"P": ALLOY["particles"]["P"]}, "interactions": [GUPTA], "relax": ALLOY["relax"]}
    start = {"positions": [[0, 0, 0], [1.2, 0, 0]]}
    made = composition(read({**settings, "start": start}, SETTINGS), floats(**VALUES))
    scale = made.scale(made.params)
    x = float(scale.length) - 1
    # The distances that are searched differ by 2.4 %.
    assert x == pytest.approx(np.log(2 / (4 / np.sqrt(12))) / 8, abs=0.024)
    expected = 20 * np.exp(-10 * x) - 8 / np.sqrt(12) * np.exp(-2 * x)
    assert float(scale.stiffness) == pytest.approx(expected, rel=1e-12)


@every(
    ("changes", "phrase"),
    [
        ({"cutoff": None}, r"interactions\[0\].cutoff is missing; give the distance at which density"),
        ({"density": "xi_j"}, r"interactions\[0\].density does not depend on r"),
        ({"embedding": "xi"}, r"interactions\[0\].embedding does not depend on rho"),
        ({"embedding": "sqrt(rh)"}, r"'rh' is not known here"),
        ({"values": {"unused": 1.0}}, r"values.unused is not taken by the energy"),
        ({"tail": True}, r"tail has no effect on potential = 'embedded_atom', whose energy is no sum of pairs"),
    ],
)
def test_mistakes_are_refused_in_one_line(changes, phrase):
    written = {key: value for key, value in {**GUPTA, **changes}.items() if value is not None}
    with pytest.raises(UserError, match=phrase):
        system(**ALLOY, interactions=[written], start={"positions": np.eye(4, 3).tolist()}, parameters=VALUES)
