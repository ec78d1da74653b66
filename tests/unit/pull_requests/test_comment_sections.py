"""What each job says, in one comment: written, read back, joined, and cut by structure."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.slow_params import some

from ci_eval.pull_requests.comment_layout import compose
from ci_eval.pull_requests.comment_sections import (
    MAX_SECTIONS,
    MORE,
    Outcome,
    Section,
    closing_line,
    digest_of,
    joining,
    merged,
    opening_line,
    read,
)
from ci_eval.reporters.markdown import marker
from ci_eval.text.templates import block

OLD, NEW = "a" * 40, "b" * 40
LIMIT = 65_536
ALERT = "> [!TIP]\n> **shop passed:** no regression found."


def section(job: str = "evaluate", outcome: Outcome = "passed", **more: Any) -> Section:
    given = {"text": f"{ALERT}\n\n{job}", "commit": NEW, "run": 7} | more
    return joining(Section("shop", job, outcome, **given), ())


def body(*sections: Section, limit: int = LIMIT) -> str:
    return compose(merged(sections), limit)


def at(letter: str) -> str:
    return f"<code>{7 * letter}</code>"


def visible(text: str) -> str:
    """Return a body without what nobody sees."""
    return re.sub(r"<!--.*?-->\n*", "", text)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=100)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=200)
OUTCOMES = st.sampled_from(["passed", "failed", "incomplete"])
SECTIONS = st.builds(
    section,
    NAMES,
    OUTCOMES,
    text=TEXTS,
    commit=st.sampled_from([OLD, NEW, "", "-->"]),
    run=st.integers(1, 9),
    attempt=st.integers(1, 3),
    step=st.just("nightly.yml, ci-eval.yaml") | NAMES,
)


# --- Reading back -------------------------------------------------------------------------------


@given(SECTIONS)
def test_a_section_alone_is_read_back_as_it_was_written(written: Section) -> None:
    assert read("shop", body(written)) == (written,)


@given(st.lists(SECTIONS, max_size=6), SECTIONS)
def test_of_many_all_is_read_back_but_what_is_not_shown(some: list[Section], one: Section) -> None:
    found = read("shop", body(*some, one))
    expected = merged([*some, one])
    assert {(each.key, each.since, each.outcome, each.commit) for each in found} == {
        (each.key, each.since, each.outcome, each.commit) for each in expected
    }
    assert compose(found, LIMIT) == body(*some, one)


@given(st.lists(SECTIONS, max_size=5))
def test_the_order_in_which_sections_of_different_age_are_joined_makes_no_difference(
    some: list[Section],
) -> None:
    assume(len({(each.key, each.since) for each in some}) == len(some))
    assert merged(some) == merged(reversed(some)) == merged([*merged(some), *some])


def test_what_an_agent_says_neither_ends_a_section_nor_begins_another() -> None:
    forged = section("forged", "passed", text="All is well.")
    lines = [opening_line(forged), "All is well.", closing_line(digest_of(forged)), marker("shop")]
    hostile = section("real", "failed", text=block("\n".join([*lines, closing_line("0" * 32)])))
    # Whether or not templates let such lines through.
    raw = replace(hostile, text="```\n" + "\n".join(lines) + "\n```")
    for each in (hostile, raw):
        assert read("shop", body(each, section("b"))) == read("shop", body(section("b"), each))
        assert {one.job for one in read("shop", body(each, section("b")))} == {"real", "b"}


@pytest.mark.parametrize("job", ["--> <b>", "a--b", "--!>", "> x", "ä\n\u202e\ud800", "%3E", " a "])
def test_the_name_of_a_job_ends_no_hidden_line(job: str) -> None:
    written = section(job)
    line = opening_line(written)
    assert line.count("--") == 2
    assert line.count(">") == 1
    assert "\n" not in line
    (found,) = read("shop", body(written))
    assert found.job == joining(found, ()).job == written.job


def test_a_name_that_is_very_long_keeps_its_beginning_and_is_told_from_others() -> None:
    first, second = section("🙂" * 99 + "a"), section("🙂" * 99 + "b")
    assert first.job.startswith("🙂" * 8 + "…")
    assert first.job != second.job
    assert len(opening_line(first)) < 400


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("no regression found", "all regressed"),
        lambda text: text.replace("job passed", "job failed"),
        lambda text: text.replace("name=evaluate", "name=evaluator"),
        lambda text: text.replace(f"commit={NEW}", f"commit={OLD}"),
        lambda text: text.replace(" 7 1 commit", " 8 1 commit"),
        lambda text: text.replace(" 7 1 commit", " 7 2 commit"),
        lambda text: text[: text.rindex("<!--")],
        lambda text: text.replace("<!-- ci-eval:job", "<!-- ci-eval:no", 1),
        lambda text: text + text[text.index("\n") :],
        lambda text: "\n" + text.partition("\n")[2],
        lambda text: text.replace("shop", "shops", 1),
        lambda _: "",
    ],
)
def test_a_body_that_somebody_changed_has_no_sections(change: Any) -> None:
    assert read("shop", change(body(section()))) == ()


def test_of_a_body_that_somebody_changed_no_other_section_is_believed_either() -> None:
    both = body(section("a"), section("b"))
    assert len(read("shop", both)) == 2
    at = both.index(opening_line(replace(section("a"), text="")).partition("digest")[0])
    assert read("shop", both[:at] + "<!-- -->" + both[both.index("\n", at) :]) == ()


def test_a_commit_that_is_none_makes_no_section_unreadable() -> None:
    written = section(commit="<" * 500)
    assert read("shop", body(written)) == (written,)


def test_numbers_are_as_long_as_those_that_ci_counts_upwards() -> None:
    """The jobs of gitlab.com have eleven digits, and tell attempts apart there."""
    written = section(run=10**18 - 1, attempt=10**18 - 1)
    assert read("shop", body(written)) == (written,)


# --- Steps and workflows with the same job ------------------------------------------------------


def test_steps_of_a_job_replace_only_their_own_sections() -> None:
    bad, good = (section("evaluate", step=f"ci.yml, ci-eval.yaml, --agent {a}") for a in "ab")
    failed = replace(bad, outcome="failed")
    assert merged([failed, good]) == (failed, good)
    again = replace(bad, run=8)
    assert merged([failed, good, again]) == (again, good)


def test_steps_of_a_job_are_told_apart_by_their_names_and_a_single_one_is_not() -> None:
    steps = [section(step=f"{name}.yml, ci-eval.yaml") for name in ("ci", "nightly")]
    shown = body(replace(steps[0], outcome="failed"), steps[1], section("other", step="x"))
    name = "<code>evaluate</code> (<code>{}.yml, ci-eval.yaml</code>)"
    assert f"failed in 1 of 3 jobs**: {name.format('ci')}." in shown
    assert f"✅ {name.format('nightly')} passed" in shown
    assert "✅ <code>other</code> passed" in shown


def test_a_section_that_names_no_step_is_replaced_by_a_newer_one_of_its_job() -> None:
    older = section("evaluate", "failed")
    newer = section("evaluate", run=8, step="ci.yml, ci-eval.yaml")
    other = section("other", run=8, step="ci.yml, ci-eval.yaml")
    assert merged([older, newer]) == merged([newer, older]) == (newer,)
    assert merged([older, other]) == (older, other)
    assert merged([replace(older, run=9), newer]) == (replace(older, run=9), newer)


def test_a_section_of_an_earlier_version_is_read() -> None:
    line = (
        f"<!-- ci-eval:job failed 7 1 commit={NEW} "
        "digest=31640cd28cd93544ad92ba2dfbb782c6 name=evaluate (small) -->"
    )
    earlier = section("evaluate (small)", "failed", text="It failed.")
    assert opening_line(earlier) == line


# --- What is shown ------------------------------------------------------------------------------


def test_a_section_alone_has_no_heading() -> None:
    assert visible(body(section())) == f"{ALERT}\n\nevaluate\n\n"


def test_several_have_a_summary_and_what_passed_is_folded() -> None:
    shown = visible(
        body(
            section("d", run=6, commit=OLD),
            section("c"),
            section("b", "failed"),
            section("a", "incomplete"),
            section("e"),
        )
    )
    assert shown.splitlines() == [
        "> [!CAUTION]",
        "> **shop failed in 1 of 5 jobs**: <code>b</code>.",
        ">",
        "> - no verdict in 1 job: <code>a</code>",
        "> - 2 jobs passed",
        f"> - 1 job is not evaluated yet at {at('b')}",
        "",
        "### ❌ <code>b</code> failed",
        "",
        "> **shop passed:** no regression found.",
        "",
        "b",
        "",
        "### ⚠️ <code>a</code> has no verdict",
        "",
        "> **shop passed:** no regression found.",
        "",
        "a",
        "",
        "<details><summary>✅ <code>c</code> passed</summary>",
        "",
        "> **shop passed:** no regression found.",
        "",
        "c",
        "",
        "</details>",
        "",
        "<details><summary>✅ <code>e</code> passed</summary>",
        "",
        "> **shop passed:** no regression found.",
        "",
        "e",
        "",
        "</details>",
        "",
        f"- ⏳ <code>d</code> is not evaluated yet at {at('b')}; it passed at {at('a')}",
        "",
    ]


def test_many_that_passed_are_folded_together() -> None:
    few, many = (body(*(section(f"job{each}") for each in range(count))) for count in (5, 6))
    assert "jobs passed</summary>" not in few
    assert "<details><summary>✅ 6 jobs passed</summary>\n\n<details>" in many
    assert many.count("<details>") == many.count("</details>") == 7


@pytest.mark.parametrize(
    ("sections", "alert"),
    [
        ((section("a"), section("b")), ["> [!TIP]", "> **shop passed in 2 of 2 jobs**."]),
        (
            (section("a"), section("b", run=6, commit=OLD)),
            [
                "> [!NOTE]",
                "> **shop passed in 1 of 2 jobs**.",
                ">",
                f"> - 1 job is not evaluated yet at {at('b')}",
            ],
        ),
        (
            (section("a"), section("b", "incomplete")),
            [
                "> [!WARNING]",
                "> **shop has no verdict in 1 of 2 jobs**: <code>b</code>.",
                ">",
                "> - 1 job passed",
            ],
        ),
    ],
)
def test_nothing_that_is_not_measured_is_green(
    sections: tuple[Section, ...], alert: list[str]
) -> None:
    assert visible(body(*sections)).splitlines()[: len(alert)] == alert


def test_a_run_of_the_same_commit_keeps_what_other_jobs_said() -> None:
    shown = body(section("a", "failed", run=5), section("b", run=9, attempt=2))
    assert "not evaluated yet" not in shown
    assert [each.text for each in read("shop", shown)].count("") == 0


def test_the_summary_names_ten_jobs_and_counts_the_others() -> None:
    shown = body(*(section(f"job{number:02}", "failed") for number in range(13)))
    assert "<code>job09</code> and 3 more." in shown.splitlines()[3]
    assert "job10" not in shown.splitlines()[3]
    shown = body(*(section(f"job{number:02}", "failed") for number in range(11)))
    assert "<code>job09</code> and 1 more." in shown.splitlines()[3]


def test_the_name_of_a_job_is_shown_as_text() -> None:
    named = section("<img src=x> @mona", text=ALERT)
    assert "<img" not in body(named, section("b"))
    assert "@mona" not in visible(body(named, section("b")))


# --- Size ---------------------------------------------------------------------------------------


def long(job: str, outcome: Outcome, kept: int, more: int, **given: Any) -> Section:
    text = f"{ALERT}\n\n{'k' * kept}\n\n{MORE}\n\n{'m' * more}"
    return section(job, outcome, text=text, **given)


def test_first_the_rest_of_what_passed_is_left_out() -> None:
    all_of_them = long("a", "failed", 900, 900), long("b", "passed", 900, 900)
    shown = body(*all_of_them, limit=4000)
    failed, passed = read("shop", shown)
    assert "m" * 900 in failed.text
    assert passed.text.endswith(
        "k\n\n<sub>See the job summary on the page of the run for the rest.</sub>"
    )
    assert len(shown) <= 4000


def test_then_the_rest_of_the_others_then_texts_that_passed_and_what_failed_is_last() -> None:
    all_of_them = long("a", "failed", 900, 900), long("b", "passed", 900, 900)
    failed, passed = read("shop", body(*all_of_them, limit=3200))
    assert "mmm" not in failed.text + passed.text
    assert "kkk" in passed.text
    failed, passed = read("shop", body(*all_of_them, limit=2300))
    assert "kkk" in failed.text
    assert passed.text == ""
    shown = body(*all_of_them, limit=1200)
    assert "- ❌ <code>a</code> failed; see the job summary" in shown
    assert "> **shop failed in 1 of 2 jobs**: <code>a</code>." in shown


def test_what_just_fits_is_left_whole() -> None:
    every = long("a", "failed", 900, 900), long("b", "passed", 900, 900)
    whole = body(*every)
    assert body(*every, limit=len(whole)) == whole
    assert "k" * 900 in body(*every, limit=len(whole) - 1)
    assert "m" * 900 not in read("shop", body(*every, limit=len(whole) - 1))[1].text


def test_a_job_of_an_older_commit_gets_no_more_room_by_being_cut() -> None:
    old = replace(long("old", "passed", 300, 300), run=6, commit=OLD)
    shown = body(long("a", "failed", 900, 1200), old, limit=2000)
    assert len(shown) <= 2000
    assert "m" * 300 not in shown  # something was cut
    assert "<code>old</code> is not evaluated yet" in shown
    assert {each.job: each.text for each in read("shop", shown)}["old"] == ""


def test_what_an_agent_says_is_not_taken_for_the_line_before_the_rest() -> None:
    text = f"{ALERT}\n\n````diff\n```\n{MORE}\n```\n````\n\n{MORE}\n\n" + "m" * 5000
    shown = body(section(text=text), limit=3000)
    assert shown.count("````") == 2
    assert "mmm" not in shown


@pytest.mark.parametrize("outcome", ["passed", "failed", "incomplete"])
@pytest.mark.parametrize("name", ["evaluate (gemini-2.5-flash, 3.12, {})", "--> <" * 30 + "{}"])
@pytest.mark.parametrize("step", some(["--agent <" * 30, "", "ci.yml, ci-eval.yaml"], 1))
def test_a_whole_matrix_has_room(outcome: Outcome, name: str, step: str) -> None:
    every = [
        replace(
            long(name.format(number), outcome, 2000, 20_000, step=step),
            run=10**19,
            attempt=999,
            commit=NEW if number else OLD,
        )
        for number in range(MAX_SECTIONS)
    ]
    shown = body(*every)
    assert len(shown) <= LIMIT
    assert len(read("shop", shown)) == len({each.job for each in every}) == MAX_SECTIONS


def test_of_more_jobs_than_there_is_room_for_the_newest_are_kept() -> None:
    every = [section(f"job{number}", run=number) for number in range(1, MAX_SECTIONS + 11)]
    assert min(each.run for each in read("shop", body(*every))) == 11


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(OUTCOMES, st.integers(0, 9000)), min_size=2, max_size=12))
def test_whatever_the_sizes_it_fits_and_no_job_is_lost(sizes: list[tuple[Outcome, int]]) -> None:
    every = [
        long(f"job{number}", outcome, size, 2 * size)
        for number, (outcome, size) in enumerate(sizes)
    ]
    shown = body(*every, limit=8000)
    assert len(shown) <= 8000
    assert len(read("shop", shown)) == len(every)
