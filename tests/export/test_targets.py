"""Models for targets with fewer operators than ONNX: exact replacements, and a report of what is missing."""

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
from simkit.export.onnx.model import OPSET, graphs_of, model_of
from simkit.export.onnx.runtime import Session, convert
from simkit.export.targets.operators import Operators, fit, read_operators
from simkit.export.targets.replacements import REPLACEMENTS, TargetGraph
from tests.toys import PENDULUMS, toy

FLOATS = np.array([np.nan, -np.inf, -1.5, -0.0, 0.0, 2.0, 1e-310, np.inf])
INTEGERS = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1], np.int32)
UNSIGNED = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
TRUTH = np.array([False, True])
NUMBERS = {"floats": FLOATS, "int32": INTEGERS, "int64": np.int64(INTEGERS) * 2**32, "uint32": UNSIGNED}
SIGNED = {name: NUMBERS[name] for name in ("floats", "int32")}
BOTH = {"truth": TRUTH}
ORDER = {
    "Less": np.less,
    "Greater": np.greater,
    "LessOrEqual": np.less_equal,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}
# Operators of two arrays, each computed by others: NumPy's function, operators of the target, and arrays.
BINARY = [
    *(("Min", np.minimum, others, NUMBERS) for others in ("Max Neg Sub", "Less Equal Where")),
    *(("Max", np.maximum, others, NUMBERS) for others in ("Min Mul Sub", "Greater Equal Where")),
    *(
        (name, function, f"{one} Not And Or", NUMBERS)
        for name, function in ORDER.items()
        for one in list(ORDER)[:4]
        if name != one
    ),
    ("Equal", np.equal, "Not Xor", BOTH),
    ("And", np.logical_and, "Not Or", BOTH),
    ("And", np.logical_and, "Cast Mul", BOTH),
    ("Or", np.logical_or, "Not And", BOTH),
    ("Or", np.logical_or, "Cast Add", BOTH),
    ("Xor", np.logical_xor, "Not Equal", BOTH),
    ("Xor", np.logical_xor, "Cast Sub", BOTH),
    ("Add", np.add, "Sub", SIGNED),
    ("Sub", np.subtract, "Add Mul", SIGNED),
]
UNARY = [
    ("Abs", np.abs, "Neg Max", SIGNED),
    ("Neg", np.negative, "Mul", SIGNED),
    ("Neg", np.negative, "Sub", SIGNED),
    ("Sign", np.sign, "Greater Less Cast Sub", {"floats": FLOATS[1:], "int32": INTEGERS}),
    ("Ceil", np.ceil, "Neg Floor", {"floats": FLOATS}),
    ("IsNaN", np.isnan, "Equal Not", {"floats": FLOATS}),
    ("IsInf", np.isinf, "Equal Or", {"floats": FLOATS}),
    ("Not", np.logical_not, "Equal", BOTH),
    ("Reciprocal", np.reciprocal, "Div", {"floats": FLOATS}),
]
# Operators with attributes or constant inputs: inputs, which of them are constants, attributes, result.
ROWS = np.array([[True, False], [False, False]])
OTHERS = [
    ("Clip", "Max Min", [FLOATS, np.float64(-0.3), np.float64(1.4)], (), {}, np.clip(FLOATS, -0.3, 1.4)),
    ("BitShift", "Cast Mul Div", [UNSIGNED, np.uint32(3)], (1,), {"direction": "LEFT"}, UNSIGNED << np.uint32(3)),
    ("BitShift", "Cast Mul Div", [UNSIGNED, np.uint32(3)], (1,), {"direction": "RIGHT"}, UNSIGNED >> np.uint32(3)),
    ("ReduceMax", "Cast ReduceSum", [ROWS, np.array([1])], (1,), {"keepdims": 0}, ROWS.any(1)),
    ("ReduceMin", "Not Cast ReduceSum", [ROWS, np.array([1])], (1,), {"keepdims": 0}, ROWS.all(1)),
]


