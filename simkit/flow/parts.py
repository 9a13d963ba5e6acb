"""Parts of flows that scenario files name, each in one line; installed packages add their own.

A package adds a part by an entry point such as ``[project.entry-points."simkit.shapes"]`` with
``"ring" = "my_package.ring:ring"``. See `simkit.core.parts` for what a part declares. By kind, it is

- a side: a `simkit.flow.boundary.sides.Side`;
- a side of a scalar: a `simkit.flow.boundary.scalar_sides.ScalarSide`;
- a shape: a function of its options and values that returns a `simkit.flow.obstacles.shapes.Shape` around the origin;
- a surface of an obstacle: a function of its values, each ``(params, time) -> number``, that returns a
  `simkit.flow.obstacles.surface_conditions.ScalarSurface`.

Options and values that a side declares are arguments of its class. A value is ``(params, time) -> number``, or an array
of one layer on the side if its formula takes coordinates; a value of a shape is a number, or a function of coordinates.
"""

from simkit.plugins import Registry

SIDES = Registry(
    "side",
    {
        "wall": "simkit.flow.boundary.sides:Wall",
        "navier_slip": "simkit.flow.boundary.sides:NavierSlip",
        "free_slip": "simkit.flow.boundary.sides:FreeSlip",
        "inflow": "simkit.flow.boundary.sides:Inflow",
        "outflow": "simkit.flow.boundary.sides:Outflow",
        "pressure": "simkit.flow.boundary.sides:GivenPressure",
    },
    aliases={
        "no_slip": "wall",
        "moving_wall": "wall",
        "slip": "free_slip",
        "partial_slip": "navier_slip",
        "symmetry": "free_slip",
        "inlet": "inflow",
        "velocity_inlet": "inflow",
        "outlet": "outflow",
        "pressure_outlet": "pressure",
    },
)
SCALAR_SIDES = Registry(
    "scalar_side",
    {
        "value": "simkit.flow.boundary.scalar_sides:GivenValue",
        "flux": "simkit.flow.boundary.scalar_sides:GivenFlux",
        "robin": "simkit.flow.boundary.scalar_sides:Robin",
        "insulated": "simkit.flow.boundary.scalar_sides:Insulated",
    },
    aliases={"adiabatic": "insulated", "mixed": "robin", "convective": "robin", "heat_transfer": "robin"},
)
SHAPES = Registry(
    "shape",
    {
        "airfoil": "simkit.flow.obstacles.shapes:centered_airfoil",
        "box": "simkit.flow.obstacles.shapes:centered_box",
        "capsule": "simkit.flow.obstacles.shapes:centered_capsule",
        "circle": "simkit.flow.obstacles.shapes:circle",
        "cylinder": "simkit.flow.obstacles.shapes:centered_cylinder",
        "distance": "simkit.flow.obstacles.shapes:by_distance",
        "ellipse": "simkit.flow.obstacles.shapes:ellipse",
        "ellipsoid": "simkit.flow.obstacles.shapes:ellipsoid",
        "polygon": "simkit.flow.obstacles.shapes:centered_polygon",
        "sphere": "simkit.flow.obstacles.shapes:sphere",
    },
    aliases={"disk": "circle", "disc": "circle", "ball": "sphere", "rectangle": "box", "square": "box"},
)
SURFACES = Registry(
    "surface",
    {
        "value": "simkit.flow.obstacles.surface_conditions:value_on_surface",
        "flux": "simkit.flow.obstacles.surface_conditions:flux_from_surface",
        "insulated": "simkit.flow.obstacles.surface_conditions:insulated",
    },
    aliases={"adiabatic": "insulated"},
)
