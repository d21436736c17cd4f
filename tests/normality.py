"""How likely a sample is if it comes from the standard normal distribution."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import kstwo

UNLIKELY = 1e-6
"""A test with a p-value below this one has failed."""


def kolmogorov_smirnov(sample: NDArray[np.float64]) -> float:
    """The p-value of the sample being standard normal."""
    ordered = ndtr(np.sort(sample))
    steps = np.arange(len(sample) + 1) / len(sample)
    distance = max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max())
    return float(kstwo.sf(distance, len(sample)))
