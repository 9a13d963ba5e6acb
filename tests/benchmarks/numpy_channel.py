"""The channel flow of our scheme in NumPy and SciPy, as fast as they allow: a peer that says what compiling buys.

    w = u + dt (3/2 r - 1/2 r_old),   r = -div(u u) + nu laplacian(u) + (f, 0),   u_new = w - grad(q),   div(u_new) = 0

Staggered grid, periodic in x, walls that hold the fluid at y = -1 and y = 1, central differences of second order. The
first step is Euler's. Pressure: real Fourier transform in x, and in y either the eigenvectors of the second difference
(even and odd ones apart, which halves the products) or, as the cells are equal, the fast cosine transform.

Arrays are [y, x] with a rim of one cell, and worked on as one long line: a neighbor is an offset, and what comes out
on the rim is not used. Velocities are counted in cells per time step, times 3/8; then neither the cell widths nor
the factors of averages and of Adams and Bashforth cost a pass over memory.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

UNIT = 3 / 8
VISCOSITY, FORCE, TIME_STEP = 1e-3, 3e-3, 1e-3
# Its annotations do not know what it returns.
transforms: Any = scipy.fft


@dataclasses.dataclass
class State:
    """Buffers that a step works on in place.

    Attributes:
        a: ``(ny + 2, nx + 2)`` velocity along x on the left faces, in its unit.
        b: the same across, on the lower faces.
        old_a: three halves of what advection, diffusion and force took from ``a`` in the last step.
        old_b: the same for ``b``.
        steps: taken.
    """

    a: np.ndarray
    b: np.ndarray
    old_a: np.ndarray
    old_b: np.ndarray
    steps: int = 0


Step = Callable[[State], State]


def channel(cells: tuple[int, int], length: float, *, solver: str) -> tuple[State, Step]:
    """Return Poiseuille flow and noise at the start and the step, which changes the state it is given and returns it.

    In float32, with one thread for the Fourier transforms; those of the matrix products are BLAS's own.

    Args:
        cells: ``(nx, ny)``; ny even for ``solver = "eigenvectors"``.
        length: period along x.
        solver: ``"eigenvectors"`` or ``"cosine"``.
    """
    nx, ny = cells
    dx, dy = length / nx, 2 / ny
    width, size = nx + 2, (ny + 2) * (nx + 2)
    speeds = dx / TIME_STEP / UNIT, dy / TIME_STEP / UNIT
    a, b, old_a, old_b = (np.zeros((ny + 2, width), np.float32) for _ in range(4))
    state = State(a, b, old_a, old_b)
    solve = _solvers[solver](cells, (dx, dy))
    diffusion_x, diffusion_y = (np.float32(1.5 * VISCOSITY * TIME_STEP / h**2) for h in (dx, dy))
    push = np.float32(1.5 * FORCE * TIME_STEP / speeds[0])
    ratio = np.float32((dy / dx) ** 2)
    rate_a, rate_b = np.zeros_like(a), np.zeros_like(b)
    along, across, corner, other, change = (np.zeros(size, np.float32) for _ in range(5))
    divergence, slope = np.zeros((ny, nx), np.float32), np.zeros((ny, nx), np.float32)

    def close(a: np.ndarray, b: np.ndarray) -> None:
        for field in (a, b):
            field[:, 0], field[:, -1] = field[:, -2], field[:, 1]
        np.negative(a[1], out=a[0])
        np.negative(a[-2], out=a[-1])

    def rates(a: np.ndarray, b: np.ndarray, rate_a: np.ndarray, rate_b: np.ndarray) -> None:
        """Three halves of the momentum that leaves each cell, as differences of fluxes with diffusion in them."""
        east, here = slice(1, None), slice(0, -1)
        north, south = slice(width, None), slice(0, -width)
        # Not assigned below but added to; left alone, they would grow.
        rate_a[-width:] = rate_b[-1:] = 0
        np.add(a[east], a[here], out=along[here])
        np.multiply(along, along, out=along)
        np.subtract(a[east], a[here], out=change[here])
        np.multiply(change, diffusion_x, out=change)
        np.subtract(along, change, out=along)

        np.add(a[north], a[south], out=corner[north])
        np.add(b[east], b[here], out=other[east])
        np.multiply(corner, other, out=corner)
        np.subtract(a[north], a[south], out=change[north])
        np.multiply(change, diffusion_y, out=change)
        np.subtract(corner, change, out=across)
        np.subtract(across[north], across[south], out=rate_a[south])
        np.add(rate_a[east], along[east], out=rate_a[east])
        np.subtract(rate_a[east], along[here], out=rate_a[east])
        np.subtract(rate_a, push, out=rate_a)

        np.subtract(b[east], b[here], out=change[east])
        np.multiply(change, diffusion_x, out=change)
        np.subtract(corner, change, out=corner)
        np.add(b[north], b[south], out=other[south])
        np.multiply(other, other, out=other)
        np.subtract(b[north], b[south], out=change[south])
        np.multiply(change, diffusion_y, out=change)
        np.subtract(other, change, out=other)
        np.subtract(corner[east], corner[here], out=rate_b[here])
        np.add(rate_b[north], other[north], out=rate_b[north])
        np.subtract(rate_b[north], other[south], out=rate_b[north])

    def project(a: np.ndarray, b: np.ndarray) -> None:
        a[:, -1] = a[:, 1]
        b[:2] = b[-1] = 0
        np.subtract(a[1:-1, 2:], a[1:-1, 1:-1], out=divergence)
        np.add(divergence, b[2:, 1:-1], out=divergence)
        np.subtract(divergence, b[1:-1, 1:-1], out=divergence)
        pressure = solve(divergence)
        inner = b[2:-1, 1:-1]
        np.subtract(pressure[1:], pressure[:-1], out=slope[1:])
        np.subtract(inner, slope[1:], out=inner)
        np.subtract(pressure[:, 1:], pressure[:, :-1], out=slope[:, 1:])
        np.subtract(pressure[:, 0], pressure[:, -1], out=slope[:, 0])
        np.multiply(slope, ratio, out=slope)
        inner = a[1:-1, 1:-1]
        np.subtract(inner, slope, out=inner)
        close(a, b)

    def step(state: State) -> State:
        nonlocal rate_a, rate_b
        rates(state.a.ravel(), state.b.ravel(), rate_a.ravel(), rate_b.ravel())
        if state.steps == 0:
            state.old_a[:], state.old_b[:] = rate_a, rate_b
        for field, rate, old in ((state.a, rate_a, state.old_a), (state.b, rate_b, state.old_b)):
            np.multiply(old, np.float32(1 / 3), out=old)
            np.subtract(old, rate, out=old)
            np.add(field, old, out=field)
        rate_a, state.old_a = state.old_a, rate_a
        rate_b, state.old_b = state.old_b, rate_b
        project(state.a, state.b)
        state.steps += 1
        return state

    rng = np.random.default_rng(0)
    y = (np.arange(ny) + 0.5) * 2 / ny - 1
    u, v = 1.5 * (1 - y**2) + 0.1 * rng.standard_normal(cells), 0.1 * rng.standard_normal((nx, ny + 1))
    a[1:-1, 1:-1], b[1:, 1:-1] = u.T / speeds[0], v.T / speeds[1]
    project(a, b)
    return state, step


def _by_eigenvectors(cells: tuple[int, int], widths: tuple[float, float]) -> Callable[[np.ndarray], np.ndarray]:
    nx, ny = cells
    assert ny % 2 == 0, "even and odd eigenvectors need an even number of cells"
    half, modes = ny // 2, nx // 2 + 1
    q = np.arange(ny)
    # The eigenvectors of the second difference with no slope at the ends are cosines; every second one is odd.
    vectors = np.cos(np.pi * np.outer(np.arange(ny) + 0.5, q) / ny) * np.sqrt(np.where(q == 0, 1, 2) / ny)
    even, odd = (np.ascontiguousarray(vectors[:half, part::2], dtype=np.float32) for part in (0, 1))
    even_t, odd_t = np.ascontiguousarray(even.T), np.ascontiguousarray(odd.T)
    inverse = np.repeat(_inverse_eigenvalues(cells, widths), 2, axis=1)
    # Folding counts every pair of rows twice over.
    inverse_even, inverse_odd = (np.ascontiguousarray(inverse[part::2], dtype=np.float32) for part in (0, 1))
    sums, differences, halves = (np.empty((half, 2 * modes), np.float32) for _ in range(3))
    pairs = np.empty((ny, 2 * modes), np.float32)

    def solve(right: np.ndarray) -> np.ndarray:
        hat = transforms.rfft(right, axis=1).view(np.float32)
        lower, upper = hat[:half], hat[: half - 1 : -1]
        np.add(lower, upper, out=sums)
        np.subtract(lower, upper, out=differences)
        np.matmul(even_t, sums, out=halves)
        np.multiply(halves, inverse_even, out=halves)
        np.matmul(even, halves, out=sums)
        np.matmul(odd_t, differences, out=halves)
        np.multiply(halves, inverse_odd, out=halves)
        np.matmul(odd, halves, out=differences)
        np.add(sums, differences, out=pairs[:half])
        np.subtract(sums, differences, out=pairs[: half - 1 : -1])
        return transforms.irfft(pairs.view(np.complex64), nx, axis=1)

    return solve


def _by_cosines(cells: tuple[int, int], widths: tuple[float, float]) -> Callable[[np.ndarray], np.ndarray]:
    inverse = np.repeat(_inverse_eigenvalues(cells, widths), 2, axis=1).astype(np.float32)

    def solve(right: np.ndarray) -> np.ndarray:
        hat = transforms.rfft(right, axis=1).view(np.float32)
        hat = transforms.dct(hat, axis=0, norm="ortho", overwrite_x=True)
        np.multiply(hat, inverse, out=hat)
        hat = transforms.idct(hat, axis=0, norm="ortho", overwrite_x=True)
        return transforms.irfft(hat.view(np.complex64), cells[0], axis=1, overwrite_x=True)

    return solve


_solvers = {"eigenvectors": _by_eigenvectors, "cosine": _by_cosines}


def _inverse_eigenvalues(cells: tuple[int, int], widths: tuple[float, float]) -> np.ndarray:
    """Return one over the eigenvalues of ``(dy/dx)^2 d2/di2 + d2/dj2``, the constant's zero inverted to zero."""
    (nx, ny), (dx, dy) = cells, widths
    along = -4 * (dy / dx) ** 2 * np.sin(np.pi * np.arange(nx // 2 + 1) / nx) ** 2
    across = -4 * np.sin(np.pi * np.arange(ny) / (2 * ny)) ** 2
    eigenvalues = across[:, None] + along
    eigenvalues[0, 0] = np.inf
    return 1 / eigenvalues
