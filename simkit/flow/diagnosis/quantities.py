"""Quantities that several flows share, in the units of length, velocity and time of each."""

from simkit.core.quantities import over, raised
from simkit.core.simulation import Quantity


def flow_quantities(length: str = "1", velocity: str = "1", time: str = "", rate: str = "") -> dict[str, Quantity]:
    """Return units and meanings of the quantities that flows have in common, by name.

    Args:
        length: unit of length.
        velocity: unit of velocity.
        time: unit of time; by default length over velocity.
        rate: unit of inverse time; by default velocity over length.
    """
    time, rate = time or over(length, velocity), rate or over(velocity, length)
    square = raised(velocity, 2)
    table = {
        "time": (time, "time"),
        "x": (length, "position along x"),
        "y": (length, "position along y"),
        "x_face": (length, "position of cell faces along x"),
        "y_face": (length, "position of cell faces along y"),
        "y_cell": (length, "position along y"),
        "x_cell": (length, "position along x"),
        "side_velocity": (velocity, "velocity of the left, right, lower and upper side along itself"),
        "u": (velocity, "velocity along x"),
        "v": (velocity, "velocity along y"),
        "speed": (velocity, "speed"),
        "vorticity": (rate, "vorticity"),
        "profile": (velocity, "mean velocity along x at each height"),
        "body_distance": (length, "distance from the body, negative inside"),
        "bulk_velocity": (velocity, "flow rate per unit area"),
        "centerline_velocity": (velocity, "mean velocity at mid-height"),
        "largest_velocity": (velocity, "largest speed"),
        "kinetic_energy": (square, "mean kinetic energy per unit mass"),
        "wall_shear_stress": (square, "shear stress on the lower wall over density"),
        "pressure_gradient": (over(square, length), "driving pressure gradient over density"),
        "net_force": (over(square, length), "drive less friction on the walls, per unit mass"),
        "divergence": (rate, "largest divergence of the velocity"),
        "courant_number": ("1", "Courant number of advection"),
        "poiseuille_deviation": (velocity, "largest distance of the profile from the steady one"),
        "velocity_error": (velocity, "largest distance from the exact velocity"),
    }
    return {name: Quantity(unit, doc) for name, (unit, doc) in table.items()}
