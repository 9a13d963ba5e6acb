"""Parts from outside: one file for each kind, found by its entry point, works in files, checks, lists and schemas."""

import json
import sys

import jsonschema
import pytest

from simkit.cli.main import main
from simkit.core.settings import read, schema_of
from simkit.errors import UserError
from simkit.molecular.description.settings import SETTINGS
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.tables import lacking, misses, refusal

IMPORTS = """
import jax.numpy as jnp
from simkit.core.parts import part
from simkit.core.settings import flag, formula, number, whole
"""
# Kind: name of the part, and its file.
FILES = {
    "potential": (
        "yukawa",
        """
from simkit.molecular.potentials import pair_potential

@part(
    values={
        "strength": formula("energy at distance 1", unit="energy", bounds=(0, 100)),
        "screening": formula("inverse range", 1.0, unit="1 / length"),
    }
)
def yukawa():
    return pair_potential(lambda r, *, strength, screening: strength * jnp.exp(-screening * r) / r)
""",
    ),
    "field": (
        "trap",
        """
@part(
    values={
        "stiffness": formula("stiffness of the trap", unit="energy / length^2"),
        "middle": formula("its center along x", 0.0, unit="length"),
    }
)
def trap():
    return lambda columns, *, stiffness, middle: stiffness / 2 * ((columns[0] - middle) ** 2 + columns[1] ** 2)
""",
    ),
    "start": (
        "ring",
        """
from simkit.molecular.description.starts import Places

@part(keys={"ring": whole("places on a ring", low=2), "width": formula("radius of the ring", unit="length")})
def ring(settings, names):
    count, radius = settings["ring"], names.number(settings["width"])
    angle = 2 * jnp.pi * jnp.arange(count) / count
    at = lambda params: radius.number(params) * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    return Places(count, 2, at=at)
""",
    ),
    "minimizer": (
        "cautious",
        """
from simkit.molecular.minimizers import gradient_descent

@part(keys={"caution": number("divides the longest move", 2.0, (1.0, 100.0))})
def cautious(caution):
    return gradient_descent(maximum_displacement=0.2 / caution)
""",
    ),
    "thermostat": (
        "berendsen",
        """
from simkit.molecular.dynamics import Thermostat, thermostatted
from simkit.molecular.dynamics.measures import kinetic_energy

def exchange(bath, velocity, middle):
    kinetic = 2 * kinetic_energy(velocity, middle.mass) / middle.freedom.count
    return bath, velocity * jnp.sqrt(1 + middle.step * middle.params["rate"] * (middle.temperature / kinetic - 1))

@part(values={"rate": formula("rate of the exchange", unit="1 / time", bounds=(0, 1e6))})
def berendsen(interaction, start, *, temperature=None, barostat=None, **options):
    bath = Thermostat(("rate",), lambda params, key: (), exchange)
    options |= {"isolated": False, "temperature": temperature, "barostat": barostat}
    return thermostatted(interaction, start, bath, **options)
""",
    ),
    "barostat": (
        "of_any_shape",
        """
from simkit.molecular.dynamics import stochastic_cell_rescaling

@part(
    keys={"isotropic": flag("whether the cell keeps its shape", True)},
    values={
        "pressure": formula("pressure", unit="energy / length^d", takes=("time",)),
        "barostat_time": formula("time constant", unit="time"),
        "compressibility": formula("compressibility", unit="length^d / energy"),
    },
)
def of_any_shape(*, pressure, isotropic):
    return stochastic_cell_rescaling(pressure=pressure, isotropic=isotropic)
""",
    ),
}
HEAD = """
name = "outside"
title = "Outside"
summary = "A system made of parts of another package."
simulation = "molecular.system"
render = { view = "particles", quantity = "speed" }
[run]
steps = 200
every = 200
precision = "float64"
[objectives.energy]
doc = "energy"
"""
RELAXATION = (
    HEAD.replace('quantity = "speed"', 'quantity = "diameter"')
    + """
[config]
particles.A = {}
start = { ring = 3, width = "size" }
interactions = [{ potential = "yukawa", values = { strength = "q**2" } }]
fields = [{ field = "trap", stiffness = "k" }]
relax = { minimizer = "cautious", caution = 4, force_tolerance = 1e-9 }
[params]
q = { default = 1.5, doc = "charge" }
k = { default = 2.0, doc = "stiffness of the trap" }
size = { default = 1.0, doc = "radius of the first ring" }
"""
)
DYNAMICS = (
    HEAD.replace("steps = 200\nevery = 200", "steps = 4\nevery = 2")
    + """
[config]
particles.A = {}
start = { lattice = "triangular", repeats = [2, 2] }
cell.density = 0.9
interactions = [{ potential = "soft_sphere", values = { epsilon = 10, sigma = 1 } }]
task = "dynamics"
[config.dynamics]
method = "berendsen"
rate = "1/time_step"
time_step = "time_step"
temperature = "0.4 + time"
barostat = "of_any_shape"
pressure = "8 + time"
barostat_time = 1
compressibility = 0.05
isotropic = false
[params]
time_step = { default = 0.005, doc = "time step" }
"""
)


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """Install a distribution with one module and one entry point for each kind of part."""
    monkeypatch.syspath_prepend(str(tmp_path))
    groups = []
    for kind, (name, source) in FILES.items():
        (tmp_path / f"outside_{kind}.py").write_text(IMPORTS + source)
        groups.append(f"[simkit.{kind}s]\n{name} = outside_{kind}:{name}\n")
    info = tmp_path / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(groups))
    yield
    for kind in FILES:
        sys.modules.pop(f"outside_{kind}", None)


