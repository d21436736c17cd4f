"""``client.releases``: what budgets have paid for, with tables and certificates; and releases made elsewhere."""

import base64
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Unpack

import pyarrow as pa

from gsh.client.answers import Release, release_of
from gsh.client.calls import ARROW, JSON, Operation
from gsh.client.documents import Certificate, parsed
from gsh.client.encoding import AnyMechanism, Json, mechanism_json
from gsh.client.json_calls import ask, json_call, json_of, part
from gsh.client.operations import Awaiting, Blocking, Bound, Driver, Mode, Page, fetched, listing, operation
from gsh.client.options import ReleaseOptions, stated
from gsh.client.records import AccessKey, Committed, Opened, StoredAnswer, Verified

__all__ = ["AnswerFormat", "CertificateFormat", "RecordedRelease", "Releases"]

M = TypeVar("M", bound=Mode)

AnswerFormat: TypeAlias = Literal["arrow", "arrow_file", "parquet", "csv", "json"]
CertificateFormat: TypeAlias = Literal["json", "yaml", "html"]

_ANSWERS: Mapping[str, str] = {
    "arrow": ARROW,
    "arrow_file": "application/vnd.apache.arrow.file",
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv",
    "json": JSON,
}
_CERTIFICATES: Mapping[str, str] = {"json": JSON, "yaml": "application/yaml", "html": "text/html"}
_NAMES = (("/", ""),)
_PAGE = 100


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
    by: AccessKey | None
    mu_squared: float
    hazard: float
    stored: StoredAnswer | None
    """The stored answer; None if the service did not make the release."""
    committed: Committed | None
    _releases: "Releases[M]" = field(repr=False)

    @property
    def _driver(self) -> Driver[M]:
        return self._releases._driver

    @operation
    def load(self) -> Operation[Release]:
        """The release, as the call that made it got it."""
        return (yield from Releases.load(self._releases, self.key))

    @fetched
    def table(self) -> Operation[pa.Table]:
        """The private table."""
        return (yield from Releases.load(self._releases, self.key)).table

    @fetched
    def certificate(self) -> Operation[Certificate]:
        """The certificate, with the record of the ledger."""
        return (yield from Releases.certificate(self._releases, self.key))

    @operation
    def answer(self, format: AnswerFormat = "arrow") -> Operation[memoryview]:  # noqa: A002
        """The bytes of the answer in a format."""
        return (yield from Releases.answer(self._releases, self.key, format))


class Releases(Bound[M]):
    """The releases that your budgets have paid for.

    ``client.releases["web-2026-W46"]`` is one of them. A loop gives all of them, the newest first, page by page.
    """

    def __init__(self, driver: Driver[M]) -> None:
        self._client = driver

    @property
    def _driver(self) -> Driver[M]:
        return self._client

    @operation
    def get(self, key: str) -> Operation[RecordedRelease[M]]:
        """What the ledger says about a release."""
        answer = yield from ask(self, json_call("GET", f"/releases/{part('key', key)}"))
        return self._recorded(json_of(answer))

    @operation
    def __getitem__(self, key: str) -> Operation[RecordedRelease[M]]:
        return (yield from Releases.get(self, key))

    @listing
    def list(self, start: str | None, *, budget: str | None = None) -> Operation[Page[RecordedRelease[M]]]:
        """The releases of a budget, or of all budgets, the newest first."""
        call = json_call("GET", "/releases", query={"budget": budget, "before": start, "limit": _PAGE})
        document = json_of((yield from ask(self, call)))
        return Page(tuple(map(self._recorded, document["releases"])), document["before"])

    def __iter__(self: "Releases[Blocking]") -> Iterator[RecordedRelease[Blocking]]:
        return self.list()

    def __aiter__(self: "Releases[Awaiting]") -> AsyncIterator[RecordedRelease[Awaiting]]:
        return self.list()

    @operation
    def load(self, key: str) -> Operation[Release]:
        """A release that the service made, as the call that made it got it."""
        answer = yield from ask(self, json_call("GET", f"/releases/{part('key', key)}/answer", accept=ARROW))
        return release_of(answer)

    @operation
    def answer(self, key: str, format: AnswerFormat = "arrow") -> Operation[memoryview]:  # noqa: A002
        """The bytes of an answer in a format. A long answer is a map of a file."""
        call = json_call("GET", f"/releases/{part('key', key)}/answer", accept=_ANSWERS[format])
        return memoryview((yield from ask(self, call)).content)

    @operation
    def certificate(self, key: str) -> Operation[Certificate]:
        """The certificate of a release, with the record of the ledger."""
        answer = yield from ask(self, json_call("GET", f"/releases/{part('key', key)}/certificate"))
        return Certificate(json_of(answer))

    @operation
    def certificate_text(self, key: str, format: CertificateFormat = "json") -> Operation[str]:  # noqa: A002
        """The certificate as JSON, as YAML for the registry of deployments, or as a page to print."""
        call = json_call("GET", f"/releases/{part('key', key)}/certificate", accept=_CERTIFICATES[format])
        return bytes((yield from ask(self, call)).content).decode()

    @operation
    def open(
        self, mechanism: AnyMechanism, *, budget: str, once: str, **options: Unpack[ReleaseOptions]
    ) -> Operation[Opened]:
        """Open a release that another engine makes: it is charged once, and every call gets the same seed.

        Who has the seed can remove the noise. Keep it as secret as the raw data, and never log it.
        """
        body = {"mechanism": mechanism_json(mechanism), "budget": budget} | stated(mechanism, options)
        answer = yield from ask(self, json_call("POST", "/releases", body, once=once), _NAMES)
        document = json_of(answer)
        seed = document.pop("seed", None)
        plain = None if seed is None else base64.b64decode(seed)
        return parsed(Opened, document | {"seed": plain, "is_replayed": answer.is_replayed})

    @operation
    def commit(self, key: str, digest: str, rows: int | None = None) -> Operation[RecordedRelease[M]]:
        """Record the SHA-256 of what another engine has published. This erases the seed for ever."""
        body: Json = {"digest": digest} | ({} if rows is None else {"rows": rows})
        call = json_call("POST", f"/releases/{part('key', key)}/commit", body, is_safe=True)
        answer = yield from ask(self, call, _NAMES)
        return self._recorded(json_of(answer))

    @operation
    def verify(self, certificate: Mapping[str, Any]) -> Operation[Verified]:
        """Whether this ledger made a certificate, and for which bytes."""
        body = certificate.to_dict() if isinstance(certificate, Certificate) else dict(certificate)
        answer = yield from ask(self, json_call("POST", "/releases/verify", body, is_safe=True), _NAMES)
        return parsed(Verified, json_of(answer))

    def _recorded(self, document: Mapping[str, Any]) -> RecordedRelease[M]:
        return parsed(RecordedRelease, {**document, "stored": document["answer"], "_releases": self})
