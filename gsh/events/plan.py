"""A plan: which events become which groups, and the bounds that hold for each user. The same for every engine.

An engine must do this with the events, and nothing else (tests/reference/bounding.py is the judge):

1. Drop records without a user. If the groups are public, drop records with a key that is not listed.
2. Make one record per user and group. A missing part of a group key is a value of its own. Each sum column is an
   integer number of units: each record's value x counts ⌊x/unit + 1/2⌋ (missing and NaN count 0; a decimal is taken
   as the nearest double; |x/unit| is limited to 2⁵²), these integers are added, and the sum is clipped to [lower,
   upper] in units. Rounding comes before adding, so that a sum of doubles does not depend on the order of records.
3. Of each user's groups keep the C_u with the smallest lots (lots.py). In a column with a cap n, the user's values
   stay in at most n of the kept groups: those with the smallest lots of this column, among those where the value is
   not 0. In the other kept groups the value becomes 0; the user still counts there.
4. Per group: COUNT of users, and the sums. Groups with fewer than τ users go. A sum beyond 2⁵³ units is an error.
   If the groups are public, none goes, and a listed group that no record has counts 0 in every column.

What a user keeps depends on the records of that user and on the salt, never on other users.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gsh.arguments import Integer, Real, integer, real, texts
from gsh.errors import InvalidParameter
from gsh.events.dialects import check_characters
from gsh.events.kinds import KEY_KINDS, SUM_KINDS, Kind, checked_kind, family
from gsh.histogram.roles import Roles

__all__ = ["COUNT", "Plan", "Sum", "checked_keys", "checked_object", "make_plan", "sums_of_json", "sums_to_json"]

COUNT = "count"
"""The column of the result with the numbers of users."""

_MOST_UNITS = 2**52
_UNIT_EXPONENTS = 60
_MOST_NAME = 255
_MOST_LISTED = 30
_MOST_PARTITIONS = 10**6
_SALT = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ENDINGS = ("low", "estimate", "high")


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum column: what one user adds to one group, in units, and in how many groups."""

    name: str
    lower: float
    upper: float
    unit: float | None = None
    """A power of two. None: 1, and then the column must be of whole numbers."""
    groups: int | None = None
    """The cap: the most groups of one user with a value other than 0. None: C_u."""

    @property
    def scale(self) -> float:
        """The unit, also if it is the default."""
        return 1.0 if self.unit is None else self.unit

    @property
    def least(self) -> int:
        """The lower bound in units, rounded inwards."""
        return math.ceil(self.lower / self.scale)

    @property
    def most(self) -> int:
        """The upper bound in units, rounded inwards."""
        return math.floor(self.upper / self.scale)


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked plan. ``make_plan`` and ``Plan.from_json`` make it."""

    user: str
    by: tuple[str, ...]
    sums: tuple[Sum, ...]
    c_u: int
    tau: int
    salt: str
    """32 hexadecimal digits. It is public, and new for each release."""
    types: tuple[tuple[str, Kind], ...] = ()
    """The kinds of columns that the caller declares, by name; of the others the schema of the events says it."""
    partitions: int | None = None
    """The number of partitions by group key, for an engine whose noise depends on it."""
    public_keys: str | None = None
    """The digest of the list of public keys (public_keys.py). Then there is no τ: it is 0."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the events that the plan needs."""
        return tuple(name for _, name in self.pointed)

    @property
    def pointed(self) -> tuple[tuple[str, str], ...]:
        """The same columns, each with the argument that names it."""
        keys = ((f"by/{place}", name) for place, name in enumerate(self.by))
        return ("user", self.user), *keys, *((f"sums/{column.name}", column.name) for column in self.sums)

    @property
    def roles(self) -> Roles:
        """The columns of the result."""
        return Roles(self.by, COUNT, tuple(column.name for column in self.sums))

    @property
    def ranges(self) -> dict[str, tuple[float, float]] | None:
        """What one user adds to one group at least and at most, by column: the ``sums`` of a calibration."""
        return {each.name: (each.least * each.scale, each.most * each.scale) for each in self.sums} or None

    @property
    def caps(self) -> dict[str, int] | None:
        """In how many groups one user changes a column at most, if in fewer than C_u: the ``caps`` of a calibration."""
        return {each.name: each.groups for each in self.sums if each.groups is not None} or None

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return {
            "version": 1 if self.public_keys is None else 2,
            "user": self.user,
            "by": list(self.by),
            "sums": sums_to_json(self.sums),
            "c_u": self.c_u,
            "tau": self.tau,
            "salt": self.salt,
            "types": dict(self.types),
            "partitions": self.partitions,
            **({} if self.public_keys is None else {"public_keys": self.public_keys}),
        }

    @staticmethod
    def from_json(given: object) -> "Plan":
        """The plan of a JSON object, with every check made again."""
        fields = {"version", "user", "by", "sums", "c_u", "tau", "salt", "types", "partitions"}
        is_public = isinstance(given, Mapping) and "public_keys" in given
        found = checked_object("plan", given, fields | ({"public_keys"} if is_public else set()))
        version = 2 if is_public else 1
        if found["version"] != version:
            raise InvalidParameter("plan/version", f"must be {version}")
        if is_public and found["public_keys"] is None:
            raise InvalidParameter("plan/public_keys", "must be a digest")
        shared = {name: found[name] for name in fields - {"version", "sums"}}
        return make_plan(
            **shared,
            **sums_of_json("plan/sums", found["sums"]),
            public_keys=found["public_keys"] if is_public else None,
        )

    @property
    def digest(self) -> str:
        """The SHA-256 of the canonical JSON: sorted names, no spaces, ASCII only, every bound as a double."""
        written = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(written.encode("ascii")).hexdigest()

    def default_kinds(self) -> dict[str, Kind]:
        """The declared types; else users and keys are texts, and sums integers, or doubles if they have a unit."""
        kinds: dict[str, Kind] = dict.fromkeys((self.user, *self.by), "string")
        kinds |= {column.name: "integer" if column.unit is None else "double" for column in self.sums}
        return kinds | dict(self.types)

    def kinds_in(self, schema: Mapping[str, Kind | None], *, may_list: bool = True) -> dict[str, Kind]:
        """The kind of each column of the plan. An engine gives the schema of the events; None: no kind of ours.

        Declared types win: an engine casts the column to them, or reads the file so. ``may_list`` says whether an error
        may list the names of the schema: names that were read from the data could be data.
        """
        declared = dict(self.types)
        kinds: dict[str, Kind] = {}
        for pointer, name in self.pointed:
            allowed = SUM_KINDS if pointer.startswith("sums/") else KEY_KINDS
            if name not in schema:
                raise InvalidParameter(pointer, f"must name a column of the events: {_missing(name, schema, may_list)}")
            kind = declared.get(name) or schema[name]
            if kind is None or family(kind) not in allowed:
                is_of = "another type" if kind is None else f"type {kind}"
                detail = f"must be of one of these types: {', '.join(allowed)}; {name} is of {is_of}"
                raise InvalidParameter(pointer, detail)
            kinds[name] = kind
        for column in self.sums:
            if column.unit is None and family(kinds[column.name]) not in ("integer", "boolean"):
                detail = (
                    f"must be given for a column that is not of whole numbers: a power of two, such as 2^-10 = {2**-10}"
                )
                raise InvalidParameter(f"units/{column.name}", detail)
        return kinds


