"""The check run of a suite: what GitHub is sent, in pieces that it takes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.github import FakeGitHub, Fault, github, refusal, sha
from support.report_language import make_report

from ci_eval.forge import rest
from ci_eval.forge.github import connected
from ci_eval.forge.rest import HostError
from ci_eval.pull_requests import check_run
from ci_eval.pull_requests.check_run import MAX_ANNOTATIONS, MAX_SUMMARY_BYTES
from ci_eval.records.findings import Report
from ci_eval.records.results import TrialResult
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

FAILED = make_report("greets pass 0.9 / refunds fail 0.2 was 0.9")


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        yield found


def made(fake: FakeGitHub, report: Report, details: str = "") -> dict[str, Any]:
    """Make the check run of `report`, and return it with its annotations."""

    async def make() -> None:
        async with connected(RunContext(fake.env, Path(), lambda: 0.0)) as found:
            await check_run.make(found, report, sha(10), details)

    asyncio.run(make())
    [kept] = fake.check_runs
    return {**kept, "annotations": fake.annotations[kept["id"]]}


def with_job(report: Report, job: str) -> Report:
    return report.model_copy(update={"meta": report.meta.model_copy(update={"job": job})})


def failing(count: int) -> Report:
    """Return a report of so many failing cases, each on a line of its own."""
    report = make_report(" / ".join(f"case{number} fail 0.2 was 0.9" for number in range(count)))
    worst = [case(report.worst[0], f"case{number}", number + 1) for number in range(count)]
    return report.model_copy(update={"worst": tuple(worst)})


def case(result: TrialResult, name: str, line: int) -> TrialResult:
    return result.model_copy(
        update={"key": result.key.model_copy(update={"case": name}), "line": line}
    )


@pytest.mark.parametrize(
    ("text", "conclusion", "begins"),
    [
        ("greets pass 0.9", "success", "passed: "),
        ("greets fail 0.2 was 0.9", "failure", "failed: "),
        ("greets error", "failure", "no verdict: "),
    ],
)
def test_only_what_was_measured_and_passed_is_a_success(
    fake: FakeGitHub, text: str, conclusion: str, begins: str
) -> None:
    found = made(fake, make_report(text))
    assert (found["status"], found["conclusion"]) == ("completed", conclusion)
    assert found["output"]["title"].startswith(begins)


def test_the_title_says_that_only_a_part_of_the_suite_was_run(fake: FakeGitHub) -> None:
    meta = FAILED.meta.model_copy(update={"filtered": True})
    title = made(fake, FAILED.model_copy(update={"meta": meta}))["output"]["title"]
    assert title.startswith("failed, for the part of the suite that was run: ")


def test_it_is_of_the_commit_and_leads_to_the_job(fake: FakeGitHub) -> None:
    found = made(fake, with_job(FAILED, "evaluate (small)"), "https://github.com/octo/shop/runs/1")
    assert found["name"] == "ci-eval: shop · evaluate (small)"
    assert found["head_sha"] == sha(10)
    assert found["details_url"] == "https://github.com/octo/shop/runs/1"
    assert found["external_id"] == FAILED.meta.run_id
    assert "refunds" in found["output"]["summary"]


def test_more_annotations_than_a_request_takes_are_sent_in_several(fake: FakeGitHub) -> None:
    found = made(fake, failing(120))
    lines = [each["start_line"] for each in found["annotations"]]
    assert lines == list(range(1, 121))
    assert {each["path"] for each in found["annotations"]} == {"evals/smoke.evalset.json"}
    assert len(fake.requests) == 3


def test_annotations_of_which_nobody_knows_are_not_sent_twice(
    fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))
    fake.faults.append(Fault("PATCH", "check-runs", reply=refusal(502, "no"), is_made=True))
    with pytest.raises(HostError, match="answered 502"):
        made(fake, failing(60))
    assert [each.method for each in fake.requests] == ["POST", "PATCH"]


def test_of_very_many_annotations_there_is_an_end(fake: FakeGitHub) -> None:
    assert len(made(fake, failing(400))["annotations"]) == MAX_ANNOTATIONS


def test_what_annotations_garble_is_spelt_out(fake: FakeGitHub) -> None:
    report = make_report("smile\N{GRINNING FACE} fail 0.2 was 0.9")
    [found] = made(fake, report)["annotations"]
    assert "smileU+1F600" in found["title"]


def test_the_summary_is_cut_in_bytes(fake: FakeGitHub) -> None:
    names = " / ".join(f"{'é' * 200}{number} fail 0.2" for number in range(300))
    found = made(fake, make_report(names))
    assert len(found["output"]["summary"].encode()) <= MAX_SUMMARY_BYTES


def test_without_permission_the_missing_one_is_named(fake: FakeGitHub) -> None:
    fake.permissions = frozenset({"checks: read"})
    with pytest.raises(HostError) as caught:
        made(fake, FAILED)
    assert "checks: write" in caught.value.hint
