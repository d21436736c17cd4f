"""How good the bounds are that a survey chooses: ``python -m benchmarks.chosen_bounds``, and with another ``SEED``.

docs/choosing-bounds.md has these numbers. The rules are those of gsh/events/choosing.py, with noisy histograms of
surveys that take 0.2, 1 or 5 % of the noise cost. ``--quick`` stops at 10⁵ users.

C_u: users draw groups of Zipf's popularity, and the numbers of their groups are lognormal, Pareto or Zipf. The volume
is the expected number of pairs of a user and a group in published groups, with the noise and the threshold that the
survey leaves. It is compared with that of the best C_u, known at no cost.

Clips: the error of the sum in a group of m users, m E(x − b)₊ + √(2/π) b √(n/S), compared with that at the best b.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.markdown import table
from gsh.accounting.accountings import EXACT
from gsh.accounting.calibration.after_survey import SurveyPlan, SurveyShare, plan_of
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.target import calibrate
from gsh.events.choosing import BINS, chosen_c_u, chosen_clip, edges
from gsh.events.surveys.choices import TableCost

TARGET = Target(1.0, 1e-6)
SHARES = (0.002, 0.01, 0.05)
DEFAULT, DEFAULT_UNITS = 32, 1024
C_US = tuple(sorted({each for j in range(15) for each in (1 << j, (3 << j) // 2)}))
"""Powers of two, and one number between two of them."""
C_U_OF_CLIPS, UNIT, BINS_OF_A_SUM = 16, 2.0**-6, 41
SURVEYS, MOST_USERS = 400, 10**6

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Events:
    """The pairs of a user and a group, in the order in which lots keep them."""

    degrees: Integers
    """The number of groups of each user."""
    group: Integers
    place: Integers
    """The place of a pair among those of its user."""

    def counts(self, c_u: int) -> Integers:
        """The users of each group that C_u keeps."""
        found = np.bincount(self.group[self.place < c_u])
        return found[found > 0]


@dataclass(frozen=True)
class Data:
    """A distribution of the number of groups that a user draws."""

    name: str
    draw: Callable[[np.random.Generator, int], Doubles]
    groups: int = 1
    """So many groups for each user."""
    users: Sequence[int] = (10**3, 10**4, 10**5, 10**6)


def _lognormal(scale: float) -> Callable[[np.random.Generator, int], Doubles]:
    return lambda random, users: scale * random.lognormal(1.5, 1.3, users)


DATA = (
    Data("lognormal(1.5, 1.3)", _lognormal(1)),
    Data("Pareto(1.2)", lambda random, users: random.pareto(1.2, users) + 1),
    Data("Zipf(2): the mean is infinite", lambda random, users: random.zipf(2.0, users).astype(np.float64)),
    Data("lognormal(1.5, 1.3) × 30", _lognormal(30), groups=10, users=(10**4, 10**5)),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chosen_bounds")
    parser.add_argument("seed", nargs="?", type=int, default=29)
    parser.add_argument("--quick", action="store_true", help="at most 10⁵ users")
    given = parser.parse_args()
    header = ["groups of a user", "users", "best C_u", *(f"survey of {100 * share:g} %" for share in SHARES)]
    most = 10**5 if given.quick else MOST_USERS
    print(f"seed {given.seed}\n\n## C_u at 5, 50 and 95 % of surveys: volume lost in percent, median and 95 %\n")
    print(table([*header, f"always {DEFAULT}"], list(rows(np.random.default_rng(given.seed), most))))
    print("\n## More error of a sum in percent than with the best clip, median and 95 %\n")
    print(table(["values", *header[1:2], *header[3:]], list(rows_of_clips(np.random.default_rng(given.seed), most))))


def rows(random: np.random.Generator, most: int) -> Iterator[list[str]]:
    fixed = {c_u: calibrate(EXACT, Draft(c_u=c_u, tau=1, tau_star=None, sigma=None), TARGET) for c_u in C_US}
    plans = [plan_of(TARGET, (SurveyShare(share),)) for share in SHARES]
    for data in DATA:
        for users in data.users:
            if users > most:
                continue
            found = events(random, data, users)
            volumes = {
                c_u: volume(found, c_u, each.mechanism.sigma, each.mechanism.tau_star) for c_u, each in fixed.items()
            }
            best = max(volumes, key=volumes.__getitem__)
            cells = [surveyed(random, found, plan, volumes[best]) for plan in plans]
            always = f"{100 * (1 - volumes[DEFAULT] / volumes[best]):.1f}"
            yield [data.name, f"10^{math.log10(users):g}", str(best), *cells, always]


def events(random: np.random.Generator, data: Data, users: int) -> Events:
    """Each user draws groups of Zipf's popularity, and keeps one of each. Lots are drawn once."""
    groups = users * data.groups
    popular = np.cumsum(1 / np.arange(1, groups + 1))
    drawn = np.minimum(np.ceil(data.draw(random, users)), groups).astype(np.int64)
    pairs = np.empty(0, np.int64)
    for some in np.array_split(np.arange(users), max(1, int(drawn.sum()) // 10**7)):
        whose = np.repeat(some, drawn[some])
        group = np.searchsorted(popular, random.random(len(whose)) * popular[-1])
        pairs = np.concatenate([pairs, np.unique(whose * groups + group)])
    random.shuffle(pairs)
    owner = pairs // groups
    order = np.argsort(owner, kind="stable")  # so that the lots decide the place within a user
    owner, group = owner[order], pairs[order] % groups
    degrees = np.bincount(owner, minlength=users)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    return Events(degrees, group, place)


def volume(found: Events, c_u: int, sigma: float, tau_star: float) -> float:
    """The expected number of pairs in published groups."""
    counts = found.counts(c_u)
    return float(counts @ ndtr((counts - tau_star) / sigma))


def surveyed(random: np.random.Generator, found: Events, plan: SurveyPlan, best: float) -> str:
    """What surveys choose, and what is lost."""
    sigma, cost = plan.survey[0].sigma, TableCost(plan.mu_squared, plan.hazard, 1, {})
    users = np.bincount(np.searchsorted(edges(), found.degrees), minlength=BINS)
    noisy = users + sigma * random.standard_normal((SURVEYS, BINS))
    chosen = [int(chosen_c_u(each, sigma, cost.tau_star, DEFAULT).bound) for each in noisy.tolist()]
    volumes = {c_u: volume(found, c_u, cost.sigma(c_u), cost.tau_star(c_u)) for c_u in set(chosen)}
    low, middle, high = np.quantile(chosen, (0.05, 0.5, 0.95), method="nearest")
    return f"{low}/{middle}/{high}: {lost([volumes[each] for each in chosen], best)}"


def lost(volumes: Sequence[float], best: float) -> str:
    return middle_and_high([1 - each / best for each in volumes])


def middle_and_high(values: Sequence[float]) -> str:
    """The median and the 95 % quantile, in percent."""
    return ", ".join(f"{100 * each:.1f}" for each in np.quantile(values, (0.5, 0.95)).tolist())


@dataclass(frozen=True)
class Values:
    """A distribution of what users add to a group, and the mean of what a clip removes of it."""

    name: str
    draw: Callable[[np.random.Generator, int], Doubles]
    excess: Callable[[float], float]
    """E(x − b)₊"""


def _excess_of_pareto(shape: float) -> Callable[[float], float]:
    return lambda b: b ** (1 - shape) / (shape - 1) if b > 1 else shape / (shape - 1) - b


def _excess_of_lognormal(b: float) -> float:
    s, at = 1.5, math.log(b)
    return float(math.exp(s * s / 2) * ndtr(s - at / s) - b * ndtr(-at / s))


VALUES = (
    Values("lognormal(0, 1.5)", lambda random, users: random.lognormal(0, 1.5, users), _excess_of_lognormal),
    Values("Pareto(1.5)", lambda random, users: random.pareto(1.5, users) + 1, _excess_of_pareto(1.5)),
    Values("Pareto(1.1)", lambda random, users: random.pareto(1.1, users) + 1, _excess_of_pareto(1.1)),
)


def rows_of_clips(random: np.random.Generator, most: int) -> Iterator[list[str]]:
    for values in VALUES:
        for users in DATA[0].users:
            if users <= most:
                cells = [clipped(random, values, users, share) for share in SHARES]
                yield [values.name, f"10^{math.log10(users):g}", *cells]


def clipped(random: np.random.Generator, values: Values, users: int, share: float) -> str:
    """How much larger the error is than that at the best clip. The survey has a histogram for C_u too."""
    plan = plan_of(TARGET, (SurveyShare(share / 2), SurveyShare(share / 2)))
    cost, ends = TableCost(plan.mu_squared, plan.hazard, 1, {"x": 1.0}), [UNIT * each for each in edges(BINS_OF_A_SUM)]
    above, sigma = cost.clipped_share("x", C_U_OF_CLIPS), plan.survey[1].sigma
    noise = math.sqrt(2 / math.pi) * math.sqrt(C_U_OF_CLIPS / (plan.mu_squared / 2))
    people = noise / above

    def error(b: float) -> float:
        return people * values.excess(b) + b * noise

    best = min(error(UNIT * 2 ** (place / 16)) for place in range(16 * BINS_OF_A_SUM))
    found = []
    for _ in range(SURVEYS // 4):
        true = np.bincount(np.searchsorted(ends, values.draw(random, users)), minlength=BINS_OF_A_SUM)
        noisy = (true + sigma * random.standard_normal(BINS_OF_A_SUM)).tolist()
        found.append(error(chosen_clip(noisy, sigma, ends, above, DEFAULT_UNITS * UNIT).bound) / best - 1)
    return middle_and_high(found)


if __name__ == "__main__":
    main()
