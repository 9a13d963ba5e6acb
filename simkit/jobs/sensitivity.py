"""First-order Sobol indices of a sampled sweep: the share of a result's variance that each parameter explains alone."""

from collections.abc import Mapping

import numpy as np

# With fewer points there are too few classes to distinguish a dependence from chance.
FEWEST = 64


def first_order_indices(points: Mapping[str, np.ndarray], result: np.ndarray) -> dict[str, float]:
    """Return the first-order Sobol index of each parameter, from a sample that fills its ranges evenly.

    The index of x is Var(E[y | x]) / Var(y). Points are sorted by x and divided into about sqrt(n) classes of equal
    size, whose means estimate E[y | x]; the variance of the k class means by chance, (k - 1) times the variance within
    classes, is subtracted. The indices of y = sum of independent terms add up to 1; a smaller sum indicates
    interactions. The error is about 1 / sqrt(n), and a dependence that changes sign within a class is missed.

    Source: E. Plischke, E. Borgonovo and C. L. Smith, Global sensitivity measures from given data, Eur. J. Oper. Res.
    226, 536 (2013), doi:10.1016/j.ejor.2012.11.047, with the unbiased correlation ratio of T. L. Kelley, Proc. Natl.
    Acad. Sci. 21, 554 (1935), doi:10.1073/pnas.21.9.554.

    Args:
        points: values by parameter, each (n,).
        result: result at each point, (n,); non-finite ones are omitted.

    Returns:
        ``{parameter: index}``, clipped to [0, 1]; empty for fewer than `FEWEST` points or a constant result.
    """
    finite = np.isfinite(result)
    y = np.asarray(result, np.float64)[finite]
    count = y.size
    if count < FEWEST or np.ptp(y) <= 1e-12 * np.abs(y).max():
        return {}
    y = y - y.mean()
    total, indices = float(y @ y), {}
    for name, values in points.items():
        classes = np.array_split(y[np.argsort(np.asarray(values)[finite], kind="stable")], int(np.sqrt(count)))
        between = sum(len(one) * one.mean() ** 2 for one in classes)
        chance = (len(classes) - 1) * (total - between) / (count - len(classes))
        indices[name] = float(np.clip((between - chance) / total, 0.0, 1.0))
    return indices
