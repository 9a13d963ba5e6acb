"""Formulas of a scene: numbers of the copies of an entry, of the state of bodies, and of the time."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula, Scope, precision_of, refuse_out_of_bounds
from simkit.core.parts import declaration_of
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, angular_velocity
from simkit.rigid.shapes.solid import COPY

TIME = "time"

# Axes of a formula that has one number for each copy of an entry, and of one that has a number for each body.
COPIES, BODIES = "copy", "body"
type Numbers = Callable[..., jax.Array]


@dataclasses.dataclass(frozen=True)
class Names:
    """Names that the formulas of a scene may use.

    Attributes:
        scope: parameters and derived values.
        checked: formulas with bounds, each with a function of the parameters that returns its values at the start.
        timed: formulas that may take the time.
    """

    scope: Scope
    checked: list[tuple[Formula, Numbers]] = dataclasses.field(default_factory=list, compare=False)
    timed: list[Formula] = dataclasses.field(default_factory=list, compare=False)

    def formula(self, text: FormulaText) -> Formula:
        """Return the formula of a text."""
        made = self.scope.formula(text, text.takes)
        self.timed.extend([made] if TIME in text.takes else [])
        return made

    def number(self, text: FormulaText) -> Formula:
        """Return the formula of one number, of parameters and, where its setting allows it, of the time."""
        formula = self.formula(text)
        self.checked.append((formula, lambda params: formula.number(params, **{TIME: 0.0})))
        return formula

    def of_copies(self, text: FormulaText, places: Mapping[str, np.ndarray]) -> Numbers:
        """Return ``(params, time=0) -> numbers``, one for each copy of an entry, (copies,), or one for all.

        Args:
            text: of the formula.
            places: number, row, column and layer of each copy.
        """
        formula = self.formula(text)

        def numbers(params: Params, time: jax.Array | float = 0.0) -> jax.Array:
            if not formula.takes(*COPY):
                return formula.number(params, **{TIME: time})
            kind = precision_of(params)
            given: dict[str, Any] = {
                name: Named(jnp.asarray(values, kind), (COPIES,)) for name, values in places.items()
            }
            given[TIME] = time
            count = len(next(iter(places.values())))
            return jnp.broadcast_to(formula.on((COPIES,), params, **given), (count,))

        self.checked.append((formula, numbers))
        return numbers

    def vector_of_copies(
        self, texts: tuple[FormulaText, ...], places: Mapping[str, np.ndarray]
    ) -> Callable[..., tuple[jax.Array, ...]]:
        """Return a function ``(params, time=0) -> components``, each as for `of_copies`."""
        components = [self.of_copies(text, places) for text in texts]
        return lambda params, time=0.0: tuple(component(params, time) for component in components)

    def of_bodies(self, text: FormulaText) -> Callable[[Motion, Bodies, jax.Array | None, Params], jax.Array]:
        """Return a function ``(motion, bodies, time, params) -> numbers``, one for each body, (bodies,)."""
        formula = self.formula(text)

        def numbers(motion: Motion, bodies: Bodies, time: jax.Array | None, params: Params) -> jax.Array:
            vectors = {"": motion.position, "v": motion.velocity}
            if formula.takes("wx", "wy", "wz"):
                vectors["w"] = angular_velocity(motion, bodies)
            given: dict[str, Any] = {
                f"{prefix}{axis}": Named(getattr(vector, axis), (BODIES,))
                for prefix, vector in vectors.items()
                for axis in "xyz"
            }
            if time is not None:
                given[TIME] = time
            return formula.on((BODIES,), params, **given)

        return numbers

    def value(self, text: FormulaText) -> Callable[..., Any]:
        """Return the value of a load or motor: a function of the parameters, of time and these, or of bodies."""
        if "x" in text.takes:
            whole = self.of_bodies(text)
            if TIME in text.takes:
                return whole
            return lambda motion, bodies, params: whole(motion, bodies, None, params)
        formula = self.number(text)
        if TIME in text.takes:
            return lambda time, params: formula.number(params, time=time)
        return formula.number

    def check(self, params: Params) -> None:
        """Refuse numbers that are not finite or out of their bounds at the start.

        Raises:
            UserError: naming the key.
        """
        for formula, numbers in self.checked:
            refuse_out_of_bounds(formula, numbers(params))


def values_of(settings: Settings, part: Any, made: Callable[[FormulaText], Any]) -> dict[str, Any]:
    """Return the values that a part takes, with a function of the text in place of every formula.

    Args:
        settings: the table of the part.
        part: the part.
        made: what it gets for a formula.
    """

    def of(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(of, value))
        if isinstance(value, Settings):
            return {key: of(each) for key, each in value.items()}
        return made(value) if isinstance(value, FormulaText) else value

    return {name: of(settings[name]) for name in declaration_of(part).values if settings[name] is not None}


def at(numbers: Any, params: Params) -> Any:
    """Return functions of the parameters in a tree of tuples evaluated."""
    return tuple(at(each, params) for each in numbers) if isinstance(numbers, tuple) else numbers(params)


def vector_at(components: tuple[jax.Array, ...], count: int) -> Vector:
    """Return components, one number for all or one for each, as vectors (count,)."""
    x, y, z = (jnp.broadcast_to(component, (count,)) for component in components)
    return Vector(x, y, z)
