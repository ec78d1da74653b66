"""The baseline in check runs: what is stored is what is loaded, and nothing else passes for it."""

import base64
import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers.github import TOKEN, FakeGitHub, github, refusal, sha
from servers.loopback import DROPPED
from support.run_language import FACTS, make_run, meta, results

from ci_eval.baselines import check_run_store as module
from ci_eval.baselines.check_run_store import CheckRunStore
from ci_eval.forge import rest
from ci_eval.forge.lineage import Lineage
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.records.results import Run
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

pytestmark = pytest.mark.processes

STORE = CheckRunStore()
LINEAGE = Lineage(ancestors=(sha(9), sha(8), sha(7)), base="main", own=sha(10))
GREETS = "greets 1 0.5"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))
    with github() as found:
        yield found


@pytest.fixture
def context(fake: FakeGitHub, tmp_path: Path) -> RunContext:
    return RunContext(fake.env, tmp_path, lambda: 0.0)


def run(number: int, run_id: str = "", text: str = GREETS, **more: Any) -> Run:
    """Return the run `run9` on commit 9, and so on."""
    found = meta(run_id or f"run{number}", commit=sha(number), **more)
    return Run(found, lambda: results(text))


def ids(context: RunContext, store: CheckRunStore = STORE, lineage: Lineage = LINEAGE) -> list[str]:
    return [past.meta.run_id for past in store.load(lineage, "suite", context)]


def refusal_of(context: RunContext) -> BaselineError:
    with pytest.raises(BaselineError) as caught:
        STORE.load(LINEAGE, "suite", context)
    assert TOKEN not in f"{caught.value} {caught.value.hint}"
    return caught.value


def text_of(made: Run) -> str:
    text: str = STORE._check_run(made)["output"]["text"]
    return text


# --- Saving and loading -----------------------------------------------------------------------


def test_where_there_is_none_nothing_is_loaded(context: RunContext) -> None:
    assert ids(context) == []


def test_what_is_saved_is_loaded(context: RunContext) -> None:
    assert STORE.save(run(9, text="greets 1 0.5\nrefunds error\nweather skip"), context) is True
    (past,) = STORE.load(LINEAGE, "suite", context)
    assert past.meta == meta("run9", commit=sha(9))
    cells = past.columns.groups["a", "e", "c"]
    assert cells["greets"].units == ((1.0, 0.5),)
    assert (cells["refunds"].errors, cells["weather"].skipped) == (1, 1)


def test_a_run_is_stored_once(fake: FakeGitHub, context: RunContext) -> None:
    assert [STORE.save(run(9), context) for _ in range(2)] == [True, False]
    assert len(fake.check_runs) == 1


def test_what_was_stored_twice_by_accident_is_one_run(
    fake: FakeGitHub, context: RunContext
) -> None:
    for _ in range(2):
        fake.add_check_run(sha(9), text_of(run(9)))
    assert ids(context) == ["run9"]


def test_the_nearest_ancestor_comes_first_and_its_newest_run(context: RunContext) -> None:
    for number, run_id, day in ((7, "a", 1), (9, "b", 2), (9, "c", 3), (8, "d", 4)):
        STORE.save(run(number, run_id, created=f"2026-01-0{day}T00:00:00+00:00"), context)
    assert ids(context) == ["c", "b", "d", "a"]


def test_no_more_is_asked_than_the_window_takes(fake: FakeGitHub, context: RunContext) -> None:
    for number in (9, 8, 7):
        STORE.save(run(number), context)
    fake.requests.clear()
    assert ids(context, CheckRunStore(window=2)) == ["run9", "run8"]
    assert len(fake.requests) == 2


def test_no_more_commits_are_looked_at_than_asked_for(
    fake: FakeGitHub, context: RunContext
) -> None:
    STORE.save(run(7), context)
    fake.branches["main"] = [sha(number) for number in (5, 4, 3)]
    fake.requests.clear()
    assert ids(context, CheckRunStore(search=2)) == []
    assert fake.asked() == [
        *(f"commits/{sha(number)}/check-runs" for number in (9, 8)),
        "commits",
        *(f"commits/{sha(number)}/check-runs" for number in (5, 4)),
    ]


