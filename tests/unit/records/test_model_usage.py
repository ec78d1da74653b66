"""Usage of models, which providers state as they like."""

from ci_eval.records.bounds import MAX_COUNT
from ci_eval.records.findings import Metered
from ci_eval.records.model_usage import ModelUsage


def test_a_sum_has_each_model_once():
    one = ModelUsage(calls=1, input_tokens=3, cost_usd=0.5, models=("a", "b"))
    found = one + ModelUsage(calls=2, seconds=1.5, models=("b", "c"))

    expected = ModelUsage(
        calls=3, input_tokens=3, cost_usd=0.5, seconds=1.5, models=("a", "b", "c")
    )
    assert found == expected


def test_a_sum_of_any_numbers_can_be_stored_and_read_again():
    most = ModelUsage(input_tokens=MAX_COUNT, cost_usd=1e21, seconds=1e12)
    metered = Metered(usage=most + most, trials=2)

    assert Metered.model_validate_json(metered.model_dump_json()) == metered
