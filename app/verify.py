"""gsh ledger verify: check the histories of all budgets, the access keys and the history of access.
``python -m app.verify`` is the same.

With a file of heads or of checkpoints it also looks for every head that was noted there, so it finds a ledger that is
set back or rewritten. The ledger is only read. A missing ledger is an error: a new one would verify, and hide that the
old one is lost.

``gsh --help`` loads this module, so it loads the ledger only when the command runs.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from gsh.cli import run
from gsh.cli.output import AsJson, line, note, show

if TYPE_CHECKING:
    from app.ledger.auditing.heads import Note
    from app.ledger.state import Budget
    from app.ledger.store import Ledger

__all__ = ["main", "verify"]

Json: TypeAlias = dict[str, Any]


def verify(
    heads: Annotated[
        Path | None,
        typer.Option(
            "--heads", metavar="FILE", help="Every head in this file, and in its checkpoints, must still be there."
        ),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys",
            metavar="FILE|URL",
            help="The public keys that sign checkpoints, from elsewhere; else those that the ledger lists.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check the histories of all budgets, the access keys and the history of access, of the ledger GSH_LEDGER."""
    from app.ledger.errors import LedgerUnavailable, reason_of
    from app.ledger.opening import open_existing
    from app.settings import settings_or_exit

    settings = settings_or_exit()
    try:
        with closing(open_existing(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            found = _verified(ledger) | {"notes": None if heads is None else _verified_heads(ledger, heads, keys)}
    except LedgerUnavailable as error:
        note(f"The ledger cannot be verified: {error}")
        return 2
    except OSError as error:
        note(f"The file of heads cannot be read: {reason_of(error)}")
        return 2
    if as_json:
        show(found, as_json=True)
    else:
        for each in _lines(found):
            line(each)
    parts = (*found["budgets"], found["access_keys"], found["access_history"])
    return 1 if any(part["fault"] for part in parts) or (found["notes"] or {}).get("faults") else 0


def _verified(ledger: "Ledger") -> Json:
    """Each budget, the access keys and their history: what is wrong, or null, and a hash to note elsewhere."""
    budgets = []
    for name in ledger.names():
        budget, fault = ledger.verify(name)
        text = fault and f"{f'entry {fault.number}' if fault.number else 'the budget'} {fault.detail}"
        promise = _promise(budget)
        budgets.append(
            {"budget": name, "fault": text, "promise": promise, "entries": budget.entries, "head": budget.head}
        )
    audit = ledger.keys.verify()
    keys = audit.keys
    faults = [f"{name or 'the list'} {detail}" for name, detail in sorted(keys.faults.items())]
    access_keys = {"fault": ", ".join(faults) or None, "number": len(keys.every), "seal": keys.seal}
    entries, head = audit.head or (0, "")
    text = audit.fault and f"{f'entry {audit.fault.number}' if audit.fault.number else 'it'} {audit.fault.detail}"
    return {
        "budgets": budgets,
        "access_keys": access_keys,
        "access_history": {"fault": text, "entries": entries, "head": head},
    }


def _lines(found: Json) -> list[str]:
    """A line for each budget, one for the access keys, and the sums."""
    budgets, keys, notes = found["budgets"], found["access_keys"], found["notes"]
    lines = []
    for budget in budgets:
        state = f"FAULT: {budget['fault']}" if budget["fault"] else "".join(["intact", budget["promise"] or ""])
        lines.append(f"{budget['budget']}: {state}; {budget['entries']} entries; head {budget['head']}")
    state = f"FAULT: {keys['fault']}" if keys["fault"] else "intact"
    lines.append(f"access keys: {state}; {keys['number']} access keys; seal {keys['seal'] or 'none'}")
    history = found["access_history"]
    state = f"FAULT: {history['fault']}" if history["fault"] else "intact"
    lines.append(f"access history: {state}; {history['entries']} entries; head {history['head'] or 'none'}")
    entries, faults = sum(each["entries"] for each in budgets), sum(each["fault"] is not None for each in budgets)
    lines.append(f"Checked budgets: {len(budgets)}; entries: {entries}; budgets at fault: {faults}")
    if notes is not None:
        lines += [f"noted heads: FAULT: {fault}" for fault in notes["faults"]]
        lines.append(f"Checked notes of heads: {notes['checked']}; faults: {len(notes['faults'])}")
    return lines


def _verified_heads(ledger: "Ledger", file: Path, keys_from: str | None) -> Json:
    """The noted heads that are not in their history any more, and checkpoints that do not follow on each other."""
    from app.ledger.auditing.heads import ACCESS_KEYS

    checked, faults = 0, []
    seals: dict[str, int] = {}
    most_keys = 0
    for number, noted in _noted(ledger, file, keys_from):
        if isinstance(noted, str):
            faults.append(f"line {number}{noted}")
        elif noted.name == ACCESS_KEYS:
            seals[noted.head.hash] = number
            most_keys = max(most_keys, noted.head.size)
        elif ledger.heads.hash_at(noted.name, noted.head.size) != noted.head.hash:
            faults.append(f"line {number}: {noted.name} had another entry {noted.head.size} at {noted.at}")
        checked += 1
    keys = ledger.keys.read()
    # Access keys are added, rotated and revoked, but never removed: so no change leads back to an earlier list.
    if keys.seal in seals and seals[keys.seal] < max(seals.values()):
        faults.append(f"line {max(seals.values())}: the access keys are again as they were at line {seals[keys.seal]}")
    elif len(keys.every) < most_keys:
        faults.append(f"there were {most_keys} access keys, and now there are {len(keys.every)}")
    return {"checked": checked, "faults": faults}


def _noted(ledger: "Ledger", file: Path, keys_from: str | None) -> "Iterator[tuple[int, Note | str]]":
    """Each note of a file, and each head of its checkpoints, with the number of the line; or what is wrong there."""
    from app.ledger.auditing.checkpoints import Chain, envelope_in
    from app.ledger.auditing.heads import lines_in, note_of
    from app.ledger.signing.listed_keys import key_set
    from gsh.errors import ProofError
    from gsh.proof.key_sources import keys_of

    chain = None
    for number, text in lines_in(file):
        envelope = envelope_in(text)
        if envelope is None:
            yield number, note_of(text) or " cannot be read"
            continue
        if chain is None:
            known = key_set(ledger.signing_keys.read()) if keys_from is None else keys_of(keys_from)
            chain = Chain(known, ledger.checkpoints.last())
        try:
            yield from ((number, note) for note in chain.opened(envelope).notes)
        except ProofError as error:
            yield number, f": {error.pointer} {error.detail}"


def _promise(budget: "Budget") -> str | None:
    """The promised δ, if it is above the limit's: the limit was lowered after a charge, or divided again by 0.1."""
    promise = budget.promise
    if promise is None or promise <= budget.limit.delta:
        return None
    return f", promises delta {promise} at epsilon {budget.limit.epsilon} (the limit has {budget.limit.delta})"


def main(arguments: Sequence[str] | None = None) -> int:
    command = typer.Typer(add_completion=False)
    command.command()(verify)
    return run(command, arguments, "python -m app.verify")


if __name__ == "__main__":
    sys.exit(main())
