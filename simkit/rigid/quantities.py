"""Units and meanings of the quantities that scenes of rigid bodies share."""

from simkit.core.simulation import Quantity

RIGID = {
    name: Quantity(unit, doc)
    for name, (unit, doc) in {
        "time": ("s", "time"),
        "position": ("m", "position of the center"),
        "center": ("m", "center of mass of each body"),
        "orientation": ("1", "unit quaternion from body to world"),
        "velocity": ("m/s", "velocity of the center"),
        "angular_velocity": ("rad/s", "angular velocity"),
        "half_lengths": ("m", "half lengths along the body axes"),
        "radius": ("m", "radius of balls and capsules"),
        "links": ("m", "ends of rods and strings"),
        "planes": ("1", "unit normal, and offset in m, of each plane"),
        "target": ("m", "position to be reached"),
        "trace": ("m", "points whose paths are drawn"),
        "pivots": ("m", "fixed points of joints"),
        "disk": ("1", "1: drawn as a cylinder about its axis z, 2: as an ellipsoid, 3: by its corners"),
        "corners": ("m", "corners of bodies in their frames"),
        "energy": ("J", "kinetic and potential energy"),
        "momentum": ("kg m/s", "length of the momentum"),
        "angular_momentum": ("kg m^2/s", "length of the angular momentum about the origin"),
        "contacts": ("1", "number of contacts"),
        "impacts": ("1", "impacts so far"),
        "penetration": ("m", "largest overlap"),
        "residual": ("m/s", "largest speed at which surfaces still approach too fast after the sweeps"),
        "shortest_contact": ("1", "substeps of the shortest contact that has ended; NaN before"),
        "largest_penetration": ("m", "largest overlap so far"),
        "position_x": ("m", "position along x"),
        "height": ("m", "height"),
        "speed": ("m/s", "speed"),
        "joint_error": ("m", "largest gap of a joint"),
        "joint_tilt": ("rad", "largest tilt of a joint"),
        "joint_error_rate": ("m/s", "largest rate of a joint's gap"),
        "joint_tilt_rate": ("rad/s", "largest rate of a joint's tilt"),
    }.items()
}
