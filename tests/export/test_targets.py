"""Models for targets with fewer operators than ONNX: each replacement, and whole programs, in onnxruntime."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import onnxruntime

import simkit.export
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.model import OPSET, model_of
from simkit.export.onnx.runtime import Session, convert
from simkit.export.programs.comparison import Difference
from simkit.export.programs.nested_graphs import graphs_of
from simkit.export.programs.verification import Report, RuntimeReport
from simkit.export.targets.graph import TargetGraph
from simkit.export.targets.model import fit
from simkit.export.targets.operators import Operators, read_operators
from simkit.export.targets.registry import REPLACEMENTS
from tests.toys import PENDULUMS, toy, toys  # noqa: F401

# A small set: elementwise arithmetic, comparisons, products of matrices, and moves of whole arrays.
FEW = ("Add", "Mul", "Div", "Less", "Equal", "Cast", "MatMul", "Transpose", "Reshape", "Concat", "Exp", "Floor", "Pow")
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 4))
PLACES = np.array([[2, 0], [1, 1], [0, 2]])

# Cases of each operator: inputs, attributes, and indices of the inputs that are constants of the model.
CASES = {
    "Abs": ([X], {}, ()),
    "And": ([X > 0, X.T[0, :1] > 0], {}, ()),
    "Ceil": ([X], {}, ()),
    "Clip": ([X, np.asarray(-0.3), np.asarray(0.4)], {}, ()),
    "CumSum": ([X, np.int64(1)], {"reverse": 1}, (1,)),
    "DFT": ([RANDOM.normal(size=(2, 6, 2)), None, np.int64(1)], {"inverse": 1, "onesided": 0}, (2,)),
    "Einsum": ([X, RANDOM.normal(size=(5, 3, 4))], {"equation": "ij,kij->ik"}, ()),
    "Expand": ([X[:, :1], np.array([2, 3, 4])], {}, (1,)),
    "Gather": ([X, PLACES], {"axis": 1}, ()),
    "GatherElements": ([X, np.array([[0, 3], [1, 1], [2, 0]])], {"axis": 1}, ()),
    "GatherND": ([X, PLACES], {}, ()),
    "Greater": ([X, X[0]], {}, ()),
    "GreaterOrEqual": ([X, X[0]], {}, ()),
    "IsInf": ([np.array([1.0, np.inf, -np.inf])], {}, ()),
    "IsNaN": ([np.array([1.0, np.nan, np.inf])], {}, ()),
    "LessOrEqual": ([X, X[0]], {}, ()),
    "Max": ([X, X[0]], {}, ()),
    "Min": ([X, X[0]], {}, ()),
    "Neg": ([X], {}, ()),
    "Not": ([X > 0], {}, ()),
    "Or": ([X > 0, X[:1] > 0], {}, ()),
    "Pad": ([X, np.array([1, 0, 0, 2]), np.float64(7)], {"mode": "constant"}, (1, 2)),
    "ReduceMax": ([X, np.array([0])], {"keepdims": 0}, (1,)),
    "ReduceMin": ([X > 0, np.array([1])], {"keepdims": 0}, (1,)),
    "Reciprocal": ([X], {}, ()),
    "ReduceSum": ([X, np.array([0])], {"keepdims": 0}, (1,)),
    "Round": ([np.array([-2.5, -1.5, -0.2, 0.5, 0.49999999999999994, 1.5, 2.5, 3.7])], {}, ()),
    "ScatterElements": ([X[:, 0], np.array([2, 0]), X[0, :2]], {"axis": 0, "reduction": "none"}, ()),
    "ScatterND": ([X, np.array([[2], [2]]), X[:2] + 1], {"reduction": "add"}, ()),
    "Sigmoid": ([X], {}, ()),
    "Sign": ([np.array([-2.0, 0.0, 3.0])], {}, ()),
    "Slice": ([X, np.array([3, 1]), np.array([-9, 3]), np.array([1, 0]), np.array([-1, 1])], {}, (1, 2, 3, 4)),
    "Sqrt": ([np.abs(X)], {}, ()),
    "Sub": ([X, X[0]], {}, ()),
    "Tile": ([X, np.array([1, 3])], {}, (1,)),
    "Where": ([X > 0, X, X[0]], {}, ()),
    "Xor": ([X > 0, X[:1] > 0], {}, ()),
    "BitCast": ([np.array([1.5, 2.0**-40, 3e9], np.float32).view(np.uint32)], {"to": "float32"}, ()),
    "BitShift": ([np.array([5, 2**31 + 9], np.uint32), np.uint32(3)], {"direction": "LEFT"}, (1,)),
}
NARROWER = {"BitShift": np.uint32, "BitCast": np.float32}


def computed(graph, operator):
    """Return the result of an operator in a graph of the target, and the result without replacements."""
    inputs, attributes, known = CASES[operator]
    example = run(Graph(), operator, inputs, attributes, known, None)
    return run(graph, operator, inputs, attributes, known, example), example


def run(graph, operator, inputs, attributes, known, example):
    tensors, feeds = [], {}
    for place, array in enumerate(inputs):
        if array is None or place in known:
            tensors.append(None if array is None else graph.known(array) if np.ndim(array) else graph.constant(array))
        else:
            tensors.append(graph.input(array.shape, array.dtype, f"x{place}"))
            feeds[f"x{place}"] = array
    if example is None:
        shape, dtype = shape_of(operator, inputs), type_of(operator, inputs)
    else:
        shape, dtype = example.shape, example.dtype
    result = graph.op(operator, tensors, shape, dtype, **attributes)
    model = model_of(graph, [result], ["y"])
    if isinstance(graph, TargetGraph):
        assert fit(model, graph.operators) == {}, operator
        assert {node.op_type for each in graphs_of(model.graph) for node in each.node} <= graph.operators.names
        assert model.opset_import[0].version == graph.operators.opset
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["y"], feeds)[0]


SHAPES = {
    "Einsum": (3, 5),
    "Expand": (2, 3, 4),
    "Gather": (3, 3, 2),
    "GatherElements": (3, 2),
    "GatherND": (3,),
    "Pad": (4, 6),
    "ReduceMax": (4,),
    "ReduceMin": (3,),
    "ReduceSum": (4,),
    "Slice": (2, 4),
    "Tile": (3, 12),
}
LIKE_THE_FIRST = ("ScatterElements", "ScatterND", "DFT", "CumSum", "Clip", "BitCast", "BitShift")


def shape_of(operator, inputs):
    if operator in LIKE_THE_FIRST:
        return inputs[0].shape
    return SHAPES.get(operator) or np.broadcast_shapes(*(np.shape(array) for array in inputs))


def type_of(operator, inputs):
    truth = ("And", "Or", "Xor", "Not", "IsNaN", "IsInf", "Greater", "GreaterOrEqual", "LessOrEqual", "ReduceMin")
    if operator in truth:
        return np.dtype(bool)
    return np.dtype(NARROWER.get(operator, np.float64))


def test_every_replaced_operator_has_a_case():
    TargetGraph(Operators(frozenset(FEW), OPSET))
    assert set(REPLACEMENTS) - set(CASES) == {"Add", "Div", "Equal", "Less"}


@pytest.mark.parametrize("operator", sorted(CASES))
def test_replacement_computes_the_same(operator):
    # The runtime's kernel has single precision.
    x = CASES["DFT"][0][0]
    numpy = np.fft.ifft(x[..., 0] + 1j * x[..., 1], axis=1)
    found, expected = computed(TargetGraph(Operators(frozenset(FEW), 18 if operator != "BitCast" else OPSET)), operator)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if operator == "DFT":
        np.testing.assert_allclose(expected, np.stack([numpy.real, numpy.imag], -1), rtol=1e-6, atol=1e-7)
        expected = np.stack([numpy.real, numpy.imag], -1)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("lacking", "instead"), [("Div", "Reciprocal"), ("Less", "Greater")])
def test_div_and_less_have_a_replacement(lacking, instead):
    allowed = Operators(frozenset({*FEW, instead, "Gather"}) - {lacking}, OPSET)
    graph = TargetGraph(allowed)
    converted = convert(lambda x: jnp.where(x < 0.5, x / (1 + x), x), jnp.asarray(X, jnp.float32), graph=graph)
    assert fit(converted.model, allowed) == {}
    found = Session(converted)([jnp.asarray(X, jnp.float32)])[0]
    x = X.astype(np.float32)
    np.testing.assert_allclose(found, np.where(x < 0.5, x / (1 + x), x), rtol=1e-6)


FLOATS = np.array([np.nan, -np.inf, -1.5, -0.0, 0.0, 2.0, 1e-310, np.inf])
INTEGERS = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1], np.int32)
UNSIGNED = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
TRUTH = np.array([False, True])
NUMBERS = {"floats": FLOATS, "int32": INTEGERS, "int64": np.int64(INTEGERS) * 2**32, "uint32": UNSIGNED}
ORDER = ("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal")
# Operators of which each is computed by others: NumPy's function, operators of the target, and arrays.
BY_OTHERS = [
    *(("Min", np.minimum, others, NUMBERS) for others in (["Max", "Neg", "Sub"], ["Less", "Equal", "Where"])),
    *(("Max", np.maximum, others, NUMBERS) for others in (["Min", "Mul", "Sub"], ["Greater", "Equal", "Where"])),
    *(("Equal", np.equal, [one, "Not", "And", "Or"], NUMBERS) for one in ORDER[:4]),
    *(
        (name, function, [*others, "Not", "And", "Or"], NUMBERS)
        for name, function in zip(ORDER, (np.less, np.greater, np.less_equal, np.greater_equal, np.equal), strict=True)
        for others in (["Less"], ["Greater"], ["LessOrEqual"], ["GreaterOrEqual"])
        if name not in others
    ),
    ("Equal", np.equal, ["Not", "Xor"], {"truth": TRUTH}),
    ("Equal", np.equal, ["Less", "Sub", "Cast"], {"truth": TRUTH}),
    ("And", np.logical_and, ["Not", "Or"], {"truth": TRUTH}),
    ("Or", np.logical_or, ["Not", "And"], {"truth": TRUTH}),
    ("Xor", np.logical_xor, ["Equal"], {"truth": TRUTH}),
    ("Add", np.add, ["Sub"], {name: NUMBERS[name] for name in ("floats", "int32")}),
]


@pytest.mark.parametrize(("operator", "function", "others", "arrays"), BY_OTHERS)
def test_operator_is_computed_by_others_of_all_numbers(operator, function, others, arrays):
    for name, array in arrays.items():
        # The types for which onnxruntime lacks a kernel are cast.
        allowed = Operators(frozenset({*others, "Cast"} if name == "uint32" else others), OPSET)
        graph = TargetGraph(allowed)
        a, b = array[:, None], array[None]
        given = [graph.input(x.shape, x.dtype, label) for x, label in ((a, "a"), (b, "b"))]
        with np.errstate(all="ignore"):
            expected = function(a, b), function(a, array[1:2])
        made = graph.elementwise(operator, *given, dtype=expected[0].dtype)
        known = graph.elementwise(operator, given[0], graph.constant(array[1:2]), dtype=made.dtype)
        model = model_of(graph, [made, known], ["y", "z"])
        assert fit(model, allowed) == {}, name
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for found, right in zip(session.run(["y", "z"], {"a": a, "b": b}), expected, strict=True):
            np.testing.assert_array_equal(found, right, err_msg=name)


def test_negation_by_a_difference_keeps_the_signs_of_zeros():
    graph = TargetGraph(Operators(frozenset({"Sub"}), OPSET))
    model = model_of(graph, [graph.elementwise("Neg", graph.input((2,), np.float64, "x"))], ["y"])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert np.signbit(session.run(["y"], {"x": np.array([0.0, -0.0])})[0]).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_root_by_a_power_is_that_of_all_numbers(dtype):
    graph = TargetGraph(Operators(frozenset({"Pow", "Mul", "Add"}), OPSET))
    limits = np.finfo(dtype)
    ends = [limits.max, limits.tiny, limits.smallest_subnormal, 0.0, -0.0, -1.0, np.inf, -np.inf, np.nan]
    x = np.array([*ends, *np.exp2(np.random.default_rng(1).uniform(-100, 100, 1000))], dtype)
    model = model_of(graph, [graph.elementwise("Sqrt", graph.input(x.shape, dtype, "x"))], ["y"])
    assert fit(model, graph.operators) == {}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_max_ulp(session.run(["y"], {"x": x})[0], np.sqrt(x), 1)


@pytest.mark.parametrize(("bits", "real"), [(np.uint32, np.float32), (np.uint64, np.float64)])
def test_all_bits_are_read_as_numbers(bits, real):
    graph = TargetGraph(Operators(frozenset(FEW), 17))
    limits = np.finfo(real)
    ends = [0.0, 1.5, limits.smallest_subnormal, limits.tiny, limits.max, np.inf, np.nan]
    numbers = np.array([*ends, *np.random.default_rng(1).normal(size=20)], real)
    numbers = np.concatenate([numbers, -numbers])
    read = graph.elementwise("BitCast", graph.input(numbers.shape, bits, "x"), dtype=real, to=np.dtype(real).name)
    model = model_of(graph, [read], ["y"])
    assert fit(model, graph.operators) == {}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(["y"], {"x": numbers.view(bits)})[0]
    np.testing.assert_array_equal(found, numbers)
    zeros = numbers == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(numbers[zeros]))


# Places of updates, some of which are set several times or lie outside.
REPEATED = [[7, 0, 8], [30, 4, 4], [-1, 4, 9], [2, 2, 2], [4, 1, 4]]


def converted_for_few(function, *arguments, lacking=()):
    allowed = Operators(frozenset({*FEW, "Gather"} - set(lacking)), 17)
    converted = convert(function, *arguments, graph=TargetGraph(allowed))
    return converted, fit(converted.model, allowed)


def used(converted):
    return {node.op_type for each in graphs_of(converted.model.graph) for node in each.node}


@pytest.mark.parametrize("places", REPEATED)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32])
@pytest.mark.parametrize("width", [(), (2,)])
def test_last_update_of_an_element_is_set(places, dtype, width):
    x = jnp.arange(1, 1 + 5 * max(width, default=1), dtype=dtype).reshape(5, *width)
    updates = jnp.arange(10, 10 + 3 * max(width, default=1), dtype=dtype).reshape(3, *width)
    given = x, jnp.array(places), updates
    expected = given[0].at[given[1]].set(updates)
    converted, outside = converted_for_few(lambda x, places, updates: x.at[places].set(updates), *given)
    assert outside == {} and "Less" in used(converted)
    np.testing.assert_array_equal(Session(converted)(list(given))[0], expected)
    converted, outside = converted_for_few(lambda x, updates: x.at[given[1]].set(updates), x, updates, lacking=["Less"])
    assert outside == {}
    np.testing.assert_array_equal(Session(converted)([x, updates])[0], expected)


def test_updates_are_compared_only_where_they_may_repeat():
    x, places = jnp.zeros((4, 6)), jnp.array([1, 1])
    for function in (
        lambda x, start: jax.lax.dynamic_update_slice(x, jnp.ones((2, 3)), (start[0], start[1])),
        lambda x, places: x.at[places].add(1.0),
    ):
        _, outside = converted_for_few(function, x, places, lacking=["Less"])
        # The bounds of places are compared in any case.
        assert "ScatterElements" not in outside
    _, outside = converted_for_few(lambda x, places: x.at[places].set(1.0), x, places, lacking=["Less"])
    assert outside["ScatterElements"]["with"] == "Less"


@pytest.mark.parametrize("known", [(), (1,)], ids=["input", "constant"])
def test_last_row_is_set_by_several_indices(known, monkeypatch):
    inputs = [X, np.array([[2], [0], [2]]), X + 1]
    monkeypatch.setitem(CASES, "ScatterND", (inputs, {"reduction": "none"}, known))
    found, _ = computed(TargetGraph(Operators(frozenset(FEW), 18)), "ScatterND")
    np.testing.assert_allclose(found, [X[1] + 1, X[1], X[2] + 1], rtol=1e-14)


@pytest.mark.parametrize("copying", ["Reshape", "Cast", "Transpose", ""])
def test_outputs_that_are_inputs_are_copied_by_what_the_target_has(copying):
    allowed = Operators(frozenset({"Add", copying} - {""}), 17)
    x = jnp.arange(6.0).reshape(2, 3)
    converted = convert(lambda x, y: (x, y, x + y, x), x, x[0, 0], graph=TargetGraph(allowed))
    outside = fit(converted.model, allowed)
    if copying:
        assert outside == {}
        for found, expected in zip(Session(converted)([x, x[0, 0]]), (x, x[0, 0], x, x), strict=True):
            np.testing.assert_array_equal(found, expected)
    else:
        assert outside == {"Identity": {"count": 3, "lines": ["outputs that are copies"], "with": ""}}


def test_missing_operators_name_another_that_would_suffice():
    def outside_without(lacking):
        allowed = Operators(frozenset(FEW) - {lacking}, 17)
        graph = TargetGraph(allowed)
        converted = convert(lambda x: jnp.where(x <= 0.5, x * jnp.sin(x), 2.0), jnp.ones(2), graph=graph)
        return {operator: uses["with"] for operator, uses in fit(converted.model, allowed).items()}

    assert outside_without("Cast") == {"LessOrEqual": "Cast", "Sin": "", "Where": "Cast"}
    assert outside_without("Mul") == {"Mul": "", "Sin": "", "Where": "Mul"}


def test_missing_operators_come_first_and_each_output_once(tmp_path):
    wrong = [Difference("next.y", 2.0, 0.1), *(Difference("next.x", error, 0.1) for error in (3.0, 7.0, 5.0))]
    runtime = RuntimeReport("onnxruntime", "model.onnx", 1, wrong, 0.0, 0.0, nodes=1)
    outside = {"Less": {"count": 5, "lines": ["a:1", "b:2", "c:3", "d:4"], "with": "Greater"}}
    assert Report(tmp_path, "step", 0.1, [runtime], outside, ["Where"]).misses == [
        "the target has no Less, 5 of which come from a:1, b:2, c:3, ...; with Greater it may be replaced",
        f"{tmp_path}/model.onnx: next.y differs from JAX by 2 in onnxruntime; 0.1 is allowed",
        f"{tmp_path}/model.onnx: next.x differs from JAX by 7 in onnxruntime; 0.1 is allowed",
    ]
    infinite = dataclasses.replace(runtime, differences=[Difference("next.x", np.inf, 0.1)])
    first = Report(tmp_path, "step", 0.1, [infinite], {}, ["Min", "Where"]).misses[0]
    assert first.startswith("the target has no Min, Where, whose replacement by products with masks")


def test_operators_replaced_for_finite_numbers_are_named():
    graph = TargetGraph(Operators(frozenset({*FEW, "Sub"}), 17))
    convert(jnp.minimum, jnp.ones(3), jnp.zeros(3), graph=graph)
    assert graph.finite == {"Min", "Where"}


@pytest.mark.parametrize("opset", [13, 17, OPSET])
def test_program_runs_in_older_versions_of_onnx(opset):
    allowed = Operators(frozenset({*FEW, "Max", "ReduceMax", "Gather"}), opset)
    graph = TargetGraph(allowed)
    converted = convert(lambda x: jnp.max(x, 1) + jnp.cumsum(x, 0)[1, 0], jnp.asarray(X, jnp.float32), graph=graph)
    assert fit(converted.model, allowed) == {}
    found = Session(converted)([jnp.asarray(X, jnp.float32)])[0]
    np.testing.assert_allclose(found, X.max(1) + X[0, 0] + X[1, 0], rtol=1e-5)


def test_operators_without_replacement_are_reported_with_their_source_lines(tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    (tmp_path / "few.toml").write_text(f"opset = 17\noperators = {json.dumps(FEW)}\n")
    words = ["export", tmp_path / "toy.toml", "--to", "onnx", "--ops", tmp_path / "few.toml", "-o", tmp_path / "out"]
    assert main([str(word) for word in words]) == 1
    printed = capsys.readouterr().err
    assert "simkit: the target has no Sin, 1 of which come from tests/core/toys.py:29" in printed
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert set(report["operators_outside"]) >= {"Sin"} and not report["passed"]


def test_step_fits_a_small_set_of_operators_and_agrees(tmp_path):
    few = tmp_path / "few.toml"
    few.write_text(f"opset = 17\noperators = {json.dumps([*FEW, 'Sin', 'Cos', 'Gather'])}\n")
    report = simkit.export.program(toy(), tmp_path / "out", to="onnx", ops=few)
    assert report.passed and report.outside == {} and report.runtimes[0].largest_error < 1e-14


LISTS = {
    "operatos = ['Add']": "did you mean 'operators'",
    "operators = ['Addd']": "'Addd' is no operator of ONNX; did you mean 'Add'",
    "operators = ['BitCast']\nopset = 17": "ONNX 17 has no BitCast",
    "operators = ['Add']\nopset = 3": f"opset = 3 is not in [13, {OPSET}]",
    "operators = 'Add'": "operators is not a list of names",
    "operators = []": "few.toml: operators is empty; write those of the target, such as ['Add', 'MatMul']",
}


@pytest.mark.parametrize("text", LISTS)
def test_wrong_list_of_operators_is_refused_in_one_line(text, tmp_path):
    (tmp_path / "few.toml").write_text(text)
    with pytest.raises(UserError, match=r".") as caught:
        read_operators(tmp_path / "few.toml")
    assert LISTS[text] in str(caught.value) and "\n" not in str(caught.value)


def test_threefry_needs_operators_on_bits():
    allowed = Operators(frozenset({*FEW, "Gather", "Slice"}), 17)
    converted = convert(lambda key: jax.random.uniform(key), jax.random.key(0), graph=TargetGraph(allowed))
    outside = fit(converted.model, allowed)
    assert "BitwiseXor" in outside and "BitShift" not in outside
