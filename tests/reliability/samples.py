"""Right input of the command line, from which wrong input is made: files of each kind, and command lines."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIPPED = {path.stem: path.read_text() for path in sorted((ROOT / "scenarios").glob("*/*.toml"))}
# Those whose check takes the least time.
_QUICK = """bouncing_ball asymmetric_top compliant_bounce heavy_top newtons_cradle projectile rolling_ball
sliding_block steered_puck system_identification four_bar_linkage channel_flow taylor_green
kolmogorov_turbulence womersley viscosity_from_frames couette_poiseuille stokes_second_problem
lennard_jones_cluster jamming nose_hoover colloid_self_assembly soft_sphere_packing trapped_charges
bubble_raft"""
QUICK = _QUICK.split()
PENDULUM = """<mujoco><option timestep="0.002" gravity="0 0 -9.81"/><default><geom rgba="1 0 0 1"/></default><worldbody>
<geom type="plane" size="5 5 .1"/><body name="rod" pos="0 0 1"><joint name="pivot" type="hinge" axis="0 1 0"
range="-1 1" limited="true" stiffness="1" damping=".1"/>
<geom type="box" size=".1 .1 .3" mass="1"/><body name="tip" pos="0 0 -.6">
<joint type="slide" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".05" friction="1 .1 .1"/>
<site name="s"/></body></body><body name="ball" pos="0 0 2"><freejoint/><geom type="sphere" size=".1" density="500"/>
</body></worldbody>
<contact><exclude body1="rod" body2="tip"/></contact>
<equality><connect body1="rod" body2="ball" anchor="0 0 0"/></equality>
<actuator><motor joint="pivot" gear="2" ctrlrange="-1 1"/><position joint="pivot" kp="3"/></actuator>
<sensor><jointpos joint="pivot"/></sensor><keyframe><key qpos="0 0 0 0 2 1 0 0 0"/></keyframe></mujoco>"""
XYZ = """4
Lattice="5.0 0.0 0.0 0.0 5.0 0.0 0.0 0.0 5.0" Properties=species:S:1:pos:R:3:weight:R:1:group:I:1 E=-1 pbc="T T T"
Ar 0.0 0.0 0.0 0.1 1
Ar 1.5 0.0 0.0 -0.1 1
Ar 0.0 1.5 0.0 0.2 2
Ne 0.0 0.0 1.5 -0.2 2
2
Properties=species:S:1:pos:R:3 comment="two 'atoms'"
Ar 0.0 0.0 0.0
Ar 1.5 0.0 0.0
"""
MOLECULES = """name = "atoms"
title = "Atoms"
summary = "Atoms come together."
simulation = "molecular.system"
[config]
particles = {Ar = {}, Ne = {}}
start = { structure = { file = "start.xyz" } }
interactions = [{ potential = "lennard_jones" }]
relax = { force_tolerance = 1.5e-5 }
[params]
epsilon = { default = 1.0, bounds = [0.1, 10.0], doc = "depth" }
sigma = { default = 1.0, bounds = [0.5, 2.0], doc = "size" }
[run]
steps = 4
every = 1
[render]
view = "particles"
quantity = "diameter"
"""
ARTICULATED = """name = "model"
title = "Model"
summary = "A model moves."
simulation = "rigid.mjcf"
[config]
model = { file = "model.xml" }
engine = "mujoco"
[run]
steps = 4
every = 1
[render]
view = "bodies"
quantity = "radius"
"""
POINTS = "launch_speed,drag,gravity\n1.0,0.5,9.8\n2.0,0.25,10\n3.0,0.5,1e1\n"
_OPTIONS = """--set --seed --precision --over --zip --sample --members --table --seeds --chunk --memory --workers
--deadline  --no-frames --dry-run --json --overwrite -o --output --no-render --format --size --wrt
--objective --mode --check  --second --method --iterations --learning-rate --starts --frame --max-frames
--to --what --batch --tolerance  --verify --runtime --from --schema --quantities --simulations
--processes --process-id --help -h"""
OPTIONS = _OPTIONS.split()
LINES = [
    "show bouncing_ball --set steps=20",
    "show flow.channel --schema --json",
    "show asymmetric_top --quantities --seed 3",
    "list --json",
    "list --simulations",
    "new mine --from projectile -o mine.toml",
    "new mine --from rigid.bouncing_ball --overwrite",
    "check projectile --json",
    "run bouncing_ball --set steps=4 --set every=2 --no-render -o out",
    "run projectile --set params.spin=[0,0,1] --precision float64 --format png --size 64x36",
    "sweep bouncing_ball --over restitution=0.1:0.9:3 --seeds 2 --chunk 2 --dry-run",
    "sweep bouncing_ball --over restitution=0.1,0.5 --over gravity=9:10:2 --zip --chunk 1 --memory 1GiB --dry-run",
    "sweep bouncing_ball --sample sobol --members 4 --over restitution=0.1:0.9 --chunk 2 --dry-run",
    "sweep bouncing_ball --table points.csv --chunk 1 --dry-run",
    "sweep channel_flow --over config.cells=[8,8],[16,8] --chunk 1 --dry-run",
    "grad bouncing_ball --wrt restitution,gravity --objective height --mode reverse --check",
    "optimize bouncing_ball --wrt gravity --method adam --iterations 2 --learning-rate 0.1 --starts 2",
    "status out",
    "resume out --no-render --workers 2",
    "merge out other -o both",
    "render out --format png --size 64x36 --frame 0 -o picture.png",
    "render out --format gif --max-frames 3",
    "export out --to csv -o numbers.csv",
    "export projectile --to onnx --what step --batch 2 --tolerance 1e-3 -o program",
    "export program --verify",
    "validate projectile",
    "gallery projectile -o pictures",
]
