"""Exchange of arrays with NumPy, PyTorch and CuPy by DLPack, and environments for learners of Gymnasium."""

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.arguments import check_distinct, check_shape, check_type
from simkit.core.ensemble import ensemble
from simkit.core.objective import number_by
from simkit.core.parameter import UNBOUNDED
from simkit.core.rollout import segment
from simkit.core.settings import arguments, several, text, whole
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import Status, status_of
from simkit.errors import UserError, known, one_line, package

__all__ = ["Transfer", "from_jax", "gymnasium", "to_jax"]

LIBRARIES = ("numpy", "torch", "cupy")
# Types that JAX replaces by those of half the width unless 64 bits are enabled.
_WIDE = ("int64", "uint64", "float64", "complex128")
# Kinds of NumPy's arrays without numbers; records are not among them, since bfloat16 is of their kind as well.
_NO_NUMBERS = {"U": "text", "S": "bytes", "O": "objects", "M": "dates", "m": "durations"}


@dataclasses.dataclass(frozen=True)
class Transfer:
    """Converted arrays, and which of them were copied or changed their type.

    An array that was not copied shares its memory: do not write into it, since JAX's arrays are immutable.

    Attributes:
        arrays: in the structure of the argument.
        copies: reason why an array was copied, by its path in the structure.
        changes: ``"old type -> new type"`` of an array whose type changed, by its path.

    Example:
        >>> moved = simkit.interop.to_jax({"x": np.ones(3)})
        >>> isinstance(moved, simkit.interop.Transfer)
        True
        >>> print(moved)
        ['x']: copied, its precision changes
        ['x']: float64 -> float32
    """

    arrays: Any
    copies: dict[str, str]
    changes: dict[str, str]

    def __str__(self) -> str:
        """Return one line for each copy and change, or one that there were none."""
        lines = [f"{path or 'the array'}: copied, {reason}" for path, reason in self.copies.items()]
        lines += [f"{path or 'the array'}: {change}" for path, change in self.changes.items()]
        return "\n".join(lines) or "no array was copied or changed"


def to_jax(arrays: Any, *, exact: bool = False) -> Transfer:
    """Return arrays of any library as JAX arrays, sharing their memory where possible.

    Args:
        arrays: any tree of arrays of NumPy, PyTorch, CuPy or others with ``__dlpack__``, of JAX arrays, which stay as
            they are, and of numbers.
        exact: whether to refuse an array whose type would change.

    Raises:
        UserError: if a leaf is not an array of numbers, or a masked one; if a number does not fit in the type that JAX
            gives it, 32 bits instead of 64 unless ``jax_enable_x64`` is set; with ``exact``, if a type would change.

    Example:
        >>> moved = simkit.interop.to_jax({"x": np.ones(3, np.float32), "mass": np.float64(2.0)})
        >>> moved.arrays["x"].shape, moved.changes
        ((3,), {"['mass']": 'float64 -> float32'})
    """
    return _transferred(arrays, _to_jax, exact)


def from_jax(arrays: Any, library: str = "numpy", *, exact: bool = False) -> Transfer:
    """Return JAX arrays as those of another library, sharing their memory where possible.

    Args:
        arrays: any tree of JAX arrays, a simulation's state for instance.
        library: ``"numpy"``, ``"torch"`` or ``"cupy"``.
        exact: whether to refuse an array whose type would change.

    Raises:
        UserError: if the library is unknown or not installed; if a leaf is not a JAX array, or holds random keys, for
            which no other library has a type; with ``exact``, if the library lacks a type.

    Example:
        >>> moved = simkit.interop.from_jax({"x": jnp.arange(3.0)})
        >>> type(moved.arrays["x"]).__name__, moved.copies
        ('ndarray', {})
    """
    known(library, LIBRARIES, "library")
    target = package(library, "from_jax", library)
    return _transferred(arrays, lambda array, path: _from_jax(array, path, target), exact)


