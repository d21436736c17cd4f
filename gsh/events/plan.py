"""A plan: which events become which groups, and the bounds that hold for each user. The same for every engine.

An engine must do this with the events, and nothing else (tests/reference/bounding.py is the judge):

1. Drop records without a user. If the groups are public, drop records with a key that is not listed.
2. Make one record per user and group. A missing part of a group key is a value of its own. Each measure
   (gsh/library/measures.py) is an integer number of units. In a sum and in a mean each record's value x counts
   ⌊x/unit + 1/2⌋, and in a number of events each record counts 1. These integers are added, and the total is clipped
   to [lower, upper] in units. Missing and NaN count 0, and |x/unit| is limited to 2⁵². A decimal is taken as the
   nearest double, unless the unit is a power of ten: then it is exact. Rounding comes before adding, so that a sum of
   doubles does not depend on the order of records. In a mean the clipped total then becomes its distance from the
   middle of its range, in halves of a unit: 2 · total − least − most.
3. Of each user's groups keep the C_u with the smallest lots (lots.py). In a measure with a cap n, the user's values
   stay in at most n of the kept groups: those with the smallest lots of this measure, among those where the value is
   not 0. In the other kept groups the value becomes 0; the user still counts there.
4. Per group: COUNT of users, and the sum of each measure. Groups with fewer than τ users go. A sum beyond 2⁵³ is an
   error. If the groups are public, none goes, and a listed group that no record has counts 0 in every measure.

The rounding of published numbers and the ratios of columns come after the noise: the plan only records them.

What a user keeps depends on the records of that user and on the salt, never on other users.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gsh.arguments import Integer, Real, flag, integer, texts
from gsh.errors import InvalidParameter, missing_column
from gsh.events.dialects import check_characters
from gsh.events.kinds import KEY_KINDS, NESTED, SUM_KINDS, Kind, checked_kind, digits, family
from gsh.histogram.meanings import Meaning, mean_column
from gsh.histogram.roles import Roles
from gsh.library.measures import ARGUMENTS, COUNT, Measure, Ratio, measures_of, ratios_of

__all__ = [
    "COUNT",
    "Plan",
    "check_given",
    "checked_keys",
    "checked_object",
    "make_plan",
    "table_fields",
    "table_of_json",
    "table_to_json",
]

_DIGITS = 18
"""So many digits of a decimal never leave the 38 that engines have, whatever the unit is."""
_MOST_NAME = 255
_MOST_PARTITIONS = 10**6
_SALT = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NO_MEASURES = ("key", COUNT)
"""A mechanism gives these words a meaning of their own."""
_ENDINGS = ("low", "estimate", "high")
_PLAIN, _PUBLIC, _OF_MEASURES, _WITH_AVERAGES = 1, 2, 3, 4
"""Versions of the JSON of a plan. Each plan has the first one that can say it, and so keeps its digest."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked plan. ``make_plan`` and ``Plan.from_json`` make it."""

    user: str
    by: tuple[str, ...]
    measures: tuple[Measure, ...]
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
    count: str = COUNT
    """The column of the result with the number of users."""
    ratios: tuple[Ratio, ...] = ()
    """Of published columns: they follow from these, and cost nothing."""
    is_rounded: bool = False
    """Whether published numbers are rounded: counts to integers, and each other column to its unit."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the events that the plan needs."""
        return tuple(name for _, name in self.pointed)

    @property
    def pointed(self) -> tuple[tuple[str, str], ...]:
        """The same columns, each with the argument that names it."""
        keys = ((f"by/{place}", name) for place, name in enumerate(self.by))
        return ("user", self.user), *keys, *((each.pointer, name) for each, name in self.sources)

    @property
    def query_names(self) -> tuple[tuple[str, str], ...]:
        """All names that a query has, each with its argument: columns of the events, and of the result."""
        made = ((each.pointer, each.column) for each in self.measures if each.column != each.source)
        return *self.pointed, *made, ("names/count", self.count)

    @property
    def sources(self) -> tuple[tuple[Measure, str], ...]:
        """The measures that add up a column of the events, each with the column."""
        return tuple((each, each.source) for each in self.measures if each.source is not None)

    @property
    def roles(self) -> Roles:
        """The columns of the result."""
        return Roles(self.by, self.count, tuple(each.column for each in self.measures))

    @property
    def written(self) -> Roles:
        """The same with the columns of means and ratios, which follow from them."""
        roles = self.roles
        return Roles(roles.keys, roles.count, (*roles.values, *self.meaning.averages))

    @property
    def ranges(self) -> dict[str, tuple[float, float]] | None:
        """What one user adds to one group at least and at most, by column: the ``sums`` of a calibration."""
        return {each.column: each.range for each in self.measures} or None

    @property
    def caps(self) -> dict[str, int] | None:
        """In how many groups one user changes a column at most, if in fewer than C_u: the ``caps`` of a calibration."""
        return {each.column: each.groups for each in self.measures if each.groups is not None} or None

    def weights(self, given: Mapping[str, Real] | None) -> Mapping[str, Real] | None:
        """The ``weights`` of a calibration, by columns of the result; callers name the measures."""
        if not isinstance(given, Mapping):
            return given
        columns = {each.name: each.column for each in self.measures}
        return {columns.get(name, name): weight for name, weight in given.items()}

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Places of errors about columns in a calibration, each with the argument that it is about."""
        argued = (each for each in self.measures if each.column != each.name)
        return tuple(
            pair
            for each in argued
            for pair in (
                (f"sums/{each.column}", each.pointer),
                (f"caps/{each.column}", f"caps/{each.name}"),
                (f"weights/{each.column}", f"weights/{each.name}"),
            )
        )

    @property
    def meaning(self) -> Meaning:
        """What the columns of the result mean: a certificate says it."""
        rounded = (1.0, *(each.scale for each in self.measures)) if self.is_rounded else None
        ratios = {each.name: (each.above, each.below) for each in self.ratios}
        return Meaning({each.column: each.meaning for each in self.measures}, ratios, rounded)

    @property
    def rounding(self) -> dict[str, Any]:
        """The arguments of a release that rounds as the plan says; none if it does not."""
        if not self.is_rounded:
            return {}
        return {"round": True, "units": {each.column: each.scale for each in self.measures}}

    @property
    def version(self) -> int:
        """The version of its JSON: the first one that can say it."""
        if self.ratios or self.is_rounded or any(each.kind == "mean" for each in self.measures):
            return _WITH_AVERAGES
        if self.count != COUNT or any(each.kind != "sum" or each.digits is not None for each in self.measures):
            return _OF_MEASURES
        return _PLAIN if self.public_keys is None else _PUBLIC

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object. One that has only sums keeps its first form, and so its digest."""
        version = self.version
        return {
            "version": version,
            "user": self.user,
            "salt": self.salt,
            "types": dict(self.types),
            **table_to_json(self, version),
            **({"count": self.count} if version >= _OF_MEASURES else {}),
            **({"public_keys": self.public_keys} if version >= _PUBLIC else {}),
        }

    @staticmethod
    def from_json(given: object) -> "Plan":
        """The plan of a JSON object, with every check made again."""
        version = given.get("version") if isinstance(given, Mapping) else None
        if version not in (_OF_MEASURES, _WITH_AVERAGES):
            version = _PUBLIC if isinstance(given, Mapping) and "public_keys" in given else _PLAIN
        fields = {"version", "user", "salt", "types", *table_fields(version)}
        fields |= {"public_keys"} if version >= _PUBLIC else set()
        found = checked_object("plan", given, fields | ({"count"} if version >= _OF_MEASURES else set()))
        if found["version"] != version:
            raise InvalidParameter("plan/version", f"must be {version}")
        if version == _PUBLIC and found["public_keys"] is None:
            raise InvalidParameter("plan/public_keys", "must be a digest")
        return make_plan(
            **{name: found[name] for name in ("user", "salt", "types")},
            **table_of_json("plan", found, version),
            public_keys=found.get("public_keys"),
            names={"count": found.get("count", COUNT)},
        )

    @property
    def digest(self) -> str:
        """The SHA-256 of the canonical JSON: sorted names, no spaces, ASCII only, every bound as a double."""
        written = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(written.encode("ascii")).hexdigest()

    def default_kinds(self) -> dict[str, Kind]:
        """The declared types; else users and keys are texts, and sums integers, or doubles if they have a unit."""
        kinds: dict[str, Kind] = dict.fromkeys((self.user, *self.by), "string")
        kinds |= {name: _default_kind(each) for each, name in self.sources}
        return kinds | dict(self.types)

    def kinds_in(self, schema: Mapping[str, Kind | None], *, may_list: bool = True) -> dict[str, Kind]:
        """The kind of each column of the plan. In the ``schema``, None is a type that plans do not have.

        Declared types win: an engine casts the column to them, or reads the file so. ``may_list`` says whether an error
        may list the names of the schema: names that were read from the data could be data.
        """
        declared = dict(self.types)
        kinds: dict[str, Kind] = {}
        for pointer, name in self.pointed:
            allowed = KEY_KINDS if pointer == "user" or pointer.startswith("by/") else SUM_KINDS
            if name not in schema:
                raise InvalidParameter(pointer, f"must name a column of the events: {_missing(name, schema, may_list)}")
            kind = declared.get(name) or schema[name]
            if kind is None or family(kind) not in allowed:
                is_of = "of another type" if kind is None else f"of type {kind}"
                if kind == NESTED:
                    is_of = f"a struct, a list or a map: {_plain_first(name, 'field')}"
                detail = f"must be of one of these types: {', '.join(allowed)}; {name} is {is_of}"
                raise InvalidParameter(pointer, detail)
            kinds[name] = kind
        for each, name in self.sources:
            misfit = _misfit(each, kinds[name])
            if misfit is not None:
                raise InvalidParameter(f"units/{each.name}", misfit)
        return kinds


