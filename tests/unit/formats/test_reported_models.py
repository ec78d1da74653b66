"""What a provider reports about its model, as it is kept."""

from ci_eval.formats.reported_models import MAX_NAME_CHARS, served


def test_an_answer_without_a_version_says_nothing() -> None:
    assert served("judge", "m", "") == served("judge", "m", None, "fp_1") == ()


def test_the_version_is_kept_beside_the_requested_model() -> None:
    (found,) = served("agent", "m", "m-001", "fp_1", agent="bot")
    assert (found.role, found.agent, found.requested) == ("agent", "bot", "m")
    assert found.label == "m-001 (fp_1)"


def test_a_hostile_version_is_one_short_clean_line() -> None:
    (found,) = served("judge", None, "v\n\x1b[31m2\u202e" + "x" * 10_000)
    assert found.requested == ""
    assert found.version.startswith("v 2\ufffdxxx")
    assert len(found.version) < MAX_NAME_CHARS + 40
