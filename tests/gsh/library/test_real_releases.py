"""Real releases: each fact has its source, each translation is a question with an answer, and figures are computed."""

import dataclasses
import math
import pickle
import re
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gsh

RELEASES = gsh.real_releases()
WIKIMEDIA, FACEBOOK, MOBILITY, SYMPTOMS = RELEASES
EACH = pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)


def sentences(release: gsh.RealRelease) -> list[str]:
    translation = release.translation
    facts = [fact.text for fact in release.known]
    own = [release.publishes, release.summary, translation.summary]
    return [*facts, *own, *translation.ours, *translation.differs]


def test_wikimedia_needs_a_gap_of_102_5_without_a_list_of_keys() -> None:
    """At ρ = 0.015 and δ_infinite = 1e-7. Their threshold of 90 would not do."""
    mechanism = WIKIMEDIA.translation.calibrate().mechanism

    assert mechanism.c_u / (2 * mechanism.sigma**2) == pytest.approx(0.015, rel=1e-15)
    assert round(mechanism.tau_star - mechanism.tau, 1) == 102.5
    assert gsh.exact(mechanism, epsilon=1).delta_infinite == pytest.approx(1e-7)
    at_90 = WIKIMEDIA.at_their_threshold()
    assert at_90 is not None
    assert at_90.delta_infinite > 50 * 1e-7


def test_the_noise_of_wikimedia_meets_the_epsilon_and_delta_that_they_name() -> None:
    """Roughly (1, 1e-7), they say: the noise alone is better than that."""
    privacy = WIKIMEDIA.translation.calibrate().privacy

    assert (privacy.epsilon, privacy.binding) == (1, "infinite")
    assert privacy.delta_gaussian < 1e-7 / 100


def test_the_papers_noise_has_the_rho_and_the_epsilon_of_the_codebook() -> None:
    mechanism = FACEBOOK.translation.calibrate().mechanism

    assert round(mechanism.c_u / (2 * mechanism.sigma**2), 4) == 0.0052
    assert round(0.0728 / 0.0052) * 0.0052 == pytest.approx(0.0728)  # a whole number of types
    assert 0.34 < gsh.exact(mechanism, delta=1e-5).epsilon < 0.35
    with pytest.raises(gsh.InfeasibleTarget):
        dataclasses.replace(FACEBOOK.translation, epsilon=0.349).calibrate()


def test_the_threshold_of_google_mobility_is_high_enough_for_this_mechanism() -> None:
    found = MOBILITY.translation.calibrate()

    assert (found.solved, found.mechanism.tau_star) == (("sigma",), MOBILITY.threshold)
    assert found.largest_sigma is not None
    assert found.mechanism.sigma < found.largest_sigma
    assert MOBILITY.translation.least_gap() < 99


def test_the_parts_of_googles_budgets_add_up() -> None:
    assert math.isclose(4 * (0.11 + 0.11 + 0.22), MOBILITY.translation.epsilon)
    assert math.isclose(1.76 + 0.44 + 0.44, 2.64)
    assert math.isclose(0.168 + 0.37 + 1.1, SYMPTOMS.translation.epsilon)


@EACH
def test_a_translation_is_a_question_with_an_answer(release: gsh.RealRelease) -> None:
    translation = release.translation
    found = translation.calibrate()

    assert found.privacy.delta <= translation.delta
    assert (found.mechanism.c_u, found.mechanism.tau) == (translation.c_u, translation.tau)
    assert {"sigma", "tau_star"} - set(found.solved) == {
        name for name in ("sigma", "tau_star") if getattr(translation, name) is not None
    }


@EACH
def test_the_least_gap_is_the_least(release: gsh.RealRelease) -> None:
    """At it, the mechanism meets the target. A little below, it does not."""
    translation = release.translation
    mechanism, gap = translation.calibrate().mechanism, translation.least_gap()

    def delta(gap: float) -> float:
        moved = dataclasses.replace(mechanism, tau_star=mechanism.tau + gap)
        return gsh.exact(moved, epsilon=translation.epsilon).delta

    assert delta(gap * 1.000001) <= translation.delta < delta(gap * 0.999999)


@given(st.sampled_from([release for release in RELEASES if release.threshold]), st.floats(0.5, 2))
def test_a_higher_threshold_costs_less(release: gsh.RealRelease, factor: float) -> None:
    assert release.threshold is not None
    other = dataclasses.replace(release, threshold=release.threshold * factor).at_their_threshold()
    theirs = release.at_their_threshold()

    assert other is not None
    assert theirs is not None
    assert (other.delta_infinite <= theirs.delta_infinite) == (factor >= 1)


@pytest.mark.parametrize("release", [FACEBOOK, SYMPTOMS], ids=lambda release: release.name)
def test_a_release_without_a_threshold_has_no_cost_at_it(release: gsh.RealRelease) -> None:
    assert release.at_their_threshold() is None


@EACH
def test_every_fact_has_a_source_with_a_public_address(release: gsh.RealRelease) -> None:
    assert release.known
    for source in {fact.source for fact in release.known}:
        address = urlsplit(source.address)
        assert (address.scheme, bool(address.netloc), bool(address.path)) == ("https", True, True)
        assert source.title
        assert source.authors


@EACH
def test_every_text_is_a_sentence(release: gsh.RealRelease) -> None:
    for text in sentences(release):
        assert re.fullmatch(r"\S.*[.]", text), text
        assert "  " not in text
    assert release.translation.ours
    assert release.translation.differs


@EACH
def test_no_computed_figure_is_typed_into_a_text(release: gsh.RealRelease) -> None:
    """Figures that the library computes come from the library."""
    mechanism = release.translation.calibrate().mechanism
    computed = {f"{value:.{digits}f}" for value in (mechanism.tau_star - 1, mechanism.tau_star) for digits in (1, 2)}
    if release.translation.sigma is None or release is WIKIMEDIA:
        computed |= {f"{mechanism.sigma:.{digits}f}" for digits in (1, 2, 3)}

    assert [text for text in sentences(release) if any(figure in text for figure in computed)] == []


def test_names_are_unique_and_releases_can_be_pickled() -> None:
    assert len({release.name for release in RELEASES}) == len(RELEASES)
    assert pickle.loads(pickle.dumps(RELEASES)) == RELEASES
