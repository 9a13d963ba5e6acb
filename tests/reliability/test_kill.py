"""Killed jobs of each kind: the resumed result has the same bytes as an uninterrupted one."""

import shutil
import signal
import subprocess
import sys

import pytest

from simkit.cli.main import main
from simkit.render.video import whole_file
from tests.reliability.killing import TOYS, assert_resumes, environment
from tests.toys import PENDULUMS

# Long enough to be killed in the middle; with the number and the pattern of the files of its parts.
LONG = "--set steps=200000 --set every=10000"
WORK = {
    "run": (f"run TOY {LONG} --no-render", 21, "segments/*.npz"),
    "sweep": (f"sweep TOY --over frequency=1,2,3,4 --chunk 1 {LONG}", 4, "chunk_*.npz"),
    "optimize": (
        "optimize TOY --wrt frequency --method adam --iterations 40 --set steps=10000 --no-render",
        21,
        "segments/*.npz",
    ),
    "grad": (f"grad TOY --wrt frequency {LONG}", 21, "segments/*.npz"),
}


@pytest.mark.parametrize("kind", WORK)
def test_jobs_killed_at_a_random_moment_resume_bit_for_bit(kind, tmp_path):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    words, count, parts = WORK[kind]
    command = words.replace("TOY", str(tmp_path / "toy.toml"))
    # On a busy machine a job may end before it is killed.
    assert_resumes(command, count, tmp_path, jobs=3, parts=parts, program=TOYS)


KILLED_WHILE_DRAWING = """
import os, signal, sys
from PIL import Image
from simkit.cli.main import main

def save(self, path, *unused, **options):
    path.write_bytes(b"half a picture")
    os.kill(os.getpid(), signal.SIGKILL)

Image.Image.save = save
main(["render", sys.argv[1], "--format", "png"])
"""


# In another process than that which draws.
VERBS = """
import pathlib, shutil, sys
from simkit.cli.main import main

folder, abandoned, kept, *living = map(pathlib.Path, sys.argv[1:])
for verb, *options in (["resume", "--no-render"], ["render", "--format", "png"]):
    shutil.copyfile(kept, abandoned)
    assert main([verb, str(folder), *options]) == 0
    assert list(folder.glob(".*.partial")) == living, verb
"""


def test_leftovers_of_killed_drawing_are_removed_and_those_of_running_drawing_kept(tmp_path):
    folder, kept = tmp_path / "run", tmp_path / "kept"
    assert main(["run", "projectile", "--set", "steps=30", "--no-render", "--output", str(folder)]) == 0
    command = [sys.executable, "-c", KILLED_WHILE_DRAWING, folder]
    assert subprocess.run(command, env=environment(), check=False).returncode == -signal.SIGKILL
    (abandoned,) = folder.glob(".*.partial")
    shutil.copyfile(abandoned, kept)
    with whole_file(folder / "projectile.png") as living:
        # Another drawing removes it, too.
        assert not abandoned.exists()
        living.write_bytes(b"under way")
        command = [sys.executable, "-c", VERBS, folder, abandoned, kept, living]
        subprocess.run(command, env=environment(), check=True)