def _missing(name: str, schema: Mapping[str, Kind | None], may_list: bool) -> str:
    """What to say of a column that is not there."""
    if len(schema) == 1 and any(mark in min(schema) for mark in ";\t|"):
        return f"there is no {name}: the header has one column; separate columns by commas (.csv) or tabs (.tsv)"
    return f"there is no {name}" + (f"; there are {', '.join(list(schema)[:_MOST_LISTED])}" if may_list else "")


def make_plan(
    *,
    user: str,
    by: Sequence[str],
    sums: Mapping[str, tuple[Real, Real]] | None = None,
    units: Mapping[str, Real] | None = None,
    c_u: Integer,
    caps: Mapping[str, Integer] | None = None,
    tau: Integer | None = 1,
    salt: str,
    types: Mapping[str, Kind] | None = None,
    partitions: Integer | None = None,
    public_keys: str | None = None,
) -> Plan:
    """The plan of the arguments of ``publish``. Every mistake is an error that names the argument.

    ``public_keys`` is the digest of a list of public keys (``ListedKeys.digest``). Then τ must not be chosen.
    """
    keys = checked_keys(by)
    _check_name("user", user)
    ranges = _mapping("sums", sums)
    for pointer, name in [*((f"by/{j}", key) for j, key in enumerate(keys)), *((f"sums/{key}", key) for key in ranges)]:
        _check_name(pointer, name)
    for pointer, given in (("units", units), ("caps", caps)):
        if set(_mapping(pointer, given)) - set(ranges):
            raise InvalidParameter(pointer, "must name only columns of sums")
    _check_clashes(user, keys, tuple(ranges))
    most_groups = integer("c_u", c_u)
    if not 1 <= most_groups <= 10**18:
        raise InvalidParameter("c_u", "must be from 1 to 10^18")
    least_users = _least_users(tau, public_keys)
    if not (isinstance(salt, str) and _SALT.fullmatch(salt)):
        raise InvalidParameter("salt", "must be 32 hexadecimal digits")
    if partitions is not None and not 1 <= integer("partitions", partitions) <= _MOST_PARTITIONS:
        raise InvalidParameter("partitions", "must be from 1 to 10^6")
    return Plan(
        user=user,
        by=keys,
        sums=tuple(
            _sum(name, bounds, _mapping("units", units).get(name), _mapping("caps", caps).get(name), most_groups)
            for name, bounds in ranges.items()
        ),
        c_u=most_groups,
        tau=least_users,
        salt=salt,
        types=_types(types, {user, *keys, *ranges}),
        partitions=None if partitions is None else integer("partitions", partitions),
        public_keys=public_keys,
    )


