"""Worker process that computes chunks of a sweep, requested over its standard input (``python -m`` of this module).

Each line of its input and output is a JSON object. It reads ``{"chunk": index, "parts": n}`` and writes

    {"ready": versions}                  once
    {"progress": index, "done": fraction}
    {"warning": words}
    {"finished": index}                  the chunk is stored in its file
    {"refused": words}                   message of a `UserError`

Results are passed only through files. The worker exits at the end of its input, so that no chunk is written after its
driver was killed.
"""

import functools
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from simkit.core.compilation import use_compilation_cache
from simkit.core.devices import computing_as
from simkit.core.precision import precision
from simkit.errors import UserError
from simkit.jobs.chunks import Chunks
from simkit.jobs.job import prepared_of
from simkit.storage.kinds import kind_of
from simkit.storage.manifest import versions
from simkit.storage.run_directory import RunDirectory

# A cluster may request several chunks at once from one worker, which has memory for one.
_ONE_AT_A_TIME = threading.Lock()


@functools.lru_cache(maxsize=1)
def chunks_of(folder: Path, identity: str) -> "Chunks":
    """Return the chunks of the sweep in a folder, cached so that its program is compiled once in this process.

    Args:
        folder: run directory, locked by the process that drives the sweep.
        identity: required identity of the run.

    Raises:
        UserError: if the folder holds another run.
    """
    directory = RunDirectory.open(folder)
    if directory.identity != identity:
        raise UserError(f"{folder} holds another run than the one that requests its chunks; run the sweep again")
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
        identity: identity of the run.
        index: index of the chunk.
        parts: as for `simkit.jobs.chunks.Chunks.compute`.
        report: called with the progress.
        warn: called with one line about damaged files.
        keeps_segments: as for `simkit.jobs.chunks.Chunks.compute`.

    Raises:
        UserError: if the folder holds another run, or cannot be written.
    """
    with _ONE_AT_A_TIME:
        chunks = chunks_of(folder, identity)
        # Where nothing was chosen, a worker of a cluster computes on what JAX finds there.
        device = chunks.run_directory.manifest.get("device", "")
        with computing_as(device), precision(chunks.sweep.scenario.run.precision):
            chunks.compute(index, report, warn, parts=parts, keeps_segments=keeps_segments)


def refuse_other_versions(drivers: Mapping[str, str], workers: Mapping[str, str], name: str) -> None:
    """Refuse a worker with other software than the process that drives the sweep, since its results could differ.

    Args:
        drivers: versions by package in the process that drives the sweep.
        workers: versions by package in the worker.
        name: name of the worker in the error.

    Raises:
        UserError: naming the first package whose version differs.
    """
    for package, version in drivers.items():
        if workers.get(package) != version:
            raise UserError(
                f"{name} has {package} {workers.get(package)} and the process that drives the sweep {version}; "
                "install the same on both"
            )


def main(folder: Path, identity: str) -> None:
    """Compute the chunks requested over standard input, until its end."""
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not mix with the messages

    def send(**message: Any) -> None:
        output.write(json.dumps(message) + "\n")

    requests: queue.Queue[dict[str, int]] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            requests.put(json.loads(line))
        os._exit(0)

    send(ready=versions())
    threading.Thread(target=listen, daemon=True).start()
    while True:
        chunk = requests.get()
        index = chunk["chunk"]
        try:
            compute(
                folder,
                identity,
                index,
                chunk["parts"],
                lambda fraction, words, index=index: send(progress=index, done=fraction),
                lambda words: send(warning=words),
            )
        except UserError as error:
            send(refused=str(error))
        else:
            send(finished=index)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
