"""GET /budgets/{id}/bundle: everything that an auditor needs of a budget, in one archive.

    index.html                       what is in it, to read and to print
    heads.json                       the head of each history, to compare with copies elsewhere
    verification.json                whether each history is as it was recorded
    budgets/<budget>.json            limit, spent, remaining, promise
    histories/<budget>.json          all entries, the first one first
    certificates/<release>.json      the certificate of each release

It has the budget, its periods, ancestors and descendants, as far as the access key may see them. The same ledger gives
the same bytes: nothing in the archive says when it was made.
"""

import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from app.budgets.budget_route import BUDGET_NOT_FOUND, READS, BudgetInPath
from app.budgets.budgets import entry_shown, summary_of
from app.budgets.schemas.budgets import BudgetSummary
from app.http.auth import access_of
from app.http.headers import content_disposition
from app.http.json_route import DeclaredRoute
from app.http.problems import ACCESS_PROBLEMS, READ_PROBLEMS
from app.http.services import services_of
from app.ledger.lineage import Lineage, ancestors_among
from app.ledger.state import Budget, HistoryFault
from app.ledger.store import Ledger
from app.releases.answer_formats import DIGEST_HEADER, streamed
from app.releases.recorded import certificate_of
from app.releases.spool import SharedFile, spool
from gsh.histogram.file_formats import ZIP

__all__ = ["router"]

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TIME = (1980, 1, 1, 0, 0, 0)
_PAGE = 1000
_Json = dict[str, Any]

router = APIRouter(
    prefix="/budgets", tags=["budgets"], responses=READ_PROBLEMS | ACCESS_PROBLEMS, route_class=DeclaredRoute
)


@router.get(
    "/{id}/bundle",
    operation_id="budgetBundle",
    summary="Everything for an auditor, in one archive",
    dependencies=READS,
    response_class=StreamingResponse,
    responses=BUDGET_NOT_FOUND
    | {200: {"description": "A zip archive.", "content": {ZIP: _BINARY}, "headers": DIGEST_HEADER}},
)
async def budget_bundle(
    request: Request,
    id: BudgetInPath,  # noqa: A002
) -> StreamingResponse:
    """Histories, certificates, verification and heads of the budget, its periods, ancestors and descendants.

    Open `index.html` first. The same ledger gives the same bytes.
    """
    access, services, held = access_of(request.scope), services_of(request), ExitStack()
    held.enter_context(services.downloads.taken())
    archive = spool()
    try:
        await services.ledger_pool.audit(lambda ledger: _write(archive, ledger, id, access.may_see))
        return await streamed(archive, ZIP, content_disposition(f"{id}-bundle", "zip"), held)
    except BaseException:
        held.close()
        await archive.close()
        raise


class _Part(NamedTuple):
    """One budget of an archive."""

    lineage: Lineage
    fault: HistoryFault | None
    entries: list[_Json]
    certificates: list[tuple[str, _Json]]

    @property
    def budget(self) -> Budget:
        return self.lineage[0]

    @property
    def state(self) -> str:
        return "intact" if self.fault is None else f"FAULT: entry {self.fault.number} {self.fault.detail}"


def _write(archive: SharedFile, ledger: Ledger, name: str, may_see: Callable[[str], bool]) -> None:
    """In a thread: one budget after the other, so that only one is in memory."""
    budgets = {budget.id: budget for budget in ledger.budgets()}
    ledger.standing(name)  # an error if there is none
    heads, verified, index = {}, {}, []
    with zipfile.ZipFile(archive.file, "w", zipfile.ZIP_DEFLATED) as target:
        for each in sorted(filter(may_see, _family(name, budgets))):
            part = _part(ledger, each, budgets)
            budget = part.budget
            summary = json.loads(BudgetSummary(**summary_of(part.lineage)).model_dump_json())
            _add(target, f"budgets/{each}.json", summary)
            _add(target, f"histories/{each}.json", {"budget": each, "entries": part.entries})
            for key, certificate in part.certificates:
                _add(target, _file_of(key), certificate)
            heads[each] = {"entries": budget.entries, "head": budget.head}
            verified[each] = {"intact": part.fault is None, "fault": None if part.fault is None else part.state}
            index.append(_section(part, summary))
        _add(target, "heads.json", heads)
        _add(target, "verification.json", verified)
        _add_text(target, "index.html", _index(name, index))


