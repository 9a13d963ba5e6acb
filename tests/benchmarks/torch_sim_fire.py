"""FIRE steps of many Lennard-Jones clusters by torch-sim, as `bench_minimizers.py --torch-sim PYTHON` runs them.

A program of its own, since torch-sim may live in another environment:
``python torch_sim_fire.py POSITIONS.npy STEPS REPEATS`` takes positions (replicas, atoms, 3) in units of sigma. It
prints milliseconds per replica and step, and the mean energy at the end, for the faster of its two ways to find
pairs.
"""

import sys
import time

import numpy as np


def main():
    """Run the steps and print the least time."""
    import torch
    from torch_sim.models.lennard_jones import LennardJonesModel
    from torch_sim.optimizers import fire
    from torch_sim.state import SimState

    path, steps, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    positions = torch.tensor(np.load(path), dtype=torch.float64)
    replicas, atoms = positions.shape[:2]
    state = SimState(
        positions=positions.reshape(-1, 3),
        masses=torch.ones(replicas * atoms, dtype=torch.float64),
        cell=1e3 * torch.eye(3, dtype=torch.float64).repeat(replicas, 1, 1),
        pbc=False,
        atomic_numbers=torch.full((replicas * atoms,), 18),
        system_idx=torch.arange(replicas).repeat_interleave(atoms),
    )
    best, energy = float("inf"), float("nan")
    for with_list in (False, True):
        # A cut-off beyond every pair: the same energy surface.
        model = LennardJonesModel(dtype=torch.float64, use_neighbor_list=with_list, cutoff=50.0)
        init, step = fire(model)
        for _ in range(repeats):
            moved = init(state)
            begin = time.perf_counter()
            for _ in range(steps):
                moved = step(moved)
            seconds = time.perf_counter() - begin
            if seconds < best:
                best, energy = seconds, float(moved.energy.mean())
    print(1e3 * best / (steps * replicas), energy)


if __name__ == "__main__":
    main()
