"""A scene with a prescribed body, a hinge, a motor and loads, as data."""

ARM = {"shape": "capsule", "name": "rod", "radius": 0.02, "length": 1.0, "density": "rho"}
DRIVEN = {
    "bodies": [
        {"shape": "box", "name": "cart", "lengths": 0.1, "motion": "prescribed", "position": ["a*sin(w*time)", 0, 0]},
        {**ARM, "position": ["-sin(q)/2", 0, "-cos(q)/2"], "orientation": [0, "q", 0]},
    ],
    "joints": [
        {"joint": "hinge", "name": "pivot", "first": "rod", "second": "cart", "at": [0, 0, 0], "axis": [0, 1, 0]},
        {"joint": "attachment", "name": "band", "first": "rod", "base": ["x0", 0, -1]},
    ],
    "motors": [{"motor": "torque", "joint": "pivot", "torque": "drive*cos(time)"}],
    "loads": [
        {"load": "spring", "joint": "band", "stiffness": "k", "length": 0.5},
        {"load": "drag", "angular": "c", "on": ["rod"]},
        {"load": "energy", "energy": "k/10*(x - x0)**2"},
    ],
    "close_joints": True,
    "gravity": "g",
    "method": "jointed",
    "measured": ["pivot", "band", "rod"],
    "points": {"tip": {"body": "rod", "at": [0, 0, -0.5]}},
}
NUMBERS = {"a": 0.1, "w": 3.0, "rho": 800.0, "q": 0.4, "x0": 0.5, "drive": 0.3, "k": 4.0, "c": 0.02, "g": 9.81}
