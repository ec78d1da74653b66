"""Codes of errors, and what `ci-eval explain` says of them."""

import pytest

from ci_eval.cli.error_codes import codes_of, explaining
from ci_eval.cli.main import main


@pytest.mark.parametrize(
    ("message", "explained"),
    [
        ("no such file", "no such file"),
        ("traces.jsonl: no such file", "no such file"),
        ("unknown key. Did you mean 'expected'?", "unknown key…"),
        ("byte 0xff is not UTF-8", "byte … is not UTF-8…"),
        ("is larger than 8 MiB, the limit for this kind of file", "is larger than … MiB, the"),
    ],
)
def test_a_message_is_found_with_what_varies_in_it(message: str, explained: str) -> None:
    entry = explaining(message)
    assert entry
    assert any(each.startswith(explained) for each in entry.messages)


@pytest.mark.parametrize(
    "message",
    [
        "is empty",
        "is not a run of ci-eval",
        "scores[0]: the value must lie between 0 and 1, found 7.5",
        "has schema version 2; this version of ci-eval reads 1",
    ],
)
def test_the_explanation_also_fits_the_report_of_a_shard(message: str) -> None:
    entry = explaining(message)
    assert entry
    assert "`shard.json`" in entry.text
    assert "run the suite or the shard again" in entry.text


def test_what_no_entry_explains_has_no_code() -> None:
    assert codes_of(["zzz", "no such file", "is not a file"]) == ["CE0101"]


def test_a_code_is_explained_in_whatever_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "ce0101"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("CE0101\n  no such file\n")
    assert "Paths in a configuration are relative" in said


def test_several_codes_are_explained_whether_or_not_they_have_all_zeros(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "101,", "ce103"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("CE0101\n")
    assert "\n\nCE0103\n" in said


def test_a_guide_is_named_where_the_page_links_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "CE0501"]) == 0
    assert "Which criterion (guide: which-criterion)" in capsys.readouterr().out


def test_a_message_may_be_given_instead(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Is not a FILE"]) == 0
    assert capsys.readouterr().out.startswith("CE0101\n")


@pytest.mark.parametrize("message", ["the value is not a number", "x.jsonl is not a list of y"])
def test_a_message_with_common_words_is_not_taken_for_another(message: str) -> None:
    found = explaining(message)
    assert found is None or "cassette" not in found.text


def test_a_part_of_several_messages_has_several_explanations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "not found"]) == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("CE")] == ["CE0314", "CE0905"]


def test_a_part_of_too_many_messages_names_their_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "cannot be read"]) == 4
    said = capsys.readouterr().err
    assert "errors have a message with 'cannot be read': CE0102, CE0304, " in said
    assert "pass one of the codes, or more of the message" in said


def test_links_are_shown_by_their_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "the action has no such input"]) == 0
    said = capsys.readouterr().out
    assert "these inputs" in " ".join(said.split())
    assert "](" not in said


def test_an_unknown_code_is_an_error_that_suggests_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "CE9999"]) == 4
    assert "no error has the code or the text 'CE9999'" in capsys.readouterr().err
