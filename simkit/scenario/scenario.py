"""A scenario: the content of its file, and the parameters of its simulation."""

import dataclasses
import functools

from simkit.core.parameter import Numbers, Parameter, count, shown_bounds
from simkit.scenario.declared import declared_by, merged
from simkit.scenario.sections import ScenarioFile


@dataclasses.dataclass(frozen=True, repr=False)
class Scenario(ScenarioFile):
    """A scenario file that has passed every check that needs no simulation; its fields are those of `ScenarioFile`."""

    def __repr__(self) -> str:
        """Return one line: name, simulation and parameters."""
        said = {name: said.default for name, said in self.differences.items() if said.default is not None}
        values = "".join(f", {name} = {_shown(value)}" for name, value in said.items())
        return f"<Scenario {self.name}: {self.simulation}{values}>"

    def _repr_html_(self) -> str:
        """Return title, summary and parameters as a table, for notebooks."""
        import html

        head = "".join(f"<th>{word}</th>" for word in ("parameter", "value", "unit", "bounds", "meaning"))
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td>{html.escape(text)}</td>"
                for text in (name, _shown(p.default), p.unit, shown_bounds(p.bounds), p.doc)
            )
            + "</tr>"
            for name, p in self.parameters.items()
        )
        title = f"<b>{html.escape(self.title)}</b> ({self.name}, {self.simulation})<br>{html.escape(self.summary)}"
        return f"{title}<table><tr>{head}</tr>{rows}</table>"

    @functools.cached_property
    def declared(self) -> dict[str, Parameter]:
        """The parameters that the simulation declares, by name; it is made for that if they are not known.

        Raises:
            UserError: if it cannot be made.
        """
        return declared_by(self) if self.known_parameters is None else self.known_parameters

    @functools.cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters, by name: as the simulation declares them, with the differences of the file applied.

        Raises:
            UserError: if the simulation cannot be made, or the file says what it does not allow.
        """
        return merged(self, self.declared)


def _shown(value: Numbers) -> str:
    """Return a number, or how many there are."""
    return f"{value:g}" if not isinstance(value, tuple) else f"[{count(value)} values]"
