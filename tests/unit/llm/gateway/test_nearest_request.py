"""The difference to the nearest recorded request, in a message."""

import json
from typing import Any

import pytest

from ci_eval.llm.gateway.nearest_request import MAX_CHANGES, nearest


def request(text: str = "Hello", **more: Any) -> dict[str, Any]:
    return {"model": "m", "contents": [{"role": "user", "parts": [{"text": text}]}], **more}


def test_the_most_similar_one_is_compared():
    others = [request("Bye", model="n", temperature=1), request("Hello", temperature=0)]
    assert [*nearest(request(temperature=1), others)] == ["- temperature: 0", "+ temperature: 1"]


@pytest.mark.parametrize(("old", "new"), [("1", "1.0"), ("1", "true"), ("1", '"1"'), ("0", "-0.0")])
def test_values_that_python_takes_for_equal_differ(old, new):
    found = nearest(request(seed=json.loads(new)), [request(seed=json.loads(old))])
    assert [*found] == [f"- seed: {old}", f"+ seed: {new}"]


def test_of_a_long_text_only_the_lines_that_differ_are_shown_where_they_do():
    lines = [f"line {number}" for number in range(500)]
    changed = ["x" * 300 + "a" + "y" * 300 if line == "line 250" else line for line in lines]
    other = [each.replace("xa", "xb") for each in changed]
    found = [*nearest(request("\n".join(other)), [request("\n".join(changed))])]
    assert [line[:35] for line in found] == [
        "- contents[0].parts[0].text: …" + "x" * 5,
        "+ contents[0].parts[0].text: …" + "x" * 5,
    ]
    assert ["xay" in found[0], "xby" in found[1]] == [True, True]
    assert max(map(len, found)) < 200


def test_what_only_one_of_them_has_is_shown():
    assert [*nearest(request(), [request(tools=[{"name": "f"}])])] == ["- tools[0].name: f"]


def test_there_is_a_limit_and_nothing_breaks_out():
    found = [*nearest(request(**{f"k{n}": n for n in range(50)}), [request()])]
    assert len(found) == MAX_CHANGES + 1
    assert found[-1] == f"  … and {50 - MAX_CHANGES} more differences"
    [line] = nearest(request(**{"a\nb\x1b[31m": "c\x1b[2J"}), [request()])
    assert "\x1b" not in line
    assert "\n" not in line


def test_without_others_there_is_nothing_to_show():
    assert [*nearest(request(), [])] == []
