"""What the comment and the summary make of hostile texts, as GitHub shows them."""

import re
from collections.abc import Iterator, Sequence

import pytest
from hostile.batches import BATCHES, in_batches, named
from hostile.corpus import CORPUS, HUGE
from hostile.fields import FIELDS, SHAPES, Shape, Told, a_report, in_all, in_some, only_in, usual
from hostile.github_page import live_parts, page_of, seen, skeleton, tables
from hostile.runner import STEERING, commands
from support.report_language import streamed
from support.slow_params import some

from ci_eval.baselines import check_run_store
from ci_eval.plugins.points import Reporter
from ci_eval.pull_requests import check_run as posted_check
from ci_eval.pull_requests.comment_layout import compose
from ci_eval.pull_requests.comment_sections import MORE, Section, joining, opening_line, read
from ci_eval.records.findings import Report
from ci_eval.records.results import Run
from ci_eval.reporters.annotations import notes
from ci_eval.reporters.markdown import MAX_CHARACTERS, MAX_SUMMARY_BYTES, Markdown, Summary, marker

NAMES = [*CORPUS]
STRIDE = 31
"""Each field has one text of so many, another one than the field before it."""
APART = 12
"""So far from each other are fields that have such texts at once."""
ALERTS = {"regressed": "CAUTION", "failed": "CAUTION", "incomplete": "WARNING", "passed": "NOTE"}
CUT = {"commit", "baseline commit", "time", "time of the baseline", "description"}
"""Fields that are shown only in part, or as something else."""


def written(told: Told, reporter: Reporter) -> str:
    return "".join(reporter.render(told.report, streamed(told.results)))


def comment(told: Told) -> str:
    return written(told, Markdown())


def assert_dead(markdown: str, *comments: str) -> None:
    """Hold a document against what GitHub makes of it."""
    page = page_of(markdown)
    assert list(live_parts(page, comments)) == []
    for rows in tables(page):
        assert len(set(rows)) == 1, "a row has another number of cells than the head"


def test_there_are_many_hostile_texts_and_no_two_of_them_are_the_same() -> None:
    assert len(set(CORPUS.values())) == len(CORPUS) >= 300


@pytest.mark.parametrize("markdown", ["@octocat", "x #1", "GH-1", "a5c3785", "https://x.example"])
def test_the_judge_of_pages_finds_what_is_live(markdown: str) -> None:
    assert list(live_parts(page_of(markdown)))


FOREIGN = ["![p](x)", "[a](x 't')", "<!-- c -->", "<b>x</b>", ":tada:", "$x$", "x[^1]\n\n[^1]: y"]
FOREIGN += ["- [ ] x", "***", "~~x~~", "<p class=x>y</p>", "www.x.example", "me@x.example", "1. x"]


@pytest.mark.parametrize("markdown", FOREIGN)
def test_the_judge_of_pages_finds_what_is_not_ours(markdown: str) -> None:
    assert list(live_parts(page_of(markdown)))


@in_batches
def test_nothing_is_live_with_the_text_in_every_field(batch: str) -> None:
    for name in BATCHES[batch]:
        with named(name):
            text, shape = CORPUS[name], SHAPES[NAMES.index(name) % len(SHAPES)]
            told = a_report(in_all(text), shape)
            page = page_of(comment(told))

            assert list(live_parts(page, (marker(text), MORE))) == []
            assert all(len(set(rows)) == 1 for rows in tables(page))
            decision = page.find("blockquote").text_content().strip()
            assert decision.startswith(f"[!{ALERTS[shape]}]")
            assert_dead(written(told, Summary()))


