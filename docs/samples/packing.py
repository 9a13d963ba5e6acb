"""Relaxation of soft disks to a regular packing: an energy and a minimizer of jax-md, compiled by any jit."""

import jax
import jax.numpy as jnp
import numpy as np
from jax_md import energy, minimize, space

import simkit


def settle(jit, columns=10, rows=12, frames=50, seed=3):
    """Return positions of relaxing disks, ``(frames, disks, 2)``, from random to rest, and the sides of the box."""
    # Hexagonal rows of disks of diameter 1 fill this box if each is squeezed by 7 %.
    box = 0.93 * jnp.array([columns, rows * np.sqrt(0.75)])
    displacement, shift = space.periodic(box)
    total = energy.soft_sphere_pair(displacement, sigma=1.0)
    begin, apply = minimize.fire_descent(total, shift, dt_start=0.1, dt_max=0.4)

    @jit
    def advance(state):
        return jax.lax.fori_loop(0, 8, lambda _, state: apply(state), state)

    state = begin(box * jax.random.uniform(jax.random.key(seed), (columns * rows, 2)))
    positions = [state.position]
    for _ in range(frames - 1):
        state = advance(state)
        positions.append(state.position)
    return np.stack(positions), np.asarray(box)


def distances(first, second, box):
    """Return the distances of positions from others in the periodic box."""
    return np.linalg.norm((first - second + box / 2) % box - box / 2, axis=-1)


def draw(positions, box, title):
    """Return the animation: disks in the color of the number of their neighbors, six in a regular packing."""
    near = distances(positions[:, :, None], positions[:, None], box) < 1.15
    frames = {
        "position": positions % box,
        "diameter": np.ones(positions.shape[:2]),
        "box": np.broadcast_to(box, (len(positions), 2)),
        "neighbors": near.sum(axis=-1) - 1,
    }
    clock = {"iteration": 8 * np.arange(len(positions))}
    look = {"quantity": "neighbors", "label": "neighbors", "limits": (0, 6), "frames_per_second": 12}
    return simkit.animate((frames, clock), view="particles", size=(420, 380), title=title, **look)


if __name__ == "__main__":
    for name, jit in (("jax", jax.jit), ("onnxruntime", simkit.onnxjit)):
        draw(*settle(jit), title=name).save(f"packing_{name}.gif")
