"""Content of a scenario file as immutable records, one for each section."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core.parameter import Numbers, Parameter

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation

# In place of a registered name, for a simulation made in Python.
IN_PYTHON = "python.simulation"

# Keys and tables at the top of a file.
KEYS = ("name", "title", "summary", "simulation", "tags", "references")
TABLES = ("config", "params", "run", "quantities", "objectives", "render", "validation", "files")

# Functions of expressions by name of the reduction.
_REDUCTIONS = {
    "final": "final",
    "mean": "time_mean",
    "root_mean_square": "time_rms",
    "maximum": "largest",
    "minimum": "smallest",
    "sum": "time_sum",
}


@dataclasses.dataclass(frozen=True)
class ParameterSettings:
    """Settings of a parameter in a file; ``None`` where the declaration of the simulation applies.

    Attributes:
        default: the value, or nested tuples of values for an array.
        bounds: lowest and highest value allowed.
        unit: physical unit.
        doc: meaning.
    """

    default: Numbers | None = None
    bounds: tuple[float, float] | None = None
    unit: str | None = None
    doc: str | None = None

    def applied_to(self, parameter: Parameter) -> Parameter:
        """Return a declared parameter with these settings applied.

        Args:
            parameter: as declared.
        """
        return dataclasses.replace(
            parameter, **{name: value for name, value in vars(self).items() if value is not None}
        )

    @property
    def as_declaration(self) -> Parameter:
        """The declaration of a parameter that the file itself declares."""
        return self.applied_to(Parameter(0.0))


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """Length, precision and seed of a run.

    Attributes:
        steps: number of steps, a multiple of ``every``.
        every: steps between two stored frames.
        precision: ``"float32"`` or ``"float64"``.
        seed: seed of the random key.
        stop: condition that ends the run, an expression; empty for none.
    """

    steps: int
    every: int
    precision: str
    seed: int
    stop: str = ""


@dataclasses.dataclass(frozen=True)
class ObjectiveSettings:
    """A scalar of a run that is differentiated and optimized.

    Attributes:
        name: of the objective.
        doc: meaning.
        quantity: name of the diagnostic; empty with an expression.
        reduce: reduction of the history of the diagnostic to one number: final, mean, root_mean_square, maximum,
            minimum or sum.
        square: whether the quantity is squared, which turns a root into a minimum.
        goal: minimize or maximize.
        expression: of observed arrays and diagnostics, in place of quantity, reduce and square; empty for none.
    """

    name: str
    doc: str
    quantity: str
    reduce: str
    square: bool
    goal: str
    expression: str = ""

    @property
    def as_expression(self) -> str:
        """The objective as an expression, to be combined with others."""
        if self.expression:
            return self.expression
        return f"{_REDUCTIONS[self.reduce]}({self.quantity}){'**2' * self.square}"

    @property
    def made_of(self) -> tuple[str, ...]:
        """Names of the quantities in the objective."""
        from simkit.core.expressions.syntax import parse

        return parse(self.expression, f"objectives.{self.name}").names if self.expression else (self.quantity,)


@dataclasses.dataclass(frozen=True)
class QuantitySettings:
    """A quantity that a scenario adds to those of its simulation.

    Attributes:
        name: of the quantity.
        expression: of parameters, quantities and coordinates.
        unit: physical unit.
        doc: meaning.
    """

    name: str
    expression: str
    unit: str
    doc: str


@dataclasses.dataclass(frozen=True)
class RenderSettings:
    """Settings for drawing the stored frames.

    Attributes:
        view: field, particles, bodies or chart.
        quantity: the observed array shown as color; for a chart, the diagnostic drawn over time.
        label: text of the color bar.
        unit: unit of the quantity; ``"1"`` for a pure number.
        colormap: name of a color map; ``None`` lets the renderer choose.
        limits: lowest and highest color value; ``None`` takes them from the data.
        frames_per_second: speed of the animation.
        camera: of the view of bodies, side or perspective; ``None`` chooses by the motion of the bodies.
        azimuth: of the direction from the bodies to the perspective camera, in degrees from x towards y; ``None``
            chooses.
        elevation: of that direction above the horizon in degrees; ``None`` chooses.
        turn: rotation of the perspective camera around the bodies during the animation, in degrees.
        window: lowest and highest coordinate of the drawn part of a field, by axis; the whole axis if it has no entry.
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
    """A published or analytic number that the scenario reproduces.

    Attributes:
        quantity: the compared diagnostic (for a derivative: the quantity of the objective, empty for an expression).
        expected: the published or analytic value.
        tolerance: relative to ``|expected|``; absolute if ``expected`` is zero.
        source: of the value.
        overrides: values of parameters and settings for this comparison, as for ``--set``.
        derivative: the parameter with respect to which ``objective`` is differentiated; ``None`` compares the quantity.
        objective: the objective whose derivative is compared.
        reduce: reduction of the history of the diagnostic to one number, as for an objective.
        expression: of observed arrays and diagnostics, compared in place of the quantity; empty for none.
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
        """Label of the compared number: ``energy``, ``overlap (maximum)`` or ``d objective / d parameter``."""
        if self.derivative is not None:
            return f"d {self.objective} / d {self.derivative}"
        if self.expression:
            return self.expression
        return self.quantity if self.reduce == "final" else f"{self.quantity} ({self.reduce.replace('_', ' ')})"


@dataclasses.dataclass(frozen=True)
class ScenarioFile:
    """Content of a scenario file, after all checks that need no simulation.

    Attributes:
        name: identifier, unique among the shipped scenarios.
        title: a few words.
        summary: one sentence.
        simulation: registered name of the factory, ``domain.name``.
        tags: words for searches.
        references: sources, such as ``doi:...``.
        config: static arguments of the factory (lists as tuples).
        parameter_settings: settings of parameters in the file, by path.
        run: length, frame interval, precision and seed.
        objectives: by name.
        render: settings for drawing.
        validations: the numbers it reproduces.
        source: path of the file.
        text: of that file.
        quantities: further quantities, added to those of the simulation, by name.
        made: the simulation, if it was made in Python and not by a registered factory.
        known_parameters: declared parameters of the simulation, if known without making it: those of a stored run at
            its beginning, or of a scenario with the same configuration; otherwise ``None``.
        original: the content of the file itself, if values or configuration were changed since; otherwise ``None``.
    """

    name: str
    title: str
    summary: str
    simulation: str
    tags: tuple[str, ...]
    references: tuple[str, ...]
    config: dict[str, Any]
    parameter_settings: dict[str, ParameterSettings]
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
    def file_parameter_settings(self) -> dict[str, ParameterSettings]:
        """The ``parameter_settings`` of the file itself."""
        return (self.original or self).parameter_settings

    @property
    def is_reconfigured(self) -> bool:
        """Whether ``config`` differs from that of the file."""
        return self.original is not None and self.original.config != self.config

    @property
    def domain(self) -> str:
        """The part of ``simulation`` before its first dot: molecular, flow, rigid, or that of a plugin."""
        return self.simulation.partition(".")[0]

    @property
    def file(self) -> str:
        """Name of the file in error messages."""
        return file_label(self.source)


def file_label(path: Path) -> str:
    """Return the name of a file, quoted if it has unprintable characters such as line breaks."""
    name = path.name or str(path)
    return name if name.isprintable() else repr(name)