def _default_kind(measure: Measure) -> Kind:
    """The kind of a column without a type that is added up."""
    if measure.digits is not None:
        return f"decimal({_DIGITS},{measure.digits})"
    return "integer" if measure.unit is None else "double"


def _misfit(measure: Measure, kind: Kind) -> str | None:
    """Why a column of a kind cannot be added up in the unit of the measure; None if it can."""
    if measure.digits is not None:
        if family(kind) == "double":
            return f"must be a power of two for a column of doubles, not {measure.scale}; or cast it to decimals"
        if family(kind) == "decimal" and digits(kind)[1] > _DIGITS:
            return f"must be for a column with at most {_DIGITS} digits after the point"
    elif measure.unit is None and family(kind) not in ("integer", "boolean"):
        such = "0.01 for decimals" if family(kind) == "decimal" else f"2^-10 = {2**-10}"
        return f"must be given for a column that is not of whole numbers, such as {such}"
    return None


def _missing(name: str, schema: Mapping[str, Kind | None], may_list: bool) -> str:
    """What to say of a column that is not there."""
    if len(schema) == 1 and any(mark in min(schema) for mark in ";\t|"):
        return f"there is no {name}: the header has one column; separate columns by commas (.csv) or tabs (.tsv)"
    outer, _, inner = name.partition(".")
    if outer in schema and inner:
        return f"there is no {name}; {_plain_first(outer, inner)}"
    return missing_column(name, list(schema)) if may_list else f"there is no {name}"


