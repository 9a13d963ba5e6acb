"""Faults in the code of parts of other packages name that package, before a run; arrays and mistakes of positions."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import relaxation, system
from simkit.molecular.interactions import user_energy
from simkit.molecular.minimizers import Scale

SOURCE = """
import jax.numpy as jnp
from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.molecular.potentials import pair_potential
DEPTH = part(values={"depth": formula("depth")})

def undeclared():
    return pair_potential(lambda r, *, depth: depth / r)

@DEPTH
def other_arguments():
    return pair_potential(lambda r, *, strength: strength / r)

@DEPTH
def number():
    return 3.0

@DEPTH
def broken():
    return {}["depth"]

@DEPTH
def undefined():
    return pair_potential(lambda r, *, depth: depth * jnp.sqrt(-r))

@part()
def no_minimizer():
    return "steepest"
"""
PAIR = {"particles": {"A": {"count": 2}}, "start": {"positions": [[0, 0], [1.2, 0]]}, "parameters": {"k": 1.0}}
OWNER = "of package 'faulty'"
FAULTS = {
    "undeclared": f"potential 'undeclared' {OWNER}: faulty:undeclared has no 'declaration'; mark it with @part",
    "other_arguments": f"potential 'other_arguments' {OWNER} fails in faulty:other_arguments: TypeError: ",
    "number": f"potential 'number' {OWNER} fails in faulty:number: TypeError: returns float, not PairPotential",
    "broken": f"potential 'broken' {OWNER} fails in faulty:broken: KeyError: 'depth'; repair or uninstall",
    "undefined": "interactions[0].potential: its energy is not finite at distances of the start",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "faulty.py").write_text(SOURCE)
    info = tmp_path / "faulty-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    entries = "".join(f"{name} = faulty:{name}\n" for name in FAULTS)
    points = f"[simkit.potentials]\n{entries}[simkit.minimizers]\nno_minimizer = faulty:no_minimizer\n"
    (info / "entry_points.txt").write_text(points)
    yield
    sys.modules.pop("faulty", None)


def test_a_fault_of_a_part_from_outside_names_its_package_before_a_run(package):
    for name, message in FAULTS.items():
        with pytest.raises(UserError) as caught:
            simulation = system(**PAIR, interactions=[{"potential": name, "values": {"depth": "k"}}])
            simulation.check_values(simulation.params, jax.random.key(0))
        assert str(caught.value).startswith(message) and str(caught.value).isprintable(), name
    with pytest.raises(UserError) as caught:
        system(**PAIR, interactions=[{"energy": "k/r"}], relax={"minimizer": "no_minimizer"})
    assert f"minimizer 'no_minimizer' {OWNER} fails in faulty:no_minimizer: TypeError: returns str" in str(caught.value)


def test_positions_are_arrays_of_real_numbers(x64):
    places, pair = np.array([[0, 0], [1.2, 0]]), {"energy": "k/r"}
    for array in (places, jnp.asarray(places), list(places)):
        simulation = system(**PAIR | {"start": {"positions": array}}, interactions=[pair])
        np.testing.assert_array_equal(simulation.init(simulation.params, jax.random.key(0)).descent.position, places)
    with pytest.raises(UserError, match=r"start.positions\[0\]\[0\] = 0j is neither a finite number"):
        system(**PAIR | {"start": {"positions": places.astype(complex)}}, interactions=[pair])
    well = user_energy(lambda x, cell, params: params["k"] * jnp.sum(jnp.abs(x) ** 2))
    for start in (places.astype(complex), places[0]):
        relaxing = relaxation.relaxation(
            well,
            lambda params, key, start=start: jnp.asarray(start),
            params={"k": 1.0},
            scale=lambda p: Scale(p["k"], p["k"]),
        )
        with pytest.raises(UserError, match=r"the start returns .* return real numbers of shape \(N, 2\)"):
            relaxing.init(relaxing.params, jax.random.key(0))
