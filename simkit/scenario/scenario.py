"""Scenario: content of a scenario file, with the parameters of its simulation."""

import dataclasses
import functools

from simkit.core.parameter import Numbers, Parameter, count, shown_bounds
from simkit.scenario.declared import declared_by, merged
from simkit.scenario.sections import ScenarioFile


@dataclasses.dataclass(frozen=True, repr=False)
class Scenario(ScenarioFile):
    """Content of a scenario file, a `ScenarioFile`, with the parameters of its simulation."""

    def __repr__(self) -> str:
        """Return one line: name, simulation and parameters."""
        values = {name: one.default for name, one in self.parameter_settings.items() if one.default is not None}
        shown = "".join(f", {name} = {_shown(value)}" for name, value in values.items())
        return f"<Scenario {self.name}: {self.simulation}{shown}>"

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
        """The declared parameters of the simulation, by name; it is made for that if they are not known.

        Raises:
            UserError: if the simulation cannot be made.
        """
        return declared_by(self) if self.known_parameters is None else self.known_parameters

    @functools.cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name: as declared by the simulation, with the settings of the file applied.

        Raises:
            UserError: if the simulation cannot be made, or does not allow a setting of the file.
        """
        return merged(self, self.declared)


def _shown(value: Numbers) -> str:
    """Return a number as text, or the number of entries of an array."""
    return f"{value:g}" if not isinstance(value, tuple) else f"[{count(value)} values]"