def check_fit(array: Any, narrow: Any, path: str) -> None:
    """Refuse numbers that lie outside of the narrower type that JAX gives them, where integers would wrap around.

    Args:
        array: of NumPy.
        narrow: type that the numbers will have.
        path: of the array, for errors.

    Raises:
        UserError: if an integer lies outside of it, or a finite number would become infinite.
    """
    if array.dtype.kind == "b":
        return
    if array.dtype.kind in "iuO":  # Python's integers beyond 64 bits are objects
        low, high = int(np.iinfo(narrow).min), int(np.iinfo(narrow).max)
        outside = np.asarray((array < low) | (array > high))
    else:
        low, high = (f"{bound:.3g}" for bound in (np.finfo(narrow).min, np.finfo(narrow).max))
        with np.errstate(over="ignore"):
            outside = np.isfinite(array) & ~np.isfinite(array.astype(narrow))
    if outside.any():
        first = np.asarray(array)[outside].reshape(-1)[0]
        wider = "" if array.dtype.kind == "O" else "enable 64 bits (jax_enable_x64), or "
        raise UserError(
            f"{path or 'the argument'} holds {first}, which does not fit in {narrow}, JAX's type for it at present; "
            f"{wider}give numbers in [{low}, {high}]"
        )


def refuse_masked(array: Any, path: str) -> None:
    """Refuse a masked array of NumPy, whose mask would be lost; as JAX, also one in which nothing is masked.

    Args:
        array: of any kind.
        path: of the array, for errors.

    Raises:
        UserError: if it is one.
    """
    if isinstance(array, np.ma.MaskedArray):
        raise UserError(f"{path or 'the argument'} is a masked array, whose mask JAX lacks; give array.filled(value)")


type _Moved = tuple[Any, str, str]