def test_without_an_ancestor_the_newest_of_the_base_branch_are_taken(
    fake: FakeGitHub, context: RunContext
) -> None:
    fake.branches["main"] = [sha(number) for number in (10, 5, 9, 4)]
    for number in (4, 5, 10):
        STORE.save(run(number), context)
    fake.requests.clear()
    assert ids(context) == ["run5", "run4"]
    assert f"commits/{sha(10)}/check-runs" not in fake.asked()
    assert len(fake.asked(sha(9))) == 1


def test_the_base_branch_is_left_where_the_window_is_full(
    fake: FakeGitHub, context: RunContext
) -> None:
    fake.branches["main"] = [sha(number) for number in (5, 4, 3)]
    for number in (3, 4, 5):
        STORE.save(run(number), context)
    fake.requests.clear()
    assert ids(context, CheckRunStore(window=2)) == ["run5", "run4"]
    assert f"commits/{sha(3)}/check-runs" not in fake.asked()


def test_outside_of_a_repository_nothing_is_known(fake: FakeGitHub, context: RunContext) -> None:
    assert ids(context, lineage=Lineage()) == []
    assert fake.requests == []


def test_a_commit_that_was_not_pushed_has_none(fake: FakeGitHub, context: RunContext) -> None:
    STORE.save(run(8), context)
    fake.missing = {sha(9)}
    assert ids(context) == ["run8"]


def test_suites_share_a_name_and_keep_apart(context: RunContext) -> None:
    STORE.save(run(9, "other", suite="other"), context)
    STORE.save(run(9), context)
    assert ids(context) == ["run9"]


def test_a_digest_on_a_later_page_is_found(fake: FakeGitHub, context: RunContext) -> None:
    STORE.save(run(9), context)
    for _ in range(70):
        fake.add_check_run(sha(9), None)
    fake.requests.clear()
    assert ids(context, CheckRunStore(window=1)) == ["run9"]
    assert len(fake.requests) == 3


@pytest.mark.parametrize("text", [None, "", "all good", "see <!-- ci-eval baseline v1 -->"])
def test_what_a_job_of_the_same_name_says_is_no_digest(
    fake: FakeGitHub, context: RunContext, text: str | None
) -> None:
    fake.add_check_run(sha(9), text)
    assert ids(context) == []


def test_another_app_is_not_believed_unless_it_is_named(
    fake: FakeGitHub, context: RunContext
) -> None:
    fake.add_check_run(sha(9), text_of(run(9)), slug="stranger")
    fake.check_runs[0] |= {"app": {"slug": "stranger"}}
    fake.add_check_run(sha(8), text_of(run(8)))
    fake.check_runs[0] |= {"app": None}
    assert ids(context) == []
    assert ids(context, CheckRunStore(app="stranger")) == ["run9"]


def test_to_read_is_enough_to_load(fake: FakeGitHub, context: RunContext) -> None:
    STORE.save(run(8), context)
    fake.permissions = frozenset({"checks: read"})
    assert ids(context) == ["run8"]


# --- What is sent -----------------------------------------------------------------------------


def test_a_check_run_is_neutral_and_has_a_table_for_people(
    fake: FakeGitHub, context: RunContext
) -> None:
    STORE.save(run(9, text="greets 1 0.5\nrefunds 0.5"), context)
    (made,) = fake.check_runs
    found = {name: made[name] for name in ("name", "head_sha", "status", "conclusion")}
    assert found == {
        "name": "ci-eval baseline",
        "head_sha": sha(9),
        "status": "completed",
        "conclusion": "neutral",
    }
    assert made["external_id"] == "run9"
    assert made["output"]["title"] == "Baseline of 2 cases"
    assert made["output"]["summary"].splitlines()[2:] == [
        "| agent | evalset | criterion | mean |",
        "| --- | --- | --- | --- |",
        "| `a` | `e` | `c` | 0.625 |",
    ]


