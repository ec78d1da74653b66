"""Which calls fail on purpose."""

from collections import Counter

import pytest

from ci_eval.llm.gateway.cassette_lines import Place
from ci_eval.llm.gateway.faults import fault_of
from ci_eval.llm.gateway.gateway_options import Faults, ModelOptions

PLACES = [Place("t", f"{number:032x}", 0) for number in range(4000)]


def found(faults: Faults, attempt: int = 1) -> list[str | None]:
    return [fault_of(faults, place, attempt) for place in PLACES]


def test_about_the_share_of_calls_fails_in_each_way():
    counts = Counter(found(Faults(rate=0.2, kinds=("500", "cut"))))

    assert counts[None] / len(PLACES) == pytest.approx(0.8, abs=0.03)
    assert counts["500"] / len(PLACES) == pytest.approx(0.1, abs=0.02)
    assert counts["cut"] / len(PLACES) == pytest.approx(0.1, abs=0.02)


def test_the_same_calls_fail_again_and_others_with_another_seed_or_try():
    faults = Faults(rate=0.5)

    assert found(faults) == found(Faults(rate=0.5))
    assert found(faults) != found(Faults(rate=0.5, seed=1))
    assert found(faults) != found(faults, attempt=2)
    assert None not in found(Faults(rate=1))


def test_a_status_may_be_written_as_a_number():
    options = ModelOptions.model_validate({"faults": {"rate": 0.1, "kinds": [429, "cut"]}})
    assert options.faults
    assert options.faults.kinds == ("429", "cut")
