"""One simulation in several processes, and the cores that they share."""

import argparse
import contextlib
import os
import shlex
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.cli.arguments import exclude
from simkit.cli.main import FAILED, FINE
from simkit.errors import UserError

if TYPE_CHECKING:
    from simkit.engine.processes import ProcessGroup


SETTING = "JAX_NUM_CPU_DEVICES"
PARENT = "SIMKIT_LAUNCHED"
"""Variable of the environment of a process whose standard input ends with the process that launched it."""
# Seconds in which such a process stops in order.
GRACE = 300.0


def use_every_core(arguments: argparse.Namespace) -> None:
    """Let JAX make each core of a CPU a device, unless the user has set their number or chunks go to workers.

    JAX accepts their number only before its first computation, so a verb calls this before it makes a simulation.

    Args:
        arguments: of a verb with ``--workers`` and ``--scheduler``.
    """
    is_set = SETTING in os.environ or "host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if is_set or any(getattr(arguments, name) is not None for name in ("workers", "scheduler", "executor")):
        return
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(RuntimeError):  # within a program that has computed already
        jax.config.update("jax_num_cpu_devices", cores)


OPTIONS = ("processes", "process_id", "coordinator")


def add_processes(parser: argparse.ArgumentParser) -> None:
    """Add the number of processes, the index of this one, and the address of the first."""
    parser.add_argument(
        "--processes", type=int, metavar="N", help="run as one of N processes, also on several hosts (see launch)"
    )
    parser.add_argument(
        "--process-id", type=int, metavar="I", help="index of this process, from 0, which stores the results"
    )
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="address at which process 0 listens for the others")


def group_of(arguments: argparse.Namespace) -> "ProcessGroup | None":
    """Return the group of this process, once all processes are connected; ``None`` for a single process.

    Raises:
        UserError: if an option is missing, or the other processes do not connect.
    """
    options = {name: getattr(arguments, name) for name in OPTIONS}
    if all(value is None for value in options.values()):
        return None
    for name, value in options.items():
        if value is None:
            raise UserError(
                f"--{name.replace('_', '-')} is missing; several processes need all of "
                "--processes N --process-id I --coordinator HOST:PORT"
            )
    exclude(arguments, ["device"], "is for one process", "leave it out, or set JAX_PLATFORMS for all of them")
    if os.environ.pop(PARENT, None):
        threading.Thread(target=_stop_with_parent, daemon=True).start()
    # Read when JAX is imported; without it the compiler warns of each FFT that it does not partition.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from simkit.engine.processes import ProcessGroup

    return ProcessGroup.joined(options["processes"], options["process_id"], options["coordinator"])


def _stop_with_parent() -> None:
    """Stop in order when the process that launched this one has ended, even if it was killed."""
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(FAILED)


def together[**P, T](group: "ProcessGroup", remedy: str, work: "Callable[P, T]") -> "Callable[P, T]":
    """Return the work of the first process of a group, which leaves the group at its end.

    Args:
        group: group of the processes.
        remedy: what to do if another process is lost.
        work: function that does the work, such as one that runs a job, given a progress callback.
    """

    def run(*arguments: P.args, **keywords: P.kwargs) -> T:
        import jax

        try:
            result = work(*arguments, **keywords)
        except jax.errors.JaxRuntimeError as error:
            _end_if_lost(error, remedy)
            raise
        except BaseException:
            group.leave()
            raise
        group.leave()
        return result

    return run


def resuming(folder: Path) -> str:
    """Return what to do if a process of a run is lost."""
    return f"resume with: simkit resume {shlex.quote(str(folder))}"


def follow(work: "Callable[[], Any]", group: "ProcessGroup") -> int:
    """Run the part of a process other than the first, which prints and stores nothing.

    Args:
        work: function that does the work.
        group: group of the processes.

    Returns:
        The exit code.
    """
    import jax

    from simkit.engine.processes import FirstProcessStoppedError

    try:
        work()
    except FirstProcessStoppedError:
        pass
    except jax.errors.JaxRuntimeError as error:
        _end_if_lost(error, "see the message of process 0")
        raise
    except UserError:  # raised in the first process, too
        group.leave()
        raise
    except Exception:
        # The first process would wait for this one, which would wait for it at its end.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    group.leave()
    return FINE


def _end_if_lost(error: Exception, remedy: str) -> None:
    """Exit with one line if another process is lost: leaving the group normally would abort with a page of text."""
    if any(word in str(error) for word in ("Gloo", "gloo", "UNAVAILABLE", "onnection", "heartbeat")):
        print(f"simkit: another process of the group was lost; {remedy}", file=sys.stderr, flush=True)
        os._exit(FAILED)
