"""Hostile texts in XML, in the log of a runner, on a terminal, in JSON and in its files."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hostile.batches import BATCHES, in_batches, named
from hostile.corpus import CORPUS, HUGE, SURROGATES
from hostile.fields import SHAPES, Told, a_report, in_all
from hostile.github_page import live_parts, page_of
from hostile.runner import STEERING, commands, values
from lxml import etree
from support.report_language import streamed

from ci_eval.cli.baseline.baseline_command_output import ShownRun, show_runs
from ci_eval.cli.console import out_report, out_spans, say_problems
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.gate import comparison_output, verdict_explanation
from ci_eval.cli.gate.comparison_output import show_comparison
from ci_eval.cli.run.console_progress import Progress
from ci_eval.forge.lineage import Lineage
from ci_eval.pull_requests.github_runner import annotate, publish
from ci_eval.records.errors import ExitCode, Problem
from ci_eval.records.findings import Counts
from ci_eval.reporters.annotations import Annotations
from ci_eval.reporters.case_lines import trial_lines
from ci_eval.reporters.junit import JUnit
from ci_eval.reporters.markdown import Markdown, Summary
from ci_eval.run_files.badge import Badge
from ci_eval.text.sanitize import clean

SCHEMAS = [
    etree.XMLSchema(etree.parse(Path(__file__).parents[1] / "schemas" / name))
    for name in ("junit-10.xsd", "windyroad-junit.xsd")
]
NAMES = [*CORPUS]
LEVELS = {"error", "warning"}


def told_in(batch: str) -> Iterator[tuple[str, Told]]:
    """Yield the name of each text of a batch, and a report with it in every field."""
    for name in BATCHES[batch]:
        yield name, a_report(in_all(CORPUS[name]), SHAPES[NAMES.index(name) % len(SHAPES)])


def junit(told: Told, profile: str) -> etree._Element:
    reporter = JUnit.model_validate({"profile": profile})
    return etree.fromstring("".join(reporter.render(told.report, streamed(told.results))).encode())


def page_comments(document: str) -> tuple[str, ...]:
    """Return the comments of ours that a document of Markdown has."""
    return tuple(line for line in document.split("\n") if line.startswith("<!-- ci-eval:"))


def assert_plain(printed: str, *names: str) -> None:
    """Hold what was printed against what a terminal and a runner would do."""
    assert not STEERING.search(printed)
    assert [each.name for each in commands(printed)] == [*names]


# --- XML ------------------------------------------------------------------------------------


@in_batches
def test_the_test_results_are_valid_and_every_case_is_there(batch: str) -> None:
    for name, told in told_in(batch):
        with named(name):
            strict = junit(told, "strict")
            for schema in SCHEMAS:
                schema.assertValid(strict)
            for document in (strict, junit(told, "default")):
                cases = document.findall(".//testcase")
                assert len(cases) == len(told.results)
                kinds = [child.tag for case in cases for child in case]
                assert [kinds.count(kind) for kind in ("failure", "error", "skipped")] == [3, 2, 1]
                for each in document.iter():
                    for text in (each.text or "", *map(str, each.attrib.values())):
                        assert "\x1b" not in text
                        assert "[[ATTACHMENT|" not in text.upper()
                        assert "##[" not in text.replace(
                            each.get("file", "-"), ""
                        )  # a path as it is


PLAIN = [name for name, text in CORPUS.items() if text.isprintable() and len(text) < 90]


@in_batches
def test_what_a_failure_says_is_read_back_from_xml(batch: str) -> None:
    for name in filter(PLAIN.__contains__, BATCHES[batch]):
        with named(name):
            text = CORPUS[name]
            document = junit(a_report(in_all(text), "failed"), "default")
            error = document.find(".//testcase/error")
            assert error is not None
            shown = "".join(clean(text).split())
            assert "".join((error.text or "").split()) == f"raised:{shown}"


@pytest.mark.slow
@pytest.mark.parametrize("made_of", HUGE)
def test_a_megabyte_in_every_field_makes_bounded_documents(made_of: str) -> None:
    told = a_report(in_all(HUGE[made_of]))
    junit(told, "strict")
    for line in Annotations().render(told.report, streamed(told.results)):
        assert len(line) < 12_000


@in_batches
def test_a_badge_is_a_picture_with_two_texts(batch: str) -> None:
    for name, told in told_in(batch):
        with named(name):
            badge = Badge.of(told.report.meta.suite, Counts(passed=1))
            texts = ET.fromstring(badge.svg()).findall("{*}g/{*}text")
            assert len(texts) == 2
            assert not STEERING.search(json.loads(badge.endpoint())["label"])


@pytest.mark.parametrize("text", SURROGATES, ids=ascii)
def test_half_of_a_surrogate_pair_is_written_nowhere(text: str) -> None:
    told = a_report(in_all(text))
    junit(told, "strict")
    "".join(Annotations().render(told.report, streamed(told.results))).encode()
    for reporter in (Markdown(), Summary()):
        document = "".join(reporter.render(told.report, streamed(told.results)))
        document.encode()
        assert list(live_parts(page_of(document), page_comments(document))) == []


# --- The log --------------------------------------------------------------------------------


def test_the_judge_of_logs_finds_commands_of_both_forms() -> None:
    log = "x\n ::error file=a%3A,line=1::b%0Ac\na ##[add-mask]e\r::debug::\n:: x\n##[open\n"
    assert list(commands(log)) == [
        ("error", {"file": "a:", "line": "1"}, "b\nc"),
        ("add-mask", {}, "e"),
        ("debug", {}, ""),
    ]


@in_batches
def test_annotations_are_those_commands_and_no_others(batch: str) -> None:
    for name, told in told_in(batch):
        with named(name):
            text = "".join(Annotations().render(told.report, streamed(told.results)))
            found = list(commands(text))
            assert len(found) == text.count("\n") <= 20
            assert not STEERING.search(text)
            for each in found:
                assert each.name in LEVELS
                assert each.properties.keys() <= {"file", "line", "title"}
                assert each.properties.get("line", "1").isdigit()
                assert each.properties["title"]


@in_batches
def test_what_a_run_prints_is_read_by_nobody_as_a_command(
    batch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, told in told_in(batch):
        with named(name):
            with Progress(len(told.results), grouped=True) as progress:
                for result in told.results:
                    progress.landed(result)
            out_report(told.report, told.report.meta.suite)
            for result in told.results:
                for line in trial_lines(result, None, width=60):
                    out_spans(line)
            assert_plain("".join(capsys.readouterr()), "group", "endgroup")


@in_batches
def test_what_is_printed_of_comparisons_and_baselines_is_plain(
    batch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, told in told_in(batch):
        with named(name):
            meta = told.report.meta
            show_comparison(told.report, meta.run_id)
            runs = [ShownRun(**each.model_dump(), suite=meta.suite) for each in told.report.history]
            show_runs(runs, Lineage(base=meta.branch), meta.suite)
            usual = told.report.model_copy(update={"meta": meta.model_copy(update={"gate": {}})})
            comparison_output.show_explanation(verdict_explanation.explain(usual))
            assert_plain("".join(capsys.readouterr()))


@in_batches
def test_problems_are_one_annotation_and_plain_lines(
    batch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, told in told_in(batch):
        with named(name):
            text = told.report.meta.suite
            problem = Problem(text, text, line=3, where=text)
            say_problems([problem])
            annotate([problem], {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/w"})
            print_json({text: [text]})
            out, err = capsys.readouterr()
            assert_plain(err)
            assert_plain(out, "error")
            assert json.loads(out.partition("\n")[2]) == {text: [text]}


# --- The files of the runner ----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES[::7])
def test_the_outputs_of_a_step_are_those_whatever_the_folder_is_called(
    name: str, tmp_path: Path
) -> None:
    folder = re.sub("[/\0\ud800-\udfff]", "_", CORPUS[name]).encode()[:200].decode(errors="ignore")
    out = tmp_path / f"x{folder}"
    out.mkdir()
    target = tmp_path / "output"
    env = {"GITHUB_OUTPUT": str(target), "GITHUB_WORKSPACE": str(tmp_path)}
    publish(a_report(in_all(CORPUS[name])).report, out, ExitCode.FAILED, env, ())

    found = values(target.read_bytes().decode())
    assert found["verdict"] == "failed"
    assert found["report-dir"] == out.name.replace("\r\n", "\n")
    assert {"exit-code", "pass-rate", "regressions", "junit", "comment"} < found.keys()
    assert all(re.fullmatch("[a-z-]+", each) for each in found)
