"""A certificate as a draft entry of the OpenDP deployments registry (registry.opendp.org).

The entry has the shape of the registry's schema of autumn 2026. What only people know is marked ``TO FILL IN``. It is
written in the part of YAML that it needs. Strings are quoted and on one line, so that no text can be read as something
else: not as a number, a date or a key.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from app.releases.certificates.words import (
    change_of,
    enforced,
    few_up,
    first_bounds,
    promised,
    promises,
    quoted_point,
    unit_of,
)
from gsh.certificate import Certificate
from gsh.certificate_words import digits
from gsh.documents import Document

__all__ = ["Noted", "registry_yaml", "to_yaml"]

_BLANK = "TO FILL IN"
_HEAD = f"# A draft made from a certificate. Search for «{_BLANK}»: only people know what belongs there.\n"
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~$])")


_INDENT = "  "
_KEY = re.compile("(?!(?:null|true|false|yes|no|on|off)$)[a-z_]+")  # readers take these words for values
# YAML readers refuse other characters, or take them for the end of a line.
_NOT_PLAIN = re.compile('["\\\\]|[^ -~\u00a1-\u2027\u2030-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]')


class Noted(NamedTuple):
    """A text with a comment for the person who edits it."""

    text: str
    comment: str


Value: TypeAlias = str | int | float | Noted | Mapping[str, "Value"] | Sequence["Value"]


def registry_yaml(certificate: Certificate) -> str:
    """The entry as a file."""
    return _HEAD + to_yaml(
        {
            "url_slug": f"to-fill-in-{certificate.release_id}",
            "status": "Draft",
            "tier": 3,
            "deployment": {
                "basic": _basic(certificate),
                "dp_variant": _dp_variant(certificate),
                "privacy_loss": _privacy_loss(certificate),
                "deployment_model": _deployment_model(certificate),
                "accounting": _accounting(certificate),
                "implementation": _implementation(certificate),
                "administrative": {
                    "sources": _blank("links to the data product, and to what describes it", _identity(certificate)),
                    "registry_authors": [_blank("who completes this entry")],
                },
            },
        }
    )


def _basic(certificate: Certificate) -> Value:
    return {
        "name": _blank("the name of the data product"),
        "data_curators": [
            {
                "data_curator_name": _blank("the organisation that publishes it"),
                "data_curator_type": _choice("Industry", "Government", "Nonprofit"),
            }
        ],
        "description": _blank("what the table shows, about whom, and of which time", _of_which(certificate)),
        "intended_use": _said(certificate, "purpose") or _blank("what it is for"),
        "data_product_type": "Summary statistics",
        "data_product_region": _blank("the region that it describes, or whose laws apply"),
        "data_product_sector": _choice("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
        "publication_date": Noted(
            certificate.released_at.partition("T")[0], f"{_BLANK}: this is the day on which the release was made"
        ),
    }


def _dp_variant(certificate: Certificate) -> Value:
    if certificate.unprotected is None:
        said = _blank("what was chosen by looking at the data", "Nobody has said it")
    else:
        declared = "; ".join(map(_plain, certificate.unprotected)) or "nothing"
        said = f"The caller declares to have chosen by looking at the data: {declared}."
    return {
        "variant_name": "Approximate DP",
        "data_domain": _blank(
            "which records are eligible",
            f"A table has one row per group, made of the records of each {_unit(certificate)}",
        ),
        "unprotected_quantities": said,
    }


def _privacy_loss(certificate: Certificate) -> Value:
    point = quoted_point(certificate)
    changes = " ".join(_per_table(certificate, lambda table: _bounded(table.bounds)))
    return {
        "privacy_unit": _unit(certificate),
        "privacy_unit_details": f"Adjacent tables: {certificate.adjacency}, which here is one {_unit(certificate)}. "
        f"{changes} These bounds are enforced by {enforced(first_bounds(certificate))}.",
        "privacy_parameters": {"epsilon": point.epsilon, "delta": point.delta},
        "privacy_parameters_details": f"This is one point of the certified curve. {certificate.curve} "
        f"Here μ = {certificate.mu} and δ_infinite = {certificate.delta_infinite}, both rounded up.",
    }


def _deployment_model(certificate: Certificate) -> Value:
    return {
        "model_name": "Central",
        "model_name_details": certificate.trust_model,
        "actors": _blank("who prepares the table, who runs the service, and who reads the release"),
        "release_type": _choice("One release", "Many releases"),
        "release_type_details": certificate.release_type,
        "data_source_type": _choice("Static", "Dynamic"),
        "access_type": "Non-interactive",
        "access_type_details": "Readers get the released table. They cannot send queries.",
    }


def _accounting(certificate: Certificate) -> Value:
    paid = certificate.budget
    is_drawn_elsewhere = any(table.grid is None for table in certificate.described.values())
    if paid is None:
        composition = "This is the cost of one release. Nothing keeps count of other releases about the same units."
    else:
        composition = (
            f"The budget {_plain(paid.id)} {promises(paid)} ε = {digits(promised(paid).epsilon)} and δ ≤ "
            f"{few_up(promised(paid).delta)} for all its releases together. This one adds μ² = "
            f"{digits(certificate.mu_squared)} and −C_u ln p = {digits(certificate.hazard)} to two sums, from which "
            "the total follows."
        )
        composition += "".join(
            f" It was also charged to {_plain(each.id)}, which promises ε = {digits(promised(each).epsilon)} and δ ≤ "
            f"{few_up(promised(each).delta)} for one {_plain(unit_of(each))}."
            for each in paid.get("ancestors") or ()
        )
    return {
        "post_processing": _blank("what the caller's engine does after it adds the noise")
        if is_drawn_elsewhere
        else "Released numbers are rounded to a grid that depends on the noise alone; rows are sorted by key.",
        "composition": composition,
    }


def _implementation(certificate: Certificate) -> Value:
    return {
        "preprocessing_and_hyperparameter_tuning": _blank(
            "how the bounds, the thresholds and the noise were chosen",
            f"Bounds are enforced by {enforced(first_bounds(certificate))}",
        ),
        "mechanisms": f"{' '.join(_per_table(certificate, _steps))} {certificate.noise} Certified with "
        f"gaussian-sparse-histogram {certificate.service_version}, Python {certificate.python} and FLINT "
        f"{certificate.flint}: all numbers are computed in ball arithmetic and rounded up.",
        "justification": _blank("why these choices were made, and who decided", _approved(certificate)),
    }


def _per_table(certificate: Certificate, sentences: Callable[[Document], str]) -> Iterator[str]:
    """The sentences about each table. Tables with a name are named."""
    for name, table in certificate.described.items():
        yield f"Table {_plain(name)}: {sentences(table)}" if name else sentences(table)


def _bounded(bounds: Document) -> str:
    return f"One unit is in at most C_u = {bounds.c_u} groups. {_plain(change_of(bounds))}"


def _steps(table: Document) -> str:
    mechanism = table.mechanism
    noise = f"The counts get Gaussian noise with the standard deviation σ = {digits(mechanism.sigma)}."
    if mechanism.get("aggregates") is not None:
        noise += " Further columns get Gaussian noise too."
    if "rounded" in table:
        noise += " Published numbers are then rounded, counts to integers."
    if "tau_star" not in mechanism:
        return f"The Gaussian mechanism on public groups. {noise} {table.tie_rule}"
    return (
        f"The Gaussian sparse histogram mechanism. Groups with fewer than τ = {mechanism.tau} units are dropped. "
        f"{noise} Groups whose noisy count is below τ* = {digits(mechanism.tau_star)} are dropped. "
        f"{table.tie_rule}"
    )


def _identity(certificate: Certificate) -> str:
    record = certificate.record
    entry = "" if record is None else f", entry {record.entry} of its budget, with the hash {record.head}"
    digest = None if record is None else record.answer_sha256 or record.committed_digest
    return f"The release is {certificate.release_id}{entry}" + (
        "" if digest is None else f"; its output has the SHA-256 {digest}"
    )


def _unit(certificate: Certificate) -> str:
    return _plain(certificate.unit)


def _said(certificate: Certificate, name: str) -> str:
    """What people said of a release; empty if nothing."""
    return _plain((certificate.get("about") or {}).get(name, ""))


def _of_which(certificate: Certificate) -> str:
    return ", ".join(filter(None, [_said(certificate, "source"), _said(certificate, "data_period")]))


def _approved(certificate: Certificate) -> str:
    approver = _said(certificate, "approver")
    return f"Approved by {approver}" if approver else ""


def _blank(what: str, known: str = "") -> str:
    return f"{known}. {_BLANK}: {what}" if known else f"{_BLANK}: {what}"


def _choice(chosen: str, *others: str) -> Noted:
    """A valid value where people must decide."""
    return Noted(chosen, f"{_BLANK}: or {', '.join(others)}")


def _plain(text: str) -> str:
    """A text of the caller on one line, without Markdown or HTML: the registry shows texts as Markdown."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def to_yaml(value: Value) -> str:
    """A block of YAML that every reader reads as this value."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Value) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            if not _KEY.fullmatch(name):
                raise ValueError("a key is a name of small letters and underscores")
            if _is_scalar(each):
                yield f"{name}: {_scalar(each)}"
            else:
                yield f"{name}:"
                yield from (_INDENT + line for line in _lines(each))
    elif isinstance(value, Sequence) and not _is_scalar(value):
        for each in value:
            first, *rest = _lines(each)
            yield f"- {first}"
            yield from (_INDENT + line for line in rest)
    else:
        yield _scalar(value)


def _is_scalar(value: Value) -> bool:
    return isinstance(value, str | int | float | Noted)


def _scalar(value: Value) -> str:
    match value:
        case Noted(text, comment):
            return f"{_quoted(text)}  # {comment}"
        case str():
            return _quoted(value)
        case float():
            return _number(value)
        case _:
            return str(value)


def _number(value: float) -> str:
    """All digits. Readers of YAML 1.1 take 1e-05 for a text, and 1.0e-05 for a number."""
    mantissa, e, exponent = repr(value).partition("e")
    return repr(value) if not e or "." in mantissa else f"{mantissa}.0e{exponent}"


def _quoted(text: str) -> str:
    return f'"{_NOT_PLAIN.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return f"\\{character}" if character in {'"', "\\"} else f"\\U{ord(character):08X}"
