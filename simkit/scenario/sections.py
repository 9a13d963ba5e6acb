"""Content of a scenario file as immutable records, one for each of its sections."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core.parameter import Numbers, Parameter

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation
# In place of a registered name: a simulation that was made in Python and handed over.
IN_PYTHON = "python.simulation"


@dataclasses.dataclass(frozen=True)
class Difference:
    """What a file says of a parameter; ``None`` where its simulation's declaration counts.

    Attributes:
        default: the value, or nested tuples of values for an array.
        bounds: lowest and highest value allowed.
        unit: physical unit.
        doc: what it means.
    """

    default: Numbers | None = None
    bounds: tuple[float, float] | None = None
    unit: str | None = None
    doc: str | None = None

    def applied_to(self, parameter: Parameter) -> Parameter:
        """Return a parameter with what the file says of it.

        Args:
            parameter: as it is declared.
        """
        return dataclasses.replace(
            parameter, **{name: value for name, value in vars(self).items() if value is not None}
        )

    @property
    def in_full(self) -> Parameter:
        """The parameter of a file that describes it in full."""
        return self.applied_to(Parameter(0.0))


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """How far and how precisely to run.

    Attributes:
        steps: number of steps, a multiple of ``every``.
        every: steps between two stored frames.
        precision: ``"float32"`` or ``"float64"``.
        seed: seed of the random key.
        stop: a condition at which it takes no further step, an expression; empty without.
    """

    steps: int
    every: int
    precision: str
    seed: int
    stop: str = ""


@dataclasses.dataclass(frozen=True)
class ObjectiveSettings:
    """A scalar of the run that gradients and optimizers act on.

    Attributes:
        name: what it is called.
        doc: what it means.
        quantity: the diagnostic it is made of.
        reduce: how the diagnostic's history becomes one number: final, mean, root_mean_square, maximum, minimum or
            sum.
        square: whether the quantity is squared, which turns a root into a minimum.
        goal: minimize or maximize.
        expression: what it is instead, an expression of all that a run observes and diagnoses; empty without.
    """

    name: str
    doc: str
    quantity: str
    reduce: str
    square: bool
    goal: str
    expression: str = ""

    @property
    def made_of(self) -> tuple[str, ...]:
        """Names of the quantities that it is made of."""
        from simkit.core.expressions.syntax import parse

        return parse(self.expression, f"objectives.{self.name}").names if self.expression else (self.quantity,)


@dataclasses.dataclass(frozen=True)
class QuantitySettings:
    """A quantity that a scenario adds to those of its simulation.

    Attributes:
        name: what it is called.
        expression: of parameters, quantities and coordinates.
        unit: physical unit.
        doc: what it means.
    """

    name: str
    expression: str
    unit: str
    doc: str


@dataclasses.dataclass(frozen=True)
class RenderSettings:
    """How the stored frames are drawn.

    Attributes:
        view: field, particles, bodies or chart.
        quantity: the observed array that gives the color; of a chart, the diagnostic drawn over time.
        label: text of the color bar.
        unit: unit of the quantity; ``"1"`` for a pure number.
        colormap: name of a color map; ``None`` lets the renderer choose.
        limits: lowest and highest color value; ``None`` takes them from the data.
        frames_per_second: speed of the animation.
        camera: of the view of bodies, side or perspective; ``None`` chooses by what moves.
        azimuth: of the direction from the bodies to the perspective camera, in degrees from x towards y; ``None``
            chooses.
        elevation: of that direction above the horizon in degrees; ``None`` chooses.
        turn: how far the perspective camera goes around the bodies during the animation, in degrees.
        window: lowest and highest coordinate of the part of a field that is drawn, by axis; all of an axis that is not
            in it.
    """

    view: str
    quantity: str
    label: str
    unit: str
    colormap: str | None
    limits: tuple[float, float] | None
    frames_per_second: float
    camera: str | None = None
    azimuth: float | None = None
    elevation: float | None = None
    turn: float = 0.0
    window: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Validation:
    """A number the scenario reproduces.

    Attributes:
        quantity: the diagnostic that is compared (for a derivative: the objective's quantity, empty for an expression).
        expected: the published or analytic value.
        tolerance: relative to ``|expected|``; absolute where ``expected`` is zero.
        source: where the value comes from.
        overrides: values this check runs with, as for ``--set``.
        derivative: the parameter with respect to which ``objective`` is differentiated; ``None`` compares the quantity.
        objective: the objective whose derivative is compared.
        reduce: how the diagnostic's history becomes the number compared, as for an objective.
        expression: what is compared instead, an expression of all that a run observes and diagnoses; empty without.
    """

    quantity: str
    expected: float
    tolerance: float
    source: str
    overrides: dict[str, Any]
    derivative: str | None
    objective: str | None
    reduce: str = "final"
    expression: str = ""

    @property
    def words(self) -> str:
        """What is compared: ``energy``, ``overlap (maximum)`` or ``d objective / d parameter``."""
        if self.derivative is not None:
            return f"d {self.objective} / d {self.derivative}"
        if self.expression:
            return self.expression
        return self.quantity if self.reduce == "final" else f"{self.quantity} ({self.reduce.replace('_', ' ')})"


@dataclasses.dataclass(frozen=True)
class ScenarioFile:
    """Content of a scenario file that has passed every check that needs no simulation.

    Attributes:
        name: identifier, unique among the shipped scenarios.
        title: a few words.
        summary: one sentence.
        simulation: registered name of the factory, ``domain.name``.
        tags: words to search by.
        references: sources, such as ``doi:...``.
        config: static arguments of the factory (lists as tuples).
        differences: what the file says of parameters, by name.
        run: length, frame interval, precision and seed.
        objectives: what gradients act on, by name.
        render: how frames are drawn.
        validations: the numbers it reproduces.
        source: the file it was read from.
        text: that file's text.
        quantities: what it measures beyond what its simulation does, by name.
        made: the simulation, if it was made in Python and not by a registered factory.
        known_parameters: the parameters that the simulation declares, if they are known without making it: those with
            which a stored run began, or those of a scenario with the same configuration; otherwise ``None``.
        original: the content of the file itself, if values or configuration were changed since; otherwise ``None``.
    """

    name: str
    title: str
    summary: str
    simulation: str
    tags: tuple[str, ...]
    references: tuple[str, ...]
    config: dict[str, Any]
    differences: dict[str, Difference]
    run: RunSettings
    objectives: dict[str, ObjectiveSettings]
    render: RenderSettings
    validations: tuple[Validation, ...]
    source: Path
    text: str
    quantities: dict[str, QuantitySettings] = dataclasses.field(default_factory=dict)
    made: "Simulation | None" = dataclasses.field(default=None, compare=False)
    known_parameters: dict[str, Parameter] | None = dataclasses.field(default=None, compare=False)
    original: "ScenarioFile | None" = dataclasses.field(default=None, compare=False)

    @property
    def file_differences(self) -> dict[str, Difference]:
        """The ``differences`` of the file itself."""
        return (self.original or self).differences

    @property
    def is_reconfigured(self) -> bool:
        """Whether ``config`` differs from that of the file itself."""
        return self.original is not None and self.original.config != self.config

    @property
    def domain(self) -> str:
        """The part of ``simulation`` before its first dot: molecular, flow, rigid, or a plugin's own."""
        return self.simulation.partition(".")[0]

    @property
    def file(self) -> str:
        """The file's name as error messages show it."""
        return file_label(self.source)


def file_label(path: Path) -> str:
    """Return a file's name, quoted if it holds characters that would break a line."""
    name = path.name or str(path)
    return name if name.isprintable() else repr(name)
