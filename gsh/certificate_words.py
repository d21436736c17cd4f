"""The sentences of a certificate. They are the same whether the library or the service makes the release."""

from collections.abc import Mapping
from typing import Any, Literal

__all__ = [
    "ADJACENCY",
    "BOX",
    "CAPPED_BOX",
    "COUNTS_ONLY",
    "CURVE",
    "CURVE_AFTER_SURVEY",
    "CURVE_BY_CHORDS",
    "CURVE_OF_TABLES",
    "CURVE_WITH_CAPS",
    "MU_0",
    "NOISE",
    "NOISE_ELSEWHERE",
    "NOISE_FROM_A_SEED",
    "NORM",
    "NO_THRESHOLD",
    "RELEASE_TYPE",
    "SCHEMA",
    "SCHEMA_OF_TABLES",
    "TIE_RULE",
    "TRUST_ELSEWHERE",
    "TRUST_LIBRARY",
    "TRUST_MODEL",
    "VECTORS",
    "digits",
    "intervals_cover",
]

SCHEMA: Literal["urn:gsh:certificate:2"] = "urn:gsh:certificate:2"
SCHEMA_OF_TABLES: Literal["urn:gsh:certificate:3"] = "urn:gsh:certificate:3"
ADJACENCY: Literal["add or remove all records of one unit"] = "add or remove all records of one unit"

TIE_RULE = "A group is kept if its noisy count, before rounding, is at least τ* (≥)."
NOISE = (
    "Each number gets ideal Gaussian noise, drawn as a real number from random bits of the operating system, and is "
    "then rounded exactly to the grid."
)
NOISE_FROM_A_SEED = (
    "Each number gets ideal Gaussian noise, drawn as a real number from random bits, and is then rounded exactly to "
    "the grid. The bits come from a secret seed by HMAC-SHA-256 and SHAKE-256, so that a task that runs again draws "
    "the same noise. The commit erases the seed. The guarantee rests on these functions."
)
TRUST_MODEL = (
    "Central: those who prepare the table and those who run the service see the true data and are trusted with it; "
    "readers of the release are not."
)
TRUST_LIBRARY = (
    "Central: those who prepare the table and make the release see the true data and are trusted with it; readers of "
    "the release are not."
)
TRUST_ELSEWHERE = (
    "Central: those who hold the true data and run the engine that draws the noise are trusted with it; readers of the "
    "release are not."
)
RELEASE_TYPE = "One release, made once and not interactive; other releases about the same units cost privacy as well."
CURVE = (
    "δ(ε) = max(δ_infinite, f(μ, ε)) for every ε ≥ 0, where f(μ, ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) and Φ is the "
    "standard normal distribution function."
)
CURVE_WITH_CAPS = (
    "δ(ε) is the largest 1 − p^k (1 − f(√S(C_u − k), ε − k ln p)) over k = 0 … C_u, for every ε ≥ 0, where S(a) = "
    "a/σ² + a μ₀² + the sum of min(a, n) μ_n² over the capped columns, p = Φ((τ* − τ)/σ), f(μ, ε) = Φ(μ/2 − ε/μ) − "
    "e^ε Φ(−μ/2 − ε/μ), f(0, ε) = 0, and Φ is the standard normal distribution function."
)
CURVE_OF_TABLES = (
    "δ(ε) is the largest 1 − e^(−D) (1 − f(√S, ε + D)) over x_k = 0 … C_k for each table k, for every ε ≥ 0, where D "
    "is the sum of −x_k ln p_k over the tables with a threshold, S is the sum of S_k(C_k − x_k), S_k(a) = a/σ² + a μ₀² "
    "+ the sum of min(a, n) μ_n² over the capped columns of table k, p_k = Φ((τ* − τ)/σ) of table k, f(μ, ε) = "
    "Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), f(0, ε) = 0, and Φ is the standard normal distribution function."
)
CURVE_AFTER_SURVEY = (
    "δ(ε) is the mean of h(ε − L) over L from N(S_h/2, S_h), for every ε ≥ 0, where S_h is the sum of 1/σ² over the "
    "histograms of the survey, h(t) = max(1 − e^(−D), f(√S, t)), S and D are the mu_squared and the hazard that were "
    "fixed before the survey, f(μ, ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), and Φ is the standard normal distribution "
    "function. It covers whatever is chosen from the survey."
)
CURVE_BY_CHORDS = (
    "δ(ε) is at most the mean of h(ε − L) over L from N(S_h/2, S_h), for every ε ≥ 0, where S_h is the sum of 1/σ² "
    "over the histograms of the survey, and h(t) is by chords at least the δ(t) of the tables alone, and at most that "
    "of all costs added up. It covers whatever is chosen from the survey."
)

# What one unit can change in one group.
COUNTS_ONLY = "One unit adds at most 1 to the count of each of its groups; there are no further columns."
BOX = "One unit adds at most 1 to the count of each of its groups, and to each column from lower to upper."
CAPPED_BOX = f"{BOX.removesuffix('.')}. It changes a column in at most as many groups as the column says."
NORM = "One unit adds at most 1 to the count of each of its groups, and to its columns together at most the norm."
VECTORS = "One unit adds at most 1 to the count of each of its groups, and to its columns one of the vectors listed."
MU_0 = "One unit adds at most 1 to the count of each of its groups; the caller vouches for the further columns by μ₀."
NO_THRESHOLD = "There is no threshold: the groups are public. All of them are published, also those without a unit."
NOISE_ELSEWHERE = "The caller's engine draws the Gaussian noise; the service sees neither the noise nor the table."


def intervals_cover(bounds: Mapping[str, Any], unit: str = "unit") -> str:
    """What intervals of the released numbers cover, given the bounds of a table as a certificate has them."""
    groups = "1 group" if bounds["c_u"] == 1 else f"at most {bounds['c_u']} groups"
    covered = ", ".join([f"each {unit} in {groups}", *_clips(bounds)])
    return f"Intervals cover the bounded numbers: {covered}. What bounding removed is not in them."


def _clips(bounds: Mapping[str, Any]) -> list[str]:
    """What bounding does to the values of a unit in a group."""
    if bounds["columns"] is not None:
        return [_clip(column) for column in bounds["columns"]]
    if bounds["norm"] is not None:
        kind, bound = bounds["norm"]["kind"], digits(bounds["norm"]["bound"])
        return [f"values clipped so that {_NORMS[kind]} is at most {bound}"]
    if bounds["vectors"] is not None:
        return [f"values as in one of {bounds['vectors']} vectors"]
    return ["values as the caller bounds them"] if bounds["per_group"] == MU_0 else []


def _clip(column: Mapping[str, Any]) -> str:
    cap = column.get("groups")
    within = "" if cap is None else f" in at most {cap} of them" if cap > 1 else " in 1 of them"
    name, middle = column.get("of") or column["name"], column.get("middle", 0.0)
    return f"{name} clipped to {digits(column['lower'] + middle)} … {digits(column['upper'] + middle)}{within}"


_NORMS = {"l1": "the sum of their absolute values", "l2": "their Euclidean norm"}


def digits(number: float) -> str:
    """All digits of a number, without the point of a whole one."""
    return repr(number).removesuffix(".0")