def _least_users(tau: object, public_keys: object) -> int:
    """τ; 0 if the groups are public: all of them are published."""
    if public_keys is not None:
        if not (isinstance(public_keys, str) and _DIGEST.fullmatch(public_keys)):
            raise InvalidParameter("public_keys", "must be 64 hexadecimal digits")
        if tau is not None and integer("tau", tau) not in (0, 1):
            raise InvalidParameter("tau", "must be omitted with public keys: all of them are published")
        return 0
    if tau is None:
        raise InvalidParameter("public_keys", "must list the groups if tau is None: they are public")
    least_users = integer("tau", tau)
    if not 0 <= least_users <= 2**53:
        raise InvalidParameter("tau", "must be from 0 to 2^53")
    return least_users


def checked_keys(by: object) -> tuple[str, ...]:
    """The key columns: a name, or a list of names."""
    keys = texts("by", [by] if isinstance(by, str) else by)
    if not keys:
        raise InvalidParameter("by", "must name at least one column")
    return keys


def _sum(name: str, bounds: object, unit: object, cap: object, c_u: int) -> Sum:
    if not isinstance(bounds, Sequence) or isinstance(bounds, str | bytes) or len(bounds) != 2:
        raise InvalidParameter(f"sums/{name}", "must be a pair: lower, upper")
    lower, upper = (real(f"sums/{name}", bound) + 0.0 for bound in bounds)
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise InvalidParameter(f"sums/{name}", "must have finite bounds")
    if lower > upper:
        raise InvalidParameter(f"sums/{name}", "must have a lower bound that is at most the upper bound")
    scale = None if unit is None else real(f"units/{name}", unit)
    if scale is not None:
        fraction, exponent = math.frexp(scale)
        if fraction != 0.5 or abs(exponent - 1) > _UNIT_EXPONENTS:
            raise InvalidParameter(f"units/{name}", f"must be a power of two from 2^-60 to 2^60, such as {2**-10}")
    cap = None if cap is None else integer(f"caps/{name}", cap)
    if cap is not None and not 1 <= cap <= c_u:
        raise InvalidParameter(f"caps/{name}", "must be from 1 to c_u")
    made = Sum(name, lower, upper, scale, cap)
    if max(abs(lower), abs(upper)) / made.scale > _MOST_UNITS:
        raise InvalidParameter(f"sums/{name}", "must stay within 2^52 units: sums could leave 2^53; take a larger unit")
    if made.least > made.most:
        raise InvalidParameter(f"sums/{name}", "must have a whole number of units between the bounds")
    if made.least == made.most == 0:
        raise InvalidParameter(f"sums/{name}", "must have a bound of at least one unit other than 0")
    return made


