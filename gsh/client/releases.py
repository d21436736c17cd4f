"""``client.releases``: what budgets have paid for, with tables and certificates; and releases of other engines."""

import base64
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Unpack

import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism
from gsh.certificate import Certificate
from gsh.client.answers import Release, is_archive, release_of, tables_of
from gsh.client.asked import Asked, certified
from gsh.client.decoding import Contradiction, check_sha256, decoded, understood
from gsh.client.encoding import (
    AS_NAMED,
    ReleaseLike,
    ReleaseOptions,
    in_period,
    in_tables,
    provenance_json,
    release_json,
    stated,
)
from gsh.client.operations import (
    MOST_TABLE_BYTES,
    Answer,
    Awaiting,
    Blocking,
    Bound,
    Collection,
    Driver,
    Mode,
    Operation,
    Page,
    fetched,
    listing,
    operation,
)
from gsh.client.records import By, Committed, EntryName, Opened, Provenance, StoredAnswer, Verified
from gsh.client.requests import ask, json_call, part
from gsh.documents import parsed
from gsh.histogram.archives import read_archive
from gsh.histogram.file_formats import ARROW, JSON, MEDIA_TYPES, ZIP, AnswerFormat
from gsh.results import certificates
from gsh.results.budget_use import BudgetUse
from gsh.wire import Json, release_from_json, tables_from_json

__all__ = ["AnswerFormat", "CertificateFormat", "RecordedRelease", "Releases"]

M = TypeVar("M", bound=Mode)

CertificateFormat: TypeAlias = Literal["json", "yaml", "html"]

_CERTIFICATES: Mapping[str, str] = {"json": JSON, "yaml": "application/yaml", "html": "text/html"}
_MEDIA_TYPES: Mapping[str, str] = dict(MEDIA_TYPES.items()) | {"zip": ZIP}
_PAGE = 100
_SEED_BYTES = 32


@dataclass(frozen=True, eq=False)
class RecordedRelease(Bound[M], Generic[M]):
    """What the ledger says about a release. ``table`` and ``certificate`` are asked for each time they are read."""

    key: str
    """The idempotency key: the name of the release."""
    state: Literal["made", "open", "committed", "charged"]
    budget: str
    entry: int
    head: str
    at: str
    release_id: str | None
    description: str
    labels: tuple[str, ...]
    by: By | None
    mu_squared: float
    hazard: float
    stored: StoredAnswer | None
    """The stored answer; None if the service did not make the release."""
    committed: Committed | None
    _releases: "Releases[M]" = field(repr=False)
    ancestors: tuple[EntryName, ...] = ()
    """The entries of its charge in the histories of the budget's ancestors."""
    budget_use: BudgetUse | None = None
    """What it used of its budget, and how many more like it fit; in a list it is not said."""

    @property
    def _driver(self) -> Driver[M]:
        return self._releases._driver

    @operation
    def load(self) -> Operation[Release]:
        """The release, as the call that made it got it."""
        return (yield from _loaded(self, self.key, self.stored))

    @fetched
    def table(self) -> Operation[pa.Table]:
        """The private table. A release of several tables has ``load``."""
        return (yield from _loaded(self, self.key, self.stored)).table

    @fetched
    def certificate(self) -> Operation[Certificate]:
        """The certificate, with the record of the ledger."""
        return (yield from Releases.certificate(self._releases, self.key))

    @operation
    def answer(
        self,
        format: AnswerFormat | Literal["zip"] = "arrow",  # noqa: A002
        table: str | None = None,
    ) -> Operation[memoryview]:
        """The bytes of the answer in a format; or those of one of several tables."""
        answer = yield from _asked(self, self.key, _MEDIA_TYPES[format], table)
        if table is None:
            _check_stored(answer, self.stored, _MEDIA_TYPES[format])
        return memoryview(answer.content)


