"""The page of a certificate: the promise first, every digit, and every text escaped."""

import re
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gsh
from app.releases.certificates.page import PAGE_HEADERS, certificate_page
from app.releases.certificates.words import few_up, quoted_point
from gsh.certificate import Certificate
from gsh.certificate import certificate as certified
from gsh.histogram.meanings import ColumnMeaning, Meaning
from tests.app.client import CASE_STUDY, Client
from tests.app.releases.certificates import SHAPES, TABLES, complete, drafted, drafted_tables, every_certificate

ALLOWED = {"main", "a", "h1", "h2", "p", "b", "i", "sub", "sup", "code", "table", "tbody", "tr", "th", "td"}


class Page(HTMLParser):
    """The main part of a page: its tags, the attributes of the tags, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html[html.index("<main") : html.index("</main>") + len("</main>")])
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in {"p", "th", "td", "h1", "h2"}:
            self.text += "\n"

    def handle_data(self, data: str) -> None:
        self.text += data


def page(certificate: Certificate) -> Page:
    return Page(certificate_page(certificate))


def test_every_certificate_has_a_page_of_plain_tags() -> None:
    """No script and no style in it: the policy would refuse them. One link, to what ε means."""
    for certificate in every_certificate():
        shown = page(certificate)
        assert set(shown.tags) <= ALLOWED
        assert shown.attributes <= {"id", "class", "scope", "tabindex", "href"}
        assert shown.tags.count("a") == 1


def test_a_page_of_several_tables_describes_each_and_one_promise() -> None:
    certificate = drafted_tables(TABLES, epsilon=1)
    text = page(certificate).text

    assert text.count("whatever anyone concludes") == 1
    for name in TABLES:
        assert text.count(f"How the table {name} was made") == 1
    of_url, of_country, of_page = re.split("How the table .* was made", text)[1:]
    assert "τ*140.5" in re.sub(r"\s|Threshold of noisy counts, ", "", of_url)
    assert "The groups are public" not in of_url + of_page
    assert "There is no threshold: the groups are public." in of_country
    assert "Threshold of noisy counts" not in of_country
    assert f"{certificate.delta!r}, rounded up" in text
    assert str(certificate.mu_squared) in text


def test_it_says_what_intervals_cover() -> None:
    """Of each table, with the privacy unit, and a name of a column is no markup."""
    certificate = drafted(SHAPES["box"])
    alone = page(Certificate({**certificate, "privacy_unit": "<b>user</b>", "period": "week"})).text

    assert "Intervals\nIntervals cover the bounded numbers: each <b>user</b>-week in at most 3 groups" in alone
    assert "<u>seconds</u> clipped to -1 … 600" in alone
    assert page(drafted_tables(TABLES)).text.count("Intervals cover the bounded numbers: each user in") == len(TABLES)


def test_it_says_what_columns_mean_and_what_was_rounded() -> None:
    box = gsh.box(lower=[0, -300], upper=[5, 300])
    columns = gsh.Aggregates(names=["likes", "<i>_centred"], covariance=[[4, 0], [0, 9]], sensitivity=box)
    mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20, aggregates=columns)
    meaning = Meaning(
        {"<i>_centred": ColumnMeaning("mean", 1.0, "<i>", 300.0)}, {"each": ("likes", "count")}, (1.0, 1.0, 0.5)
    )
    text = page(certified(mechanism, meanings=meaning)).text

    assert "likes 0 to 5; <i>_centred (<i> less 300, for a mean) -300 to 300." in text
    assert "<i> clipped to 0 … 600." in text
    assert "Rounded to\ncounts 1; likes 1; <i>_centred 0.5" in text
    assert "Ratios\neach = likes / count" in text


def test_a_page_without_a_point_quotes_the_joint_curve() -> None:
    """Not that of one table, and not the sum."""
    tables = {"by_url": gsh.Mechanism(**CASE_STUDY), "by_country": gsh.PlainGaussian(c_u=1, sigma=50)}
    shown = page(drafted_tables({"by_url": CASE_STUDY, "by_country": {"c_u": 1, "sigma": 50}})).text

    assert f"{gsh.exact(tables, epsilon=1).delta!r}, rounded up" in shown


def test_the_promise_comes_first_in_one_sentence() -> None:
    shown = page(drafted(CASE_STUDY, epsilon=0.349)).text.strip().split("\n")
    title, _, promise, *_ = shown

    assert title == "Privacy certificate"
    assert promise == (
        "For any one user, whatever anyone concludes from this release is at most eε times as likely with the records "
        "of that user as without them, and the other way round, up to δ: ε = 0.349 (a factor of about 1.418), "
        "δ ≤ 1.004e-5 (about 1 in 99\u202f600)."
    )


def test_the_promise_has_few_digits_and_the_facts_have_all() -> None:
    certificate = Certificate({**drafted(CASE_STUDY, epsilon=0.349), "delta": 9.999999999999997e-07})
    text = page(certificate).text

    assert "δ ≤ 1e-6 (about 1 in 1\u202f000\u202f000)." in text
    assert "Allowance, δ\n9.999999999999997e-07, rounded up" in text


@pytest.mark.parametrize("text", ["1e-5", "0.001", "1e-6", "0.25"])
def test_few_digits_of_a_limit_are_those_that_a_person_wrote(text: str) -> None:
    """The double of 1e-5 is a little above it: 1.001e-5 would be another limit than the one that was signed."""
    assert few_up(float(text)) == text


@given(st.floats(5e-324, 1))
def test_few_digits_are_rounded_up(number: float) -> None:
    text = few_up(number)

    assert Fraction(repr(number)) <= Fraction(text)
    assert len(re.sub(r"e.*|^0\.0*|\.", "", text)) <= 4
    if number >= 1e-300:  # below, doubles have fewer digits
        assert Fraction(text) <= Fraction(number) * Fraction(1001, 1000)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_number_has_all_its_digits(shape: str) -> None:
    certificate = complete(SHAPES[shape], epsilon=0.5)
    text = page(certificate).text

    numbers = [certificate.delta, certificate.epsilon, certificate.mu, certificate.mu_squared, certificate.hazard]
    for number in [*numbers, certificate.delta_infinite, certificate.mechanism.sigma]:
        assert repr(number).removesuffix(".0") in re.split(r"[\s,;:()]", text)


def test_every_text_of_the_certificate_is_on_the_page() -> None:
    certificate = complete(SHAPES["box"], epsilon=0.5, unprotected=["c_u"])
    text = page(certificate).text
    said = [certificate.adjacency, certificate.tie_rule, certificate.noise, certificate.curve, certificate.trust_model]
    said += [certificate.release_type, certificate.release_id, certificate.bounds.per_group.removesuffix(".")]
    assert certificate.record is not None
    assert certificate.record.answer_sha256 is not None
    said += [certificate.record.head, certificate.record.answer_sha256, "entry 2", "812 bytes of application/json"]

    for each in [*said, "web-2026-46", "user-week", "τ*", "140.5", "likes 0 to 1", "400 10; 10 9000000"]:
        assert each in text, each


def test_what_the_caller_says_is_escaped() -> None:
    evil = "<script>alert('1')</script>&amp;\""
    certificate = drafted(SHAPES["box"], unprotected=[evil]).charged_to(
        budget="web", epsilon=1.0, delta=1e-4, promised_delta=1e-4, privacy_unit=evil, period=None, idempotency_key=evil
    )
    shown = page(certificate)

    assert "script" not in shown.tags
    assert shown.text.count(evil) >= 4  # the unit twice in the promise, the key, and what is unprotected
    assert "<u>seconds</u>" in shown.text
    assert unescape(certificate_page(certificate)).count("<script>alert") > 0


def test_a_release_that_nobody_counts_says_so() -> None:
    assert "Nothing keeps count" in page(drafted(CASE_STUDY)).text
    assert "Nothing keeps count" not in page(complete(CASE_STUDY)).text
    assert "charged to the budget web" in page(complete(CASE_STUDY)).text


def test_a_point_that_nobody_asked_for_is_said_to_be_one() -> None:
    assert "the request asked for none" in page(drafted(CASE_STUDY)).text
    assert "the request asked for none" not in page(drafted(CASE_STUDY, epsilon=1)).text


@pytest.mark.parametrize(
    ("epsilon", "sigma", "absent"), [(1e5, 100, "a factor of about"), (5000, 20, "about 1 in"), (0, 1e-3, "about 1 in")]
)
def test_words_do_not_stand_in_for_extreme_numbers(epsilon: float, sigma: float, absent: str) -> None:
    assert absent not in page(drafted({"c_u": 1, "sigma": sigma}, is_elsewhere=True, epsilon=epsilon)).text


def test_many_columns_are_named_and_their_covariance_is_left_to_the_json() -> None:
    names = [f"column {number}" for number in range(5)]
    box = {"kind": "box", "lower": [0] * 5, "upper": [1] * 5}
    covariance = [[float(row == column) for column in range(5)] for row in range(5)]
    columns = {"names": names, "covariance": covariance, "sensitivity": box}
    text = page(drafted({"c_u": 1, "tau": 1, "tau_star": 50, "sigma": 5, "aggregates": columns})).text

    assert ", ".join(names) in text
    assert "see the JSON form" in text


def test_the_page_finds_its_styles_from_where_it_is_served(client: Client) -> None:
    html = certificate_page(drafted(CASE_STUDY))
    styles = re.findall(r'href="\.\./\.\./(web/[^"]+\.css)"', html)

    assert "web/certificate/certificate.css" in styles
    for style in styles:
        assert client.get(f"/{style}").status_code == 200
    assert re.findall(r'(?:href|src)="(?!\.\./\.\./|#)', html) == []


def test_the_headers_forbid_all_but_this_service() -> None:
    policy = PAGE_HEADERS["Content-Security-Policy"]

    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_the_quoted_delta_is_that_of_the_worst_split() -> None:
    """With caps it may be above the larger one of its two parts. Nobody asked for a point here."""
    capped = {"c_u": 16, "tau": 1, "tau_star": 60, "sigma": 17}
    capped |= {"aggregates": {"mu_0": 0, "capped": [{"groups": 4, "mu_0": 0.2}]}}
    certificate = drafted(capped, is_elsewhere=True)

    point = quoted_point(certificate)

    assert point.delta == gsh.exact(certificate.release, epsilon=1).delta
    parts = gsh.exact(certificate.release, epsilon=1)
    assert point.delta > 1.1 * max(parts.delta_infinite, parts.delta_gaussian or 0)