def _check_name(pointer: str, name: object) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= _MOST_NAME:
        raise InvalidParameter(pointer, f"must be the name of a column, of 1 to {_MOST_NAME} characters")
    check_characters(pointer, name)


def _check_clashes(user: str, keys: tuple[str, ...], sums: tuple[str, ...]) -> None:
    """SQL engines ignore the case of names, so that two names must differ in more than that."""
    if user.lower() in {name.lower() for name in keys}:
        raise InvalidParameter("by", "must not have the user column: its values would be published")
    if user.lower() in {name.lower() for name in sums}:
        raise InvalidParameter("sums", "must not have the user column")
    taken: set[str] = {COUNT}
    for pointer, names in (("by", keys), ("sums", sums)):
        for name in names:
            if name.lower() in taken:
                raise InvalidParameter(pointer, f"must have unique names, other than {COUNT}")
            taken.add(name.lower())
    # The result may get columns with intervals.
    if any(f"{number.lower()}_{ending}" in taken for number in (COUNT, *sums) for ending in _ENDINGS):
        raise InvalidParameter("by", "must have no name of a number with _low, _estimate or _high; nor must sums")


def _types(given: object, columns: set[str]) -> tuple[tuple[str, Kind], ...]:
    declared = _mapping("types", given)
    if set(declared) - columns:
        raise InvalidParameter("types", "must name only columns of user, by and sums")
    return tuple(sorted((name, checked_kind(f"types/{name}", kind)) for name, kind in declared.items()))


def _mapping(pointer: str, given: object) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidParameter(pointer, "must be a mapping from names of columns")
    return given


def sums_to_json(sums: Sequence[Sum]) -> list[dict[str, Any]]:
    return [asdict(column) for column in sums]


def sums_of_json(pointer: str, given: object) -> dict[str, Any]:
    """The arguments ``sums``, ``units`` and ``caps`` of ``make_plan``."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidParameter(pointer, "must be a list")
    sums = [checked_object(pointer, item, {"name", "lower", "upper", "unit", "groups"}) for item in given]
    names = texts(pointer, [item["name"] for item in sums])
    if len(set(names)) != len(names):
        raise InvalidParameter(pointer, "must have unique names")
    return {
        "sums": {item["name"]: (item["lower"], item["upper"]) for item in sums} or None,
        "units": {item["name"]: item["unit"] for item in sums if item["unit"] is not None} or None,
        "caps": {item["name"]: item["groups"] for item in sums if item["groups"] is not None} or None,
    }


def checked_object(pointer: str, given: object, fields: set[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or set(given) != fields:
        raise InvalidParameter(pointer, f"must be a JSON object with the fields {', '.join(sorted(fields))}")
    return given
