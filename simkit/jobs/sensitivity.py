"""First-order Sobol indices of a sampled sweep: the share of a result's variance that each parameter explains alone."""

from collections.abc import Mapping

import numpy as np

# Fewer points make too few classes to tell a dependence from chance.
FEWEST = 64


def first_order_indices(points: Mapping[str, np.ndarray], result: np.ndarray) -> dict[str, float]:
    """Return the first-order Sobol index of each parameter, from a sample that fills its ranges evenly.

    The index of x is Var(E[y | x]) / Var(y). Points are put in order of x and cut into about sqrt(n) classes of equal
    size, whose means stand for E[y | x]; the variance that means of classes have by chance, (k - 1) times the variance
    within, is taken off. Against y = sum of independent terms the indices add up to 1; what is missing is interaction.
    The error is about 1 / sqrt(n), and a dependence that turns within a class is missed.

    Source: E. Plischke, E. Borgonovo and C. L. Smith, Global sensitivity measures from given data, Eur. J. Oper. Res.
    226, 536 (2013), doi:10.1016/j.ejor.2012.11.047, with the unbiased correlation ratio of T. L. Kelley, Proc. Natl.
    Acad. Sci. 21, 554 (1935), doi:10.1073/pnas.21.9.554.

    Args:
        points: values by parameter, each (n,).
        result: of each point, (n,); points where it is not finite are left out.

    Returns:
        ``{parameter: index}``, each cut to [0, 1]; empty for fewer than `FEWEST` points, or a result that is constant.
    """
    fine = np.isfinite(result)
    y = np.asarray(result, np.float64)[fine]
    count = y.size
    if count < FEWEST or np.ptp(y) <= 1e-12 * np.abs(y).max():
        return {}
    y = y - y.mean()
    total, indices = float(y @ y), {}
    for name, values in points.items():
        classes = np.array_split(y[np.argsort(np.asarray(values)[fine], kind="stable")], int(np.sqrt(count)))
        between = sum(len(one) * one.mean() ** 2 for one in classes)
        chance = (len(classes) - 1) * (total - between) / (count - len(classes))
        indices[name] = float(np.clip((between - chance) / total, 0.0, 1.0))
    return indices
