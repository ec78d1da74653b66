import pytest

from ci_eval.text.sanitize import clean, one_line


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x.example\x1b\\link\x1b]8;;\x07", "link"),
        ("\x9b31mred", "red"),
        ("\x1b(Bplain\x1b7", "plain"),
        ("\x1b]never ended", "never ended"),
        ("\x90never\x9dended", "\ufffdnever\ufffdended"),
        ("\x90ended\x9c.", "."),
        ("a\x00b\x7fc\u202ed\u2066e\ud800f\U000e0041", "a�b�c�d�e�f�"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("##[group]x", "## [group]x"),
        ("👩\u200d💻 नमस्\u200dते", "👩\u200d💻 नमस्\u200dते"),
        ("z" + "\u0301" * 60, "z" + "\u0301" * 4 + "�"),
        ("e\u0323\u0302 שּׁ\u05b8\u0591", "e\u0323\u0302 שּׁ\u05b8\u0591"),
    ],
)
def test_what_cannot_be_seen_is_taken_out(text: str, left: str) -> None:
    assert clean(text) == left


def test_of_a_long_text_no_more_is_looked_at_than_is_shown() -> None:
    assert one_line("a\n\tb  c", 10) == "a b c"
    assert one_line("x" * 12, 10) == "x" * 10 + "\u2026 (12 characters in all)"
    assert one_line(" " * 5_000 + "x", 10) == "\u2026 (5,001 characters in all)"