def _plain_first(outer: str, inner: str) -> str:
    """What to do with a nested column, in SQL that DuckDB and Spark share."""
    return f"select what is inside as plain columns first, such as {outer}.{inner} AS {inner.replace('.', '_')}"


def make_plan(
    *,
    user: str,
    by: Sequence[str],
    sums: Mapping[str, tuple[Real, Real]] | None = None,
    events: Mapping[str, Integer] | None = None,
    means: Mapping[str, tuple[Real, Real]] | None = None,
    units: Mapping[str, Real] | None = None,
    ratios: Mapping[str, tuple[str, str]] | None = None,
    round: bool = False,  # noqa: A002 - the argument of publish
    c_u: Integer,
    caps: Mapping[str, Integer] | None = None,
    tau: Integer | None = 1,
    salt: str,
    types: Mapping[str, Kind] | None = None,
    partitions: Integer | None = None,
    public_keys: str | None = None,
    names: Mapping[str, str] | None = None,
) -> Plan:
    """The plan of the arguments of ``publish``. Every mistake is an error that names the argument.

    ``public_keys`` is the digest of a list of public keys (``ListedKeys.digest``). Then τ must not be chosen.
    ``names`` has the caller's name for the count.
    """
    keys, count = checked_keys(by), checked_count(names)
    most_groups = integer("c_u", c_u)
    if not 1 <= most_groups <= 10**18:
        raise InvalidParameter("c_u", "must be from 1 to 10^18")
    measures = measures_of(most_groups, sums=sums, events=events, means=means, units=units, caps=caps)
    _check_name("user", user)
    for pointer, name in (
        *((f"by/{place}", name) for place, name in enumerate(keys)),
        *((each.pointer, each.name) for each in measures),
    ):
        _check_name(pointer, name)
    made = ratios_of(ratios, measures, count)
    for each in made:
        _check_name(each.pointer, each.name)
    _check_clashes(user, keys, measures, made, count)
    least_users = _least_users(tau, public_keys)
    if not (isinstance(salt, str) and _SALT.fullmatch(salt)):
        raise InvalidParameter("salt", "must be 32 hexadecimal digits")
    if partitions is not None and not 1 <= integer("partitions", partitions) <= _MOST_PARTITIONS:
        raise InvalidParameter("partitions", "must be from 1 to 10^6")
    return Plan(
        user=user,
        by=keys,
        measures=measures,
        c_u=most_groups,
        tau=least_users,
        salt=salt,
        types=_types(types, {user, *keys, *(each.source for each in measures if each.source is not None)}),
        partitions=None if partitions is None else integer("partitions", partitions),
        public_keys=public_keys,
        count=count,
        ratios=made,
        is_rounded=flag("round", round),
    )


