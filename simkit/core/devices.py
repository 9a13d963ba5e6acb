"""Devices that compute: the kind that a caller chooses, and the CPU for a system too small for another."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from importlib import metadata
from typing import Any

from simkit.core.settings.kinds import word
from simkit.errors import UserError, argument

KINDS = ("auto", "cpu", "gpu", "tpu")
DEVICE = word("kind of device that computes", KINDS, "auto")

# A step on an accelerator takes at least this long, s: a turn of the loop of steps, 9 us, and a hundred kernels of 0.9.
LAUNCHES = 1e-4
# Bytes of states that two cores advance by a step in a second: 0.2 ms for a flow of 256 x 128 cells, 660 kB.
RATE = 2e9

PLUGINS = ("jax-cuda13-plugin", "jax-cuda12-plugin", "jax-rocm7-plugin", "libtpu")

# Of a call with the device "auto": holds the choice from `settle` to the end of the call.
_CALL: ContextVar[ExitStack | None] = ContextVar("simkit_device", default=None)


@contextmanager
def computing_on(kind: str) -> Iterator[None]:
    """Compute on a kind of device inside the block.

    Args:
        kind: ``"cpu"``, ``"gpu"`` or ``"tpu"``; ``"auto"`` leaves the choice to `settle`.

    Raises:
        UserError: if the kind is unknown, or there is no such device.
    """
    import jax

    name = argument("device").rstrip("=")
    DEVICE.check(kind, name)
    with ExitStack() as stack:
        if kind == "auto":
            stack.callback(_CALL.reset, _CALL.set(stack))
        elif not is_present(kind):
            plugin = ", ".join(plugins())
            install = "jax[tpu]" if kind == "tpu" else "simkit-physics[cuda]"
            remedy = f"see why {plugin} finds none" if plugin else f"pip install '{install}'"
            raise UserError(
                f"{name} = {kind}: JAX finds none, only {jax.default_backend()}; leave it out, or {remedy}",
                key="device",
            )
        elif jax.config.jax_default_device is None or kind != platform():
            # By name: a device would be a single core, see `simkit.jobs.chunks.cores_for_chunks`.
            stack.enter_context(jax.default_device(kind))
        yield


def settle(name: str, held: Callable[[], float]) -> None:
    """Choose the device for the rest of a call with ``"auto"``: the CPU for a small system, told in one line.

    A step on a CPU takes about the bytes of what it advances, divided by `RATE`; on an accelerator at least `LAUNCHES`,
    whatever its size. Both grow in proportion to the number of steps.

    Args:
        name: name of the system.
        held: ``() -> `` bytes of the states that advance together; not called where there is no choice.
    """
    import jax

    stack, other = _CALL.get(), jax.default_backend()
    if stack is None or other == "cpu" or jax.config.jax_default_device is not None:
        return
    size = held()
    is_small = size < LAUNCHES * RATE and is_present("cpu")
    stack.enter_context(jax.default_device("cpu" if is_small else other))
    if is_small:
        warnings.warn(
            f"{name} computes on the CPU: a step of its {size / 1000:.3g} kB takes less time there than its launches "
            f"on the {other}; {argument('device', f'"{other}"')} computes there",
            stacklevel=2,
        )


def computing_as(began: str) -> AbstractContextManager[None]:
    """Return the context manager `computing_on` for the kind of device of a job, where it is present.

    Args:
        began: its kind, or its first device as in `simkit.storage.manifest.devices`; empty for that of this process.
    """
    kind = began.partition(":")[0]
    kind = {"cuda": "gpu", "rocm": "gpu"}.get(kind, kind)
    return computing_on(kind) if kind in KINDS and is_present(kind) else nullcontext()


def choice() -> str:
    """Return the kind of device that the caller or `settle` has chosen; empty where JAX's default computes."""
    import jax

    chosen = jax.config.jax_default_device
    return chosen if isinstance(chosen, str) else ""


def platform() -> str:
    """Return the kind of device on which programs run: ``"cpu"``, ``"gpu"``, ``"tpu"`` or that of another plugin."""
    import jax

    chosen = jax.config.jax_default_device
    return jax.default_backend() if chosen is None else chosen if isinstance(chosen, str) else chosen.platform


def refuse_no_platform() -> None:
    """Refuse an environment in which JAX finds no device at all, as with ``JAX_PLATFORMS=cuda`` and no card.

    Raises:
        UserError: that names the variable.
    """
    import jax

    chosen = jax.config.jax_platforms
    try:
        jax.default_backend()
    # JAX asserts where a plugin that is named finds no device.
    except (RuntimeError, AssertionError):
        installed = ", ".join(plugins()) or "no plugin of an accelerator is installed"
        problem = f"JAX_PLATFORMS = {chosen}: JAX finds no such device here ({installed})"
        raise UserError(f"{problem}; unset it, or set it to cpu", key="JAX_PLATFORMS") from None


def is_present(kind: str) -> bool:
    """Return whether JAX finds a kind of device."""
    import jax

    try:
        return bool(jax.devices(kind))
    except RuntimeError:
        return False


def devices(*, local: bool = False) -> list[Any]:
    """Return the devices on which programs run: all of one kind, or the single one that the caller set in JAX.

    Args:
        local: leave out those of other processes.
    """
    import jax

    chosen = jax.config.jax_default_device
    every = jax.devices(chosen) if chosen is None or isinstance(chosen, str) else [chosen]
    return [device for device in every if not local or device.process_index == jax.process_index()]


def plugins() -> list[str]:
    """Return the installed packages by which JAX uses accelerators, with their versions."""
    installed = list[str]()
    for name in PLUGINS:
        with suppress(metadata.PackageNotFoundError):
            installed.append(f"{name} {metadata.version(name)}")
    return installed
