"""A process that computes chunks of a sweep, told which over its standard input: ``python -m`` of this module.

Each line of its input and output is a JSON object. It reads ``{"chunk": index, "parts": n}`` and writes

    {"ready": versions}                  once
    {"progress": index, "done": fraction}
    {"warning": words}
    {"finished": index}                  the chunk is in its file
    {"refused": words}                   what a user can mend

Results go through files alone. It ends when its input does, so that no chunk is written after its driver was killed.
"""

import functools
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.errors import UserError

if TYPE_CHECKING:
    from simkit.jobs.chunks import Chunks

# A worker of a cluster may be asked for several chunks at once, and there is memory for one.
_ONE_AT_A_TIME = threading.Lock()


@functools.lru_cache(maxsize=1)
def chunks_of(folder: Path, identity: str) -> "Chunks":
    """Return the chunks of the sweep in a folder, whose program is compiled once in this process.

    Args:
        folder: the run directory, held by the process that drives the sweep.
        identity: of the run; another one in the same folder is another sweep.

    Raises:
        UserError: if the folder is not that of this sweep.
    """
    from simkit.core.compilation import use_compilation_cache
    from simkit.core.precision import precision
    from simkit.jobs.chunks import Chunks
    from simkit.jobs.job import prepared_of
    from simkit.storage.kinds import kind_of
    from simkit.storage.run_directory import RunDirectory

    directory = RunDirectory.open(folder)
    if directory.identity != identity:
        raise UserError(f"{folder} is another run than the one that asks for its chunks; run the sweep again")
    use_compilation_cache()
    job = kind_of(directory.kind).of(directory)
    with precision(job.scenario.run.precision):
        return Chunks(job, prepared_of(job, new=False), directory)


def compute(
    folder: Path,
    identity: str,
    index: int,
    parts: int,
    report: Callable[[float, str], None],
    warn: Callable[[str], None],
    *,
    keeps_segments: bool = True,
) -> None:
    """Compute a chunk and store it.

    Args:
        folder: the run directory.
        identity: of the run.
        index: of the chunk.
        parts: as for `simkit.jobs.chunks.Chunks.compute`.
        report: called with the progress.
        warn: called with one line that says what was damaged.
        keeps_segments: as for `simkit.jobs.chunks.Chunks.compute`.

    Raises:
        UserError: if the folder is not that of this sweep, or cannot be written.
    """
    from simkit.core.precision import precision

    with _ONE_AT_A_TIME:
        chunks = chunks_of(folder, identity)
        with precision(chunks.plan.scenario.run.precision):
            chunks.compute(index, report, warn, parts=parts, keeps_segments=keeps_segments)


def refuse_other_versions(drivers: Mapping[str, str], theirs: Mapping[str, str], who: str) -> None:
    """Refuse a worker with other software than the process that drives the sweep, since its bytes would differ.

    Args:
        drivers: versions by package, of the process that drives the sweep.
        theirs: of the worker.
        who: the worker, in words.

    Raises:
        UserError: that names the first package whose version differs.
    """
    for name, version in drivers.items():
        if theirs.get(name) != version:
            raise UserError(
                f"{who} has {name} {theirs.get(name)} and the process that drives the sweep {version}; "
                "install the same on both"
            )


def main(folder: Path, identity: str) -> None:
    """Compute the chunks that standard input names, until it ends."""
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no message

    def tell(**message: Any) -> None:
        told.write(json.dumps(message) + "\n")

    asked: queue.Queue[dict[str, int]] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            asked.put(json.loads(line))
        os._exit(0)

    from simkit.storage.software import versions

    tell(ready=versions())
    threading.Thread(target=listen, daemon=True).start()
    while True:
        chunk = asked.get()
        index = chunk["chunk"]
        try:
            compute(
                folder,
                identity,
                index,
                chunk["parts"],
                lambda fraction, words, index=index: tell(progress=index, done=fraction),
                lambda words: tell(warning=words),
            )
        except UserError as error:
            tell(refused=str(error))
        else:
            tell(finished=index)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
