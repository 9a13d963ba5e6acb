"""Sweeps on a CPU whose cores are devices of JAX: the same bytes with any number of them, and stops in order."""

import jax

from simkit.jobs.chunk_size import CPU_CHUNK_BYTES, Sizes
from simkit.jobs.executors.in_this_process import Clock
from simkit.jobs.job import prepared_of
from simkit.jobs.sweeps import Sweep
from tests.tables import every
from tests.toys import toy


def test_further_devices_start_once_the_rest_takes_longer_than_compilation(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("simkit.jobs.executors.in_this_process.time.monotonic", lambda: now[0])
    clock = Clock(chunks=4, compilation=10.0)
    clock.advance(0.0)
    assert not clock.pays()
    clock.advance(0.5)
    assert not clock.pays()  # no rate is known yet
    now[0] = 1.0
    clock.advance(0.75)
    assert clock.pays()  # the other 3.25 chunks take 13 s
    now[0] = 2.0
    clock.advance(1.0)
    assert clock.pays()  # 3 chunks in 12 s
    now[0] = 3.0
    clock.advance(1.0)
    assert not clock.pays()  # 2 chunks in 4 s


@every(("cores", "members", "chunk"), [(1, 100_000, 100_000), (2, 7, 7), (2, 100_000, 50_000)])
def test_a_sweep_is_divided_where_several_cores_compute_it(cores, members, chunk, x64, monkeypatch):
    monkeypatch.setattr("simkit.jobs.chunk_size.cores_for_chunks", lambda: [None] * cores)
    job = Sweep(toy(), {"frequency": (1.0,)}, seeds=members)
    prepared = prepared_of(job, new=False)
    assert Sizes(job, prepared).usual_chunk() == chunk
    bytes_of_one = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(prepared.shapes[0]) if leaf.size)
    assert chunk == members or chunk * bytes_of_one >= CPU_CHUNK_BYTES


def test_workers_get_a_chunk_each(x64, monkeypatch):
    monkeypatch.setattr("simkit.jobs.chunk_size.cores_for_chunks", lambda: [None] * 2)
    job = Sweep(toy(), {"frequency": (1.0,)}, seeds=100_000)
    assert Sizes(job, prepared_of(job, new=False)).usual_chunk(workers=4) == 25_000
