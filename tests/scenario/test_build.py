"""Simulations of scenarios: building, simulations made in Python, and physical ranges."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.simulation import Equilibrium
from simkit.core.status import converged_when
from simkit.errors import UserError
from simkit.flow.description.system import system
from simkit.scenario import catalog, registry
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario, parse_scenario
from simkit.scenario.made_in_python import load
from simkit.scenario.overrides import apply_overrides
from simkit.scenario.registry import FACTORIES
from tests.core.toys import oscillator
from tests.scenario import examples
from tests.scenario.examples import GOOD, decay
from tests.scenario.shipped import (
    FEW,
    FEW_FACTORIES,
    check_that_a_factory_becomes_a_scenario,
    check_that_it_builds,
    check_that_values_that_are_not_positive_are_refused,
    with_value,
)
from tests.tables import every


def read(text: str = GOOD):
    return parse_scenario(text, "toy.toml")


def refusal(scenario) -> str:
    with pytest.raises(UserError) as caught:
        build(scenario)
    message = str(caught.value)
    assert message.isprintable(), "an error is one line"
    assert message.startswith("toy.toml: ")
    return message


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def test_the_files_values_become_the_default_parameters():
    simulation = build(apply_overrides(read(), ["rate=2", "cells=[5, 7]"]))
    assert simulation.params["rate"] == 2.0
    np.testing.assert_array_equal(simulation.params["coupling"], [[1.0, 0.5], [0.5, 1.0]])
    assert simulation.init(simulation.params, jax.random.key(0))["height"].shape == (5, 7)


def test_a_scenario_may_be_given_by_name_and_by_path(tmp_path, monkeypatch):
    path = tmp_path / "decay" / "toy_decay.toml"
    path.parent.mkdir()
    path.write_text(GOOD)
    monkeypatch.setattr(catalog, "shipped_folder", lambda: tmp_path)
    for given in ("toy_decay", path, str(path), find_scenario("toy_decay")):
        assert set(build(given).params) == {"rate", "time_step", "coupling", "offset"}, given
    with pytest.raises(UserError, match="did you mean 'toy_decay'"):
        build("toy_decy")


def test_a_parameter_not_in_the_file_keeps_the_default_of_the_factory():
    assert build(read()).params["offset"] == 7.0
    assert build(apply_overrides(read(), ["params.offset=4"])).params["offset"] == 4.0
    with pytest.raises(UserError, match=r"params\.ofset is not a parameter of toy\.decay; did you mean 'offset'"):
        build(apply_overrides(read(), ["params.ofset=4"]))


@every("enabled", [False, True])
def test_arrays_follow_the_precision_that_jax_runs_in(enabled):
    with jax.enable_x64(enabled):
        simulation = build(read())
    assert {array.dtype.name for array in simulation.params.values()} == {"float64" if enabled else "float32"}


def test_a_float64_scenario_is_never_built_in_32_bits(x64):
    scenario = apply_overrides(read(), ["precision=float64"])
    assert build(scenario).params["rate"].dtype == jnp.float64
    with jax.enable_x64(False):
        assert "run.precision = 'float64' but JAX runs in 32 bits" in refusal(scenario)


@every(
    "old, new, phrase",
    [
        ("width = 2.0", "widht = 2.0", "config.widht is not an argument of toy.decay; did you mean 'width'?"),
        ("[params.rate]", "[params.rates]", "params.rates is not a parameter of toy.decay; did you mean 'rate'?"),
        ("[[1, 0.5], [0.5, 1]]", "[1, 0.5]", "params.coupling.default has shape (2,); toy.decay expects (2, 2)"),
        ("[objectives.amplitude]", "[objectives.amplitud]", "objectives.amplitud.quantity = 'amplitud' is not a"),
        ('quantity = "amplitude"\nexpected', 'quantity = "amplitudes"\nexpected', "validation[0].quantity ="),
        ('"height"', '"hight"', "render.quantity = 'hight' is unknown; did you mean 'height'?"),
        ('"height"', '"profile"', "render.quantity = 'profile' has 1 axes; the view 'field' draws arrays with 2"),
        ('view = "field"', 'view = "particles"', "render.view = 'particles' needs the observed array 'position'"),
        ("cells = [4, 3]", "cells = [4]", "[config] (cells = [4], width = 2, method = 'euler', periodic = true) is"),
        ('"euler"', '"heun"', "is refused by toy.decay: method 'heun' does not exist choose euler or exact"),
    ],
)
def test_a_mismatch_with_the_simulation_is_refused_in_one_line(old, new, phrase):
    text = changed(old, new)
    if "rates]" in new or "amplitud]" in new:
        text = text[: text.index("[[validation]]")]
    assert phrase in refusal(read(text))


def test_a_parameter_out_of_the_range_of_float32_is_refused(x64):
    for value in ("1e300", "1e-300"):
        scenario = read(changed("default = 0.5\nbounds = [0.1, 10]", f"default = {value}\nbounds = [0, 1e301]"))
        build(scenario)
        with jax.enable_x64(False):
            assert f"params.rate.default = {float(value)!r} is out of the range of float32" in refusal(scenario)


def test_arrays_beyond_what_32_bits_count_are_refused(monkeypatch):
    def huge(**config):
        return dataclasses.replace(decay(**config), diagnose=lambda state, params: {"amplitude": jnp.int32(2**32)})

    monkeypatch.setattr(examples, "decay", huge)
    assert "is refused by toy.decay: Python integer 4294967296 out of bounds for int32" in refusal(read(GOOD))


def test_a_reduction_over_time_is_refused_where_the_run_converges(monkeypatch):
    equilibrium = Equilibrium(lambda state: state, lambda x, params: x, lambda state, x: x)
    settled = {"converges": True, "status": converged_when(lambda state, params: jnp.bool_(True))}
    monkeypatch.setattr(
        examples, "decay", lambda **config: dataclasses.replace(decay(**config), equilibrium=equilibrium, **settled)
    )
    text = changed('cells = [4, 3]\nwidth = 2.0\nmethod = "euler"\nperiodic = true', "cells = [4, 3]")
    assert "objectives.decayed.reduce = 'mean' has no meaning for toy.decay" in refusal(read(text))


@every(
    "factory, phrase",
    [
        (lambda **config: 3, "toy.decay = 3 is of type int; give a factory that returns a Simulation"),
        (lambda *, points, **config: 3, "config.points is missing; toy.decay has no default for it: set points"),
        (lambda **config: [][1], "is refused by toy.decay: list index out of range"),
    ],
)
def test_a_factory_that_breaks_its_contract_is_refused_by_name(monkeypatch, factory, phrase):
    monkeypatch.setattr(examples, "decay", factory)
    assert phrase in refusal(read())


def test_the_message_of_a_factory_is_kept(monkeypatch):
    def refuse(**config):
        raise UserError("cells = (4, 3) must be even; use (4, 4)")

    monkeypatch.setattr(examples, "decay", refuse)
    assert refusal(read()) == "toy.toml: [config]: cells = (4, 3) must be even; use (4, 4)"


def test_building_computes_nothing(monkeypatch):
    def untouchable(**config):
        def init(params, key):
            assert isinstance(params["rate"], jax.core.Tracer)
            return simulation.init(params, key)

        simulation = decay(**config)
        return dataclasses.replace(simulation, init=init)

    monkeypatch.setattr(examples, "decay", untouchable)
    build(read())


@every("name", FEW)
def test_a_shipped_scenario_of_each_domain_builds(name):
    check_that_it_builds(name)


def test_a_parameter_without_effect_in_a_simulation_of_a_package_is_refused(monkeypatch):
    monkeypatch.delitem(registry.FACTORIES, "toy.decay")
    monkeypatch.setattr(registry.SIMULATIONS, "resolve", lambda name: decay)
    # The toy has a matrix that no function reads.
    assert "params.coupling has no effect: nothing that the simulation does depends on it; remove it" in refusal(read())


def test_of_a_simulation_made_in_python_only_values_that_were_given_must_have_an_effect():
    run = {"steps": 10}
    assert build(load(decay(), run)).params.keys() == decay().params.keys()
    with pytest.raises(UserError, match=r"params\.coupling has no effect"):
        build(load(decay(), run | {"coupling": np.ones((2, 2))}))


def test_another_configuration_may_lack_a_parameter_that_the_file_mentions(x64, tmp_path):
    text = find_scenario("lennard_jones_cluster").source.read_text()
    text = text.replace('name = "lennard_jones_cluster"', 'name = "morse_cluster"')
    text = text.replace('potential = "lennard_jones"', 'potential = "morse"')
    path = tmp_path / "morse_cluster.toml"
    path.write_text(text.replace("[params]", "[params]\nrho = { default = 14.0 }"))
    scenario = find_scenario(str(path))
    assert "rho" in scenario.parameters
    changed = apply_overrides(scenario, ["potential=lennard_jones", "sigma=2.1"])
    assert "rho" not in changed.parameters and changed.parameters["sigma"].default == 2.1
    assert "rho" not in build(changed).params
    with pytest.raises(UserError, match="--set rho is not a key of"):
        apply_overrides(scenario, ["potential=lennard_jones", "rho=2"])


@every("name", FEW_FACTORIES)
def test_the_result_of_a_factory_becomes_a_scenario(name):
    check_that_a_factory_becomes_a_scenario(name)


def test_a_bare_simulation_runs_and_keeps_its_units():
    simulation = dataclasses.replace(
        oscillator(2),
        observe=lambda state, params: {"angle": state.position},
        dimensions={"angle": ("oscillator",)},
        quantities={"energy": simkit.Quantity("J", "of all"), "angle": simkit.Quantity("rad", "of each")},
    )
    run = simkit.run(simulation, steps=4, every=2, frequency=2.0)
    assert run["energy"].attrs["units"] == "J" and run["angle"].dims == ("time", "oscillator")


@every("name", ("couette_poiseuille", "kolmogorov_turbulence"))
def test_values_that_are_not_positive_are_refused(name):
    check_that_values_that_are_not_positive_are_refused(find_scenario(name))


def test_negative_viscosities_are_refused():
    with pytest.raises(UserError, match=r"params\.viscosity\.default = -0.01 is negative"):
        build(with_value(find_scenario("kolmogorov_turbulence"), "viscosity", -0.01))


def test_a_check_that_raises_another_error_is_one_line(monkeypatch):
    @functools.wraps(system)
    def broken(**config):
        def check(params, key):
            raise ZeroDivisionError("division by zero")

        return dataclasses.replace(system(**config), check=check)

    monkeypatch.setitem(FACTORIES, "flow.domain", f"{__name__}:broken")
    monkeypatch.setattr(f"{__name__}.broken", broken, raising=False)
    with pytest.raises(UserError, match=r"flow.domain cannot run with these values \(division by zero\): .*reynolds"):
        build(find_scenario("channel_flow"))