def checked_count(names: object) -> str:
    """The name of the count in the result."""
    if names is None:
        return COUNT
    if not isinstance(names, Mapping) or set(names) - {COUNT}:
        raise InvalidParameter("names", f"must rename {COUNT} and nothing else, such as {{{COUNT!r}: 'people'}}")
    count = names.get(COUNT, COUNT)
    _check_name(f"names/{COUNT}", count)
    return str(count)


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


def check_given(**arguments: object) -> None:
    """Refuse a publication of one table without what the table must have."""
    for name, value in arguments.items():
        if value is None:
            raise InvalidParameter(name, "must be given, or tables in place of it")


def checked_keys(by: object) -> tuple[str, ...]:
    """The key columns: a name, or a list of names."""
    keys = texts("by", [by] if isinstance(by, str) else by)
    if not keys:
        raise InvalidParameter("by", "must name at least one column")
    return keys


def _check_name(pointer: str, name: object) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= _MOST_NAME:
        raise InvalidParameter(pointer, f"must be the name of a column, of 1 to {_MOST_NAME} characters")
    check_characters(pointer, name)


def _check_clashes(
    user: str, keys: tuple[str, ...], measures: tuple[Measure, ...], ratios: tuple[Ratio, ...], count: str
) -> None:
    """SQL engines ignore the case of names, so that two names must differ in more than that."""
    if count.lower() == user.lower():
        raise InvalidParameter(f"names/{COUNT}", "must not be the user column")
    if user.lower() in {name.lower() for name in keys}:
        raise InvalidParameter("by", "must not have the user column: its values would be published")
    named = [(each.pointer, each.name) for each in measures] + [(each.pointer, each.name) for each in ratios]
    for pointer, name in named:
        if name.lower() == user.lower():
            raise InvalidParameter(pointer, "must not be the user column")
        if name in _NO_MEASURES:
            raise InvalidParameter(pointer, f"must not be {' or '.join(_NO_MEASURES)}: they have another meaning")
    taken = {count.lower()}
    averages = [(each.pointer, mean_column(each.name)) for each in measures if each.kind == "mean"]
    averages += [(each.pointer, each.name) for each in ratios]
    columns = [(each.pointer, each.column) for each in measures]
    for pointer, name in (*(("by", name) for name in keys), *columns, *averages):
        if name.lower() in taken:
            raise InvalidParameter(pointer, f"must have unique names, other than {count}")
        taken.add(name.lower())
    # The result may get columns with intervals.
    numbers = (count.lower(), *(name.lower() for _, name in (*columns, *averages)))
    if any(f"{number}_{ending}" in taken for number in numbers for ending in _ENDINGS):
        raise InvalidParameter("by", "must not have the name of an interval, such as count_low; nor may another column")


