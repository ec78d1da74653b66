"""Chunks of an answer are put together, however it was cut, and nothing hostile gets far."""

from collections.abc import Callable
from itertools import count, pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.formats.gemini_stream import Aggregator, ModelResponse, read_response, with_ids
from ci_eval.records.cases import Content, Part
from ci_eval.records.errors import TrialError

T = TypeVar("T")


def whole(*parts: dict[str, Any]) -> ModelResponse:
    """Return the result of chunks of one part each."""
    numbers = count(1)
    made = Aggregator(lambda: f"adk-{next(numbers)}")
    for part in parts:
        made.add(ModelResponse.model_validate({"content": {"role": "model", "parts": [part]}}))
    found = made.close()
    assert found is not None
    return found


def parts(response: ModelResponse) -> tuple[Part, ...]:
    assert response.content
    return response.content.parts or ()


def call(**fields: Any) -> dict[str, Any]:
    return {"functionCall": fields}


def streamed(*args: dict[str, Any], name: str = "f") -> list[dict[str, Any]]:
    """Return the chunks of a call, one for each argument."""
    pieces = [call(partialArgs=[each], willContinue=True) for each in args]
    return [call(name=name, willContinue=True), *pieces, call()]


def args_of(*args: dict[str, Any]) -> Any:
    [part] = parts(whole(*streamed(*args)))
    assert part.function_call
    return part.function_call.args


def cut(text: str, places: list[int]) -> list[str]:
    """Return `text` in the pieces between `places`."""
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(edges)]


def came_to(work: Callable[[], T]) -> tuple[T | None, str | None]:
    """Return the result of `work`, or the message of its error; raise other errors."""
    try:
        return work(), None
    except TrialError as exc:
        if exc.kind != "protocol":
            raise
        return None, str(exc)


TEXTS = st.text(min_size=1, max_size=40)
PLACES = st.lists(st.integers(0, 1000), max_size=12)


# --- However it is cut ------------------------------------------------------------------------


@given(TEXTS, PLACES, st.booleans())
def test_a_text_is_the_same_however_it_is_cut(text: str, places: list[int], thought: bool) -> None:
    chunks = [{"text": piece, "thought": thought} for piece in cut(text, places)]
    [part] = parts(whole(*chunks))
    assert (part.text, bool(part.thought)) == (text, thought)


@given(TEXTS, TEXTS, PLACES, PLACES)
def test_arguments_are_the_same_however_they_are_cut_and_mixed(
    one: str, other: str, first: list[int], second: list[int]
) -> None:
    pieces = [{"jsonPath": "$.a.b[1]", "stringValue": each} for each in cut(one, first)]
    mixed = [{"jsonPath": "$['c d']", "stringValue": each} for each in cut(other, second)]
    together = [each for pair in zip(pieces, mixed, strict=False) for each in pair]
    rest = pieces[len(mixed) :] + mixed[len(pieces) :]
    assert args_of(*together, *rest) == {"a": {"b": [None, one]}, "c d": other}


@given(st.lists(st.sampled_from("abT"), min_size=1, max_size=12))
def test_each_change_between_thoughts_and_words_begins_a_part(letters: list[str]) -> None:
    found = parts(whole(*({"text": each, "thought": each == "T"} for each in letters)))
    assert "".join(each.text or "" for each in found) == "".join(letters)
    kinds = [bool(each.thought) for each in found]
    assert all(one != other for one, other in pairwise(kinds))


def test_a_call_stands_where_its_first_piece_came() -> None:
    found = whole(
        {"text": "before"},
        call(name="f", willContinue=True),
        {"text": "between"},
        call(partialArgs=[{"jsonPath": "x", "numberValue": 2}], willContinue=False),
        {"text": "behind"},
    )
    shown = [each.text or each.function_call for each in parts(found)]
    assert [getattr(each, "args", each) for each in shown] == [
        *("before", {"x": 2.0}, "between", "behind")
    ]


