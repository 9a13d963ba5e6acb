"""Progress of a sweep, read from the files of its chunks: finished members and failed ones."""

from collections.abc import Iterator, Sequence

import numpy as np

from simkit.jobs.members import Members
from simkit.jobs.so_far import SoFar, times_of
from simkit.jobs.sweep_results import MOST_NAMED, named
from simkit.jobs.totals import Totals
from simkit.storage import datasets
from simkit.storage.chunk_files import ChunkFile
from simkit.storage.files import DamagedFileError
from simkit.storage.run_directory import RunDirectory


def chunks_so_far(plan: Members, directory: RunDirectory, repair: str) -> SoFar:
    """Return what the chunks of a sweep say.

    Args:
        plan: the sweep.
        directory: where it is kept; another process may be writing to it.
        repair: what resuming does to a damaged chunk, in words.
    """
    from simkit.core.status import MESSAGES, Status, failed

    # Only members that end when they are done make several blocks; one block of them begins at member 0 in any case.
    size = plan.chunk_length(converges=plan.blocks > 1)
    frames, done, under_way = plan.cut.frames + 1, 0, 0.0
    lines: list[str] = []
    totals, damaged = Totals(), 0
    paths = sorted(directory.path.glob("chunk_[0-9]*.npz"))
    for path in paths:
        index = int(path.stem.partition("_")[2])
        try:
            arrays = ChunkFile(directory, index, frames).read_whole()
        except DamagedFileError as error:
            damaged += 1
            lines.append(f"{error}; {repair} with: simkit resume {directory.path}")
            continue
        status = arrays["status"][: plan.members - index * size]
        done += len(status)
        totals.add(status, {name: array[-1, : len(status)] for name, array in datasets.split(arrays)[1].items()})
        bad = index * size + np.flatnonzero(failed(status))[: max(MOST_NAMED - len(lines), 0)]
        lines += [f"{words} {MESSAGES[Status(int(status[n - index * size]))]}" for n, words in _named(plan, bad)]
    for folder in sorted(directory.path.glob("chunk_[0-9]*")):
        if folder.suffix or folder.with_suffix(".npz") in paths:
            continue
        store = ChunkFile(directory, int(folder.name.partition("_")[2]), frames).store(lambda request: None)
        written = store.written()
        paths += written
        try:
            pieces = [store.read_segment(path) for path in written]
        except DamagedFileError:
            continue  # it is being removed, as its chunk is finished; or `resume` computes it again
        left = [piece["left"] for piece in pieces if "left" in piece]
        share = min(size, plan.members) * max(len(written) - 1, 0) / plan.cut.segments
        under_way += sum(map(len, left)) if left else share
    words = f"{round(done + under_way)} of {plan.members} members"
    fraction = min((done + under_way) / plan.members, 1.0)
    return SoFar(fraction, words, lines, times_of(paths), totals.failed + damaged, totals.plain() if done else {})


def _named(plan: Members, members: Sequence[int] | np.ndarray) -> Iterator[tuple[int, str]]:
    """Return members with their values, in words."""
    values, seeds = plan.values_of(np.asarray(members, int))
    for place, (member, seed) in enumerate(zip(members, seeds, strict=True)):
        swept = {name: array[place].item() for name, array in values.items()}
        yield int(member), named(int(member), swept | {"seed": int(seed)})
