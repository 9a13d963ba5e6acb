"""Cores of a CPU as devices of JAX, for verbs that compute many members."""

import argparse
import os
import sys

SETTING = "JAX_NUM_CPU_DEVICES"


def use_every_core(arguments: argparse.Namespace) -> None:
    """Let JAX make each core of a CPU a device, unless the user has set their number or JAX is already imported.

    Args:
        arguments: arguments of the command line; with ``workers`` or ``scheduler``, other processes compute.
    """
    is_set = SETTING in os.environ or "host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    elsewhere = (getattr(arguments, name, None) for name in ("workers", "scheduler", "processes"))
    if is_set or "jax" in sys.modules or any(given is not None for given in elsewhere):
        return
    # Read when JAX is imported.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    os.environ[SETTING] = str(cores)