def computed(graph, results):
    """Return the values of tensors of a graph whose inputs are given by name, after a check of its operators."""
    tensors, feeds = results
    model = model_of(graph, tensors, [f"y{place}" for place in range(len(tensors))])
    outside = fit(model, Operators(graph.names, graph.opset))
    assert outside == {}, outside
    assert {node.op_type for each in graphs_of(model.graph) for node in each.node} <= graph.names
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def target(others, name=""):
    """Return a graph of few operators; the types for which onnxruntime lacks a kernel are cast."""
    return TargetGraph(frozenset({*others.split(), *(["Cast"] if name == "uint32" else [])}), OPSET)


def misses(operator, others, function, given):
    """Yield the arrays for which an operator differs from NumPy's function, also with a constant argument."""
    for name, array in given.items():
        arrays = [array[:, None], array[None]] if function.nin == 2 else [array]
        graph = target(others, name)
        inputs = [graph.input(x.shape, x.dtype, f"x{place}") for place, x in enumerate(arrays)]
        with np.errstate(all="ignore"):
            expected = [function(*arrays)]
            made = [graph.elementwise(operator, *inputs, dtype=expected[0].dtype)]
            if function.nin == 2:
                expected.append(function(arrays[0], array[1:2]))
                known = graph.constant(array[1:2])
                made.append(graph.elementwise(operator, inputs[0], known, dtype=expected[0].dtype))
        found = computed(graph, (made, {f"x{place}": x for place, x in enumerate(arrays)}))
        pairs = zip(found, expected, strict=True)
        if not all(a.dtype == b.dtype and np.array_equal(a, b, a.dtype.kind == "f") for a, b in pairs):
            yield f"{operator} by {others} of {name}: {found} is not {expected}"


def test_operators_are_computed_by_others_of_all_numbers():
    found = [
        miss
        for operator, function, others, given in (*BINARY, *UNARY)
        for miss in misses(operator, others, function, given)
    ]
    assert not found, "\n".join(found)


def test_operators_with_attributes_are_computed_by_others():
    for operator, others, given, known, attributes, expected in OTHERS:
        graph = target(others, "uint32" if expected.dtype == np.uint32 else "")
        feeds = {f"x{place}": np.asarray(x) for place, x in enumerate(given) if place not in known}
        inputs = [
            graph.known(x)
            if np.ndim(x)
            else graph.constant(x)
            if place in known
            else graph.input((), x.dtype, f"x{place}")
            for place, x in enumerate(given)
        ]
        inputs[0] = graph.input(given[0].shape, given[0].dtype, "x0")
        made = graph.op(operator, inputs, expected.shape, expected.dtype, **attributes)
        (found,) = computed(graph, ([made], feeds))
        np.testing.assert_array_equal(found, expected, err_msg=f"{operator} by {others}")


def test_every_replaced_operator_has_a_case():
    cases = {operator for operator, *_ in (*BINARY, *UNARY, *OTHERS)}
    assert set(REPLACEMENTS) == cases


def test_extremes_of_many_arrays_are_those_of_pairs():
    graph = target("Min Neg")
    arrays = [FLOATS, FLOATS[::-1].copy(), np.zeros_like(FLOATS)]
    inputs = [graph.input(x.shape, x.dtype, f"x{place}") for place, x in enumerate(arrays)]
    (found,) = computed(
        graph, ([graph.elementwise("Max", *inputs)], {f"x{place}": x for place, x in enumerate(arrays)})
    )
    np.testing.assert_array_equal(found, np.maximum.reduce(arrays))


def test_replaced_operator_of_constants_is_folded():
    graph, plain = target("Min Neg"), Graph()
    for each in (graph, plain):
        made = each.elementwise("Max", each.known(np.array([1.0, 3.0])), each.known(np.array([2.0, 1.0])))
        np.testing.assert_array_equal(made.value, [2.0, 3.0])


