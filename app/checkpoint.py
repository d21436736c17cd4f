"""gsh ledger checkpoint: sign all heads of the ledger now, to note them in another place.

``gsh --help`` loads this module, so it loads the ledger only when the command runs.
"""

from contextlib import closing

from gsh.cli.output import line, note

__all__ = ["checkpoint"]


def checkpoint() -> int:
    """Print all heads of the ledger GSH_LEDGER as a signed checkpoint, on one line of JSON.

    Append it to a file in another place. gsh ledger verify --heads FILE then finds a ledger that is set back or
    rewritten since. It follows on the one before, whoever has asked for that.
    """
    from app.ledger.clock import now
    from app.ledger.errors import LedgerUnavailable
    from app.ledger.opening import open_existing
    from app.ledger.signing.signer import KeyPlace, KeyRing
    from app.settings import settings_or_exit

    settings = settings_or_exit()
    try:
        with closing(open_existing(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            ring = KeyRing(KeyPlace(settings.ledger, settings.signing_key_file))
            ring.load(ledger)
            made = ledger.checkpoints.make(now(), ring.sealed)
    except LedgerUnavailable as error:
        note(f"The ledger cannot be signed: {error}")
        return 2
    if made is None:
        note("There is nothing to sign: the ledger is empty, or it has no signing key (GSH_SIGNING_KEY_FILE).")
        return 1
    line(made)
    return 0
