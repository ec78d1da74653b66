"""What an error of a host says of a comment, and which comments begin as ours do."""

import pytest

from ci_eval.forge.rest import HostError
from ci_eval.pull_requests.comment_thread import Comment, PostingError, is_marked, posting_errors
from ci_eval.reporters.markdown import marker


def told(status: int | None, *, is_edit: bool = False) -> PostingError:
    with pytest.raises(PostingError, match="it said no") as caught, posting_errors(is_edit=is_edit):
        raise HostError("it said no", hint="ask", status=status)
    assert caught.value.hint == "ask"
    return caught.value


@pytest.mark.parametrize(
    ("status", "is_refusal", "is_unsure"),
    [
        (None, False, True),
        (400, False, False),
        (401, True, False),
        (403, True, False),
        (404, True, False),
        (410, False, False),
        (422, False, False),
        (499, False, False),
        (500, False, True),
        (502, False, True),
    ],
)
def test_what_was_not_answered_or_broke_may_have_been_written(
    status: int | None, is_refusal: bool, is_unsure: bool
) -> None:
    error = told(status)
    assert (error.is_refusal, error.is_unsure) == (is_refusal, is_unsure)


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_gone_before_it_is_edited_is_looked_for_again(status: int) -> None:
    error = told(status, is_edit=True)
    assert (error.is_refusal, error.is_unsure) == (False, True)


@pytest.mark.parametrize("status", [401, 403])
def test_an_edit_that_is_refused_is_a_refusal(status: int) -> None:
    error = told(status, is_edit=True)
    assert (error.is_refusal, error.is_unsure) == (True, False)


@pytest.mark.parametrize("suite", ["shop", "a b/c", "-->", "🙂" * 100, "x\ny", ""])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_every_comment_of_ours_begins_as_ours_do(suite: str, end: str) -> None:
    body = f"{marker(suite)}{end}"
    assert is_marked(body) == bool(suite)
    assert Comment("1", body, "").first_line == marker(suite)


@pytest.mark.parametrize(
    "body",
    [
        f" {marker('shop')}",
        f"> {marker('shop')}",
        f"\n{marker('shop')}",
        f"{marker('shop')} and more",
        "<!-- ci-eval:v1 id=a b -->",
        "<!-- ci-eval:retired -->",
    ],
)
def test_what_quotes_it_or_says_more_does_not(body: str) -> None:
    assert not is_marked(body)