def converted_for(names, function, *arguments, opset=17):
    """Return a model of few operators, and the report of those that it lacks."""
    operators = Operators(frozenset(names), opset)
    converted = convert(function, *arguments, graph=TargetGraph(operators.names, operators.opset))
    return converted, fit(converted.model, operators)


def test_outputs_that_are_inputs_are_copied_by_reshapes():
    x = jnp.arange(6.0).reshape(2, 3)
    given = lambda x, y: (x, y, x + y, x), x, x[0, 0]
    converted, outside = converted_for(["Add", "Reshape"], *given)
    assert outside == {}
    for found, expected in zip(Session(converted)([x, x[0, 0]]), (x, x[0, 0], x, x), strict=True):
        np.testing.assert_array_equal(found, expected)
    _, outside = converted_for(["Add"], *given)
    assert outside == {"Identity": {"count": 3, "lines": ["outputs that are copies"]}}


@pytest.mark.parametrize("opset", [13, 17, OPSET])
def test_program_runs_in_older_versions_of_onnx(opset):
    # Older versions of ReduceMax take their axes as an attribute.
    x = jnp.asarray([[3, -1, 7], [2, 9, 4]])
    names = ["Add", "Cast", "Expand", "ReduceMax", "Reshape"]
    converted, outside = converted_for(names, lambda x: x.max(1) + 1, x, opset=opset)
    assert outside == {} and converted.model.opset_import[0].version == opset
    np.testing.assert_array_equal(Session(converted)([x])[0], [8, 10])


def test_operators_without_replacement_are_reported_with_their_source_lines(tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    (tmp_path / "few.toml").write_text('opset = 17\noperators = ["Add", "Mul", "Sub", "Reshape"]\n')
    words = ["export", tmp_path / "toy.toml", "--to", "onnx", "--ops", tmp_path / "few.toml", "-o", tmp_path / "out"]
    assert main([str(word) for word in words]) == 1
    printed = capsys.readouterr().err
    assert "simkit: the target has no Sin, 1 of which come from tests/core/toys.py:31" in printed
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert set(report["operators_outside"]) >= {"Sin"} and not report["passed"]


def test_step_fits_a_small_set_of_operators_and_agrees(tmp_path):
    few = ["Add", "Mul", "Sub", "Reshape", "Sin", "Cos", "Gather", "ReduceSum", "Less", "Or", "Equal", "Where", "Cast"]
    few += ["Concat", "Slice"]
    (tmp_path / "few.toml").write_text(f"opset = 17\noperators = {json.dumps(few)}\n")
    report = simkit.export.program(toy(), tmp_path / "out", to="onnx", ops=tmp_path / "few.toml")
    assert report.outside == {} and report.passed and report.runtimes[0].largest_error < 1e-14


LISTS = {
    "operatos = ['Add']": "did you mean 'operators'",
    "operators = ['Addd']": "operators[0] = 'Addd' is unknown; did you mean 'Add'",
    "operators = ['BitCast']\nopset = 17": "operators[0] = 'BitCast' is unknown",
    "operators = ['Add']\nopset = 3": f"opset = 3 is not an integer from 13 to {OPSET}",
    "operators = 'Add'": "operators = 'Add' is no list",
}


def test_wrong_list_of_operators_is_refused_in_one_line(tmp_path):
    for text, phrase in LISTS.items():
        (tmp_path / "few.toml").write_text(text)
        with pytest.raises(UserError) as caught:
            read_operators(tmp_path / "few.toml")
        assert phrase in str(caught.value) and "\n" not in str(caught.value), text


def test_threefry_needs_operators_on_bits():
    _, outside = converted_for(
        ["Add", "Mul", "Div", "Cast", "Reshape", "Slice"], lambda key: jax.random.uniform(key), jax.random.key(0)
    )
    assert "BitwiseXor" in outside and "BitShift" not in outside
