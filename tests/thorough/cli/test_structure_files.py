"""Structure files of whole runs: resumed without them, exported, and given on the command line only."""

import json

import ase.io
import numpy as np
import pytest

from simkit import open_run
from tests.cli.test_structure_files import SCENARIO, files

__all__ = ["files"]


def test_a_run_resumes_after_its_structure_file_was_removed(simkit, files):
    ran = simkit("run", "./trimer.toml", "--no-render", "-o", "whole", "--json")
    assert ran.code == 0, ran.err
    # Three atoms in a triangle of bonds: three times the depth. The tolerance of 1e-3 on forces (1.5e-5 of a bond's
    # stiffness times its length, 57 * 1.12) leaves energies of 1e-3^2 / 57 = 2e-8, below the rounding of float32, 3e-7.
    assert json.loads(ran.out)["diagnostics"]["energy"] == pytest.approx(-3, abs=3e-6)
    simkit("run", "./trimer.toml", "--no-render", "-o", "cut")
    for name in ("000002.npz", "000003.npz"):
        (files / "cut/segments" / name).unlink()
    for path in (files / "cut/summary.json", files / "trimer.xyz", files / "trimer.toml"):
        path.unlink()
    resumed = simkit("resume", "cut", "--no-render")
    assert resumed.code == 0, resumed.err
    assert (files / "cut/summary.json").read_bytes() == (files / "whole/summary.json").read_bytes()


def test_exported_frames_can_be_read_as_structures(simkit, files):
    assert simkit("run", "./trimer.toml", "--no-render", "-o", "run", "--set", "start.structure=@pair.xyz").code == 0
    (files / "pair.xyz").unlink()
    ran = simkit("export", "run", "--to", "extended_xyz", "--json")
    assert ran.code == 0, ran.err
    exported = json.loads(ran.out)
    frames = ase.io.read(files / exported["file"], ":")
    assert exported["file"] == "run/trimer.xyz"
    assert len(frames) == exported["frames"] > 2 and len(frames[0]) == exported["particles"] == 2
    assert frames[0].get_chemical_symbols() == ["Ar", "Ar"]
    np.testing.assert_array_equal(frames[0].positions, [[0, 0, 0], [1.3, 0, 0]])
    # See above for the tolerance.
    assert frames[-1].get_potential_energy() == pytest.approx(-1, abs=1e-6)
    ran = simkit(
        "run", "./trimer.toml", "--no-render", "-o", "next", "--set", "start.structure=@run/trimer.xyz", "--json"
    )
    assert ran.code == 0, ran.err
    # The last frame is at rest already: one iteration, which every run takes.
    assert json.loads(ran.out)["diagnostics"]["iteration"] <= 1
    table = simkit("export", "run", "--to", "extended_xyz", "-o", "out.xyz").out
    assert table == f"out.xyz: {len(frames)} frames of 2 particles\n"
    assert (files / "out.xyz").read_bytes() == (files / exported["file"]).read_bytes()


def test_a_sweep_is_exported_as_the_last_frame_of_each_member(simkit, files):
    sweep = ("sweep", "./trimer.toml", "--no-render", "--seeds", "2")
    assert simkit(*sweep, "-o", "swept", "--over", "sigma=1.1,1.2").code == 0
    ran = simkit("export", "swept", "--to", "extended_xyz")
    assert ran.out == "swept/trimer.xyz: 4 frames of 3 particles\n"
    result, frames = open_run(files / "swept"), ase.io.read(files / "swept/trimer.xyz", ":")
    for frame, index in zip(frames, np.ndindex(2, 2), strict=True):
        np.testing.assert_array_equal(frame.positions.astype(np.float32), result["position"].values[index])
        assert frame.info["seed"] == index[1] and frame.info["status"] == "converged"
        assert frame.info["sigma"] == (1.1, 1.2)[index[0]]
        assert frame.get_potential_energy() == result["potential_energy"].values[(*index, -1)]
    assert simkit(*sweep, "-o", "bare", "--no-frames").code == 0
    assert (
        "bare keeps no last frames; sweep again without --no-frames"
        in simkit("export", "bare", "--to", "extended_xyz").line
    )


def test_a_structure_may_be_given_on_the_command_line_only(simkit, files):
    (files / "any.toml").write_text(SCENARIO.replace("trimer", "any").replace('{ file = "any.xyz" }', '"to be given"'))
    assert (
        "start.structure is one line; for a file write structure = { file"
        in simkit("run", "any.toml", "--no-render").line
    )
    for key in ("start.structure", "config.start.structure"):
        ran = simkit("run", "./any.toml", "--no-render", "-o", key, "--set", f"{key}=@pair.xyz", "--json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["diagnostics"]["energy"] == pytest.approx(-1, abs=1e-6)