def test_names_cannot_write_into_the_table() -> None:
    name = "<img src=x> | @octocat `x`\n# y"
    found = meta("run", commit=sha(1), suite=name, criteria={name: FACTS})
    made = Run(found, lambda: results("greets 1", criterion=name, agent=name, evalset=name))
    summary: str = STORE._check_run(made)["output"]["summary"]
    assert len(summary.splitlines()) == 5
    assert "<img" not in summary
    assert "@octocat" not in summary
    assert summary.splitlines()[-1].count("|") == 5


def test_a_long_table_is_cut_short() -> None:
    names = [f"c{number}" for number in range(40)]
    found = meta("run", commit=sha(1), criteria=dict.fromkeys(names, FACTS))
    made = Run(found, lambda: (r for name in names for r in results(GREETS, criterion=name)))
    lines = STORE._check_run(made)["output"]["summary"].splitlines()
    assert lines[-2:] == ["| `a` | `e` | `c29` | 0.750 |", "| … and 10 more | | | |"]


def test_what_markdown_shows_of_the_digest_is_nothing() -> None:
    text = text_of(run(9))
    assert text.startswith("<!-- ")
    assert text.endswith(" -->")
    assert "--" not in text[4:-3]
    assert "\n" not in text
    assert text == text_of(run(9))


def noise(cases: int) -> str:
    """Return so many cases whose fingerprints cannot be compressed."""
    names = (hashlib.sha256(bytes(f"{number}", "ascii")).hexdigest() for number in range(cases))
    return "\n".join(f"{name}@{name[::-1]} 1" for name in names)


def test_a_run_that_does_not_fit_is_refused_with_the_stores_that_take_it(
    fake: FakeGitHub, context: RunContext
) -> None:
    with pytest.raises(UsageError) as caught:
        STORE.save(run(9, text=noise(900)), context)
    assert str(caught.value).startswith("not stored: the run has ")
    assert str(caught.value).endswith(" when compressed, and a check run holds at most 65,535")
    assert "`artifact`" in caught.value.hint
    assert fake.requests == []


def test_a_run_that_just_fits_comes_back(context: RunContext) -> None:
    assert 60_000 < len(text_of(run(9, text=noise(570)))) < 65_535
    STORE.save(run(9, text=noise(570)), context)
    (past,) = STORE.load(LINEAGE, "suite", context)
    assert sum(len(each.numbers) for each in past.columns.evalsets.values()) == 570


def test_a_run_without_a_commit_is_refused(fake: FakeGitHub, context: RunContext) -> None:
    with pytest.raises(UsageError, match=r"^not stored: the run has no commit"):
        STORE.save(make_run(GREETS), context)
    assert fake.requests == []


def test_a_commit_that_was_not_pushed_cannot_be_stored_for(
    fake: FakeGitHub, context: RunContext
) -> None:
    fake.missing = {sha(9)}
    with pytest.raises(UsageError) as caught:
        STORE.save(run(9), context)
    assert str(caught.value).endswith(f" answered 422: No commit found for SHA: {sha(9)}")


@pytest.mark.parametrize("permissions", [{"checks: read", "contents: read"}, set()])
def test_who_may_not_store_is_told_so(
    fake: FakeGitHub, context: RunContext, permissions: set[str]
) -> None:
    fake.permissions = frozenset(permissions)
    with pytest.raises(UsageError) as caught:
        STORE.save(run(9), context)
    assert str(caught.value).startswith("not stored: GitHub refuses ")
    assert "`permissions: {checks: write}`" in caught.value.hint


def test_a_check_run_that_may_have_been_made_is_made_again(
    fake: FakeGitHub, context: RunContext
) -> None:
    fake.add_check_run(sha(1), None)  # so that the first answer is a page of none
    STORE._check_run(run(9))
    fake.script.extend([refusal(502, "Server Error"), DROPPED])
    assert STORE.save(run(9), context) is True
    assert ids(context) == ["run9"]


