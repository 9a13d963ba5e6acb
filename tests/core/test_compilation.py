"""Compilation: transformations compile themselves once per shape, and not inside traced code."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.compilation import compiled, use_compilation_cache


def test_compiled_code_holds_no_program_of_its_own():
    run = compiled(lambda x: jnp.sin(x) + 1)
    assert "pjit" not in str(jax.make_jaxpr(run)(1.0)) and "jit" not in str(jax.make_jaxpr(jax.vmap(run))(jnp.ones(2)))
    np.testing.assert_allclose(jax.grad(run)(0.5), np.cos(0.5), rtol=1e-6)


def test_programs_are_cached_once_the_cache_is_switched_on(tmp_path, monkeypatch):
    before = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("SIMKIT_COMPILATION_CACHE", str(tmp_path / "kept"))
    try:
        assert use_compilation_cache() == tmp_path / "kept"
        assert (tmp_path / "kept").is_dir()
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