def written(path, text):
    path.write_text(text)
    return path


WRONG = {
    "potential": (
        {"interactions": [{"potential": "yukawa", "exponent": 2}]},
        "interactions[0].exponent has no effect on potential = 'yukawa'; leave it out",
    ),
    "field": ({"fields": [{"field": "trap"}]}, "fields[0].stiffness is missing; give a number or an expression"),
    "start": ({"start": {"ring": 1, "width": 1}}, "start.ring = 1 is not an integer of at least 2"),
    "minimizer": (
        {"relax": {"minimizer": "cautious", "cautoin": 2}},
        "relax.cautoin is not a known key; did you mean 'caution'?",
    ),
    "thermostat": (
        {"dynamics": {"time_step": 1, "rate": 1}},
        "dynamics.rate has no effect on method = 'velocity_verlet'; leave it out",
    ),
    "barostat": (
        {"dynamics": {"time_step": 1, "method": "berendsen", "rate": 1, "barostat": "of_any_shap"}},
        "dynamics.barostat = 'of_any_shap' is unknown; did you mean 'of_any_shape'?",
    ),
}


def test_a_wrong_key_of_a_part_from_outside_is_one_line_with_its_remedy(tmp_path, capsys):
    def refused(config, message):
        told = refusal(UserError, read, {"particles": {"A": {}}} | config, SETTINGS)
        return lacking(told, message) if told.isprintable() else f"{told!r} is more than one line"

    assert not misses(WRONG, refused)
    file = written(tmp_path / "wrong.toml", RELAXATION.replace("caution = 4", "caution = 0"))
    assert main(["check", str(file)]) == 2
    assert (
        "[config]: relax.caution = 0 is below its lower bound 1; choose a value in [1, 100]" in capsys.readouterr().err
    )


def test_a_value_out_of_the_bounds_that_a_part_declares_is_refused_before_a_run(x64, tmp_path):
    file = written(tmp_path / "moves.toml", DYNAMICS.replace('"1/time_step"', '"-1/time_step"'))
    with pytest.raises(UserError, match=r"dynamics\.rate = -200 is below its lower bound 0; choose a value in \[0,"):
        build(load(file))
    file = written(tmp_path / "rests.toml", RELAXATION.replace('strength = "q**2"', 'strength = "-q**2"'))
    with pytest.raises(UserError, match=r"interactions\[0\]\.values\.strength = -2.25 is below its lower bound 0"):
        build(load(file))


def test_keys_of_parts_from_outside_are_shown_with_unit_and_meaning(capsys):
    assert main(["show", "molecular.system", "--json"]) == 0
    shown = {each["key"]: each for each in json.loads(capsys.readouterr().out)["settings"]}
    expected = {
        "interactions[].values.strength": "yukawa: energy at distance 1",
        "fields[].stiffness": "trap: stiffness of the trap",
        "start.ring": "ring: places on a ring",
        "relax.caution": "cautious: divides the longest move",
        "dynamics.rate": "berendsen: rate of the exchange",
        "dynamics.isotropic": "of_any_shape, stochastic_cell_rescaling: whether the cell keeps its shape",
    }
    assert {key: shown[key]["doc"] for key in expected} == expected
    assert shown["relax.caution"]["default"] == 2.0


def test_the_schema_knows_the_parts_from_outside():
    schema = schema_of(SETTINGS)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    particles = {"particles": {"A": {}}}
    dynamics = {"time_step": 1, "method": "berendsen", "rate": 1}
    pressure = {"barostat": "of_any_shape", "pressure": 1, "barostat_time": 1, "compressibility": 1}
    sound = [
        {"interactions": [{"potential": "yukawa", "values": {"strength": 1}}]},
        {"fields": [{"field": "trap", "stiffness": "k"}]},
        {"start": {"ring": 3, "width": 1}},
        {"relax": {"minimizer": "cautious", "caution": 2}},
        {"dynamics": dynamics},
        {"dynamics": dynamics | pressure | {"isotropic": False}},
    ]
    wrong = [config for config, _ in WRONG.values()] + [
        {"start": {"ring": 3}},
        {"dynamics": dynamics | {"friction": 1}},
        {"dynamics": {"time_step": 1} | pressure},
    ]
    missed = [config for config in sound if not validator.is_valid(particles | config)]
    missed += [config for config in wrong if validator.is_valid(particles | config)]
    assert not missed
    for config in sound:
        read(particles | config, SETTINGS)
    unit = schema["properties"]["interactions"]["items"]["properties"]["values"]["properties"]["strength"]["x-unit"]
    assert unit == "energy"