def _transferred(arrays: Any, move: Callable[[Any, str], _Moved], exact: bool) -> Transfer:
    """Convert each leaf by ``move``: ``(leaf, path) -> (array, reason of a copy or "", change of type or "")``."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(arrays)
    moved, copies, changes = [], {}, {}
    for keys, leaf in leaves:
        path = jax.tree_util.keystr(keys)
        array, reason, change = move(leaf, path)
        if change and exact:
            raise UserError(f"{path or 'the array'} would become {change}; {_remedy(change)}")
        moved.append(array)
        copies |= {path: reason} if reason else {}
        changes |= {path: change} if change else {}
    return Transfer(jax.tree.unflatten(structure, moved), copies, changes)


def _remedy(change: str) -> str:
    wide = change.startswith(_WIDE)
    return "enable 64 bits (jax_enable_x64), or drop exact=True" if wide else "convert it, or drop exact=True"


def _to_jax(array: Any, path: str) -> _Moved:
    if isinstance(array, jax.Array):
        return array, "", ""
    refuse_masked(array, path)
    # Not isinstance: a NumPy float64 is also a Python float, but has its own type to keep.
    if type(array) in (bool, int, float, complex):
        check_fit(np.asarray(array), jax.dtypes.canonicalize_dtype(type(array)), path)
        return jnp.asarray(array), "", ""
    if hasattr(array, "detach"):
        # PyTorch refuses to export a tensor that requires a gradient.
        array = array.detach()
    if not hasattr(array, "__dlpack__") and not isinstance(array, np.generic):
        raise UserError(f"{path or 'the argument'} is a {type(array).__name__}; give arrays, or numbers")
    dtype, reason = _kind(array), ""
    if dtype in _WIDE and (narrow := jax.dtypes.canonicalize_dtype(dtype)).name != dtype:
        check_fit(_on_host(array), narrow, path)
    try:
        result = jnp.from_dlpack(array)
    except Exception as error:  # the libraries raise many kinds where DLPack cannot describe an array
        result, reason = _copied(array, path, error), "its memory cannot be shared"
    if not reason and _address(array) != result.unsafe_buffer_pointer():
        reason = "its memory is not aligned as JAX requires, or is on another device"
    change = "" if result.dtype.name == dtype else f"{dtype} -> {result.dtype.name}"
    return result, "its precision changes" if change else reason, change


def _copied(array: Any, path: str, error: Exception) -> Any:
    """Return a copy of an array that DLPack cannot share: strided, of another byte order, or on another device."""
    try:
        host = _on_host(array)
        if found := "records" if host.dtype.names else _NO_NUMBERS.get(host.dtype.kind):
            raise UserError(f"{path or 'the array'} holds {found} ({host.dtype.str}); give an array of numbers")
        return jnp.asarray(np.array(host, host.dtype.newbyteorder("=")))
    except UserError:
        raise
    except Exception:
        raise UserError(
            f"{path or 'the array'} cannot become a JAX array: {one_line(error).rstrip('.')}; convert it to a NumPy "
            "array of a type that JAX has, such as float32"
        ) from error


def _on_host(array: Any) -> Any:
    """Return an array of any library as one of NumPy."""
    host = array.get() if hasattr(array, "get") else array.cpu() if hasattr(array, "cpu") else array
    return np.asarray(host) if isinstance(host, np.generic) or hasattr(host, "__array__") else np.from_dlpack(host)


def _from_jax(array: Any, path: str, target: Any) -> _Moved:
    if not isinstance(array, jax.Array):
        raise UserError(f"{path or 'the argument'} is a {type(array).__name__}; give arrays of JAX")
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        raise UserError(f"{path or 'the array'} holds random keys; give jax.random.key_data of them")
    if target is np:
        result = np.asarray(array)
        same = _address(result) == _pointer(array)
        return result, "" if same else "it is on another device", ""
    try:
        result, reason = target.from_dlpack(array), ""
    except Exception:  # libraries raise many kinds for memory that they cannot share
        host = np.asarray(array)
        wide = host if host.dtype.kind in "biufc" and host.dtype.isbuiltin == 1 else host.astype(np.float32)
        make = target.tensor if hasattr(target, "tensor") else target.asarray
        result, reason = make(wide), f"{target.__name__} cannot share its memory"
    if not reason and _address(result) != _pointer(array):
        reason = "it is on another device"
    return result, reason, "" if _kind(result) == array.dtype.name else f"{array.dtype.name} -> {_kind(result)}"


def _kind(array: Any) -> str:
    """Return the name of an array's element type, without the library's prefix and the byte order."""
    return getattr(array.dtype, "name", None) or str(array.dtype).rpartition(".")[2]


def _address(array: Any) -> int | None:
    """Return the memory address of an array of NumPy, PyTorch or CuPy, ``None`` if it has no such attribute."""
    if hasattr(array, "data_ptr"):
        return array.data_ptr()
    for name in ("__array_interface__", "__cuda_array_interface__"):
        if hasattr(array, name):
            return getattr(array, name)["data"][0]
    return None


def _pointer(array: Any) -> int | None:
    """Return the memory address of a JAX array, ``None`` for one that is sharded over devices."""
    return array.unsafe_buffer_pointer() if len(array.devices()) == 1 else None


type Numbers = np.ndarray[Any, Any]


def _never(quantities: Arrays) -> bool:
    return False


@arguments(
    action=text("path of the parameter that is the action"),
    observed=several(text("name of an observed array or diagnostic"), "names of what makes up an observation"),
    members=whole("environments that run at once", low=1),
    hold=whole("steps for which an action is held", low=1),
    steps=whole("actions after which an episode is cut off", low=1),
)
def gymnasium(
    simulation: Simulation,
    *,
    action: str,
    observed: Sequence[str],
    reward: Callable[[Arrays], Any],
    ends: Callable[[Arrays], Any] = _never,
    limits: tuple[Any, Any] | None = None,
    members: int = 16,
    hold: int = 1,
    steps: int = 1000,
) -> Any:
    """Return a `gymnasium.vector.VectorEnv` of members of a simulation, which take a parameter as their action.

    All members advance in one compiled program. A member whose episode ended starts anew at the next step, whose action
    it does not take and whose reward is zero (``AutoresetMode.NEXT_STEP``). A member whose numbers are no longer finite
    ends. The seed of `reset` sets that of each start, such as of ``velocity_scatter``.

    Args:
        simulation: one whose step depends on the action.
        action: path of the parameter that is the action, such as ``"control"``.
        observed: names of observed arrays and diagnostics that make up an observation, flat and in this order.
        reward: function of all observed arrays and diagnostics after a step, by name, to a number.
        ends: likewise, to whether the episode ends.
        limits: lowest and highest action, numbers or arrays, such as the control ranges of motors; ``None`` takes the
            bounds of the parameter.
        members: number of environments.
        hold: steps of the simulation for each action.
        steps: actions after which an episode is cut off.

    Raises:
        UserError: if gymnasium is not installed, the action is not a parameter, ``observed`` names something else, a
            function reads an unknown name or returns no number, or the limits are none. An environment refuses actions
            of another shape, and NaN.

    Example:
        >>> cart = simkit.build(simkit.load("cartpole", {"precision": "float32"}))
        >>> upright = lambda now: jnp.cos(now["joint_position"][1])
        >>> make = lambda: simkit.interop.gymnasium(
        ...     cart, action="control", observed=["joint_position", "joint_velocity"], reward=upright, hold=3
        ... )
        >>> callable(make)  # needs the extra: pip install simkit-physics[gymnasium]
        True
    """
    library = package("gymnasium", "an environment", "simkit-physics[gymnasium]")
    check_type("simulation", simulation, "what simkit.build returns", Simulation)
    leaves = paths.leaves(simulation.params)
    known(action, leaves, "action")
    check_distinct("observed", observed)
    for name in observed:
        known(name, {**simulation.shapes.observed, **simulation.shapes.diagnosed}, "observed")
    for name, function in {"reward": reward, "ends": ends}.items():
        check_type(name, function, "a function of observed arrays and diagnostics by name", Callable)
    shape = leaves[action].shape
    if limits is None:
        declared = simulation.parameters.get(action)
        limits = declared.bounds if declared else UNBOUNDED
    check_shape("limits", limits, f"a pair of numbers, or of arrays of shape {shape}", (2,), (2, *shape))
    low, high = (np.broadcast_to(np.asarray(end, np.float32), shape or (1,)) for end in limits)
    if not (low < high).all():
        raise UserError(f"limits = {limits!r:.80} are no pair of the lowest and the highest action; swap or widen")
    programs = _Programs(simulation, action, observed, reward, ends, members, hold)
    return _environment_class(library)(programs, (low, high), steps)


class _Programs:
    """Compiled functions of a batch, and the shapes of what enters and leaves them.

    Attributes:
        start: ``key -> (states, observations)``.
        step: ``(states, actions, is_new, key) -> (states, observations, rewards, ended)``.
        action: its default.
        width: numbers of an observation.
    """

    def __init__(
        self,
        simulation: Simulation,
        action: str,
        observed: Sequence[str],
        reward: Callable[[Arrays], Any],
        ends: Callable[[Arrays], Any],
        members: int,
        hold: int,
    ) -> None:
        many, params = ensemble(simulation, over=[action]), simulation.params
        advance, default = segment(many, hold), paths.leaves(params)[action]
        self.members, self.action = members, default
        shapes = {**simulation.shapes.observed, **simulation.shapes.diagnosed}
        self.width = sum(int(np.prod(shapes[name].shape)) for name in observed)

        def acting(actions: jax.Array) -> Params:
            return paths.replaced(params, {action: jnp.asarray(actions, default.dtype)})

        def seen(states: State, current: Params) -> Arrays:
            return {**many.observe(states, current), **many.diagnose(states, current)}

        def flat(quantities: Arrays) -> jax.Array:
            parts = [jnp.asarray(quantities[name], jnp.float32).reshape(members, -1) for name in observed]
            return jnp.concatenate([jnp.zeros((members, 0)), *parts], axis=1)

        def rewarded(quantities: Arrays) -> jax.Array:
            return number_by(lambda now: jnp.asarray(reward(now), jnp.float32), "reward", quantities)

        def is_over(quantities: Arrays) -> jax.Array:
            return number_by(lambda now: jnp.asarray(ends(now), jnp.float32), "ends", quantities)

        def fresh(key: jax.Array) -> tuple[State, Params]:
            current = acting(jnp.broadcast_to(default, (members, *default.shape)))
            return many.init(current, jax.random.split(key, members)), current

        def start(key: jax.Array) -> tuple[State, jax.Array]:
            states, current = fresh(key)
            return states, flat(seen(states, current))

        def step(states: State, actions: jax.Array, is_new: jax.Array, key: jax.Array) -> Any:
            current = acting(actions)
            begun, moved = fresh(key)[0], advance(states, current)
            states = jax.vmap(lambda new, a, b: jax.tree.map(lambda a, b: jnp.where(new, a, b), a, b))(
                is_new, begun, moved
            )
            quantities = seen(states, current)
            # Non-finite numbers end an episode, whatever the function says.
            broken = status_of(many)(states, current) == Status.NON_FINITE
            rewards = jnp.where(is_new | broken, 0, jax.vmap(rewarded)(quantities))
            ended = jax.vmap(is_over)(quantities) != 0
            return states, jnp.nan_to_num(flat(quantities)), rewards, ~is_new & (ended | broken)

        for function in (rewarded, is_over):
            jax.eval_shape(function, shapes)
        self.start, self.step = jax.jit(start), jax.jit(step)


def _environment_class(library: Any) -> Any:
    """Return the class of environments, whose base is that of gymnasium."""
    vector, box = importlib.import_module("gymnasium.vector"), library.spaces.Box

    class Environment(vector.VectorEnv):
        """A batch of simulations."""

        metadata = {"autoreset_mode": vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012

        def __init__(self, programs: _Programs, limits: tuple[Numbers, Numbers], steps: int) -> None:
            self.num_envs, self._programs, self._limit = programs.members, programs, steps
            self.single_action_space = box(*limits, dtype=np.float32)
            self.single_observation_space = box(-np.inf, np.inf, (programs.width,), np.float32)
            batch = vector.utils.batch_space
            self.action_space = batch(self.single_action_space, self.num_envs)
            self.observation_space = batch(self.single_observation_space, self.num_envs)
            self._key, self._states = jax.random.key(0), None

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Numbers, dict[str, Any]]:
            """Start all members anew."""
            del options
            self._key = self._key if seed is None else jax.random.key(seed)
            self._key, key = jax.random.split(self._key)
            self._states, observations = self._programs.start(key)
            self._is_new = np.zeros(self.num_envs, bool)
            self._taken = np.zeros(self.num_envs, int)
            return np.asarray(observations), {}

        def step(self, actions: Any) -> tuple[Numbers, Numbers, Numbers, Numbers, dict[str, Any]]:
            """Advance all members by one action each, (members, ...)."""
            if self._states is None:
                raise library.error.ResetNeeded("no episode has begun; call reset() before step(actions)")
            if (size := np.size(actions)) != np.prod(self.action_space.shape):
                raise UserError(f"actions are {size} numbers; give an array of shape {self.action_space.shape}")
            if np.isnan(actions).any():
                raise UserError(f"actions hold {np.isnan(actions).sum()} NaN; give numbers (did the learner diverge?)")
            self._key, key = jax.random.split(self._key)
            controls = jnp.asarray(actions).reshape(self.num_envs, *self._programs.action.shape)
            self._states, *outcome = self._programs.step(self._states, controls, self._is_new, key)
            observations, rewards, ended = map(np.asarray, outcome)
            self._taken = np.where(self._is_new, 0, self._taken + 1)
            cut_off = (self._taken >= self._limit) & ~ended
            self._is_new = ended | cut_off
            return observations, rewards, ended, cut_off, {}

    return Environment