class Releases(Collection[M]):
    """The releases that your budgets have paid for.

    ``client.releases["web-2026-W46"]`` is one of them. A loop gives all of them, the newest first, page by page.
    """

    @operation
    def get(self, key: str) -> Operation[RecordedRelease[M]]:
        """What the ledger says about a release."""
        answer = yield from ask(self, json_call("GET", f"/releases/{part('key', key)}"))
        return decoded(answer, lambda document: replace(self._recorded(document), budget_use=answer.budget_use))

    @operation
    def __getitem__(self, key: str) -> Operation[RecordedRelease[M]]:
        return (yield from Releases.get(self, key))

    @listing
    def list(self, start: str | None, *, budget: str | None = None) -> Operation[Page[RecordedRelease[M]]]:
        """The releases of a budget, or of all budgets, the newest first."""
        call = json_call("GET", "/releases", query={"budget": budget, "before": start, "limit": _PAGE})
        return decoded((yield from ask(self, call)), self._page)

    def __iter__(self: "Releases[Blocking]") -> Iterator[RecordedRelease[Blocking]]:
        return self.list()

    def __aiter__(self: "Releases[Awaiting]") -> AsyncIterator[RecordedRelease[Awaiting]]:
        return self.list()

    @operation
    def load(self, key: str) -> Operation[Release]:
        """A release that the service made, as the call that made it got it."""
        return (yield from _loaded(self, key, None))

    @operation
    def answer(
        self,
        key: str,
        format: AnswerFormat | Literal["zip"] = "arrow",  # noqa: A002
        table: str | None = None,
    ) -> Operation[memoryview]:
        """The bytes of an answer in a format, or those of one of several tables. A long answer is a map of a file."""
        return memoryview((yield from _asked(self, key, _MEDIA_TYPES[format], table)).content)

    @operation
    def certificate(self, key: str) -> Operation[Certificate]:
        """The certificate of a release, with the record of the ledger."""
        answer = yield from ask(self, json_call("GET", f"/releases/{part('key', key)}/certificate"))
        return decoded(answer, _certificate)

    @operation
    def certificate_text(self, key: str, format: CertificateFormat = "json") -> Operation[str]:  # noqa: A002
        """The certificate as JSON, as YAML for the registry of deployments, or as a page to print."""
        call = json_call("GET", f"/releases/{part('key', key)}/certificate", accept=_CERTIFICATES[format])
        answer = yield from ask(self, call)
        return understood(answer, lambda: str(answer.content.to_pybytes(), "utf-8"))

    @operation
    def open(
        self,
        mechanism: ReleaseLike,
        *,
        budget: str,
        once: str,
        period: str | None = None,
        **options: Unpack[ReleaseOptions],
    ) -> Operation[Opened]:
        """Open a release that another engine makes: it is charged once, and every call gets the same seed.

        ``period`` is the one that pays of a renewed budget, such as ``2026-W46``; without it, the present one.
        Who has the seed can remove the noise. Keep it as secret as the raw data, and never log it.
        """
        body = release_json(mechanism) | {"budget": budget} | in_period(period) | stated(mechanism, options)
        places = in_tables(body) if "tables" in body else AS_NAMED
        answer = yield from ask(self, json_call("POST", "/releases", body, once=once), places)
        return decoded(answer, lambda document: _opened(document, body, once, answer))

    @operation
    def survey(
        self,
        key: str,
        mechanism: ReleaseLike,
        *,
        digest: str,
        chosen: Sequence[str] = (),
        provenance: Provenance | Mapping[str, Any] | None = None,
    ) -> Operation[Certificate]:
        """Record what was chosen from the survey of an open release, before anything is drawn with it.

        ``digest`` is the SHA-256 of the noisy histograms, and ``chosen`` says in words what was chosen and why. The
        tables must cost what was fixed before the survey. The answer is the certificate with the chosen bounds.
        """
        body = release_json(mechanism) | {"digest": digest, "chosen": list(chosen)}
        body |= {} if provenance is None else {"provenance": provenance_json(provenance)}
        call = json_call("POST", f"/releases/{part('key', key)}/survey", body, is_safe=True)
        answer = yield from ask(self, call, in_tables(body) if "tables" in body else AS_NAMED)
        return decoded(answer, lambda document: _certificate(document["certificate"]))

    @operation
    def commit(
        self,
        key: str,
        digest: str,
        rows: int | None = None,
        contents: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Operation[RecordedRelease[M]]:
        """Record the SHA-256 of what another engine has published. This erases the seed for ever.

        ``contents`` are the digests of the rows of each table by its name, for the certificate (docs/certificate.md).
        """
        body: Json = {"digest": digest} | ({} if rows is None else {"rows": rows})
        body |= {} if contents is None else {"contents": {name: dict(each) for name, each in contents.items()}}
        call = json_call("POST", f"/releases/{part('key', key)}/commit", body, is_safe=True)
        answer = yield from ask(self, call, AS_NAMED)
        return decoded(answer, self._recorded)

    @operation
    def verify(self, certificate: Mapping[str, Any]) -> Operation[Verified]:
        """Whether this ledger made a certificate, and for which bytes."""
        body = certificate.to_dict() if isinstance(certificate, Certificate) else dict(certificate)
        answer = yield from ask(self, json_call("POST", "/releases/verify", body, is_safe=True), AS_NAMED)
        return decoded(answer, lambda document: parsed(Verified, document))

    def _page(self, document: Json) -> Page[RecordedRelease[M]]:
        before = document["before"]
        return Page(tuple(map(self._recorded, document["releases"])), None if before is None else str(before))

    def _recorded(self, document: Json) -> RecordedRelease[M]:
        return parsed(RecordedRelease, {**document, "stored": document["answer"], "_releases": self})


def _loaded(bound: Bound[Any], key: str, stored: StoredAnswer | None) -> Operation[Release]:
    """One table as an Arrow stream, or an archive of several. Its files of other formats are asked for as streams."""
    answer = yield from _asked(bound, key, f"{ARROW}, {ZIP};q=0.9")
    if not is_archive(answer):
        _check_stored(answer, stored, ARROW)
        return release_of(answer)
    _check_stored(answer, stored, ZIP)
    members, _ = understood(answer, lambda: read_archive(answer.content))
    others = {}
    for name, (kind, _) in members.items():
        if kind != "arrow":
            others[name] = yield from _asked(bound, key, ARROW, name)
    return tables_of(answer, others=others)


def _check_stored(answer: Answer, stored: StoredAnswer | None, media_type: str) -> None:
    """If the answer is the stored one, its SHA-256 must be that of the record."""
    if stored is not None and stored.media_type == media_type:
        check_sha256(answer, stored.sha256)


def _asked(bound: Bound[Any], key: str, media_type: str, table: str | None = None) -> Operation[Answer]:
    """The answer of a release in a format."""
    path = f"/releases/{part('key', key)}/answer"
    call = json_call("GET", path, query={"table": table}, accept=media_type, most_bytes=MOST_TABLE_BYTES)
    return ask(bound, call)


def _certificate(document: Json) -> Certificate:
    certificates.check_sizes(document)
    return Certificate.from_json(document)


def _opened(document: Json, body: Json, once: str, answer: Answer) -> Opened:
    asked = Asked.of(_mechanisms_in(body), body, once, is_open=True)
    certified(document["certificate"], asked)
    if document["key"] != once or not asked.is_paid_by(document["budget"]):
        raise Contradiction("it is about another release")
    seed = document.pop("seed", None)
    plain = None if seed is None else base64.b64decode(seed, validate=True)
    if plain is not None and len(plain) != _SEED_BYTES:
        raise ValueError
    opened = parsed(Opened, document | {"seed": plain, "is_replayed": answer.is_replayed})
    return replace(opened, budget_use=answer.budget_use)


def _mechanisms_in(body: Json) -> Mapping[str, AnyMechanism]:
    """The mechanisms of a request, by the names of the tables."""
    return tables_from_json(body["tables"]) if "tables" in body else {"": release_from_json(body["mechanism"])}
