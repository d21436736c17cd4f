"""Who keeps the seed of a publication with a survey, and what was drawn from it, until the publication is done.

    without a service     a folder next to the output, of its owner alone: .private.parquet.survey/
        seed.json             the salt and the seed: written once, before an event is read
        survey.json           the digest of the survey, and the certificate: written once, before the second stage
    with a service        the service keeps both; the folder has only the rows between their draw and their commit

A run that starts again gets the same seed, and so the same survey, bounds and rows. If the events are others, the
digest of the survey differs, and the run stops. The folder goes when the output is whole.
"""

import base64
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gsh.certificate import Certificate
from gsh.documents import object_in
from gsh.errors import InvalidParameter
from gsh.events.lots import new_salt, salt_of_release
from gsh.events.own_files import check_own, write_own
from gsh.events.surveys.surveying import Decided, Surveying
from gsh.events.terms import Payer, check_plan, plan_digest_of, provenance_of
from gsh.results.budget_use import BudgetUse

__all__ = [
    "SEED_BYTES",
    "Begun",
    "Keeper",
    "KeptByService",
    "KeptHere",
    "Nowhere",
    "begun_salt",
    "folder_of",
    "other_events",
]

SEED_BYTES = 32
_SEED, _SURVEY = "seed.json", "survey.json"


@dataclass(frozen=True, slots=True)
class Begun:
    """A publication that has begun."""

    seed: bytes | None = field(repr=False)
    certificate: Certificate | None = None
    """If the survey was recorded before: what was certified then."""
    committed: str | None = None
    """The digest of the committed rows. Then there is no seed any more."""
    budget_use: BudgetUse | None = None


class Keeper(Protocol):
    """Keeps what must be the same whenever a job runs again."""

    def salt(self) -> str:
        """That of the run which has begun, or a new one."""

    @property
    def has_begun(self) -> bool:
        """Whether an earlier run has begun, so that its output may be there."""

    def begin(self, surveying: Surveying) -> Begun:
        """The seed. With a service the budget is charged here, once."""

    def record(self, decided: Decided) -> Certificate:
        """Record what the survey decided, before anything else is drawn. Another survey than the first is refused."""

    def commit(self, digest: str, rows: int, contents: Mapping[str, Mapping[str, Any]]) -> None:
        """Record the rows before anybody sees them."""

    def done(self) -> None:
        """The output is whole."""


Certify = Callable[[Decided], Certificate]


