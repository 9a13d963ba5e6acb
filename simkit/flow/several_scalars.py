"""Several scalars carried by one flow, by name; their sources may depend on all of them."""

import dataclasses
from collections.abc import Callable, Mapping

import jax

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.arrays import Velocity
from simkit.flow.boundary.domain import Domain, same
from simkit.flow.scalar import TransportedScalar

type Scalars = dict[str, jax.Array]


@dataclasses.dataclass(frozen=True, eq=False)
class TransportedScalars:
    """Scalars by name, carried by the flow of `simkit.flow.equations.Equations`.

    The scalar of the state, of ``Equations.force`` and of every `TransportedScalar.source` is then a dictionary of all
    of them.

    Attributes:
        scalars: by name, at least one, all in one domain.

    Raises:
        UserError: if there is none, or their domains differ.
    """

    scalars: Mapping[str, TransportedScalar]

    def __post_init__(self) -> None:
        """Refuse scalars of different domains."""
        if not self.scalars:
            raise UserError("scalars is empty; give at least one, or remove the scalar")
        for name, one in self.scalars.items():
            if not same(one.domain, self.domain):
                first = next(iter(self.scalars))
                raise UserError(
                    f"the domain of the scalar '{name}' is not that of '{first}'; build all with one domain"
                )

    @property
    def domain(self) -> Domain:
        """The domain of all of them."""
        return next(iter(self.scalars.values())).domain

    def diffusivity(self, params: Params) -> dict[str, jax.Array]:
        """Return the diffusivity of each."""
        return {name: one.diffusivity(params) for name, one in self.scalars.items()}

    def rate(
        self, scalar: Scalars, velocity: Velocity, params: Params, time: jax.Array, explicit: tuple[int, ...]
    ) -> Scalars:
        """Return the rates of change at the cell centers, without diffusion along implicit axes.

        Args:
            scalar: all of them.
            velocity: components on their faces.
            params: parameters.
            time: time.
            explicit: axes along which diffusion is explicit.
        """
        rates, made = {}, self.production(scalar, velocity, params, time)
        for name, one in self.scalars.items():
            change = one.transport(scalar[name], velocity, params, time, explicit)
            source = made[name]
            rates[name] = change if source is None else change + source
        return rates

    def production(
        self, scalar: Scalars, velocity: Velocity, params: Params, time: jax.Array
    ) -> dict[str, jax.Array | float | None]:
        """Return the source of each, None for those without one.

        Args:
            scalar: all of them.
            velocity: components on their faces.
            params: parameters.
            time: time.
        """
        return {
            name: None if one.source is None else one.source(scalar, velocity, params, time)
            for name, one in self.scalars.items()
        }

    def implicit_diffusion(self, axes: tuple[int, ...]) -> Callable[..., Scalars] | None:
        """Return the function that adds implicit diffusion along some axes to explicit changes; None if there are none.

        Args:
            axes: along which diffusion is implicit, see `TransportedScalar.implicit_diffusion`.
        """
        found = {name: one.implicit_diffusion(axes) for name, one in self.scalars.items()}
        solvers = {name: one for name, one in found.items() if one is not None}
        if not solvers:
            return None

        def solve(
            change: Scalars,
            scalar: Scalars,
            params: Params,
            time: jax.Array,
            part: jax.Array,
            share: jax.Array | float,
        ) -> Scalars:
            return {name: one(change[name], scalar[name], params, time, part, share) for name, one in solvers.items()}

        return solve
