"""Embedded-atom energies in tables: values between the points, both formats of files, and damaged ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.settings import read
from simkit.errors import UserError
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS
from simkit.molecular.interactions import tabulated_embedded_atom
from simkit.molecular.interactions.atom_tables import parse_embedded_atom
from tests.molecular.dynamics.moving import floats
from tests.tables import every

DENSITIES, DISTANCES, RHO_STEP, STEP, CUTOFF = 41, 31, 4.0, 0.1, 3.0
R, RHO = STEP * np.arange(DISTANCES), RHO_STEP * np.arange(DENSITIES)


# Cubics, which the tables hold exactly but for the outermost two intervals at either end.
def density(at, by, r):
    return (1 + at + 3 * by) * (CUTOFF - r) ** 2 / 4 + 5


def embedding(kind, rho):
    return -(1 + kind) * rho + 0.01 * rho**2 - 1e-4 * rho**3


def times_energy(a, b, r):
    return (1 + a + b) * (CUTOFF - r) ** 3


def rows(values):
    return [" ".join(f"{value:.17e}" for value in values[k : k + 5]) for k in range(0, len(values), 5)]


def written(names, *, by_pair):
    """Return the lines of a file of both formats, as LAMMPS documents them."""
    count = len(names)
    lines = [
        "made for a test",
        "",
        "",
        f"{count} {' '.join(names)}",
        f"{DENSITIES} {RHO_STEP} {DISTANCES} {STEP} {CUTOFF}",
    ]
    for by in range(count):
        lines += [f"{20 + by} {50.0 + by} 3.6 fcc", *rows(embedding(by, RHO))]
        for at in range(count if by_pair else 1):
            lines += rows(density(at, by, R))
    for a in range(count):
        for b in range(a + 1):
            lines += rows(times_energy(a, b, R))
    return lines


def told(acts, position, params):
    at = position, None, params, acts.prepare(position, None, params)
    return acts.energy(*at), acts.force(*at)


def test_between_points_tables_have_the_slopes_of_their_differences(x64):
    # A function that is no cubic, by the formula of the format at one place.
    lines = written("X", by_pair=False)
    tables = parse_embedded_atom("\n".join(lines), "X.eam")
    values = np.sin(R)[None, None]
    acts = tabulated_embedded_atom(tables._replace(pair=values, density=0 * values, embedding=0 * tables.embedding))
    m, t = 12, 0.3
    f = values[0, 0]
    first, last = ((f[k - 2] - f[k + 2] + 8 * (f[k + 1] - f[k - 1])) / 12 for k in (m, m + 1))
    rise = f[m + 1] - f[m]
    expected = f[m] + t * (first + t * (3 * rise - 2 * first - last + t * (first + last - 2 * rise)))
    r = STEP * (m + t)
    energy, _ = told(acts, jnp.asarray([[0.0, 0, 0], [r, 0, 0]]), {})
    assert float(energy) == pytest.approx(expected / r, rel=1e-13)


def test_beyond_the_largest_density_energies_go_on_along_the_slope(x64):
    tables = parse_embedded_atom("\n".join(written("X", by_pair=False)), "X.eam")
    acts = tabulated_embedded_atom(tables._replace(density=1000 * tables.density, pair=0 * tables.pair))
    r = 1.15
    energy, _ = told(acts, jnp.asarray([[0.0, 0, 0], [r, 0, 0]]), {})
    last, before = tables.embedding[0, -1], tables.embedding[0, -2]
    beyond = 1000 * density(0, 0, r) - RHO[-1]
    assert beyond > 0
    assert float(energy) / 2 == pytest.approx(last + (last - before) / RHO_STEP * beyond, rel=1e-12)


def test_a_scenario_names_a_file_and_a_small_cell_of_it_is_a_crystal(x64, tmp_path):
    (tmp_path / "XY.fs").write_text("\n".join(written("XY", by_pair=True)))
    basis = np.array([[0.0, 0, 0], [1.1, 0.9, 1.0]])
    many = np.concatenate([basis + 2 * np.array(n) for n in np.ndindex(3, 3, 3)])
    many = np.concatenate([many[::2], many[1::2]])

    def energy_of(position, side):
        count = len(position) // 2
        settings = {
            "particles": {"X": {"count": count}, "B": {"count": count}},
            "start": {"positions": position.tolist()},
            "cell": {"lengths": [side] * 3},
            "interactions": [
                {"potential": "embedded_atom_tables", "file": str(tmp_path / "XY.fs"), "elements": {"B": "Y"}}
            ],
        }
        made = composition(read(settings, SETTINGS), floats(unused=1.0))
        where = jnp.asarray(position), made.cell(floats(unused=1.0)), floats(unused=1.0)
        return jax.jit(lambda: made.interaction.energy(*where, made.interaction.prepare(*where)))()

    assert float(energy_of(basis, 2.0)) == pytest.approx(float(energy_of(many, 6.0)) / 27, rel=1e-12)


def changed(number, line):
    lines = written("XY", by_pair=False)
    lines[number - 1 : number] = [line] if line is not None else []
    return "\n".join(lines)


@every(
    ("number", "line", "phrase"),
    [
        (4, "3 X Y", "line 4 is not the number of elements and their names"),
        (4, "2 X X", "line 4 names an element twice"),
        (5, "41 0.5 31 0.1", "line 5 has 4 of 5 numbers"),
        (5, "41 0.5 31 -0.1 3.0", "line 5 needs whole numbers of at least 5"),
        (5, "42 0.5 31 0.1 3.0", "line 16 has 4 numbers more than the 42 of the embedding energy of X"),
        (6, "20", "line 6 is not the header of X"),
        (8, "1 2 x 4 5", "line 8 has 'x' as the embedding energy of X, which is no finite number"),
        (8, "1 2 nan 4 5", "line 8 has 'nan' as the embedding energy of X"),
        (53, None, "line 53 has 4 numbers more than the 31 of the pair energy of Y and X"),
    ],
)
def test_damaged_files_are_refused_in_one_line_with_the_line(number, line, phrase):
    with pytest.raises(UserError, match=f"^XY.eam, {phrase}") as refused:
        parse_embedded_atom(changed(number, line), "XY.eam")
    assert "\n" not in str(refused.value)


def test_a_file_that_ends_early_or_goes_on_is_refused():
    lines = written("X", by_pair=False)
    with pytest.raises(
        UserError, match=rf"X.eam, line {len(lines) - 1} is the last one, and the pair energy of X and X"
    ):
        parse_embedded_atom("\n".join(lines[:-1]), "X.eam")
    with pytest.raises(UserError, match=rf"line {len(lines) + 1} goes on with '7' after the last table"):
        parse_embedded_atom("\n".join([*lines, "7"]), "X.eam")
    with pytest.raises(UserError, match="'Z' is unknown; choose one of X"):
        parse_embedded_atom("\n".join(lines), "X.eam").of(["Z"])
