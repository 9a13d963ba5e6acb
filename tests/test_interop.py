"""Arrays to and from other libraries: values, shared memory, and reports of copies and precision."""

import sys
import types

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from simkit import interop
from simkit.errors import UserError
from simkit.rigid import bouncing_ball
from tests.tables import every


def aligned(dtype="float32", shift=0):
    """Return the numbers 0 to 7 at an address that is a multiple of 64 bytes, or ``shift`` bytes behind one."""
    raw = np.zeros(256, np.uint8)
    start = -raw.ctypes.data % 64 + shift
    array = raw[start : start + 8 * np.dtype(dtype).itemsize].view(dtype)
    array[:] = np.arange(8)
    return array


class Foreign:
    """An array of a library that is not installed, with the methods of PyTorch's arrays only."""

    def __init__(self, array):
        self.array, self.detached = np.asarray(array), False

    dtype = property(lambda self: f"torch.{self.array.dtype.name}")

    def data_ptr(self):
        return self.array.ctypes.data

    def detach(self):
        other = Foreign(self.array)
        other.detached = True
        return other

    def cpu(self):
        return self.array

    def __dlpack__(self, **keywords):
        if not self.detached:
            raise BufferError("cannot export a tensor that requires gradients")
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.fixture
def torch(monkeypatch):
    """Return a stand-in for PyTorch that shares memory with NumPy."""
    library = types.ModuleType("torch")
    library.from_dlpack = lambda array: Foreign(np.from_dlpack(array))
    library.tensor = lambda array: Foreign(np.array(array))
    monkeypatch.setitem(sys.modules, "torch", library)
    return library


@every("make", [aligned, lambda *args: Foreign(aligned(*args))], ids=["numpy", "other"])
def test_aligned_arrays_share_their_memory(make):
    given = make()
    handed = interop.to_jax({"x": given})
    address = given.data_ptr() if isinstance(given, Foreign) else given.ctypes.data
    assert handed.arrays["x"].unsafe_buffer_pointer() == address
    assert not handed.copies and not handed.changes and str(handed) == "no array was copied or changed"
    np.testing.assert_array_equal(handed.arrays["x"], np.arange(8))


@every("make", [np.asarray, Foreign], ids=["numpy", "other"])
@every(
    "values, reason",
    [
        (aligned(shift=4), "aligned"),
        (aligned()[::2], "cannot be shared"),
        (aligned().astype(">f4"), "cannot be shared"),
        (aligned().astype(ml_dtypes.bfloat16), "cannot be shared"),
    ],
    ids=["shifted", "strided", "swapped", "bfloat16"],
)
def test_arrays_that_cannot_be_shared_are_copied_and_reported(make, values, reason):
    handed = interop.to_jax((make(values), 2.5))
    assert list(handed.copies) == ["[0]"] and reason in handed.copies["[0]"] and not handed.changes
    np.testing.assert_array_equal(handed.arrays[0], values.astype(values.dtype.newbyteorder("=")))
    assert float(handed.arrays[1]) == 2.5 and str(handed).startswith("[0]: copied, ")


@every("dtype, narrow", [("float64", "float32"), ("int64", "int32"), (">f8", "float32")])
def test_a_change_of_precision_is_reported_or_refused(dtype, narrow):
    given = {"x": aligned(dtype), "y": aligned(), "z": 2.5}
    assert interop.to_jax(np.dtype(dtype).type(1)).changes == {"": f"{np.dtype(dtype).name} -> {narrow}"}
    handed = interop.to_jax(given)
    name = np.dtype(dtype).name
    assert handed.changes == {"['x']": f"{name} -> {narrow}"} and handed.copies == {"['x']": "its precision changes"}
    with pytest.raises(UserError, match=rf"x.* would become {name} -> {narrow}; enable 64 bits"):
        interop.to_jax(given, exact=True)
    with jax.enable_x64(True):
        assert interop.to_jax(given, exact=True).arrays["x"].dtype == name


# 64-bit numbers and the 32-bit types in which they do not fit; integers would wrap around, floats become infinite.
OUTSIDE = [
    (np.array([1, 2**40 + 5]), "1099511627781", "int32"),
    (np.array([1, 2**40 + 5])[::-1], "1099511627781", "int32"),
    (np.array([7, -(2**31) - 1], ">i8"), "-2147483649", "int32"),
    (np.int64(2**31), "2147483648", "int32"),
    (2**40 + 5, "1099511627781", "int32"),
    (np.array([2**32], np.uint64), "4294967296", "uint32"),
    (np.array([1.0, 1e300]), r"1e\+300", "float32"),
    (-1e300, r"-1e\+300", "float32"),
    (np.array([2 + 1e300j]), r"\(2\+1e\+300j\)", "complex64"),
]


