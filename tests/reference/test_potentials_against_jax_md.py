"""Potentials of simkit against those of jax-md, and energies of jax-md as interactions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.buffers import overflow_of
from simkit.errors import UserError
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.interactions.stillinger_weber import SILICON, stillinger_weber
from simkit.molecular.minimizers.protocol import Scale
from simkit.molecular.potentials import lennard_jones, morse, per_pair, soft_sphere
from simkit.molecular.relaxation import relaxation

COUNT = 30
BOX = (6.1, 6.4, 6.8)
TABLES = {"epsilon": [[1.0, 1.5], [1.5, 0.5]], "sigma": [[1.0, 0.8], [0.8, 0.88]]}


def spread(seed=0, count=COUNT, box=BOX, apart=0.75):
    """Return random positions in the box, no two closer than ``apart``."""
    rng, found, box = np.random.default_rng(seed), [], np.asarray(box)
    while len(found) < count:
        x = rng.uniform(0, 1, 3) * box
        gaps = np.asarray(found).reshape(-1, 3) - x
        gaps -= box * np.round(gaps / box)
        if (np.linalg.norm(gaps, axis=1) > apart).all():
            found.append(x)
    return jnp.asarray(found)


def tables():
    return {name: jnp.asarray(table) for name, table in TABLES.items()}


def species():
    return np.arange(COUNT) % 2


def assert_same(ours, theirs):
    """Compare (energy, forces); a constant in single precision would exceed 1e-10."""
    assert float(ours[0]) == pytest.approx(float(theirs[0]), rel=1e-10)
    scale = float(jnp.abs(theirs[1]).max())
    assert scale > 0.1
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-10, atol=1e-10 * scale)


def value_and_force(energy, position):
    value, gradient = jax.jit(jax.value_and_grad(energy))(position)
    return value, -gradient


def ours(potential, position, **parameters):
    """Return energy and forces by plain sums over all pairs in the box."""
    box = jnp.asarray(BOX)
    apart = position[:, None] - position[None]
    apart = apart - box * jnp.round(apart / box)
    is_pair = ~jnp.eye(len(position), dtype=bool)
    distance = jnp.where(is_pair, jnp.sqrt(jnp.where(is_pair, (apart**2).sum(-1), 1)), 1)
    energy = jnp.where(is_pair, potential.energy(distance, **parameters), 0).sum() / 2
    push = jnp.where(is_pair, potential.force(distance, **parameters) / distance, 0)
    return energy, (push[:, :, None] * apart).sum(axis=1)


@pytest.mark.parametrize(
    ("name", "exponent"),
    [("lennard_jones", None), ("morse", None), ("soft_sphere", 2.0), ("soft_sphere", 2.5), ("soft_sphere", 3.0)],
)
def test_pair_energies_and_forces_of_random_mixtures_equal_jax_md(x64, jax_md, name, exponent):
    position, given = spread(), tables()
    displacement, _ = jax_md.space.periodic(jnp.asarray(BOX))
    metric = jax_md.space.canonicalize_displacement_or_metric(displacement)
    mixed = {key: per_pair(table, jnp.asarray(species())) for key, table in given.items()}
    if name == "lennard_jones":
        potential, theirs = lennard_jones(), given
    elif name == "morse":
        # Their range is alpha, ours rho = alpha sigma.
        potential, theirs = morse(), {**given, "alpha": jnp.full((2, 2), 5.0)}
        mixed["rho"] = 5.0 * mixed["sigma"]
    else:
        potential, theirs = soft_sphere(exponent), {**given, "alpha": jnp.full((2, 2), exponent)}
        # Pushed together, so that many overlap.
        position = 0.6 * position
    energy = jax_md.smap.pair(getattr(jax_md.energy, name), metric, species=species(), **theirs)
    assert_same(ours(potential, position, **mixed), value_and_force(energy, position))


def test_stillinger_weber_equals_jax_md(x64, jax_md):
    # They add 1e-7 to the distances in the cosine, whatever the unit, which shows at 1e-6 in angstrom; in a unit of
    # 1e-16 m it does not.
    unit = 1e6
    box = unit * jnp.asarray([9.0, 9.5, 8.6])
    position = unit * spread(count=36, box=(9.0, 9.5, 8.6), apart=1.6)
    params = {name: jnp.asarray(value) for name, value in SILICON.items()}
    params["sigma"] = unit * params["sigma"]
    displacement, _ = jax_md.space.periodic(box)
    theirs = jax_md.energy.stillinger_weber(
        displacement, sigma=params["sigma"], epsilon=params["epsilon"], cutoff=1.8 * params["sigma"]
    )
    interaction = stillinger_weber(capacity=35)
    neighbors = jax.jit(interaction.prepare)(position, box, params)
    energy = jax.jit(interaction.energy)(position, box, params, neighbors)
    force = jax.jit(interaction.force)(position, box, params, neighbors)
    reference = value_and_force(theirs, position)
    assert_same((energy, unit * force), (reference[0], unit * reference[1]))


def lennard_jones_of(jax_md, box, **keywords):
    """Return jax-md's smoothly truncated Lennard-Jones without and with a neighbor list."""
    displacement, _ = jax_md.space.periodic(box)
    given = {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(1.0), "r_onset": 1.6, "r_cutoff": 2.0}
    plain = jax_md.energy.lennard_jones_pair(displacement, **given)
    lists, listed = jax_md.energy.lennard_jones_neighbor_list(displacement, box, **given, dr_threshold=0.4, **keywords)
    return plain, lists, listed


