"""Range within which a viscosity field is stable: not negative, and below the limit of explicit friction."""

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.equations import Equations
from simkit.flow.stepping.stepper import FlowState
from simkit.flow.stepping.time_step import diffusion_limit
from simkit.flow.viscosity import field_at_centers

# The check of the start refuses a time step above the limit itself; rounding between the two must not stop a run.
ROUNDING = 1 + 1e-5


def viscosity_in_range(equations: Equations, state: FlowState, params: Params) -> jax.Array:
    """Return whether the viscosity field of a state is stable, a boolean scalar.

    A field may follow time, velocity and scalars out of the range that was checked at the start.

    Args:
        equations: equations whose viscosity is a field.
        state: state of the flow.
        params: parameters.
    """
    domain = equations.domain
    carried = state.scalar, state.time[0]
    viscosity = field_at_centers(equations.viscosity, state.velocity, params, domain.grid.cells, carried)
    length = equations.step_length(state.velocity, state.scalar, params, state.time[0])
    limit = diffusion_limit(domain, equations.method, equations.explicit)
    return (jnp.min(viscosity) >= 0) & (jnp.max(viscosity) * length <= ROUNDING * limit)