@every("given, first, narrow", OUTSIDE)
def test_numbers_that_do_not_fit_in_the_narrower_type_are_refused(given, first, narrow):
    with pytest.raises(UserError, match=rf"^\['n'\] holds {first}, which does not fit in {narrow}, .*; enable 64 bits"):
        interop.to_jax({"n": given})
    with jax.enable_x64(True):
        np.testing.assert_array_equal(interop.to_jax({"n": given}).arrays["n"], given)


def test_numbers_at_the_ends_of_the_narrower_type_are_taken():
    given = [np.array([-(2**31), 2**31 - 1]), np.array([0, 2**32 - 1], np.uint64), np.array([3.4e38, np.inf, np.nan])]
    for array, taken in zip(given, interop.to_jax(given).arrays, strict=True):
        np.testing.assert_array_equal(taken, array.astype(taken.dtype))
    assert interop.to_jax(np.zeros(0, np.int64)).arrays.shape == (0,) and interop.to_jax(True).arrays


def test_an_array_of_another_library_is_checked_as_well():
    with pytest.raises(UserError, match="holds 1099511627776, which does not fit in int32"):
        interop.to_jax(Foreign(np.array([2**40])))


def test_an_integer_beyond_64_bits_is_refused_without_a_remedy_that_does_not_help():
    with pytest.raises(UserError, match=r"does not fit in int32, JAX's type[^;]*; give numbers in \[-2147"):
        interop.to_jax(2**70)


def test_arrays_of_jax_are_shared_with_numpy_without_a_copy():
    state = {"x": jnp.arange(6.0).reshape(2, 3), "on": jnp.array([True, False]), "half": jnp.ones(3, jnp.bfloat16)}
    handed = interop.from_jax(state)
    for name, array in state.items():
        assert handed.arrays[name].ctypes.data == array.unsafe_buffer_pointer()
        assert handed.arrays[name].dtype == array.dtype and not handed.arrays[name].flags.writeable
    assert not handed.copies and not handed.changes
    # JAX before 0.12 asks for no version of DLPack that has read-only arrays.
    again = interop.to_jax(interop.from_jax(jnp.arange(16.0)).arrays)
    assert not again.copies or jax.__version_info__ < (0, 12)


def test_arrays_for_another_library_are_shared_or_copied_and_widened(torch):
    state = {"x": jnp.arange(6.0), "half": jnp.ones(3, jnp.bfloat16)}
    handed = interop.from_jax(state, "torch")
    assert handed.arrays["x"].data_ptr() == state["x"].unsafe_buffer_pointer()
    assert handed.copies == {"['half']": "torch cannot share its memory"}
    assert handed.changes == {"['half']": "bfloat16 -> float32"}
    with pytest.raises(UserError, match=r"half.* would become bfloat16 -> float32; convert it"):
        interop.from_jax(state, "torch", exact=True)


def test_torch_both_ways():
    torch = pytest.importorskip("torch")
    given = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    taken = interop.to_jax(given.requires_grad_())
    np.testing.assert_array_equal(taken.arrays, np.arange(6).reshape(2, 3))
    assert bool(taken.copies) == (taken.arrays.unsafe_buffer_pointer() != given.data_ptr())
    state = {"x": jnp.arange(6.0), "on": jnp.array([True, False]), "half": jnp.ones(3, jnp.bfloat16)}
    handed = interop.from_jax(state, "torch", exact=True)
    for name, array in state.items():
        assert handed.arrays[name].data_ptr() == array.unsafe_buffer_pointer() and not handed.copies
    assert interop.to_jax(torch.ones(3, dtype=torch.float64)).changes == {"": "float64 -> float32"}