def test_a_jax_md_energy_becomes_an_interaction_with_its_forces(x64, jax_md):
    box, position = jnp.asarray(BOX), spread()
    plain, lists, listed = lennard_jones_of(jax_md, box)
    expected = value_and_force(plain, position)
    for interaction in (
        from_jax_md(plain, box=box),
        from_jax_md(listed, box=box, neighbor_list=lists, position=position),
    ):
        neighbors = interaction.prepare(position, box, {})
        assert not overflow_of(neighbors)
        value = jax.jit(interaction.energy)(position, box, {}, neighbors)
        assert_same((value, jax.jit(interaction.force)(position, box, {}, neighbors)), expected)


def test_stress_and_cell_derivatives_of_a_jax_md_energy_are_exact(x64, jax_md):
    box, position = jnp.asarray(BOX), spread()
    plain, lists, listed = lennard_jones_of(jax_md, box)
    stresses = []
    for interaction in (
        from_jax_md(plain, box=box),
        from_jax_md(listed, box=box, neighbor_list=lists, position=position),
    ):
        neighbors = interaction.prepare(position, box, {})
        stresses.append(jax.jit(interaction.stress)(position, box, {}, neighbors))
    np.testing.assert_allclose(stresses[1], stresses[0], rtol=1e-10, atol=1e-12)
    interaction = from_jax_md(plain, box=box)
    strain = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, (3, 3)))
    step = 1e-6

    def at(amount):
        deformation = jnp.eye(3) + amount * strain
        # The same crystal told to jax-md as a box of its own: its lattice vectors are columns.
        cell = jnp.diag(box) @ deformation
        displacement, _ = jax_md.space.periodic_general(cell.T, fractional_coordinates=False)
        given = {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(1.0), "r_onset": 1.6, "r_cutoff": 2.0}
        theirs = jax_md.energy.lennard_jones_pair(displacement, **given)(position @ deformation)
        mine = interaction.energy(position @ deformation, cell, {}, ())
        assert float(mine) == pytest.approx(float(theirs), rel=1e-10)
        return theirs

    # Round-off 1e2 * 1e-15 / 1e-6 = 1e-7 of energies of order 1e2.
    slope = float((at(step) - at(-step)) / (2 * step)) / float(jnp.prod(box))
    assert float(jnp.sum(stresses[0] * strain)) == pytest.approx(slope, rel=1e-6)
    at(0.02)


def test_params_reach_the_jax_md_energy_and_are_differentiated(x64, jax_md):
    # Not with their Lennard-Jones: its derivative with respect to a parameter is NaN where a particle meets itself.
    box, position = jnp.asarray(BOX), spread()
    displacement, _ = jax_md.space.periodic(box)
    given = {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(1.0), "alpha": jnp.asarray(5.0)}
    plain = jax_md.energy.morse_pair(displacement, **given, r_onset=1.6, r_cutoff=2.0)
    interaction = from_jax_md(plain, box=box, parameters=["epsilon"])
    params = {"epsilon": jnp.asarray(2.5), "other": jnp.asarray(1.0)}
    value, slope = jax.value_and_grad(interaction.energy, argnums=2)(position, box, params, ())
    # The energy is proportional to epsilon; both sums have some hundred terms.
    assert float(value) == pytest.approx(2.5 * float(plain(position)), rel=1e-12)
    assert float(slope["epsilon"]) == pytest.approx(float(plain(position)), rel=1e-12)
    assert float(slope["other"]) == 0


def test_a_parameter_that_jax_md_ignores_is_refused_by_name(x64, jax_md):
    # Their Stillinger-Weber has its depth built in and hands every other keyword to the displacement function.
    box, position = jnp.asarray(BOX), spread()
    displacement, _ = jax_md.space.periodic(box)
    energy = jax_md.energy.stillinger_weber(displacement)
    params = {"epsilon": jnp.asarray(2.17), "sigma": jnp.asarray(2.0)}
    ignoring = from_jax_md(energy, box=box, parameters=["epsilon"])
    with pytest.raises(UserError, match="parameter 'epsilon' has no effect on the energy, whose function may not"):
        ignoring.energy(position, box, params, ())
    relaxing = relaxation(
        ignoring,
        lambda params, key: position,
        params=params,
        scale=lambda p: Scale(p["sigma"], p["epsilon"] / p["sigma"] ** 2),
        cell=lambda params: box,
    )
    with pytest.raises(UserError, match="'epsilon'"):
        jax.eval_shape(relaxing.init, params, jax.random.key(0))

    def depth(position, epsilon, **keywords):
        return epsilon * energy(position, **keywords)

    some = from_jax_md(depth, box=box, parameters=["epsilon", "sigma"])
    with pytest.raises(UserError, match="parameter 'sigma' has no effect"):
        jax.eval_shape(some.energy, position, box, params, ())
    right = from_jax_md(depth, box=box, parameters=["epsilon"])
    slope = jax.jit(jax.grad(right.energy, argnums=2))(position, box, params, ())["epsilon"]
    assert float(slope) == pytest.approx(float(energy(position)), rel=1e-12)
    with pytest.raises(UserError, match="'epsilom' is unknown; did you mean 'epsilon'"):
        jax.eval_shape(from_jax_md(depth, box=box, parameters=["epsilom"]).energy, position, box, params, ())


def test_unsupported_energies_are_refused(x64, jax_md):
    box, position = jnp.asarray(BOX), spread()
    plain, lists, listed = lennard_jones_of(jax_md, box)
    with pytest.raises(UserError, match="example positions"):
        from_jax_md(listed, box=box, neighbor_list=lists)
    with pytest.raises(UserError, match="neither"):
        from_jax_md(plain, box=box).energy(position, None, {}, ())
    free, _ = jax_md.space.free()
    with pytest.raises(UserError, match="no volume"):
        from_jax_md(jax_md.energy.lennard_jones_pair(free)).stress(position, None, {}, ())
