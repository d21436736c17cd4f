"""gsh verify: whether files are as they were released, by whom, and whether their certificates are right."""

from typing import TYPE_CHECKING, Annotated

import typer

from gsh.cli.errors import Code, Refusal
from gsh.cli.output import AsJson, line, show

if TYPE_CHECKING:
    from gsh.proof.verification import Verification

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  gsh verify private.parquet --keys gsh-keys.json")
def verify(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            help="Files or folders: Parquet, Arrow, CSV with its certificate next to it, JSON answers, zip archives, "
            "folders of several tables or of Spark.",
        ),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys", metavar="FILE|URL", help="The public keys of the issuer: a file, or the address of its service."
        ),
    ] = None,
    signature: Annotated[
        str | None,
        typer.Option("--signature", metavar="FILE", help="The signed envelope, if it is elsewhere. For one file."),
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option("--certificate", metavar="FILE", help="The certificate, if it is elsewhere. For one file."),
    ] = None,
    bundle: Annotated[
        str | None,
        typer.Option(
            "--bundle",
            metavar="FILE",
            help="The audit bundle of its budget (gsh budgets bundle): the entry must agree.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check signature, rows and every number of released files, without asking a service.

    Exit code 0: all of them are as they were signed. 1: something differs, or nobody has signed it.
    """
    if not files:
        advice = "the check of the histories of a ledger is: gsh ledger verify"
        raise Refusal(Code.INVALID, "FILE: is missing", advice)
    if len(files) > 1 and (signature is not None or certificate is not None):
        raise Refusal(Code.INVALID, "--signature, --certificate: are for one file", "verify the files one by one")
    import gsh  # noqa: PLC0415 - loads numpy

    found = [gsh.verify(file, keys=keys, signature=signature, certificate=certificate, bundle=bundle) for file in files]
    if as_json:
        show([each.to_dict() for each in found], as_json=True)
    else:
        for each in found:
            _show(each)
    return 0 if all(each.is_verified for each in found) else Code.OTHER


def _show(found: "Verification") -> None:
    line(f"{found.file}: {_STATES[found.state]}")
    for fault in found.faults:
        line(f"  {fault}")
    if found.key_id is not None:
        who = " ".join(filter(None, [found.issuer, found.address and f"({found.address})"])) or "a known key"
        line(f"  signed by {who}, key {found.key_id}")
    if not found.has_rows:
        line("  a certificate alone: there are no rows to check")
    said = found.certificate
    if said is None:
        return
    if said.epsilon is not None:
        line(f"  (ε, δ) = ({said.epsilon!r}, {said.delta!r}) for each {said.unit}")
    line(f"  released at {said.released_at}; {_payer(found)}")


def _payer(found: "Verification") -> str:
    assert found.certificate is not None
    budget = found.certificate.budget
    if budget is None:
        return "no budget paid: nothing keeps count of such releases"
    promise = budget.get("promise", budget.get("limit"))
    together = "" if promise is None else f", which promises ({promise.epsilon!r}, {promise.delta!r}) for all of them"
    return f"paid by the budget {budget.id}{together}"


_STATES = {
    "verified": "verified: as it was signed",
    "unsigned": "NOT SIGNED: its parts agree, and nobody vouches for them",
    "refused": "REFUSED: it is not as it was signed",
}
