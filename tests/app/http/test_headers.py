"""Content negotiation: the same rule for every answer that has more than one form."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from app.http.headers import preferred

JSON, YAML, HTML, CSV = OFFERED = ("application/json", "application/yaml", "text/html", "text/csv")
RANGES = (*OFFERED, "application/*", "text/*", "image/*", "*/*", "image/png", "", "text")
WEIGHTS = st.one_of(st.none(), st.integers(0, 1000).map(lambda thousandths: thousandths / 1000))
# Every range at most once: of two weights for one range, the higher counts.
ACCEPTS = st.lists(st.tuples(st.sampled_from(RANGES), WEIGHTS), min_size=1, unique_by=lambda each: each[0])
OFFERS = st.lists(st.sampled_from(OFFERED), min_size=1, unique=True)


def asked(*accept: str) -> Request:
    return Request({"type": "http", "headers": [(b"accept", each.encode("latin-1")) for each in accept]})


def written(accept: list[tuple[str, float | None]]) -> str:
    return ", ".join(each if weight is None else f"{each};q={weight}" for each, weight in accept)


def weight_by_the_standard(media_type: str, accept: list[tuple[str, float | None]]) -> float:
    """Among the ranges that match, the one with the fewest stars decides."""
    ranges = {media_type, media_type[: media_type.index("/")] + "/*", "*/*"}
    matching = [(each.count("*"), 1.0 if weight is None else weight) for each, weight in accept if each in ranges]
    return min(matching, default=(0, 0.0))[1]


@settings(derandomize=True, deadline=None)
@given(ACCEPTS, OFFERS)
def test_the_choice_is_the_standards(accept: list[tuple[str, float | None]], offered: list[str]) -> None:
    weights = [weight_by_the_standard(each, accept) for each in offered]
    expected = offered[weights.index(max(weights))] if max(weights) > 0 else None
    if not written(accept).strip():
        expected = offered[0]

    assert preferred(asked(written(accept)), offered) == expected


@settings(derandomize=True, deadline=None)
@given(ACCEPTS, OFFERS, st.randoms(use_true_random=False))
def test_neither_order_nor_letters_nor_spaces_nor_lines_of_accept_matter(
    accept: list[tuple[str, float | None]], offered: list[str], random: object
) -> None:
    shuffled = list(accept)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    lines = [written([each]).upper().replace(";", " ;  ") for each in shuffled]

    assert preferred(asked(*lines), offered) == preferred(asked(written(accept)), offered)


@settings(derandomize=True, deadline=None)
@given(st.text(st.characters(max_codepoint=255)), OFFERS)
def test_any_header_gets_an_offered_type_or_none(accept: str, offered: list[str]) -> None:
    assert preferred(asked(accept), offered) in {*offered, None}


@pytest.mark.parametrize("accept", [(), ("",), ("  ",)])
def test_without_accept_the_first_is_preferred(accept: tuple[str, ...]) -> None:
    assert preferred(asked(*accept), OFFERED) == JSON


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", HTML),
        ("*/*", JSON),
        ("text/*", HTML),
        ("text/csv, text/*;q=0.9", CSV),
        ("text/html;q=0, text/*", CSV),
        ("text/html;q=0, */*;q=0.1", JSON),
        ("application/json; charset=utf-8", JSON),
        ("application/yaml;q=.2", YAML),
        ("application/yaml;q=0.1, application/yaml", YAML),
        ("application/problem+json", None),
        ("image/png, image/*;q=0.5", None),
        ("*/*;q=0", None),
        ("text/html;q=x", None),
        ("text/html;q=nan", None),
        ("text/html;q=2", None),
        ("text/html;q=-1", None),
    ],
)
def test_known_headers(accept: str, expected: str | None) -> None:
    assert preferred(asked(accept), OFFERED) == expected


def test_only_the_first_thousand_characters_are_read() -> None:
    """A range that is cut off does not count: half of it could be another range, or lack its weight."""
    padding = "image/png," * 99

    assert preferred(asked(f"{padding}text/csv"), OFFERED) == CSV
    assert preferred(asked(f"{padding}*/*;q=0.5,text/csv"), OFFERED) == JSON
    assert preferred(asked(f"{padding}*/*       ;q=0"), OFFERED) is None
    assert preferred(asked("text/html;" + 2000 * " "), OFFERED) is None
