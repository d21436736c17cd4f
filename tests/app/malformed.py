"""Bodies that the service refuses, each with a value that must not be in the answer.

Every body carries NUMBER as its τ* (or σ) and WORD in every string, mostly as the offending value itself.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.app.client import Json

__all__ = ["BODIES", "NUMBER", "WORD", "Malformed"]

WORD = "s3ntinel"
NUMBER = 918273645.125
UNKNOWN = "unkn0wn"
"""A field that no object has. It is named in the answer, its value is not."""
UNNAMED = {"too long": WORD * 9, "not an identifier": f"{WORD}@b.org", "with a control character": f"{WORD}\x1b"}
"""Fields that no object has, and that are not repeated: they may be anything."""
REMOVED = object()
RAW = "raw:"
"""A string that starts so is written without its quotes: numbers that ``json.dumps`` cannot write."""


@dataclass(frozen=True)
class Malformed:
    """A body, its path, and the expected problem document."""

    name: str
    path: str
    body: bytes
    pointer: str | None
    status: int = 422
    kind: str = "invalid-request"

    def __str__(self) -> str:
        return f"{self.path.split('/')[-1]}: {self.name}"


COLUMNS = {
    "names": [WORD, "b"],
    "covariance": [[4, 0], [0, 16]],
    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
}
MECHANISM = {"c_u": 3, "tau": 1, "tau_star": NUMBER, "sigma": 5.0, "aggregates": COLUMNS}
ACCOUNT: Json = {"mechanism": MECHANISM, "epsilon": 0.5}
DRAFT = {"c_u": 3, "tau": 1, "sigma": NUMBER, "aggregates": {"mu_0": 0.001}}
CALIBRATE: Json = {"mechanism": DRAFT, "epsilon": 0.5, "delta": 1e-05}
GROUPS = {"keys": [[WORD, 1], ["b", 2]], "counts": [918273645, 3], "values": {WORD: [0.5, 1], "b": [NUMBER, 7]}}
RELEASE: Json = {"mechanism": MECHANISM, "epsilon": 0.5, "groups": GROUPS}
DEEP = 100_000


def changed(document: Any, changes: Json) -> Any:
    """A copy with the value at each JSON Pointer replaced, added or REMOVED."""
    copy = json.loads(json.dumps(document))
    for pointer, value in changes.items():
        *parents, last = pointer.split("/")[1:]
        place = copy
        for parent in parents:
            place = place[int(parent) if isinstance(place, list) else parent]
        if value is REMOVED:
            del place[last]
        else:
            place[int(last) if isinstance(place, list) else last] = value
    return copy


def encoded(document: Any) -> bytes:
    return re.sub(rf'"{RAW}([^"]*)"', r"\1", json.dumps(document)).encode()


def account(name: str, changes: Json, pointer: str, **expected: Any) -> Malformed:
    return Malformed(name, "/account/exact", encoded(changed(ACCOUNT, changes)), pointer, **expected)


def add_deltas(name: str, changes: Json, pointer: str, **expected: Any) -> Malformed:
    return Malformed(name, "/account/add-deltas", encoded(changed(ACCOUNT, changes)), pointer, **expected)


def calibrate(name: str, changes: Json, pointer: str, **expected: Any) -> Malformed:
    return Malformed(name, "/calibrate", encoded(changed(CALIBRATE, changes)), pointer, **expected)


def release(name: str, changes: Json, pointer: str, **expected: Any) -> Malformed:
    return Malformed(name, "/release", encoded(changed(RELEASE, changes)), pointer, **expected)


def not_json(name: str, body: bytes) -> Malformed:
    return Malformed(name, "/account/exact", body, None, status=400, kind="invalid-json")


WHOLE = encoded(ACCOUNT)
SIGMA = "/mechanism/sigma"
AGGREGATES = "/mechanism/aggregates"
NAMES = f"{AGGREGATES}/names"
COVARIANCE = f"{AGGREGATES}/covariance"
SENSITIVITY = f"{AGGREGATES}/sensitivity"

NOT_JSON = [
    not_json("empty", b""),
    not_json("a word", WORD.encode()),
    not_json("truncated", WHOLE[:-1]),
    not_json("truncated within a string", WHOLE[: WHOLE.index(WORD.encode()) + 4]),
    not_json("two documents", WHOLE + WHOLE),
    not_json("trailing comma", WHOLE[:-1] + b",}"),
    not_json("single quotes", WHOLE.replace(b'"', b"'")),
    not_json("a comment", b"/* s3ntinel */" + WHOLE),
    not_json("invalid UTF-8", WHOLE.replace(WORD.encode(), WORD.encode() + b"\xff\xfe")),
    not_json("UTF-16", WHOLE.decode().encode("utf-16")),
    not_json("nested too deeply", b"[" * DEEP + f'"{WORD}"'.encode() + b"]" * DEEP),
    not_json("nested and never closed", f'["{WORD}",'.encode() * DEEP),
]

NUMBERS = [
    account(f"{name} as {where}", {f"/{where}": value}, f"/{where}")
    for where in ("mechanism/c_u", "mechanism/tau", "mechanism/tau_star", "mechanism/sigma", "epsilon")
    for name, value in {
        "a string": f"{NUMBER}",
        "a word": WORD,
        "true": True,
        "NaN": f"{RAW}NaN",
        "Infinity": f"{RAW}Infinity",
        "-Infinity": f"{RAW}-Infinity",
        "1e400": f"{RAW}1e400",
        "an object": {WORD: NUMBER},
        "4000 digits": f"{RAW}{'918273645' * 450}"[:4000],
        "negative": -NUMBER,
    }.items()
    if (name, where) != ("4000 digits", "mechanism/tau")  # an integer, and larger than τ*: below
]

VALUES = [
    account("null for c_u", {"/mechanism/c_u": None}, "/mechanism/c_u"),
    account("null for sigma", {SIGMA: None}, SIGMA),
    account("null for the mechanism", {"/mechanism": None, "/epsilon": NUMBER}, "/mechanism"),
    account("a list for the mechanism", {"/mechanism": [WORD]}, "/mechanism"),
    account("c_u 0", {"/mechanism/c_u": 0}, "/mechanism/c_u"),
    account("c_u above 10^18", {"/mechanism/c_u": 10**18 + 1}, "/mechanism/c_u"),
    account("c_u 1.0", {"/mechanism/c_u": 1.0}, "/mechanism/c_u"),
    account("c_u 2.5", {"/mechanism/c_u": 2.5}, "/mechanism/c_u"),
    account("tau a fraction", {"/mechanism/tau": 1.5}, "/mechanism/tau"),
    account("tau_star equal to tau", {"/mechanism/tau": 7, "/mechanism/tau_star": 7}, "/mechanism/tau_star"),
    account("tau_star below tau", {"/mechanism/tau": 10**12}, "/mechanism/tau_star"),
    account("tau of 4000 digits", {"/mechanism/tau": f"{RAW}{'9' * 4000}"}, "/mechanism/tau_star"),
    account("tau_star 1", {"/mechanism/tau": 0, "/mechanism/tau_star": 1}, "/mechanism/tau_star"),
    account("sigma 0", {SIGMA: 0}, SIGMA),
    account("sigma −0.0", {SIGMA: -0.0}, SIGMA),
    account("sigma so small that μ is infinite", {SIGMA: 5e-324}, SIGMA),
    account("a list for sigma", {SIGMA: [NUMBER]}, SIGMA),
    account("epsilon negative in a curve", {"/epsilon": [0.5, -NUMBER]}, "/epsilon/1"),
    account("epsilon a word in a curve", {"/epsilon": [0.5, WORD]}, "/epsilon/1"),
    account("epsilon a list of lists", {"/epsilon": [[NUMBER]]}, "/epsilon/0"),
    account("an empty curve", {"/epsilon": []}, "/epsilon"),
    account("a curve too long", {"/epsilon": [0.5] * 10_001}, "/epsilon", kind="limit-exceeded"),
    account("delta 0", {"/epsilon": REMOVED, "/delta": 0}, "/delta"),
    account("delta 1", {"/epsilon": REMOVED, "/delta": 1}, "/delta"),
    account("delta above 1 in a curve", {"/epsilon": REMOVED, "/delta": [0.5, NUMBER]}, "/delta/1"),
    account("theorem a word", {"/theorem": WORD}, "/theorem"),
    account(
        "theorem beyond the limit", {"/mechanism/c_u": 10**7 + 1, "/theorem": True}, "/theorem", kind="limit-exceeded"
    ),
    calibrate("c_u 0", {"/mechanism/c_u": 0}, "/mechanism/c_u"),
    calibrate("sigma 0 in a frontier", {SIGMA: [NUMBER, 0]}, f"{SIGMA}/1"),
    calibrate("sigma a word in a frontier", {SIGMA: [WORD]}, f"{SIGMA}/0"),
    calibrate("an empty frontier", {SIGMA: [], "/epsilon": NUMBER}, SIGMA),
    calibrate("a frontier too long", {SIGMA: [NUMBER] * 10_001}, SIGMA, kind="limit-exceeded"),
    calibrate("epsilon a list", {"/epsilon": [NUMBER]}, "/epsilon"),
    calibrate("delta 1", {"/delta": 1}, "/delta"),
    calibrate("accounting unknown", {"/accounting": WORD}, "/accounting"),
    calibrate("tau_star below tau", {"/mechanism/c_u": REMOVED, "/mechanism/tau_star": 0.5}, "/mechanism/tau_star"),
    calibrate(
        "tau_star equal to tau",
        {SIGMA: REMOVED, "/mechanism/tau": 918273645, "/mechanism/tau_star": 918273645},
        "/mechanism/tau_star",
    ),
]

FIELDS = [
    Malformed("a list for the body", "/account/exact", encoded([ACCOUNT]), ""),
    Malformed("a string for the body", "/account/exact", encoded(WORD), ""),
    Malformed("a number for the body", "/calibrate", encoded(NUMBER), ""),
    account("an unknown field", {f"/{UNKNOWN}": NUMBER}, f"/{UNKNOWN}"),
    account("an unknown field of the mechanism", {f"/mechanism/{UNKNOWN}": NUMBER}, f"/mechanism/{UNKNOWN}"),
    account("an unknown field of the aggregates", {f"{AGGREGATES}/{UNKNOWN}": NUMBER}, f"{AGGREGATES}/{UNKNOWN}"),
    account("an unknown field of the sensitivity", {f"{SENSITIVITY}/{UNKNOWN}": NUMBER}, f"{SENSITIVITY}/{UNKNOWN}"),
    account("a field of another kind of sensitivity", {f"{SENSITIVITY}/bound": NUMBER}, f"{SENSITIVITY}/bound"),
    account("a field of the response", {"/mechanism/tau_gap": NUMBER}, "/mechanism/tau_gap"),
    add_deltas("theorem, which is for exact alone", {"/theorem": True}, "/theorem"),
    calibrate("an unknown field", {f"/{UNKNOWN}": NUMBER}, f"/{UNKNOWN}"),
    calibrate("an unknown field of the mechanism", {f"/mechanism/{UNKNOWN}": NUMBER}, f"/mechanism/{UNKNOWN}"),
    *(account(f"an unknown field, {name}", {f"/{field}": NUMBER}, "") for name, field in UNNAMED.items()),
    account("no mechanism", {"/mechanism": REMOVED, "/epsilon": NUMBER}, "/mechanism"),
    *(account(f"no {name}", {f"/mechanism/{name}": REMOVED}, f"/mechanism/{name}") for name in list(MECHANISM)[:4]),
    *(account(f"no {name}", {f"{AGGREGATES}/{name}": REMOVED}, f"{AGGREGATES}/{name}") for name in COLUMNS),
    *(account(f"no {name}", {f"{SENSITIVITY}/{name}": REMOVED}, f"{SENSITIVITY}/{name}") for name in ("kind", "upper")),
    account("empty aggregates", {AGGREGATES: {}}, f"{AGGREGATES}/covariance"),
    account("neither epsilon nor delta", {"/epsilon": REMOVED}, ""),
    account("both epsilon and delta", {"/delta": 0.5}, ""),
    calibrate("no epsilon", {"/epsilon": REMOVED}, ""),
    calibrate("no delta", {"/delta": REMOVED}, ""),
    calibrate("no tau", {"/mechanism/tau": REMOVED}, "/mechanism/tau"),
    calibrate("nothing to solve", {"/mechanism/tau_star": 70}, "/mechanism"),
    calibrate("three things to solve", {"/mechanism/c_u": REMOVED, SIGMA: REMOVED, "/epsilon": NUMBER}, "/mechanism"),
    calibrate("c_u and tau_star to solve", {"/mechanism/c_u": REMOVED}, "/mechanism"),
    calibrate("a frontier with tau_star", {SIGMA: [NUMBER], "/mechanism/tau_star": 70}, SIGMA),
    calibrate("a frontier without c_u", {SIGMA: [NUMBER], "/mechanism/c_u": REMOVED}, SIGMA),
]

SHAPES = [
    account("aggregates a list", {AGGREGATES: [WORD]}, AGGREGATES),
    account("aggregates a word", {AGGREGATES: WORD}, AGGREGATES),
    account("mu_0 beside a covariance", {f"{AGGREGATES}/mu_0": 0.5}, COVARIANCE),
    account("mu_0 negative", {AGGREGATES: {"mu_0": -NUMBER}}, f"{AGGREGATES}/mu_0"),
    account("mu_0 a word", {AGGREGATES: {"mu_0": WORD}}, f"{AGGREGATES}/mu_0"),
    account(
        "relative_covariance",
        {COVARIANCE: REMOVED, f"{AGGREGATES}/relative_covariance": [[1]]},
        f"{AGGREGATES}/relative_covariance",
    ),
    calibrate(
        "covariance beside relative_covariance", {AGGREGATES: COLUMNS | {"relative_covariance": [[NUMBER]]}}, COVARIANCE
    ),
    calibrate(
        "relative_covariance not positive definite",
        {AGGREGATES: COLUMNS | {"relative_covariance": [[1, 2], [2, 1]]}, COVARIANCE: REMOVED},
        f"{AGGREGATES}/relative_covariance",
    ),
    account("names empty", {NAMES: []}, NAMES),
    account("names not a list", {NAMES: WORD}, NAMES),
    account("a name that is a number", {f"{NAMES}/0": NUMBER}, f"{NAMES}/0"),
    account("a name without characters", {f"{NAMES}/1": ""}, f"{NAMES}/1"),
    account("a name too long", {f"{NAMES}/1": WORD * 26}, f"{NAMES}/1"),
    account("names that are the same", {f"{NAMES}/1": WORD}, NAMES),
    account("a name key", {f"{NAMES}/1": "key"}, NAMES),
    account("a name count", {f"{NAMES}/1": "count"}, NAMES),
    account("too many names", {NAMES: [f"{WORD}{k}" for k in range(101)]}, NAMES),
    account("more names than rows", {NAMES: [WORD, "b", "c"]}, COVARIANCE),
    account("a covariance that is not square", {COVARIANCE: [[4, 0, 0], [0, 16, 0]]}, COVARIANCE),
    account("a covariance with a short row", {COVARIANCE: [[4, 0], [NUMBER]]}, COVARIANCE),
    account("an asymmetric covariance", {f"{COVARIANCE}/0/1": 0.5}, COVARIANCE),
    account("an indefinite covariance", {COVARIANCE: [[4, 9], [9, 16]]}, COVARIANCE),
    account("a singular covariance", {COVARIANCE: [[4, 8], [8, 16]]}, COVARIANCE),
    account("a negative variance", {f"{COVARIANCE}/0/0": -NUMBER}, COVARIANCE),
    account("a word in the covariance", {f"{COVARIANCE}/1/0": WORD}, f"{COVARIANCE}/1/0"),
    account("NaN in the covariance", {f"{COVARIANCE}/1/1": f"{RAW}NaN"}, f"{COVARIANCE}/1/1"),
    account("an empty covariance", {COVARIANCE: []}, COVARIANCE),
    account("a number for the covariance", {COVARIANCE: NUMBER}, COVARIANCE),
    account("sensitivity a word", {SENSITIVITY: WORD}, SENSITIVITY),
    account("an unknown kind", {f"{SENSITIVITY}/kind": WORD}, f"{SENSITIVITY}/kind"),
    account("a kind that is a number", {f"{SENSITIVITY}/kind": NUMBER}, f"{SENSITIVITY}/kind"),
    account("lower above upper", {f"{SENSITIVITY}/lower": [0, NUMBER]}, f"{SENSITIVITY}/lower/1"),
    account("lower too short", {f"{SENSITIVITY}/lower": [NUMBER]}, f"{SENSITIVITY}/lower"),
    account("upper too long", {f"{SENSITIVITY}/upper": [1, 1, NUMBER]}, f"{SENSITIVITY}/upper"),
    account("a negative bound", {SENSITIVITY: {"kind": "l2", "bound": -NUMBER}}, f"{SENSITIVITY}/bound"),
    account("no vectors", {SENSITIVITY: {"kind": "vectors", "vectors": []}}, f"{SENSITIVITY}/vectors"),
    account(
        "a vector of the wrong length",
        {SENSITIVITY: {"kind": "vectors", "vectors": [[0, 1], [NUMBER]]}},
        f"{SENSITIVITY}/vectors/1",
    ),
]

KEYS, COUNTS, COLUMNS = "/groups/keys", "/groups/counts", "/groups/values"
RELEASES = [
    *(
        release(f"{name} for a key", {f"{KEYS}/0": value}, KEYS)
        for name, value in {
            "true": True,
            "an object": {WORD: WORD},
            "an empty list": [],
            "a list of lists": [[WORD]],
            "a list with true": [WORD, True],
            "NaN": f"{RAW}NaN",
            "1e400": f"{RAW}1e400",
            "a list of 101": [WORD] * 101,
        }.items()
    ),
    release("a key twice", {f"{KEYS}/1": [WORD, 1]}, KEYS),
    release("a number twice", {KEYS: [1, 1.0]}, KEYS),
    release("a word for the keys", {KEYS: WORD}, KEYS),
    *(
        release(f"{name} for a count", {f"{COUNTS}/1": value}, COUNTS)
        for name, value in {
            "null": None,
            "true": True,
            "a word": WORD,
            "a fraction": NUMBER,
            "1.0": 1.0,
            "a negative number": -918273645,
            "2^53 + 1": 2**53 + 1,
            "NaN": f"{RAW}NaN",
        }.items()
    ),
    *(
        release(f"{name} for a value", {f"{COLUMNS}/{WORD}/1": value}, COLUMNS)
        for name, value in {
            "null": None,
            "true": True,
            "a word": WORD,
            "NaN": f"{RAW}NaN",
            "-Infinity": f"{RAW}-Infinity",
            "1e400": f"{RAW}1e400",
        }.items()
    ),
    release("more keys than counts", {KEYS: [WORD, "b", "c"]}, COUNTS),
    release("more counts than keys", {COUNTS: [1, 2, 3]}, COUNTS),
    release("more values than keys", {f"{COLUMNS}/b": [1, 2, NUMBER]}, f"{COLUMNS}/b"),
    release("an aggregate missing", {f"{COLUMNS}/b": REMOVED}, COLUMNS),
    release("an unknown aggregate", {f"{COLUMNS}/c": [1, 2]}, COLUMNS),
    release(
        "a name with / and ~, and more values than keys",
        {f"{NAMES}/1": "b/~", COLUMNS: {WORD: [0.5, 1], "b/~": [1, 2, NUMBER]}},
        f"{COLUMNS}/b~1~0",
    ),
    release("no values", {COLUMNS: REMOVED}, COLUMNS),
    release("values of counts only", {AGGREGATES: REMOVED}, COLUMNS),
    release("mu_0 alone", {AGGREGATES: {"mu_0": 0.5}}, AGGREGATES),
    release("no keys", {KEYS: REMOVED}, KEYS),
    release("no counts", {COUNTS: REMOVED}, COUNTS),
    release("no groups", {"/groups": REMOVED}, "/groups"),
    release("no mechanism", {"/mechanism": REMOVED}, "/mechanism"),
    release("no sigma", {SIGMA: REMOVED}, SIGMA),
    release("an unknown field", {f"/{UNKNOWN}": NUMBER}, ""),
    release("an unknown field of the groups", {f"/groups/{WORD}": NUMBER}, "/groups"),
    release("a seed", {"/seed": 918273645}, ""),
    release("epsilon and delta", {"/delta": 0.5}, ""),
    release("epsilon a list", {"/epsilon": [0.5, NUMBER]}, "/epsilon"),
    release(
        "a delta that no ε reaches",
        {"/epsilon": REMOVED, "/delta": 1e-300, "/mechanism/tau_star": 2},
        "/delta",
        kind="infeasible-target",
    ),
    release("a sigma too small to draw with", {SIGMA: 1e-130}, SIGMA),
    release("a sigma too large to draw with", {SIGMA: 1e130}, SIGMA),
]

BODIES = [*NOT_JSON, *NUMBERS, *VALUES, *FIELDS, *SHAPES, *RELEASES]
