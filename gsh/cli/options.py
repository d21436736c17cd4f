"""Options that several commands have, and what they describe: a mechanism, columns, or the plan of a publication."""

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args

import typer

import gsh
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import FormatName, read_json
from gsh.errors import renamed

if TYPE_CHECKING:
    from gsh.accounting.mechanism import AnyMechanism
    from gsh.histogram.csv_format import CsvType

    Mechanisms: TypeAlias = Mapping[str, AnyMechanism]

__all__ = [
    "C_U",
    "Accounting",
    "By",
    "Caps",
    "ColumnTypes",
    "Count",
    "CountName",
    "CsvTypes",
    "Delta",
    "Description",
    "Epsilon",
    "EventsPath",
    "Force",
    "From",
    "GivenC_U",
    "Into",
    "Keys",
    "Labels",
    "MechanismFile",
    "MechanismOf",
    "Memory",
    "Mu0",
    "NumberOfEvents",
    "OfTable",
    "Once",
    "PaidBy",
    "PrivacyUnit",
    "PublicKeys",
    "Sigma",
    "StatedDelta",
    "StatedEpsilon",
    "Sums",
    "SurveyShares",
    "SurveySigmas",
    "Tau",
    "TauStar",
    "Units",
    "Unprotected",
    "User",
    "Weights",
    "bounds",
    "c_u_of",
    "columns_of",
    "csv_types",
    "listed",
    "mechanism_of",
    "mechanisms_in",
    "mechanisms_of",
    "named",
    "names",
    "numbers",
    "one_of",
    "parsed",
    "planned",
    "release_of",
    "survey_asked",
    "survey_of",
    "survey_part",
    "units_of",
]

N = TypeVar("N", int, float)

Accounting: TypeAlias = Annotated[Literal["exact", "add-deltas"], typer.Option(help="How δ is computed.")]
SurveySigmas: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--survey-sigma",
        metavar="LIST",
        help="σ of a histogram over the users that is published before, and that C_u is chosen from; or a list.",
    ),
]
SurveyShares: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--survey-share",
        metavar="LIST",
        help="The same by its share of the noise cost, such as 0.01; or a list.",
    ),
]
_C_U = typer.Option("--c-u", metavar="N", help="C_u: the most groups that one user can touch.")
C_U: TypeAlias = Annotated[int | None, _C_U]
SurveyedC_U: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--c-u",
        metavar="N",
        help="C_u: the most groups that one user can touch. Or survey: chosen from noisy numbers of users, in the same "
        "release; survey:16 says what holds if they show too little. --sum, --events and --mean take these words too.",
    ),
]
ExpectedUsers: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--expected-users",
        metavar="N",
        help="About how many users there are, from public knowledge: from 100000 on a survey takes 0.2 % of the noise "
        "cost, else 1 %.",
    ),
]
SurveyPart: TypeAlias = Annotated[
    float | None,
    typer.Option("--survey-share", metavar="X", help="The part of the noise cost that a survey takes, such as 0.01."),
]
GivenC_U: TypeAlias = Annotated[int, _C_U]
Tau: TypeAlias = Annotated[
    int | None,
    typer.Option("--tau", metavar="N", help="τ: groups with fewer users are dropped; 1 if not given."),
]
TauStar: TypeAlias = Annotated[
    float | None, typer.Option("--tau-star", metavar="X", help="τ*: groups with a noisy count below it are dropped.")
]
Sigma: TypeAlias = Annotated[
    float | None, typer.Option("--sigma", metavar="X", help="σ: the standard deviation of the noise on counts.")
]
Mu0: TypeAlias = Annotated[
    float | None, typer.Option("--mu-0", metavar="X", help="μ₀: what further columns add to μ, per group.")
]
Epsilon: TypeAlias = Annotated[float, typer.Option("--epsilon", metavar="X", help="ε of the target.")]
Delta: TypeAlias = Annotated[float, typer.Option("--delta", metavar="X", help="δ of the target.")]
MechanismOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--mechanism-of",
        metavar="NAME",
        help="The mechanism of an earlier release of the service: the same noise again.",
    ),
]
MechanismFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        metavar="FILE",
        help="The mechanism as JSON, in place of the numbers: what gsh calibrate --json writes, or a certificate. "
        "- is standard input.",
    ),
]
OfTable: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="NAME", help="Which table, if the certificate has several. TABLE may say it itself."
    ),
]
Sums: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--sum",
        metavar="COLUMN=LOW:HIGH",
        help="A further column: the least and the most that one user adds to it in one group. Repeatable.",
    ),
]
CountName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--count",
        "--users",
        metavar="NAME",
        help="The column of the result with the number of users; count if omitted.",
    ),
]
NumberOfEvents: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--events",
        metavar="NAME=N",
        help="A further column with the number of events: at most N of one user in one group. Repeatable.",
    ),
]
Means: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--mean",
        metavar="COLUMN=LOW:HIGH",
        help="The mean per user of a column: what one user has in one group, at least and at most. Repeatable.",
    ),
]
Ratios: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--ratio",
        metavar="NAME=A/B",
        help="Also the ratio of the columns A and B, of sums or events; B may be count. Repeatable.",
    ),
]
Rounded: TypeAlias = Annotated[
    bool, typer.Option("--round", help="Round counts to integers, and other columns to their units.")
]
Caps: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--cap", metavar="COLUMN=N", help="In how many groups one user changes a column, if fewer than C_u. Repeatable."
    ),
]
Weights: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--weight", metavar="COLUMN=X", help="The share of μ² of a column, as a multiple of the count's. Repeatable."
    ),
]
Count: TypeAlias = Annotated[
    str, typer.Option("--count", "--users", metavar="COLUMN", help="The column with the numbers of users.")
]
Keys: TypeAlias = Annotated[
    str, typer.Option("--keys", metavar="COLUMNS", help="The columns of the group key, with commas between them.")
]
From: TypeAlias = Annotated[
    FormatName | None, typer.Option("--from", help="The format of the input, if its name does not say it.")
]
Into: TypeAlias = Annotated[
    FormatName | None, typer.Option("--format", help="The format of the output, if its name does not say it.")
]
CsvTypes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="COLUMN=TYPE",
        help="The type of a CSV column: string, int64, float64, boolean, date, timestamp or decimal. Keys are strings, "
        "counts int64 and other numbers float64 if it is not said. Repeatable.",
    ),
]


