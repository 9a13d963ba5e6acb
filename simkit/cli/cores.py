"""Cores of a CPU as devices of JAX, for sweeps."""

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simkit.jobs.executors.executor import Executor

SETTING = "JAX_NUM_CPU_DEVICES"


def use_every_core(executor: "Executor | None") -> None:
    """Let JAX make each core of a CPU a device, unless the user has set their number or JAX has computed already.

    Args:
        executor: of a sweep; with any but that of this process, and with ``None`` for other jobs, nothing changes.
    """
    is_set = SETTING in os.environ or "host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if executor is None or not executor.in_this_process or is_set:
        return
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", cores)
