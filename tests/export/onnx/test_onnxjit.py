"""`onnxjit`: trees of arrays, static arguments, models on disk, and refusals."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import simkit
from simkit.errors import UserError
from simkit.export.onnx import convert, onnxjit


def scaled(tree, factor, power, *, shift=0.0):
    return {"a": tree["a"] * factor**power + shift, "b": (tree["b"], None, jnp.sum(tree["a"]) > 0)}


def test_trees_of_arrays_are_arguments_and_results():
    tree = {"a": jnp.arange(3.0), "b": [jnp.int32(4), np.float32(2)]}
    function = onnxjit(scaled, static_argnums=2)
    for power, shift in ((2, 1.0), (3, -1.0)):
        expected = scaled(tree, 2.0, power, shift=shift)
        found = function(tree, 2.0, power, shift=shift)
        assert jax.tree.structure(found) == jax.tree.structure(expected)
        for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
            assert isinstance(b, jax.Array) and jnp.asarray(a).dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_function_is_traced_once_for_each_shape_and_type():
    traces = []

    @simkit.onnxjit
    def double(x):
        traces.append(x.shape)
        return 2 * x

    for array in (jnp.ones(2), jnp.zeros(2), jnp.ones(3), jnp.ones(2, int)):
        np.testing.assert_array_equal(double(array), 2 * array)
    assert traces == [(2,), (3,), (2,)] and double.__name__ == "double"


def test_types_of_results_are_those_of_jax_for_numbers_and_arrays_of_one_type():
    double, x = onnxjit(lambda x, factor: x * factor), jnp.ones(2, jnp.float16)
    for factor in (2.0, np.float32(2)):
        assert double(x, factor).dtype == (x * factor).dtype


def test_static_argument_that_a_call_leaves_out_has_its_default():
    raised = onnxjit(lambda x, power=2: x**power, static_argnums=1)
    np.testing.assert_array_equal(raised(jnp.arange(3.0)), [0, 1, 4])
    np.testing.assert_array_equal(raised(jnp.arange(3.0), 3), [0, 1, 8])


def test_results_are_not_overwritten_by_the_next_call():
    double = onnxjit(lambda x: 2 * x)
    first = double(jnp.ones(64))
    double(jnp.zeros(64))
    np.testing.assert_array_equal(first, 2)
    np.testing.assert_array_equal(jnp.cumsum(first)[-1], 128)


def test_saved_model_runs_without_simkit(tmp_path):
    import onnx
    import onnxruntime

    converted = onnxjit(lambda x, key: jnp.sin(x) + jax.random.uniform(key)).lower(jnp.ones(3), jax.random.key(1))
    path = converted.save(tmp_path / "model.onnx")
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(path)
    names = [port.name for port in converted.inputs]
    assert [port.name for port in session.get_inputs()] == names
    key = np.asarray(jax.random.key_data(jax.random.key(1)))
    (found,) = session.run(None, dict(zip(names, (np.ones(3, np.float32), key), strict=True)))
    np.testing.assert_allclose(found, jnp.sin(jnp.ones(3)) + jax.random.uniform(jax.random.key(1)), 1e-6)


def test_inputs_are_named_by_their_paths():
    converted = convert(scaled, {"a": jnp.ones(3), "b": 1}, 2.0, 2)
    assert [port.name for port in converted.inputs] == ["in_0___a", "in_0___b", "in_1", "in_2"]
    lowered = onnxjit(scaled, static_argnums=2).lower({"a": jnp.ones(3), "b": 1}, 2.0, 2, shift=1.0)
    assert [port.name for port in lowered.inputs] == ["in_0___a", "in_0___b", "in_1", "in_shift"]


def test_unknown_primitive_is_refused_with_its_source_line():
    def function(x):
        return 1 + jax.pure_callback(np.sin, x, x)

    with pytest.raises(
        UserError, match=r"test_onnxjit.py:\d+: the primitive 'pure_callback' has no ONNX form; [^\n]*$"
    ):
        convert(function, jnp.ones(2))


def printing(x):
    jax.debug.print("x = {}", x)
    return x + 1


def test_printing_is_refused_with_its_source_line(capsys):
    refused = r"test_onnxjit.py:\d+: the primitive 'debug_\w+' has no ONNX form; leave it out"
    for function in (printing, jax.jit(printing), lambda x: jax.lax.fori_loop(0, 2, lambda _, y: printing(y), x)):
        with pytest.raises(UserError, match=refused):
            convert(function, jnp.ones(2))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "transform",
    [jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x).sum()), lambda f: lambda x: jax.lax.map(f, x)],
    ids=["jit", "vmap", "grad", "map"],
)
def test_call_inside_of_a_transformation_is_refused_in_one_line(transform):
    double = onnxjit(lambda x: 2 * x)
    # Not by `match`, which sees the note that JAX adds to errors.
    with pytest.raises(UserError, match="onnxjit: an argument of <lambda> is being traced by") as caught:
        transform(double)(jnp.ones(3))
    assert "\n" not in str(caught.value) and "transform first" in str(caught.value)
    with pytest.raises(UserError, match="the function uses an array from outside of it, which is being traced by"):
        transform(lambda x: onnxjit(lambda y: x + y)(np.float32(1)))(jnp.ones(3))


SWAPPED = np.arange(3, dtype=np.float32).astype(np.dtype(np.float32).newbyteorder())
MASKED = np.ma.array([1.0, 2, 3], mask=[0, 1, 0])
# Uses that jax.jit refuses: static arguments, and the arguments of a call.
REFUSED = {
    "no such argument": (7, ({"a": 1.0, "b": 1}, 1.0, 2)),
    "none from the end": (-5, ({"a": 1.0, "b": 1}, 1.0, 2)),
    "no integer": ("x", ({"a": 1.0, "b": 1}, 1.0, 2)),
    "not hashable": (2, ({"a": 1.0, "b": 1}, 1.0, np.ones(2))),
    "a word": ((), ("w", 1.0, 2)),
    "a large number": ((), (2**40, 1.0, 2)),
    "bytes of another machine": ((), (SWAPPED, 1.0, 2)),
    "masked": ((), (MASKED, 1.0, 2)),
}


def refuses(use):
    """Return whether a use raises an error of JAX."""
    try:
        use()
    except (TypeError, ValueError, OverflowError):
        return True
    return False


def test_what_jax_refuses_is_refused():
    kept = onnxjit(lambda x, *_: x)
    kept(np.ones(3, np.float32), 1.0, 2), kept(3, 1.0, 2)
    for name, (static, arguments) in REFUSED.items():
        for jit in (jax.jit, onnxjit):
            assert refuses(lambda jit=jit, of=static, to=arguments: jit(scaled, static_argnums=of)(*to)), name
        # Also after a call with an argument of the same type, whose model is kept.
        assert static != () or refuses(lambda to=arguments: kept(*to)), name
    with pytest.raises(TypeError, match="Expected a callable value"):
        onnxjit(3)


def test_static_arguments_are_counted_from_the_end_of_the_function():
    raised = onnxjit(lambda x, power=2: x**power, static_argnums=-1)
    np.testing.assert_array_equal(raised(jnp.arange(3.0)), [0, 1, 4])
    total = onnxjit(lambda *numbers: sum(numbers[:-1]) * numbers[-1], static_argnums=np.int64(2))
    assert total(1.0, 2.0, 3) == 9


def test_a_function_without_arrays_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"^the function returns no array, so that no program can be made of it"):
        onnxjit(lambda x: {"a": None})(1.0)


def test_integer_that_does_not_fit_is_refused():
    double = onnxjit(lambda x: 2 * x)
    # Also after a call with one that fits, whose model is kept.
    for _ in range(2):
        for given in (np.array([2**40]), np.array([2**32], np.uint64)):
            with pytest.raises(UserError, match=r"holds \d+, which does not fit in u?int32, [^\n]*$"):
                double(given)
        assert double(np.array([3])) == 6


def test_number_of_threads_is_checked():
    for threads in (0, -1, 1.5, True):
        with pytest.raises(UserError, match=r"threads = .* is not an integer of at least 1"):
            onnxjit(jnp.sin, threads=threads)


def test_missing_package_is_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"needs the package onnx: pip install 'simkit-physics\[onnx\]'"):
        convert(jnp.sin, jnp.ones(2))


def test_unwritable_model_is_refused_in_one_line(tmp_path):
    with pytest.raises(UserError, match=r"cannot write .*model.onnx"):
        convert(jnp.sin, jnp.ones(2)).save(tmp_path / "none" / "model.onnx")


def test_programs_without_inputs_or_with_unused_ones_run():
    assert onnxjit(lambda: jnp.arange(3))().tolist() == [0, 1, 2]
    assert onnxjit(lambda x, y: (x, x, 1))(jnp.ones(2), jnp.ones(3))[2] == 1
