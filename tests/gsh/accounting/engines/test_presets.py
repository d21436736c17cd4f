"""Tools by name: their claims are the numbers that the tools print, next to what is certified."""

from typing import Any, get_args

import pytest

import gsh
from gsh.accounting.engines.presets import PRESETS, PresetName
from gsh.errors import InvalidParameter

# Printed by the tools themselves: python -m benchmarks.engines.
PRINTED = [
    ("opendp-laplace", 10, 5, 150, 0.5, 8.029615009563784e-07, 8.8741e-7),
    ("opendp-laplace", 1, 1, 5, 1.0, 0.004925833956035741, 1.3390e-2),
    ("opendp-laplace-float", 10, 5, 150, 0.5, 8.451855856295154e-07, 8.4519e-7),
    ("opendp-gaussian", 10, 5, 60, 1.5, 4.317796258813055e-12 + 9.087553487496791e-09, 1.2111e-8),
    ("opendp-gaussian", 10, 5, 60, 1.0, 1.336131906403231e-06 + 9.087553487496791e-09, 2.9208e-7),
]


@pytest.mark.parametrize(("preset", "scale", "c_u", "threshold", "epsilon", "claimed", "certified"), PRINTED)
def test_the_claim_is_what_the_tool_prints(
    preset: str, scale: float, c_u: int, threshold: float, epsilon: float, claimed: float, certified: float
) -> None:
    found = gsh.engine(preset=preset, scale=scale, c_u=c_u, threshold=threshold, epsilon=epsilon)

    assert [each.delta for each in found.claims] == [pytest.approx(claimed, rel=2e-9)]
    assert found.delta == pytest.approx(certified, rel=5e-5)


# At ε = 1, δ = 10⁻⁶ and C_u = 10 python-dp prints this threshold, and this chance that a key with τ users is kept.
STRATEGIES = [
    ("laplace", 155.2494802039819, 1.0000004502241922e-07, 1e-6),
    ("gaussian", 74.56343842613082, 5.000001124244591e-08, 5e-7),
    ("truncated-geometric", None, 1.0000004500002851e-07, 1e-6),
]


@pytest.mark.parametrize("tau", [1, 5])
@pytest.mark.parametrize("tool", ["python-dp", "pipelinedp"])
@pytest.mark.parametrize(("strategy", "threshold", "kept", "certified"), STRATEGIES)
def test_a_strategy_is_what_python_dp_makes_of_epsilon_and_delta(
    tool: str, strategy: str, threshold: float | None, kept: float, certified: float, tau: int
) -> None:
    found = gsh.engine(preset=f"{tool}-{strategy}", c_u=10, tau=tau, epsilon=1, delta=1e-6)

    if threshold is None:
        assert found.threshold is None
    else:  # their search for σ ends within a share of 10⁻³
        assert found.threshold == pytest.approx(threshold + tau - 1, rel=1e-3)
    assert found.delta_infinite == pytest.approx(1 - (1 - kept) ** 10, rel=1e-4)
    assert found.delta == pytest.approx(certified, rel=1e-4)
    assert found.claims[0].delta == 1e-6
    assert found.is_exact


def test_every_preset_has_a_name_a_source_and_a_version() -> None:
    assert tuple(PRESETS) == get_args(PresetName)
    assert all(each.source and each.version and each.note for each in PRESETS.values())


def test_without_a_preset_the_tools_with_this_engine_are_named() -> None:
    found = gsh.engine(noise="geometric", scale=10, c_u=5, threshold=150, epsilon=0.5)
    other = gsh.engine(noise="geometric", scale=10, c_u=5, threshold=150, keeps=">", epsilon=0.5)
    too_small = gsh.engine(preset="opendp-laplace", scale=10, c_u=5, threshold=150, epsilon=0.49)

    assert [each.preset for each in found.claims] == ["opendp-laplace"]
    assert other.claims == ()
    assert too_small.claims == ()  # it claims nothing below C_u/b


def test_presto_with_having_is_this_mechanism_half_an_integer_lower() -> None:
    found = gsh.engine(preset="presto", scale=20, c_u=10, threshold=120, epsilon=1)
    above = gsh.engine(preset="presto", scale=20, c_u=10, threshold=120, keeps=">", epsilon=1)

    assert found.mechanism is not None
    assert above.mechanism is not None
    assert (found.mechanism.tau_star, above.mechanism.tau_star) == (119.5, 120.5)
    assert found.claims == ()


def test_zetasql_rounds_its_threshold_up_and_its_count_to_the_nearest() -> None:
    """A threshold just above an integer is rounded up by nearly 1, one just below by nothing: then half of the noise
    below it passes, and δ is above what is claimed."""
    deltas = [gsh.engine(preset="zetasql", c_u=4, epsilon=1, delta=k * 1e-7).delta / (k * 1e-7) for k in range(1, 40)]

    assert min(deltas) < 0.95
    assert max(deltas) > 1.05
    assert max(deltas) < 2.718 ** (0.5 / 4) * 1.01


@pytest.mark.parametrize(
    ("preset", "changes", "pointer"),
    [
        ("opendp", {}, "preset"),
        ("presto", {"seed": 7}, "seed"),
        ("opendp-laplace", {"noise": "laplace"}, "noise"),
        ("opendp-laplace", {"keeps": ">"}, "keeps"),
        ("opendp-laplace", {"scale": None}, "scale"),
        ("python-dp-laplace", {}, "scale"),
        ("python-dp-laplace", {"scale": None, "threshold": None}, "delta"),
        ("python-dp-laplace", {"scale": None, "threshold": None, "delta": 0}, "delta"),
        ("python-dp-laplace", {"scale": None, "threshold": None, "delta": 1e-6, "epsilon": 0}, "epsilon"),
    ],
)
def test_what_a_preset_does_not_take_is_named(preset: str, changes: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        gsh.engine(**{"preset": preset, "scale": 10, "c_u": 5, "threshold": 150, "epsilon": 0.5} | changes)

    assert caught.value.pointer == pointer
