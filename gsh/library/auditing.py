"""A statistical check of a black box: is it the engine that it is said to be?  [docs/math/engines.md#7-a-black-box]"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from gsh.accounting.engines.curves import EnginePoint, at_epsilon, histogram_of
from gsh.accounting.engines.evidence import Direction, chance_of_equals, event, most_equal, shown_delta
from gsh.accounting.engines.noise import Keeps, NoiseKind
from gsh.arguments import Integer, Real, flag, integer, is_several, real, reals
from gsh.errors import InvalidParameter
from gsh.library.black_box import Blocks, Seen, Tables

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Audit", "Evidence", "Fault", "audit"]

Rule = Literal["privacy", "keys", "tau", "threshold", "shared noise", "repeated noise"]
Run: TypeAlias = "Callable[[pa.Table], Any]"
Counts = NDArray[np.float64]

_EPSILONS = (0.0, 0.5, 1.0, 2.0)
_MOST_EPSILONS = 100
_MOST_BLOCKS = 1_000_000
_LEAST_HITS = 20
"""If fewer are expected, an audit can show nothing."""
_MORE = 8
"""So many times C_u groups show that users are not bounded."""
_DEPENDENCE = 3
"""The tests of dependence."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The δ at one ε that the outputs show for one pair of neighbours, and what is certified."""

    epsilon: float
    groups: int
    """Of the user. More than C_u of them show whether the box bounds users."""
    groups_at_tau: int
    """The others are far above the threshold."""
    direction: Direction
    shown: float
    """A lower bound on δ. It can be below 0: then the outputs show nothing."""
    certified: float


@dataclass(frozen=True, slots=True)
class Fault:
    """What the outputs do that an engine as stated does not do."""

    rule: Rule
    detail: str


@dataclass(frozen=True, slots=True)
class Audit:
    """What the outputs of a black box show. No fault is no proof that there is none."""

    faults: tuple[Fault, ...]
    evidence: tuple[Evidence, ...]
    blocks: int
    """Samples with the user, and as many without, of each pair of neighbours."""
    level: float
    """An engine as stated has no fault, with at least this probability."""

    @property
    def is_as_stated(self) -> bool:
        """Whether no fault was found."""
        return not self.faults


def audit(
    run: Run,
    /,
    *,
    noise: NoiseKind,
    scale: Real,
    c_u: Integer,
    threshold: Real,
    tau: Integer = 1,
    keeps: Keeps = ">=",
    epsilon: "Real | Sequence[Real] | None" = None,
    blocks: Integer = 2000,
    runs: Integer = 2,
    level: Real = 0.9999,
    is_bounded: bool = False,
) -> Audit:
    """Run a black box on neighbouring tables: does it show more than what is certified for the engine it should be?

    ``run`` takes a table of events with the columns ``user`` and ``key``, both texts, and returns what is published: a
    mapping from keys to noisy counts, or a table with the columns ``key`` and ``count``. It bounds each user to
    ``c_u`` groups, and counts a user once in a group. With ``is_bounded=True`` the events are bounded already.

    The other arguments describe the engine, as those of ``gsh.engine`` do. Choose a small scale and a low threshold:
    δ must be large enough to be seen, such as 0.05, and the code that runs is the same. The outputs are compared with
    the certified δ at each ``epsilon``, and with the rules: no group below τ, no count below the threshold, noise of
    its own for each group and each run.

    >>> import gsh
    >>> said = gsh.Mechanism(c_u=2, tau_star=4, sigma=1.5)
    >>> def box(events):
    ...     counts = events.group_by("key").aggregate([("user", "count")]).rename_columns(["key", "users"])
    ...     return gsh.release(said, counts, key_columns=["key"], count_column="users").rename_columns(["key", "count"])
    >>> gsh.audit(box, noise="gaussian", scale=1.5, c_u=2, threshold=4, is_bounded=True, blocks=500).is_as_stated
    True
    """
    histogram = histogram_of(noise=noise, scale=scale, c_u=c_u, threshold=threshold, tau=tau, keeps=keeps)
    if not callable(run):
        raise InvalidParameter("run", f"must be a function, not {type(run).__name__}")
    times, sure = _between("runs", integer("runs", runs), 2, 1000), real("level", level)
    if not 0.5 <= sure < 1:
        raise InvalidParameter("level", "must be from 0.5 to less than 1")
    points = [at_epsilon(histogram, each) for each in _chosen(epsilon)]
    samples = _enough(_between("blocks", integer("blocks", blocks), 1, _MOST_BLOCKS), times, points)
    pairs = _pairs(histogram.c_u, points, is_bounded=flag("is_bounded", is_bounded))
    kinds = {kind: None for pair in pairs for kind in (pair, _neighbour(pair, histogram.c_u))}
    tables = Tables(histogram, tuple(kinds), samples, records=1 if is_bounded else 2)
    tables.check_size()
    events = tables.events()
    seen = [tables.seen(run(events)) for _ in range(times)]
    compared = [(point, pair, way) for point in points for pair in pairs for way in _ways(pair, histogram.c_u)]
    doubt = (1 - sure) / (len(compared) + _DEPENDENCE)
    evidence = tuple(_evidence(tables, seen, *each, doubt) for each in compared)
    faults = (*_broken_rules(tables, seen), *_dependence(tables, seen, doubt), *_exceeded(evidence, histogram.c_u))
    return Audit(faults, evidence, samples * times, sure)


