"""Cores of a CPU as devices of JAX, for sweeps."""

import argparse
import contextlib
import os

SETTING = "JAX_NUM_CPU_DEVICES"


def use_every_core(arguments: argparse.Namespace) -> None:
    """Let JAX make each core of a CPU a device, unless the user has set their number or chunks go to workers.

    JAX accepts their number only before its first computation, so a verb calls this before it makes a simulation.

    Args:
        arguments: of a verb with ``--workers`` and ``--scheduler``.
    """
    is_set = SETTING in os.environ or "host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if is_set or arguments.workers is not None or arguments.scheduler is not None:
        return
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(RuntimeError):  # within a program that has computed already
        jax.config.update("jax_num_cpu_devices", cores)
