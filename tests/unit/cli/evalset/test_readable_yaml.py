"""What is written as YAML is read as what it was, by YAML 1.1 and by 1.2."""

import pytest
import yaml  # noqa: TID253  # a test does not start up
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.cli.evalset.readable_yaml import yaml_text
from ci_eval.text.yaml_files import parse_yaml

ODD = ["08", "1e3", "0o7", "1_0", "1:30", "off", "~", "null", "<<", "=", "- a", "a: b", "# c", "|"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(ODD)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=3))
def test_it_says_the_same_in_both_versions(value):
    text = yaml_text(value)

    assert parse_yaml(text, shown="").value == value
    assert yaml.safe_load(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Hi", "t: Hi\n"),
        ("on", "t: 'on'\n"),
        ("1e3", "t: '1e3'\n"),
        ("a\nb", "t: |-\n  a\n  b\n"),
        ("a\n\n  b\n", "t: |\n  a\n\n    b\n"),
        (" a\nb", 't: " a\\nb"\n'),
        ("a\tb", 't: "a\\tb"\n'),
        ("\x85", 't: "\\N"\n'),
        ("é 😀", "t: é 😀\n"),
        (["x", []], "t:\n  - x\n  - []\n"),
        ("w" * 300 + " w", f"t: {'w' * 300} w\n"),
    ],
)
def test_it_is_written_for_people(value, text):
    assert yaml_text({"t": value}) == text


def test_what_is_there_twice_is_written_twice():
    shared = {"a": [1]}

    assert "&" not in yaml_text([shared, shared])