def _family(name: str, budgets: dict[str, Budget]) -> Iterator[str]:
    """The budget, its periods, its ancestors and its descendants with their periods."""
    yield from (each.id for each in ancestors_among(budgets[name], budgets.get))
    for each in budgets.values():
        above = [each, *ancestors_among(each, budgets.get)]
        if name in {part for one in above for part in (one.id, one.period_of)}:
            yield each.id


def _part(ledger: Ledger, name: str, budgets: dict[str, Budget]) -> _Part:
    budget, fault = ledger.verify(name)
    entries, before = [], budget.entries + 1
    while before > 1:
        page = ledger.history(name, before, _PAGE)
        entries += [json.loads(entry_shown(each).model_dump_json()) for each in page]
        before = page[-1].number if page else 1
    certificates = []
    for entry in reversed(entries):
        key = entry["details"].get("idempotency_key") if entry["kind"] == "charge" else None
        release = None if key is None else ledger.release(key)
        if release is not None and release.notes.certificate:
            certificates.append((release.key, certificate_of(release).to_dict()))
    return _Part((budget, *ancestors_among(budget, budgets.get)), fault, entries[::-1], certificates)


def _file_of(release: str) -> str:
    return f"certificates/{quote(release, safe='')}.json"


def _add(target: zipfile.ZipFile, name: str, document: _Json) -> None:
    _add_text(target, name, json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


def _add_text(target: zipfile.ZipFile, name: str, text: str) -> None:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
    target.writestr(entry, text)


_STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #999; padding: .2rem .5rem; text-align: left; vertical-align: top }
td, code { overflow-wrap: anywhere }
@media print { body { max-width: none; margin: 0 } tr { break-inside: avoid } a { color: inherit } }
"""


def _index(name: str, sections: list[str]) -> str:
    title = f"Audit bundle of the budget {escape(name)}"
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n<style>{_STYLE}</style>\n'
        f"<h1>{title}</h1>\n"
        "<p>Each history is a chain: the hash of an entry covers the entry and the hash before it. Compare the heads "
        'in <a href="heads.json">heads.json</a> with copies that were noted elsewhere. '
        '<a href="verification.json">verification.json</a> says whether each history is as it was recorded, its sums '
        "add up, and its answers are those that were paid for.</p>\n" + "\n".join(sections) + "\n</html>\n"
    )


def _section(part: _Part, summary: _Json) -> str:
    budget = part.budget
    limit, spent, promise = summary["limit"], summary["spent"], summary["promise"]
    facts = [
        ("Description", budget.description),
        ("Protects", budget.privacy_unit if budget.period is None else f"{budget.privacy_unit} in one {budget.period}"),
        ("Limit", f"ε {limit['epsilon']}, δ {limit['delta']}"),
        ("Spent", f"{spent['releases']} releases: ε {spent['epsilon']}, δ {spent['delta']}"),
        ("Promise", "none yet" if promise is None else f"ε {promise['epsilon']}, δ {promise['delta']}"),
        ("Parent", budget.parent or "none"),
        ("Needs approval", summary["approval"]),
        ("History", f"{part.state}; {budget.entries} entries; head {budget.head}"),
    ]
    shown = "".join(f"<tr><th>{name}</th><td>{escape(value)}</td></tr>\n" for name, value in facts)
    known = {key for key, _ in part.certificates}
    rows = "".join(_row(entry, known) for entry in part.entries)
    head = "<tr><th>Entry</th><th>Time</th><th>What</th><th>Details</th><th>Hash</th></tr>\n"
    return f"<h2>{escape(budget.id)}</h2>\n<table>\n{shown}</table>\n<table>\n{head}{rows}</table>"


def _row(entry: _Json, known: set[str]) -> str:
    details = entry["details"]
    key = details.get("idempotency_key")
    cells = [str(entry["number"]), entry["at"], entry["kind"]]
    text = escape(json.dumps(details, ensure_ascii=False, sort_keys=True))
    link = f'<a href="{escape(quote(_file_of(key)))}">certificate</a> ' if key in known else ""
    shown = "".join(f"<td>{escape(each)}</td>" for each in cells)
    return f"<tr>{shown}<td>{link}{text}</td><td><code>{escape(entry['hash'])}</code></td></tr>\n"