def test_a_call_that_never_ends_is_ended_by_the_next_one_and_by_the_end() -> None:
    found = whole(call(name="f", willContinue=True), call(name="g", willContinue=True))
    assert [each.function_call.name for each in parts(found) if each.function_call] == ["f", "g"]


def test_the_first_signature_of_a_run_and_of_a_call_is_kept() -> None:
    found = whole(
        {"text": "a"},
        {"text": "b", "thoughtSignature": "MQ=="},
        {"text": "c", "thoughtSignature": "Mg=="},
        {**call(name="f", willContinue=True), "thoughtSignature": "Mw=="},
        {**call(), "thoughtSignature": "NA=="},
    )
    assert [each.thought_signature for each in parts(found)] == ["MQ==", "Mw=="]


def test_what_came_last_is_kept_where_the_last_chunk_is_silent() -> None:
    made = Aggregator(lambda: "adk-1")
    usage = {"promptTokenCount": 3, "promptTokensDetails": [{"tokenCount": 3}]}
    grounding = {"webSearchQueries": ["sky"]}
    first = {"usageMetadata": usage, "groundingMetadata": grounding, "finishReason": "MAX_TOKENS"}
    made.add(ModelResponse.model_validate(first))
    made.add(ModelResponse.model_validate({"content": {"parts": [{"text": "so"}]}}))
    found = made.close()
    assert found
    assert found.usage_metadata == {
        "prompt_token_count": 3,
        "prompt_tokens_details": [{"token_count": 3}],
    }
    assert found.grounding_metadata == {"webSearchQueries": ["sky"]}
    assert found.error_code == found.finish_reason == "MAX_TOKENS"
    assert found.partial is False


def test_nothing_comes_of_nothing() -> None:
    assert Aggregator(lambda: "adk-1").close() is None


def test_a_nameless_call_is_none() -> None:
    assert whole(call(args={"x": 1})).content is None
    assert whole(call(willContinue=True), call()).content is None


def test_only_calls_without_an_id_get_one() -> None:
    content = Content.model_validate(
        {"parts": [call(name="f", id="mine"), call(name="g"), {"text": "so"}]}
    )
    found = with_ids(content, lambda: "adk-1").parts or ()
    assert [each.function_call and each.function_call.id for each in found] == [
        *("mine", "adk-1", None)
    ]


# --- Whatever comes --------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("candidates", "content", "parts", "text", "thought", "functionCall"),
                    *("name", "args", "partialArgs", "jsonPath", "stringValue", "willContinue"),
                    *("finishReason", "usageMetadata", "promptFeedback", "blockReason", "new"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(st.lists(JSON, max_size=4))
def test_whatever_comes_there_is_an_answer_or_a_clear_error(chunks: list[Any]) -> None:
    made = Aggregator(lambda: "adk-1")

    def put_together() -> ModelResponse | None:
        for chunk in chunks:
            made.add(read_response(chunk))
        return made.close()

    found, error = came_to(put_together)
    assert len(error or "") < 500
    assert (found is None) == (error is not None or not chunks)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "unexpected answer from the model: "),
        ("text", "unexpected answer from the model: "),
        ({"candidates": "many"}, "unexpected answer from the model: candidates: "),
        ({"candidates": [{"content": {"parts": [{"text": 7}]}}]}, r"content.parts\[0\].text: "),
    ],
)
def test_what_is_no_answer_says_where(value: Any, said: str) -> None:
    with pytest.raises(TrialError, match=said):
        read_response(value)


def test_fields_that_are_new_are_not_read() -> None:
    part = {"text": "so", "brandNew": {"a": 1}}
    value = {"candidates": [{"content": {"parts": [part], "new": 1}, "new": 2}], "new": 3}
    found = read_response(value)
    assert found.content == Content.model_validate({"parts": [{"text": "so"}]})
