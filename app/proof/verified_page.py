"""What a check of a file has found, as a page: who signed what, and the certificate in the words of its own page."""

from collections.abc import Iterator
from html import escape

from app.releases.certificates.page import certificate_text
from app.web.pages import VERIFY_PAGE, body_of, html
from gsh.proof.verification import Verification

__all__ = ["verified_page"]

_PLACE = "<!-- what the check has found -->"
_NOT_SAID = (
    "<p>A signature does not say that the bounds hold, that the true table was right, or that no other table was "
    "released. The budget counts the releases that it paid for.</p>"
)


def verified_page(found: Verification) -> str:
    """The page /verify with the result in it."""
    result = "\n".join(_result(found))
    return html(VERIFY_PAGE, body_of(VERIFY_PAGE).replace(_PLACE, f'<article id="certificate">\n{result}\n</article>'))


def _result(found: Verification) -> Iterator[str]:
    name = f"<b>{escape(found.file)}</b>"
    match found.state:
        case "verified":
            what = (
                "is as it was released" if found.has_rows else "is a certificate, as it was signed, without its table"
            )
            yield f'<p class="promise">{name} {what}. {_signer(found)} has signed it.</p>'
            yield _NOT_SAID
        case "unsigned":
            yield f'<p class="caution">Nobody has signed {name}.</p>'
            yield "<p>Its rows, its certificate and the numbers in it agree. But anybody can make such a file.</p>"
        case "refused":
            yield f'<p class="caution">Do not rely on {name}: it is not as it was released.</p>'
            if found.key_id is not None:
                yield f"<p>{_signer(found)} has signed its certificate, but what was signed differs from this file.</p>"
            listed = (f"<li><b>{escape(where)}</b> {escape(detail)}</li>" for where, detail in found.faults)
            yield f'<ul class="differences">{"".join(listed)}</ul>'
            return
    if found.key_id is not None:
        yield f"<p>Key: <code>{escape(found.key_id)}</code></p>"
    if found.certificate is not None:
        yield certificate_text(found.certificate, "")


def _signer(found: Verification) -> str:
    """Who signed, with the address at which the keys are."""
    issuer = escape(found.issuer or "This service")
    return f"<b>{issuer}</b>{f' ({escape(found.address)})' if found.address else ''}"
