"""Extended XYZ files hold the stored frames of runs of particles."""

import ase.io
import jax
import numpy as np

import simkit
from simkit.export.data_files import export_frames
from simkit.jobs.runs import Outcome
from simkit.scenario.catalog import find_scenario
from simkit.storage.datasets import labels_of
from tests.export.test_extended_xyz import FRAMES


def at_start(simulation):
    """Return the observed arrays of a simulation at its start."""

    @jax.jit
    def observe(params, key):
        return simulation.observe(simulation.init(params, key), params)

    return observe(simulation.params, jax.random.key(0))


def test_periodic_axes_are_those_of_the_cell(tmp_path):
    for periodic in ((True, False), (False, True), (True, True), (False, False)):
        simulation = simkit.molecular.system(
            dimension=2,
            particles={"A": {"count": 2}},
            start={"positions": [[1, 1], [2.2, 1]]},
            cell={"lengths": [8, 10], "periodic": list(periodic)},
            interactions=[{"energy": "4*((1/r)**12 - (1/r)**6)", "cutoff": 2.5}],
            task="dynamics",
            dynamics={"method": "velocity_verlet", "time_step": "step", "temperature": 0.0},
            parameters={"step": 0.005},
        )
        frames = {f"observed.{name}": np.stack([array] * FRAMES) for name, array in at_start(simulation).items()}
        frames |= {"diagnosed.time": np.arange(1.0 * FRAMES), "status": np.zeros(FRAMES, np.int32)}
        scenario = find_scenario("lennard_jones_fluid")
        kept = Outcome(frames, labels_of(simulation), np.asarray(0), FRAMES - 1, None, scenario)
        export_frames(kept, tmp_path / "frames.xyz", overwrite=True)
        for atoms in ase.io.read(tmp_path / "frames.xyz", ":"):
            assert list(atoms.pbc) == [*periodic, False]
            cell = [8, 10] if any(periodic) else [0, 0]
            np.testing.assert_allclose(np.diag(atoms.cell)[:2], cell, err_msg=str(periodic))