class KeptByService:
    """The service charges the budget once, keeps seed and chosen bounds, and erases the seed with the commit."""

    def __init__(self, payer: Payer, folder: Path, engine: str, unprotected: Sequence[str] | None) -> None:
        self._payer, self._engine, self.folder = payer, engine, folder
        self._unprotected = unprotected

    @property
    def has_begun(self) -> bool:
        return self._payer.earlier() is not None

    def salt(self) -> str:
        return salt_of_release(self._payer.budget, self._payer.once)

    def begin(self, surveying: Surveying) -> Begun:
        opened = self._payer.service.releases.open(
            surveying.terms.released,
            **self._payer.paid,
            unprotected=self._unprotected,
            provenance=provenance_of(self._engine, surveying.plan, surveying.digest),
            epsilon=surveying.terms.stated.get("epsilon"),
            survey=surveying.statement,
        )
        said = opened.certificate
        record, said = said.record, said.recorded(None)
        if list(said.unprotected or ()) != list(self._unprotected or ()):
            detail = "must be a new name: the release that has it was made with another unprotected"
            raise InvalidParameter("once", detail)
        if said.survey.get("digest") is None:
            check_plan(plan_digest_of(said), surveying)
            return Begun(opened.seed, budget_use=opened.budget_use)
        committed = None if record is None else record.committed_digest
        return Begun(opened.seed, said, committed, opened.budget_use)

    def record(self, decided: Decided) -> Certificate:
        from gsh.client.errors import AlreadySurveyed  # noqa: PLC0415 - only with a service

        assert decided.statement.digest is not None
        try:
            said = self._payer.service.releases.survey(
                self._payer.once,
                decided.terms.released,
                digest=decided.statement.digest,
                chosen=decided.statement.chosen,
                provenance=provenance_of(self._engine, decided.plan),
            )
        except AlreadySurveyed:
            raise other_events(self.folder) from None
        return said.recorded(None)

    def commit(self, digest: str, rows: int, contents: Mapping[str, Mapping[str, Any]]) -> None:
        self._payer.commit(digest, rows, contents)

    def done(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class Nowhere:
    """For a result that no file keeps: a job that is killed has published nothing."""

    def __init__(self, certify: Certify) -> None:
        self._certify = certify

    has_begun = False

    def salt(self) -> str:
        return new_salt()

    def begin(self, surveying: Surveying) -> Begun:  # noqa: ARG002
        return Begun(secrets.token_bytes(SEED_BYTES))

    def record(self, decided: Decided) -> Certificate:
        return self._certify(decided)

    def commit(self, digest: str, rows: int, contents: Mapping[str, Mapping[str, Any]]) -> None:
        """Nothing keeps count."""

    def done(self) -> None:
        """Nothing was kept."""


class KeptHere:
    """A folder next to the output, without a service. Nothing keeps count, and the certificate says so."""

    def __init__(self, to: str | os.PathLike[str], certify: Certify) -> None:
        self._to, self._folder, self._certify = to, folder_of(to), certify
        self._seed, self._survey = f"{self._folder}/{_SEED}", f"{self._folder}/{_SURVEY}"

    @property
    def has_begun(self) -> bool:
        return self._read(self._seed) is not None

    def salt(self) -> str:
        return begun_salt(self._to) or new_salt()

    def begin(self, surveying: Surveying) -> Begun:
        seed = base64.b64encode(secrets.token_bytes(SEED_BYTES)).decode()
        begun = {"salt": surveying.plan.salt, "asked": surveying.digest, "seed": seed}
        found = self._read(self._seed)
        if found is None:
            write_own(str(self._folder), self._seed, begun)
            found = self._read(self._seed)
        if found is None or found["asked"] != surveying.digest:
            detail = f"a run with other parameters has begun here; to give it up, remove {self._folder}"
            raise InvalidParameter("to", f"must be another place: {detail}")
        recorded = self._read(self._survey)
        known = None if recorded is None else Certificate.from_json(recorded["certificate"])
        return Begun(base64.b64decode(found["seed"]), known)

    def record(self, decided: Decided) -> Certificate:
        said = {"digest": decided.statement.digest, "certificate": self._certify(decided).to_dict()}
        if self._read(self._survey) is None:
            write_own(str(self._folder), self._survey, said)
        found = self._read(self._survey)
        if found is None or found["digest"] != decided.statement.digest:
            raise other_events(self._folder)
        return Certificate.from_json(found["certificate"])

    def commit(self, digest: str, rows: int, contents: Mapping[str, Mapping[str, Any]]) -> None:
        """The rows follow from the seed, which stays until the output is whole."""

    def done(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, path: str) -> Mapping[str, Any] | None:
        return _own(self._folder, path)


def begun_salt(to: str | os.PathLike[str]) -> str | None:
    """The salt of a run that has begun at an output, without a service."""
    folder = folder_of(to)
    found = _own(folder, f"{folder}/{_SEED}")
    return None if found is None else str(found["salt"])


def _own(folder: Path, path: str) -> Mapping[str, Any] | None:
    check_own(str(folder), path)
    try:
        return object_in(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise InvalidParameter("to", f"must not be changed during a run: {path} is damaged") from None


def folder_of(to: str | os.PathLike[str], name: str = "") -> Path:
    """The hidden folder next to an output."""
    path = Path(to).absolute()
    return path.with_name(f".{path.name[:200]}{name}.survey")


def other_events(folder: Path) -> InvalidParameter:
    detail = f"must be the events of the earlier run: its survey differs; to give it up, remove {folder}"
    return InvalidParameter("events", detail)
