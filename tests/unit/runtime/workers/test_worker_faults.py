"""Faults of somebody's code are told in a few words."""

import sys
from pathlib import Path
from types import CodeType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.runtime.workers import worker_faults


def code(name: str, text: str) -> CodeType:
    """Return code that seems to stand in the file `name`."""
    return compile(text, name, "exec")


def caught(text: str, name: str = "/repo/shop/app.py", **known: object) -> BaseException:
    """Return the error that `text` raises, as if it were in a user's file."""
    try:
        exec(code(name, text), {"__name__": "app", **known})  # text of ours
    except BaseException as exc:  # noqa: BLE001  # whatever it is
        exc.__traceback__ = exc.__traceback__ and exc.__traceback__.tb_next  # without this file
        return exc
    raise AssertionError(f"{text} raises nothing")


# --- While it runs ----------------------------------------------------------------------------


def test_an_error_is_named_with_its_place_in_the_folder() -> None:
    exc = caught("x = 1\n{}['city']")
    assert worker_faults.raised(exc, "/repo/shop") == "KeyError: 'city' (app.py:2)"


def test_the_last_line_of_the_own_code_is_the_place() -> None:
    inner = code("/venv/lib/python3.12/site-packages/lib/deep.py", "\n\n1 / 0")
    exc = caught("\nexec(inner)", inner=inner)
    assert worker_faults.raised(exc, "/repo/shop").endswith("(app.py:2)")


def test_a_package_is_no_own_code_also_where_it_stands_in_the_folder() -> None:
    exc = caught("\n1 / 0", "/repo/shop/.venv/lib/python3.12/site-packages/lib/deep.py")
    assert worker_faults.raised(exc, "/repo/shop").endswith("(lib/deep.py:2)")


def test_a_folder_whose_name_only_begins_the_same_is_another() -> None:
    exc = caught("1 / 0", "/repo/shop2/app.py")
    assert worker_faults.raised(exc, "/repo/shop").endswith("(/repo/shop2/app.py:1)")


def test_the_place_is_that_of_the_cause_where_a_framework_wraps_it() -> None:
    wraps = (
        "try:\n    exec(inner)\nexcept KeyError as exc:\n    raise RuntimeError('failed') from exc"
    )
    inner = code("/repo/shop/app.py", "\n\n{}['city']")
    exc = caught(wraps, "/venv/lib/site-packages/lib/run.py", inner=inner)
    assert worker_faults.raised(exc, "/repo/shop") == "RuntimeError: failed (app.py:3)"


def test_causes_that_go_round_in_a_circle_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert worker_faults.raised(one, "/repo/shop") == "ValueError: one"


def test_a_group_of_one_is_what_it_holds() -> None:
    exc = ExceptionGroup("all", [ExceptionGroup("again", [ValueError("inner")])])
    assert worker_faults.raised(exc, "/repo/shop") == "ValueError: inner"


# --- While it is loaded -----------------------------------------------------------------------


def test_a_module_that_is_not_there_says_who_does_not_have_it() -> None:
    exc = caught("import not_there_at_all")
    assert worker_faults.not_loaded("app:made", exc, "/repo/shop") == (
        "cannot load 'app:made': ModuleNotFoundError: No module named 'not_there_at_all'"
        f"\n  app.py:1: \n  (install it for {sys.executable}, or set `interpreter`)"
    )


def test_the_last_steps_of_the_way_there_are_shown_with_their_lines(tmp_path: Path) -> None:
    known: dict[str, object] = {"inner": "raise OSError('no key')", "known": {}}
    for number in range(5):
        path = tmp_path / f"step{number}.py"
        path.write_text("\nexec(inner, known)")
        known = {"inner": code(str(path), path.read_text()), "known": known}
    exc = caught("exec(inner, known)", str(tmp_path / "top.py"), **known)
    assert worker_faults.not_loaded("app:made", exc, str(tmp_path)) == (
        "cannot load 'app:made': OSError: no key"
        "\n  step1.py:2: exec(inner, known)"
        "\n  step0.py:2: exec(inner, known)"
        "\n  <string>:1: "
    )


def test_what_we_say_ourselves_needs_no_type() -> None:
    exc = caught("raise TypeError('it is no agent')", worker_faults.__file__)
    assert worker_faults.not_loaded("app:made", exc, "/repo/shop") == (
        "cannot load 'app:made': it is no agent"
    )


# --- Values -----------------------------------------------------------------------------------


class Mute:
    def __repr__(self) -> str:
        raise OSError


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "None"), (7, "int: 7"), ("x" * 300, f"str: '{'x' * 199}…"), (Mute(), "Mute: ")],
)
def test_values_are_shown_in_short(value: object, shown: str) -> None:
    assert worker_faults.in_short(value) == shown


@given(st.text(max_size=3 * worker_faults.MAX_MESSAGE_CHARS))
def test_messages_are_bounded(message: str) -> None:
    found = worker_faults.bounded(message)
    assert len(found) <= worker_faults.MAX_MESSAGE_CHARS + len(" … ")
    assert found[:1000] == message[:1000]
    assert found[-1000:] == message[-1000:]
