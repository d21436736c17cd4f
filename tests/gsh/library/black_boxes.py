"""Engines to audit: one as it is stated, and others with one fault each."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["FAULTS", "SAID", "Box"]

SAID: Mapping[str, dict[str, Any]] = {
    "gaussian": {"noise": "gaussian", "scale": 1.5, "c_u": 2, "threshold": 4},
    "rounded-gaussian": {"noise": "rounded-gaussian", "scale": 1.5, "c_u": 2, "threshold": 4, "tau": 2},
    "laplace": {"noise": "laplace", "scale": 1.5, "c_u": 2, "threshold": 4, "keeps": ">"},
    "geometric": {"noise": "geometric", "scale": 1.5, "c_u": 3, "threshold": 4},
    "geometric, >": {"noise": "geometric", "scale": 1.5, "c_u": 2, "threshold": 4, "keeps": ">"},
}
"""δ of these can be seen."""
FAULTS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "keeps a tie, and says >": (SAID["geometric, >"], {"keeps": ">="}),
    "no test of τ": (SAID["rounded-gaussian"] | {"tau": 3, "threshold": 5}, {"tau": 1}),
    "noise drawn again after the test": (SAID["gaussian"], {"redraws": True}),
    "C_u is not enforced": (SAID["gaussian"], {"c_u": 100}),
    "noise 30 % too small": (SAID["gaussian"], {"scale": 1.05}),
    "threshold too low": (SAID["laplace"], {"threshold": 3}),
    "one seed for all runs": (SAID["gaussian"], {"seed": 7}),
    "one draw for all groups": (SAID["geometric"], {"shares": True}),
    "records are counted, not users": (SAID["gaussian"], {"counts_records": True}),
}
"""What is said, and what is done."""


class Box:
    """A sparse histogram in plain numpy, as it is said to be but for some changes."""

    def __init__(self, random: np.random.Generator, said: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
        self._random = random
        self._does = {"tau": 1, "keeps": ">="} | dict(said) | dict(changed)

    def __call__(self, events: pa.Table) -> dict[str, float]:
        does = self._does
        keys, counts = self._counted(events)
        noisy = counts + self._noise(len(counts))
        if does["noise"].startswith("rounded"):
            noisy = np.round(noisy)
        kept = noisy >= does["threshold"] if does["keeps"] == ">=" else noisy > does["threshold"]
        kept &= counts >= does["tau"]
        shown = counts + self._noise(len(counts)) if does.get("redraws") else noisy
        return {key: float(count) for key, count, is_kept in zip(keys, shown, kept, strict=True) if is_kept}

    def _counted(self, events: pa.Table) -> tuple[list[str], NDArray[np.float64]]:
        if not self._does.get("counts_records"):
            events = events.group_by(["user", "key"]).aggregate([])
        events = events.sort_by([("user", "ascending"), ("key", "ascending")])
        users = pc.rank(events["user"], tiebreaker="dense").to_numpy()
        keys = pc.rank(events["key"], tiebreaker="dense").to_numpy()
        starts = np.flatnonzero(np.diff(users, prepend=-1))
        new_key = np.diff(keys, prepend=-1) != 0
        new_key[starts] = True
        groups = np.cumsum(new_key)
        place = groups - np.repeat(groups[starts], np.diff([*starts, len(users)]))
        counted = events.filter(pa.array(place < self._does["c_u"])).group_by("key").aggregate([("user", "count")])
        return counted["key"].to_pylist(), counted["user_count"].to_numpy().astype(float)

    def _noise(self, size: int) -> NDArray[np.float64]:
        random = np.random.default_rng(self._does["seed"]) if "seed" in self._does else self._random
        scale, number = self._does["scale"], 1 if self._does.get("shares") else size
        if self._does["noise"].endswith("gaussian"):
            drawn = random.normal(0, scale, number)
        elif self._does["noise"] == "laplace":
            drawn = random.laplace(0, scale, number)
        else:
            ends = random.geometric(-np.expm1(-1 / scale), (2, number))
            drawn = (ends[0] - ends[1]).astype(float)
        return np.broadcast_to(drawn, size)