Unprotected: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--unprotected",
        metavar="TEXT",
        help="What you chose by looking at the data, or: nothing. Repeatable.",
    ),
]


def unprotected_of(texts: list[str] | None) -> list[str] | None:
    """What --unprotected says: None if nobody says, and an empty list if it is nothing."""
    return [] if texts == ["nothing"] else texts


About: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--about",
        metavar="NAME=TEXT",
        help="For the certificate: source, data_period, purpose, approver, budget_ends. Repeatable.",
    ),
]


def about_of(texts: list[str] | None) -> dict[str, str] | None:
    """What --about says of a release, by its names."""
    if texts is None:
        return None
    pairs = [text.partition("=") for text in texts]
    found = {name: said for name, sign, said in pairs if sign}
    if len(found) != len(pairs):
        raise Refusal(Code.INVALID, "--about: must be NAME=TEXT, once for each name", "see --about in --help")
    return found


PaidBy: TypeAlias = Annotated[
    str | None, typer.Option("--budget", metavar="ID", help="The budget of the service that pays for it.")
]
OfPeriod: TypeAlias = Annotated[
    str | None,
    typer.Option("--period", metavar="NAME", help="Of a renewed budget: the period that pays, as 2026-W46."),
]
Labels: TypeAlias = Annotated[
    list[str] | None, typer.Option("--label", metavar="TEXT", help="A label for the ledger of the service. Repeatable.")
]
Description: TypeAlias = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="A text for the ledger of the service.")
]
StatedEpsilon: TypeAlias = Annotated[
    float | None, typer.Option("--epsilon", metavar="X", help="ε at which the certificate states δ.")
]
StatedDelta: TypeAlias = Annotated[
    float | None, typer.Option("--delta", metavar="X", help="δ at which the certificate states ε.")
]
Once: TypeAlias = Annotated[
    str | None, typer.Option("--once", metavar="NAME", help="A name for the release: it is made and charged once.")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")]


def mechanism_of(
    file: str | None,
    c_u: int | None,
    tau: int | None,
    tau_star: float | None,
    sigma: float | None,
    table: str | None = None,
) -> "AnyMechanism":
    """The mechanism of the options: from a file, which may have several tables, or from numbers."""
    return one_of(mechanisms_of(file, c_u, tau, tau_star, sigma), table)


def mechanisms_of(
    file: str | None,
    c_u: int | None,
    tau: int | None,
    tau_star: float | None,
    sigma: float | None,
    mu_0: float | None = None,
) -> "Mechanisms":
    """The same for each table of the file, by its name. The only table may have the empty name."""
    given = {"--c-u": c_u, "--tau": tau, "--tau-star": tau_star, "--sigma": sigma, "--mu-0": mu_0}
    if file is not None:
        extra = [option for option, value in given.items() if value is not None]
        if extra:
            raise Refusal(Code.INVALID, f"{extra[0]}: must be omitted with --mechanism", "give one or the other")
        try:
            return mechanisms_in(read_json(file, "--mechanism"))
        except gsh.InvalidParameter as error:
            place = error.pointer.removeprefix("mechanism").removeprefix("/")
            where = f"--mechanism ({place})" if place else "--mechanism"
            raise Refusal(Code.INVALID, f"{where}: {error.detail}") from None
    for option in ("--c-u", "--tau-star", "--sigma"):
        if given[option] is None:
            hint = "give --c-u, --tau-star and --sigma, or --mechanism; gsh calibrate finds them for a target"
            raise Refusal(Code.INVALID, f"{option}: is missing", hint)
    assert c_u is not None
    assert tau_star is not None
    assert sigma is not None
    return {"": gsh.Mechanism(c_u=c_u, tau=1 if tau is None else tau, tau_star=tau_star, sigma=sigma, mu_0=mu_0)}


def release_of(
    file: str | None, c_u: int | None, tau: int | None, tau_star: float | None, sigma: float | None
) -> "AnyMechanism | Mechanisms":
    """What is released: a mechanism, or the tables of a file with theirs."""
    tables = mechanisms_of(file, c_u, tau, tau_star, sigma)
    return tables.get("", tables)


def mechanisms_in(document: Any) -> "Mechanisms":
    """The mechanisms of a document by table: those of a certificate, its field ``mechanism``, or the whole of it."""
    from gsh.wire import release_from_json  # noqa: PLC0415 - loads numpy

    if isinstance(document, dict) and "tables" in document:
        return _certified(document)
    if isinstance(document, dict) and document.get("charge_refusal"):  # of gsh audit
        raise Refusal(Code.INVALID, f"--mechanism: must be one with Gaussian noise: {document['charge_refusal']}")
    inner = document.get("mechanism") if isinstance(document, dict) else None
    return {"": release_from_json(document if inner is None else inner)}


def _certified(document: dict[str, Any]) -> "Mechanisms":
    """The mechanisms of a certificate of several tables."""
    from gsh.certificate import Certificate  # noqa: PLC0415 - loads numpy

    found: Mechanisms = {}
    with suppress(ValueError, TypeError, LookupError, AttributeError):
        found = Certificate.from_json(document).mechanisms
    if not found:
        detail = "must be a mechanism, or a certificate with a mechanism for each table"
        raise Refusal(Code.INVALID, f"--mechanism: {detail}", "gsh publish and gsh calibrate --json write them")
    return found


def one_of(tables: "Mechanisms", name: str | None) -> "AnyMechanism":
    """The mechanism of one table. The name may be omitted if there is only one."""
    listed = ", ".join(tables)
    if name is not None and name not in tables:
        detail = f"must be one of the tables of the certificate: {listed}" if listed else "is for several tables"
        raise Refusal(Code.INVALID, f"--table: {detail}", "check the name" if listed else "remove it")
    if name is None and len(tables) > 1:
        raise Refusal(Code.INVALID, f"--mechanism: has the tables {listed}", "add --table NAME for one of them")
    return next(iter(tables.values())) if name is None else tables[name]


def names(option: str, text: str) -> list[str]:
    """Names with commas between them. A name with a comma stands in double quotes."""
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a line end outside of quotes
        rows = list(csv.reader([text], skipinitialspace=True))
    row = rows[0] if len(rows) == 1 else []
    if not row or not all(row):
        raise Refusal(
            Code.INVALID,
            f"{option}: must be names with commas between them",
            "such as url,country; put a name with a comma or a line end in double quotes",
        )
    return row


def numbers(option: str, text: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise Refusal(Code.INVALID, f"{option}: must be numbers with commas between them", "such as 0.1,1") from None


@contextmanager
def survey_of(sigmas: str | None, shares: str | None = None) -> Iterator[Any]:
    """The survey of two options, or None; inside the block, errors about it name one of them."""
    found: list[gsh.SurveyNoise | gsh.SurveyShare] = []
    for option, text, kind in (("sigma", sigmas, gsh.SurveyNoise), ("share", shares, gsh.SurveyShare)):
        with renamed((option, f"survey_{option}")):
            found += [kind(number) for number in numbers(f"--survey-{option}", text)] if text is not None else []
    with renamed(("survey", "survey_sigma" if shares is None else "survey_share")):
        yield found or None


def listed(option: str, pairs: list[str] | None, form: str) -> dict[str, str]:
    """The pairs NAME=VALUE of a repeated option. The name may have =."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        name, sign, value = pair.rpartition("=")
        if not sign or not name or name in found:
            raise Refusal(Code.INVALID, f"{option}: must be {form}, once for each column", f"see {option} in --help")
        found[name] = value
    return found


def columns_of(sums: list[str] | None, caps: list[str] | None, weights: list[str] | None) -> dict[str, Any]:
    """The further columns, as arguments of ``gsh.calibrate``."""
    form = "COLUMN=LOW:HIGH"
    ranges = {name: bounds("--sum", text, form) for name, text in listed("--sum", sums, form).items()}
    most = {name: parsed("--cap", int, text) for name, text in listed("--cap", caps, "COLUMN=N").items()}
    shares = {name: parsed("--weight", float, text) for name, text in listed("--weight", weights, "COLUMN=X").items()}
    return {"sums": ranges or None, "caps": most or None, "weights": shares or None}


def survey_asked(option: str, kind: Callable[[str], N], text: str) -> Any:
    """``survey``, or ``survey:16`` with the bound that holds if it says too little; None for another text."""
    word, sign, default = text.partition(":")
    if word != "survey":
        return None
    return (word, parsed(option, kind, default)) if sign else word


def c_u_of(text: str) -> Any:
    """C_u, or what is left to a survey."""
    return survey_asked("--c-u", int, text) or parsed("--c-u", int, text)


def bounds(option: str, text: str, form: str) -> Any:
    asked = survey_asked(option, float, text)
    if asked is not None:
        return asked
    low, sign, high = text.partition(":")
    if not sign:
        raise Refusal(Code.INVALID, f"{option}: must be {form}", "such as likes=0:5")
    return parsed(option, float, low), parsed(option, float, high)


def parsed(option: str, kind: Callable[[str], N], text: str) -> N:
    try:
        return kind(text)
    except ValueError:
        raise Refusal(Code.INVALID, f"{option}: must end with a number", f"see {option} in --help") from None


def csv_types(pairs: list[str] | None, keys: list[str], users: str, values: tuple[str, ...]) -> "dict[str, CsvType]":
    """The types of the columns of a CSV file."""
    from gsh.histogram.csv_format import CsvType  # noqa: PLC0415 - loads pyarrow

    types: dict[str, Any] = dict.fromkeys(keys, "string") | {users: "int64"} | dict.fromkeys(values, "float64")
    for name, kind in listed("--type", pairs, "COLUMN=TYPE").items():
        if name not in types or kind not in get_args(CsvType):
            detail = f"must be a column of --keys or --users, or a sum, and one of {', '.join(get_args(CsvType))}"
            raise Refusal(Code.INVALID, f"--type: {detail}", "such as country=string")
        types[name] = kind
    return types


EventsPath: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="EVENTS", help="Parquet, CSV or JSON lines: a file, a pattern such as 'day-*.parquet', or a folder."
    ),
]
User: TypeAlias = Annotated[str, typer.Option("--user", metavar="COLUMN", help="The column with the user.")]
By: TypeAlias = Annotated[
    str, typer.Option("--by", metavar="COLUMNS", help="The columns of the group key, with commas between them.")
]
Units: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--sum-unit",
        metavar="COLUMN=X",
        help="The unit of a sum or a mean: a power of two, such as 2^-10, or 0.01 for decimals. Columns with fractions "
        "need it. Repeatable.",
    ),
]
RoundedTo: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--sum-unit", metavar="COLUMN=X", help="With --round: to multiples of X. Repeatable."),
]
PublicKeys: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--public-keys",
        metavar="FILE",
        help="A CSV or Parquet file with the key columns of public groups: all of them are published, no others.",
    ),
]
PrivacyUnit: TypeAlias = Annotated[
    str | None, typer.Option("--unit", metavar="TEXT", help="The privacy unit; user if not given.")
]
ColumnTypes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="COLUMN=TYPE",
        help="string, integer, double, boolean, date, timestamp, timestamptz, uuid or decimal(p,s). Repeatable.",
    ),
]
Memory: TypeAlias = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="The memory limit of DuckDB, such as 4GB.")
]


def planned(
    user: str,
    by: str,
    sums: list[str] | None,
    events: list[str] | None,
    means: list[str] | None,
    units: list[str] | None,
    caps: list[str] | None,
    types: list[str] | None,
) -> dict[str, Any]:
    """The arguments of ``publish`` that describe the columns."""
    columns = columns_of(sums, caps, None)
    most = {
        name: survey_asked("--events", int, text) or parsed("--events", int, text)
        for name, text in listed("--events", events, "NAME=N").items()
    }
    return {
        "user": user,
        "by": names("--by", by),
        "sums": columns["sums"],
        "events": most or None,
        "means": means_of(means, "COLUMN=LOW:HIGH") or None,
        "caps": columns["caps"],
        "units": units_of(units),
        "types": listed("--type", types, "COLUMN=TYPE") or None,
    }


def means_of(means: list[str] | None, form: str) -> dict[str, Any]:
    """The range of each mean."""
    return {name: bounds("--mean", text, form) for name, text in listed("--mean", means, form).items()}


def ratios_of(ratios: list[str] | None) -> dict[str, tuple[str, str]]:
    """The columns of each ratio."""
    found = {}
    for name, text in listed("--ratio", ratios, "NAME=A/B").items():
        first, sign, second = text.rpartition("/")
        if not (first and sign and second):
            raise Refusal(Code.INVALID, "--ratio: must be NAME=A/B", "such as likes_per_view=likes/views")
        found[name] = first, second
    return found


def replay_of(released: Any) -> dict[str, Any]:
    """What a document says of how a release was made: whether it came again, and what it used of its budget."""
    use = released.budget_use
    replay = {"is_replayed": released.is_replayed, "released_at": released.released_at}
    return replay | {"budget_use": None if use is None else asdict(use)}


def survey_part(share: float | None) -> "gsh.SurveyShare | None":
    """The argument ``survey`` of ``publish``."""
    with renamed(("share", "survey_share")):
        return None if share is None else gsh.SurveyShare(share)


def named(count: str | None) -> dict[str, str] | None:
    """The argument ``names`` of ``publish``."""
    return None if count is None else {"count": count}


def units_of(units: list[str] | None) -> dict[str, float] | None:
    """The units of columns."""
    given = listed("--sum-unit", units, "COLUMN=X")
    return {name: parsed("--sum-unit", _unit, text) for name, text in given.items()} or None


def _unit(text: str) -> float:
    """A number, or a power of two as people write it: 2^-10 or 2**-10."""
    base, power, exponent = text.replace("**", "^").partition("^")
    return math.ldexp(1.0, int(exponent)) if power and base.strip() == "2" else float(text)