def _between(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise InvalidParameter(name, f"must be from {least} to {most}")
    return value


def _chosen(epsilon: "Real | Sequence[Real] | None") -> tuple[float, ...]:
    if epsilon is None:
        return _EPSILONS
    found = reals("epsilon", epsilon) if is_several(epsilon) else (real("epsilon", epsilon),)
    if not 1 <= len(found) <= _MOST_EPSILONS:
        raise InvalidParameter("epsilon", f"must be a number, or a list of 1 to {_MOST_EPSILONS} numbers")
    return found


def _enough(blocks: int, runs: int, points: Sequence[EnginePoint]) -> int:
    largest = max(each.delta for each in points)
    if largest * blocks * runs < _LEAST_HITS:
        least = math.ceil(_LEAST_HITS / (largest * runs)) if largest * runs > _LEAST_HITS / _MOST_BLOCKS else None
        needed = "must be larger than any that can be run" if least is None else f"must be at least {least}"
        raise InvalidParameter("blocks", f"{needed}: δ is {largest:.1e} here; or take a smaller scale and threshold")
    return blocks


def _pairs(c_u: int, points: Sequence[EnginePoint], *, is_bounded: bool) -> list[Blocks]:
    """The neighbours, by the blocks with the user: all groups at τ, none, the worst split; and more than C_u groups."""
    splits = sorted({0, c_u, *(each.groups_at_tau or 0 for each in points)})
    found = [Blocks(split, c_u - split, is_there=True) for split in splits]
    return found if is_bounded else [*found, Blocks(_MORE * c_u, 0, is_there=True)]


def _neighbour(pair: Blocks, c_u: int) -> Blocks:
    """The blocks without the user. Groups that nobody is in are not there, whatever their number is."""
    return Blocks(min(pair.at_tau, c_u), pair.far, is_there=False)


def _ways(pair: Blocks, c_u: int) -> tuple[Direction, ...]:
    return ("added", "removed") if pair.at_tau <= c_u else ("added",)


def _evidence(
    tables: Tables, seen: Sequence[Seen], point: EnginePoint, pair: Blocks, direction: Direction, doubt: float
) -> Evidence:
    def hits(kind: Blocks) -> int:
        counts = np.concatenate([each.counts[kind] for each in seen])
        at_tau, far = counts[:, : kind.at_tau], counts[:, kind.at_tau :] - tables.many
        return int(event(tables.histogram, far, at_tau, point.epsilon, direction).sum())

    found = hits(pair), hits(_neighbour(pair, tables.histogram.c_u))
    likelier, other = found if direction == "added" else found[::-1]
    shown = shown_delta(likelier, other, tables.blocks * len(seen), point.epsilon, doubt)
    return Evidence(point.epsilon, pair.at_tau + pair.far, pair.at_tau, direction, shown, point.delta)


def _exceeded(evidence: Sequence[Evidence], c_u: int) -> Iterator[Fault]:
    """The largest excess of each pair of neighbours."""
    worst: dict[tuple[int, int], Evidence] = {}
    for each in sorted(evidence, key=lambda one: one.shown - one.certified):
        if each.shown > each.certified:
            worst[each.groups, each.groups_at_tau] = each
    for each in worst.values():
        what = f"δ({each.epsilon:g}) is at least {each.shown:.4g}, and {each.certified:.4g} is certified"
        who = f"if a user with {each.groups_at_tau} groups at τ and {each.groups - each.groups_at_tau} others is"
        more = ": users count in more than c_u groups, or more often than once" if each.groups > c_u else ""
        yield Fault("privacy", f"{what}, {who} {each.direction}{more}")


def _broken_rules(tables: Tables, seen: Sequence[Seen]) -> Iterator[Fault]:
    """What an engine as stated never does."""
    histogram = tables.histogram
    unknown = sum(each.unknown for each in seen)
    if unknown:
        yield Fault("keys", f"{unknown} published groups have no event")
    least, below = math.inf, 0
    for each in seen:
        for kind, counts in each.counts.items():
            if not kind.is_there:
                below += int((~np.isnan(counts[:, : kind.at_tau])).sum())
            least = min(least, float(np.nanmin(counts, initial=math.inf)))
    if below:
        yield Fault("tau", f"{below} groups with fewer than {histogram.tau} users were published")
    is_rounded_after = histogram.noise.kind in ("gaussian", "laplace") and all(each.is_whole for each in seen)
    slack = 0.5 if is_rounded_after else 0.0
    edge = float(histogram.threshold) - slack
    if least < edge or (least == edge and histogram.keeps == ">" and not slack):
        detail = f"a count of {least:g} was published, and only those {histogram.keeps}"
        yield Fault("threshold", f"{detail} {float(histogram.threshold):g} should be: is the noise drawn again?")


def _dependence(tables: Tables, seen: Sequence[Seen], doubt: float) -> Iterator[Fault]:
    """Whether groups, or runs, share noise."""
    first, *later = ([_noise(tables, each, kind) for kind in tables.kinds] for each in seen)
    chance = chance_of_equals(tables.histogram, is_whole=all(each.is_whole for each in seen))
    values = _flat(first)
    most, probability = most_equal(values[~np.isnan(values)], chance)
    if probability < doubt:
        yield Fault("shared noise", f"{most} of {len(values)} groups have the same noise")
    products = np.concatenate([each[:, 0] * each[:, 1] for each in first if each.shape[1] > 1] or [np.zeros(0)])
    same, different = int((products > 0).sum()), int((products < 0).sum())
    if 2 * float(bdtr(min(same, different), same + different, 0.5)) < doubt:
        yield Fault("shared noise", f"the noise of two groups of a user has the same sign in {same} of {len(products)}")
    for other in map(_flat, later):
        equal, both = int((values == other).sum()), int((~np.isnan(values + other)).sum())
        if equal and len(later) * float(bdtrc(equal - 1, both, chance)) < doubt:
            yield Fault("repeated noise", f"{equal} of {both} groups have the same noise in two runs: is there a seed?")
            return


def _noise(tables: Tables, seen: Seen, kind: Blocks) -> Counts:
    """Of the groups far above the threshold, which are never dropped."""
    return np.asarray(seen.counts[kind][:, kind.at_tau :] - tables.many - kind.is_there)


def _flat(noise: Sequence[Counts]) -> Counts:
    return np.concatenate([each.ravel() for each in noise])
