"""Names of the fields that frames of a flow described as data store."""

from collections.abc import Collection, Sequence

from simkit.errors import UserError, closest

BODY_DISTANCE, STREAM_FUNCTION = "body_distance", "stream_function"


def check_observed(names: Sequence[str], fields: Collection[str], others: Collection[str], dimension: int) -> None:
    """Refuse names of other things than fields that may be observed.

    Args:
        names: what the setting ``observed`` gives.
        fields: names of the fields of the flow.
        others: names of numbers, coordinates and arrays that are stored without being named.
        dimension: number of axes.

    Raises:
        UserError: that says why the first of them may not be observed, and what may be.
    """
    for index, name in enumerate(names):
        if name in fields:
            continue
        plane = name.removesuffix("_mid") in ("vorticity", STREAM_FUNCTION)
        if dimension == 3 and plane:
            why = "is of plane flows, and this one is in space"
        elif dimension == 2 and (name in ("w", "w_face") or name.removesuffix("_mid") in {*fields, "w"}):
            why = "is of flows in space, and this one is plane"
        elif name == BODY_DISTANCE:
            why = "is of flows with obstacles, and this one has none"
        elif name in others:
            why = "is stored without being named here"
        else:
            near = closest(name, fields)
            why = f"is not a field of this flow{'' if near is None else f'; did you mean {near!r}?'}"
        shown = f"{name[:64]!r} {why}{'' if why.endswith('?') else ';'}"
        raise UserError(f"observed[{index}] = {shown} choose from {', '.join(sorted(fields))}")
