"""The exponent of a power law, by least squares on a log-log scale."""
import math

upper_decades = 2  # at small sizes constant costs dominate


def upper(points, decades=upper_decades):
    """The points of the highest decades; all of them when that leaves fewer than three."""
    most = max(x for x, _ in points)
    kept = [(x, y) for x, y in points if x >= most / 10 ** decades * 0.999]
    return kept if len(kept) >= 3 else sorted(points)[-3:]


def exponent(points):
    """b of y = a * x^b. Points have x > 0 and y > 0; one x alone has no exponent: None."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x, mean_y = (sum(column) / len(logs) for column in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)
