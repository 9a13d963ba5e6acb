"""Weights as files of safetensors: read back unchanged, and refused where they are those of another model."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit import export
from simkit.errors import UserError

pytest.importorskip("safetensors")
WEIGHTS = {"layers": [{"weight": jnp.arange(6.0).reshape(2, 3), "bias": jnp.ones(2)}, {"weight": jnp.zeros((1, 2))}]}


def test_a_tree_of_weights_is_read_back_by_its_paths_in_the_types_of_the_model(tmp_path, x64):
    from safetensors.numpy import load_file  # type: ignore[import-not-found]

    file = export.save_weights(WEIGHTS, tmp_path / "model.safetensors")
    arrays = load_file(file)
    assert sorted(arrays) == ["layers.0.bias", "layers.0.weight", "layers.1.weight"]
    wide = {"layers": [{name: np.zeros(array.shape) for name, array in layer.items()} for layer in WEIGHTS["layers"]]}
    read = export.load_weights(file, like=wide)
    assert read["layers"][0]["weight"].dtype == np.float64
    np.testing.assert_array_equal(read["layers"][0]["weight"], WEIGHTS["layers"][0]["weight"])


def test_other_weights_and_other_files_are_refused(tmp_path):
    file = export.save_weights(WEIGHTS, tmp_path / "model.safetensors")
    (tmp_path / "text").write_text("no weights")
    first = WEIGHTS["layers"][0]
    other = {"layers": [first, {"weight": jnp.zeros((2, 2))}]}
    for name, like, match in (
        ("model.safetensors", {"layers": [first]}, "'layers.1.weight' is not among those of like"),
        ("model.safetensors", other, r"has shape \(1, 2\), and that of this"),
        ("text", WEIGHTS, "is no file of safetensors"),
        ("nothing", WEIGHTS, "cannot be read: No such file"),
    ):
        with pytest.raises(UserError, match=match):
            export.load_weights(tmp_path / name, like=like)
    with pytest.raises(UserError, match="overwrite"):
        export.save_weights(WEIGHTS, file)
    with pytest.raises(UserError, match="text"):
        export.save_weights(WEIGHTS, tmp_path / "text", overwrite=True)
    export.save_weights(WEIGHTS, file, overwrite=True)