@pytest.mark.parametrize("first", some(range(APART), 4))
def test_nothing_is_live_with_other_texts_in_a_few_fields(first: int) -> None:
    for turn in range(len(NAMES) // STRIDE + 1):
        texts = {}
        for number in range(first, len(FIELDS), APART):
            name = NAMES[(number % STRIDE + turn * STRIDE) % len(NAMES)]
            texts[FIELDS[number]] = CORPUS[name]
        told = a_report(in_some(texts), SHAPES[turn % 2])
        page = page_of(comment(told))
        assert [*live_parts(page, (marker(told.report.meta.suite), MORE))] == [], texts
        assert all(len(set(rows)) == 1 for rows in tables(page)), texts


SHORT = [
    text
    for text in CORPUS.values()
    if len(text) < 60 and text.isprintable() and any(letter.isalnum() for letter in text)
]


def a_few(fields: Sequence[str], at_once: int = 5) -> Iterator[dict[str, str]]:
    """Yield all short texts, a few at once, each in a field of its own."""
    for first in range(0, len(SHORT), at_once):
        texts = SHORT[first : first + at_once]
        yield {fields[(first + at) % len(fields)]: text for at, text in enumerate(texts)}


def shown_fields(shape: Shape) -> list[str]:
    """Return the fields of which a comment shows the whole text."""
    word = "quokka" * 9  # as long as the longest of the texts: a title of a chart may be cut

    def shows(field: str) -> bool:
        return word in seen(page_of(comment(a_report(only_in(field, word), shape)))).lower()

    return [field for field in FIELDS if field not in CUT and shows(field)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["regressed", "failed"])
def test_every_letter_of_a_short_text_is_shown(shape: Shape) -> None:
    def letters(text: str) -> str:
        return "".join(letter for letter in text.casefold() if letter.isalnum())

    fields = shown_fields(shape)
    assert len(fields) > 30
    for texts in a_few(fields):
        shown = letters(seen(page_of(comment(a_report(in_some(texts), shape)))))
        assert [each for each in texts.items() if letters(each[1]) not in shown] == []


@pytest.mark.parametrize("shape", SHAPES)
def test_a_short_text_changes_no_element_of_the_page(shape: Shape) -> None:
    plain = skeleton(page_of(comment(a_report(only_in("criterion", "quokka"), shape))))
    assert skeleton(page_of(comment(a_report(usual, shape)))) == plain
    for texts in a_few(FIELDS):
        page = page_of(comment(a_report(in_some(texts), shape)))
        assert skeleton(page) == plain, texts


@pytest.mark.slow
@pytest.mark.parametrize("made_of", HUGE)
def test_a_megabyte_in_every_field_is_dead_and_cut_to_size(made_of: str) -> None:
    told = a_report(in_all(HUGE[made_of]))
    text, summary = comment(told), written(told, Summary())
    assert len(text) <= MAX_CHARACTERS
    assert len(summary.encode()) <= MAX_SUMMARY_BYTES
    assert_dead(text, marker(HUGE[made_of]), MORE)


# --- Texts that are put together from these -------------------------------------------------


def section(told: Told, job: str, step: str) -> Section:
    report: Report = told.report
    text = comment(told).partition("\n")[2]
    return Section(report.meta.suite, job, report.verdict.outcome, text, "0123456", step=step)


@pytest.mark.parametrize("name", NAMES[::5])
def test_a_comment_of_several_jobs_is_dead_and_read_back(name: str) -> None:
    text = CORPUS[name]
    told = a_report(in_all(text)), a_report(in_all(text), "passed")
    sections = [section(told[0], text, text), section(told[1], text, f"{text} again")]
    sections = [joining(each, ()) for each in sections]
    body = compose(sections, 65_536)

    hidden = re.compile(r"<!-- ci-eval:(?:v1|more|job|end)(?: [^<>]*)? -->")
    lines = [line for line in body.split("\n") if "<!--" in line]
    assert all(hidden.fullmatch(line) for line in lines)
    assert_dead(re.sub(rf"^{hidden.pattern}$", "", body, flags=re.MULTILINE))
    assert len(read(text, body)) == 2
    assert hidden.fullmatch(opening_line(sections[0]))


@in_batches
def test_what_a_check_run_says_of_a_baseline_is_dead(batch: str) -> None:
    for name in BATCHES[batch]:
        with named(name):
            told = a_report(in_all(CORPUS[name]))
            shown = check_run_store._output(Run(told.report.meta, streamed(told.results)), "digest")
            assert isinstance(shown, dict)
            assert isinstance(shown["summary"], str)
            assert_dead(shown["summary"])


@in_batches
def test_what_a_check_run_says_of_a_commit_is_dead(batch: str) -> None:
    for name in BATCHES[batch]:
        with named(name):
            told = a_report(in_all(CORPUS[name]))
            report = told.report.model_copy(update={"worst": tuple(told.results)})
            lines = [posted_check._name(report)]
            for failed in (None, posted_check._Made(id=1, title=CORPUS[name])):
                output = posted_check._output(report, failed)
                assert_dead(str(output["summary"]), MORE)
                lines.append(str(output["title"]))
            placed = (each for each in notes(report, report.worst) if each.file)
            for each in map(posted_check._annotation, placed):
                assert isinstance(each, dict)
                assert each["annotation_level"] in ("failure", "warning")
                lines += [each["title"], each["message"]]
            assert not any(STEERING.search(str(line)) or "\n" in str(line) for line in lines)
            assert not [*commands("\n".join(map(str, lines)))]
