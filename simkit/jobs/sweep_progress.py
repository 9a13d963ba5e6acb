"""Progress of a sweep, read from the files of its chunks: finished members and failed ones."""

from collections.abc import Iterator, Sequence

import numpy as np

from simkit.core.status import MESSAGES, Status
from simkit.jobs.members import Members
from simkit.jobs.stored_progress import StoredProgress, write_times
from simkit.jobs.sweep_results import MOST_NAMED, named
from simkit.jobs.totals import is_failure, totals
from simkit.storage import datasets
from simkit.storage.chunk_files import ChunkFile
from simkit.storage.files import DamagedFileError
from simkit.storage.run_directory import RunDirectory


def chunk_progress(sweep: Members, directory: RunDirectory, repair: str) -> StoredProgress:
    """Return the progress of a sweep from the files of its chunks.

    Args:
        sweep: the sweep.
        directory: its run directory, to which another process may be writing.
        repair: effect of resuming a sweep with a damaged chunk, in words.
    """
    # Only converging members are divided into several blocks; a single block begins at member 0 in any case.
    size = sweep.chunk_length(converges=sweep.blocks > 1)
    frames, done, left, under_way = sweep.plan.frames + 1, 0, 0, 0.0
    lines: list[str] = []
    ended, final, damaged = list[np.ndarray](), list[dict[str, np.ndarray]](), 0
    paths = sorted(directory.path.glob("chunk_[0-9]*.npz"))
    for path in paths:
        index = int(path.stem.partition("_")[2])
        try:
            arrays = ChunkFile(directory, index, frames).read_whole()
        except DamagedFileError as error:
            damaged += 1
            lines.append(f"{error}; {repair} with: {directory.resuming}")
            continue
        status = arrays["status"][: sweep.members - index * size]
        done += len(status)
        ended.append(status)
        # A copy, so that the other frames of the chunk are freed.
        final.append({name: array[-1, : len(status)].copy() for name, array in datasets.split(arrays)[1].items()})
        bad = index * size + np.flatnonzero(is_failure(status, sweep.failures))[: max(MOST_NAMED - len(lines), 0)]
        lines += [f"{words} {MESSAGES[Status(int(status[n - index * size]))]}" for n, words in _named(sweep, bad)]
    for folder in sorted(directory.path.glob("chunk_[0-9]*")):
        if folder.suffix or folder.with_suffix(".npz") in paths:
            continue
        store = ChunkFile(directory, int(folder.name.partition("_")[2]), frames).store(lambda request: None)
        written = store.written()
        paths += written
        try:
            segments = [store.read_segment(path) for path in written]
        except DamagedFileError:
            continue  # it is being removed, since its chunk is finished; otherwise `resume` computes it again
        if any("left" in segment for segment in segments):
            left += sum(len(segment["left"]) for segment in segments)
        else:
            under_way += min(size, sweep.members) * max(len(written) - 1, 0) / sweep.plan.segments
    words = f"{done + left} of {sweep.members} members"
    fraction = min((done + left + under_way) / sweep.members, 1.0)
    found = totals(ended, final, sweep.failures) if ended else None
    failed, shown = (found.failed, found.plain()) if found else (0, {})
    return StoredProgress(fraction, words, lines, write_times(paths), failed + damaged, done + left, shown)


def _named(sweep: Members, members: Sequence[int] | np.ndarray) -> Iterator[tuple[int, str]]:
    """Yield the index and the description of each member."""
    values, seeds = sweep.values_of(np.asarray(members, int))
    for row, (member, seed) in enumerate(zip(members, seeds, strict=True)):
        swept = {name: array[row].item() for name, array in values.items()}
        yield int(member), named(int(member), swept | {"seed": int(seed)})