@every(
    "hand, message",
    [
        (lambda: interop.to_jax({"a": "text"}), r"\['a'\] is a str; give arrays, or numbers"),
        (lambda: interop.from_jax([1.0]), r"\[0\] is a float; give arrays of JAX"),
        (lambda: interop.from_jax(jax.random.key(0)), "holds random keys; give jax.random.key_data"),
        (lambda: interop.from_jax(jnp.ones(2), "numpi"), "library = 'numpi' is unknown; did you mean 'numpy'"),
        (lambda: interop.to_jax({"a": np.array(["a"])}), r"^\['a'\] holds text \(<U1\); give an array of numbers$"),
        (lambda: interop.to_jax(np.array([{}])), r"the array holds objects \(\|O\); give an array of numbers"),
        (lambda: interop.to_jax(np.zeros(2, "f4,i4")), r"holds records \(\|V8\); give"),
        (
            lambda: interop.to_jax({"a": np.ma.array([1.0, 2.0], mask=[0, 1])}),
            r"^\['a'\] is a masked array, whose mask JAX lacks; give array.filled\(value\)$",
        ),
        (lambda: interop.to_jax([np.ma.array([1.0, 2.0])]), r"^\[0\] is a masked array, "),
        (lambda: interop.to_jax(np.zeros(2, np.longdouble)), r"become a JAX array: .*; convert it to a NumPy array"),
    ],
)
def test_a_mistake_is_one_line(hand, message):
    with pytest.raises(UserError, match=message):
        hand()


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(UserError, match="needs the package cupy: pip install 'cupy'"):
        interop.from_jax(jnp.ones(2), "cupy")


def test_environments_of_gymnasium_fall_as_the_simulation_and_start_anew():
    """A push is held for the two steps of an action; an episode of three actions is cut off, and then starts again."""
    gymnasium = pytest.importorskip("gymnasium")
    puck = bouncing_ball()
    environment = interop.gymnasium(
        puck,
        action="gravity",
        observed=["height", "position_x"],
        reward=lambda now: now["height"],
        limits=(0.0, 20.0),
        members=3,
        hold=2,
        steps=3,
    )
    assert isinstance(environment, gymnasium.vector.VectorEnv) and environment.observation_space.shape == (3, 2)
    assert environment.single_action_space == gymnasium.spaces.Box(0.0, 20.0, (1,), np.float32)
    first, _ = environment.reset(seed=1)
    pulls = np.array([[1.0], [5.0], [9.81]], np.float32)
    seen, rewards, ended, cut_off, _ = environment.step(pulls)
    state = puck.init(puck.params, jax.random.key(0))
    for member, pull in enumerate(pulls[:, 0]):
        params, after = puck.params | {"gravity": jnp.asarray(pull)}, state
        for _ in range(2):
            after = puck.step(after, params)
        np.testing.assert_allclose(seen[member, 0], puck.diagnose(after, params)["height"], rtol=1e-6)
    np.testing.assert_array_equal(rewards, seen[:, 0])
    environment.step(pulls)
    assert not ended.any() and not cut_off.any() and environment.step(pulls)[3].all()
    again, rewards, _, cut_off, _ = environment.step(pulls)
    np.testing.assert_array_equal(again, first)
    assert not rewards.any() and not cut_off.any()
    with pytest.raises(UserError, match=r"actions are 4 numbers; give an array of shape \(3, 1\)"):
        environment.step(np.ones(4))
    with pytest.raises(UserError, match="actions hold 1 NaN; give numbers"):
        environment.step([0.0, np.nan, 1.0])


@every(
    "change, message",
    [
        ({"action": "gravit"}, "action = 'gravit' is unknown; did you mean 'gravity'"),
        ({"observed": "height"}, "observed = 'height' is no list"),
        ({"observed": ["heigt"]}, "observed = 'heigt' is unknown; did you mean 'height'"),
        ({"reward": lambda now: now["heigt"]}, "array that reward reads = 'heigt' is unknown; did you mean 'height'"),
        ({"ends": lambda now: now["position"] < 0}, r"ends returns float32 of shape \(1, 3\); return one real number"),
        ({"reward": 1.0}, "reward = 1.0 is of type float; give a function of observed arrays and diagnostics by name"),
        ({"limits": (1.0, -1.0)}, r"limits = \(1.0, -1.0\) are no pair of the lowest and the highest action"),
        ({"limits": 1.0}, r"limits has shape \(\); give a pair of numbers, or of arrays of shape \(\)"),
        ({"simulation": "projectile"}, "simulation = 'projectile' is of type str; give what simkit.build"),
    ],
)
def test_a_mistake_in_an_environment_is_one_line(change, message):
    pytest.importorskip("gymnasium")
    given = {"simulation": bouncing_ball(), "action": "gravity", "observed": ["height"], "reward": lambda now: 1.0}
    with pytest.raises(UserError, match=message):
        interop.gymnasium(**(given | change))