# --- What cannot be read ----------------------------------------------------------------------

GOOD = text_of(run(9))
DOCUMENT = module._document(GOOD, "")


def digest(document: bytes, **changes: Any) -> str:
    """Return a digest of `document` with something wrong about it."""
    found = {
        "version": 1,
        "length": len(document),
        "hashed": hashlib.sha256(document).hexdigest(),
        "packed": base64.b64encode(gzip.compress(document)).decode(),
        **changes,
    }
    inner = " ".join(f"{each}" for each in found.values()).removeprefix("")
    return f"<!-- ci-eval baseline v{inner} -->"


DIFFERS = "check run 500: was changed since it was stored: its length or its hash differs"
NO_DIGEST = "check run 500: is not a digest of a run"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!-- ci-eval baseline -->", NO_DIGEST),
        (GOOD[:-5], NO_DIGEST),
        (GOOD[:-100] + " -->", DIFFERS),
        (GOOD + "more", NO_DIGEST),
        (digest(DOCUMENT, packed="AAAA"), NO_DIGEST),
        (digest(DOCUMENT, packed="AAAAA"), NO_DIGEST),
        (
            digest(DOCUMENT, version=2),
            ("check run 500: has a digest of version 2; this version of ci-eval reads 1"),
        ),
        (digest(DOCUMENT, length=len(DOCUMENT) - 1), DIFFERS),
        (digest(DOCUMENT, length=len(DOCUMENT) + 1), DIFFERS),
        (digest(DOCUMENT, hashed="0" * 64), DIFFERS),
        (digest(DOCUMENT, packed=base64.b64encode(gzip.compress(b"x")).decode()), DIFFERS),
        (digest(b" " * 40_000_000, length=1), DIFFERS),
        (digest(b"{}"), "check run 500:1: is not a baseline of ci-eval"),
        (digest(b"no json"), "check run 500:1: is neither a JSON object nor a list"),
        (
            digest(b'{"schema_version":1,"runs":[],"results":[]}'),
            f"check run 500: expected one run of commit {sha(9)}",
        ),
        (text_of(run(8)), f"check run 500: expected one run of commit {sha(9)}"),
    ],
)
def test_what_is_broken_is_an_error_and_nothing_is_put_beside_it(
    fake: FakeGitHub, context: RunContext, text: str, said: str
) -> None:
    fake.add_check_run(sha(9), text)
    error = refusal_of(context)
    assert str(error) == said
    assert error.hint == f"it is on commit {sha(9)}; start a new baseline under another `name`"
    with pytest.raises(BaselineError):
        STORE.save(run(9, "new"), context)
    assert len(fake.check_runs) == 1


@given(st.integers(len("<!-- ci-eval baseline "), len(GOOD) - 1), st.characters(codec="ascii"))
def test_a_digest_with_one_character_changed_is_never_taken_for_another_run(
    at: int, character: str
) -> None:
    text = GOOD[:at] + character + GOOD[at + 1 :]
    try:
        assert module._document(text, "check run 1") == DOCUMENT
    except BaselineError as exc:
        assert str(exc).startswith("check run 1")  # noqa: PT017  # the change may say nothing


def test_what_is_refused_on_the_way_is_no_missing_baseline(
    fake: FakeGitHub, context: RunContext
) -> None:
    fake.permissions = frozenset({"actions: read"})
    error = refusal_of(context)
    assert str(error).startswith("the baseline was not loaded: GitHub refuses ")
    assert error.hint == "the token needs `permissions: {checks: read}`"


def test_the_commits_of_the_base_branch_take_a_permission_of_their_own(
    fake: FakeGitHub, context: RunContext
) -> None:
    fake.permissions = frozenset({"checks: read"})
    assert refusal_of(context).hint == "the token needs `permissions: {contents: read}`"