def _types(given: object, columns: set[str]) -> tuple[tuple[str, Kind], ...]:
    declared = {} if given is None else given
    if not isinstance(declared, Mapping) or not all(isinstance(name, str) for name in declared):
        raise InvalidParameter("types", "must be a mapping from names of columns")
    if set(declared) - columns:
        raise InvalidParameter("types", "must name only columns of user, by and sums")
    return tuple(sorted((name, checked_kind(f"types/{name}", kind)) for name, kind in declared.items()))


def table_fields(version: int) -> set[str]:
    """The fields of ``table_to_json``."""
    fields = {"by", "sums" if version < _OF_MEASURES else "measures", "c_u", "tau", "partitions"}
    return fields | ({"ratios", "round"} if version >= _WITH_AVERAGES else set())


def table_to_json(plan: Plan, version: int) -> dict[str, Any]:
    """What a plan says of one table, except its public keys, in a version of its JSON."""
    measures = [asdict(each) for each in plan.measures]
    if version < _OF_MEASURES:
        measures = [{name: value for name, value in each.items() if name != "kind"} for each in measures]
    averages = {"ratios": [asdict(each) for each in plan.ratios], "round": plan.is_rounded}
    return {
        "by": list(plan.by),
        "sums" if version < _OF_MEASURES else "measures": measures,
        **(averages if version >= _WITH_AVERAGES else {}),
        "c_u": plan.c_u,
        "tau": plan.tau,
        "partitions": plan.partitions,
    }


def table_of_json(pointer: str, found: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The arguments of ``make_plan`` for the fields of ``table_to_json``."""
    name = "sums" if version < _OF_MEASURES else "measures"
    arguments = _measures_of_json(f"{pointer}/{name}", found[name], is_plain=version < _OF_MEASURES)
    if version >= _WITH_AVERAGES:
        arguments |= {"ratios": _ratios_of_json(f"{pointer}/ratios", found["ratios"]), "round": found["round"]}
    return arguments | {field: found[field] for field in ("by", "c_u", "tau", "partitions")}


def _ratios_of_json(pointer: str, given: object) -> dict[str, tuple[str, str]]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidParameter(pointer, "must be a list")
    items = [checked_object(pointer, item, {field.name for field in dataclasses.fields(Ratio)}) for item in given]
    names = texts(pointer, [item["name"] for item in items])
    if len(set(names)) != len(names):
        raise InvalidParameter(pointer, "must have unique names")
    return {item["name"]: (item["above"], item["below"]) for item in items}


def _measures_of_json(pointer: str, given: object, *, is_plain: bool) -> dict[str, Any]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidParameter(pointer, "must be a list")
    fields = {field.name for field in dataclasses.fields(Measure)} - ({"kind"} if is_plain else set())
    items = [{"kind": "sum", **checked_object(pointer, item, fields)} for item in given]
    names = texts(pointer, [item["name"] for item in items])
    if len(set(names)) != len(names):
        raise InvalidParameter(pointer, "must have unique names")
    if any(item["kind"] not in list(ARGUMENTS) for item in items):
        raise InvalidParameter(pointer, f"must be of the kinds {', '.join(ARGUMENTS)}")
    of_kind = {kind: [item for item in items if item["kind"] == kind] for kind in ARGUMENTS}
    sums, means = ({item["name"]: (item["lower"], item["upper"]) for item in of_kind[kind]} for kind in ("sum", "mean"))
    return {
        "sums": sums or None,
        "means": means or None,
        "events": {item["name"]: _whole(item["upper"]) for item in of_kind["events"]} or None,
        "units": {item["name"]: item["unit"] for item in items if item["unit"] is not None} or None,
        "caps": {item["name"]: item["groups"] for item in items if item["groups"] is not None} or None,
    }


def _whole(number: object) -> Any:
    """A bound of a number of events: JSON does not tell 20 from 20.0."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def checked_object(pointer: str, given: object, fields: set[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or set(given) != fields:
        raise InvalidParameter(pointer, f"must be a JSON object with the fields {', '.join(sorted(fields))}")
    return given
