"""The check run of a suite: what GitHub is sent, in pieces that it takes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.github import FakeGitHub, Fault, github, refusal, sha
from support.report_language import make_report

from ci_eval.forge import rest
from ci_eval.forge.github import GitHub, connected
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
    kept = fake.check_runs[0]
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
    assert found["external_id"].startswith(f"{FAILED.meta.run_id} failure ")
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


PASSED = make_report("greets pass 0.9")


def of_step(report: Report, step: str) -> Report:
    return report.model_copy(update={"meta": report.meta.model_copy(update={"step": step})})


def test_a_step_that_passed_does_not_hide_one_of_the_same_name_that_failed(
    fake: FakeGitHub,
) -> None:
    failed = made(fake, of_step(FAILED, "nightly.yml"))
    found = made(fake, of_step(PASSED, "ci.yml"))
    assert found["name"] == failed["name"]
    assert found["conclusion"] == "failure"
    assert found["output"]["title"].startswith("another step with this name: failed: ")
    assert "did not fail, but another step did" in found["output"]["summary"]
    # Once the other one passes, both do.
    assert made(fake, of_step(PASSED, "nightly.yml"))["conclusion"] == "success"
    assert made(fake, of_step(PASSED, "ci.yml"))["conclusion"] == "success"


def test_a_step_that_runs_again_replaces_its_own_check_run(fake: FakeGitHub) -> None:
    made(fake, of_step(FAILED, "ci.yml"))
    assert made(fake, of_step(PASSED, "ci.yml"))["conclusion"] == "success"


@pytest.mark.parametrize("elsewhere", ["name", "commit", "author"])
def test_other_check_runs_make_none_fail(fake: FakeGitHub, elsewhere: str) -> None:
    name = "lint" if elsewhere == "name" else "ci-eval: shop"
    external_id = "" if elsewhere == "author" else "run-1 failure 0123456789abcdef"
    commit = sha(11) if elsewhere == "commit" else sha(10)
    fake.add_check_run(commit, None, name=name, external_id=external_id, conclusion="failure")
    assert made(fake, PASSED)["conclusion"] == "success"


def test_a_step_that_fails_at_the_same_moment_is_not_hidden(
    fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = GitHub.post

    async def later(self: GitHub, *arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(GitHub, "post", post)
        await check_run.make(self, of_step(FAILED, "nightly.yml"), sha(10), "")
        return await post(self, *arguments, **options)

    monkeypatch.setattr(GitHub, "post", later)
    found = made(fake, of_step(PASSED, "ci.yml"))
    assert len(fake.check_runs) == 2
    assert found["conclusion"] == "failure"
    assert found["output"]["title"].startswith("another step with this name: failed: ")


def test_without_permission_the_missing_one_is_named(fake: FakeGitHub) -> None:
    fake.permissions = frozenset({"checks: read"})
    with pytest.raises(HostError) as caught:
        made(fake, FAILED)
    assert "checks: write" in caught.value.hint
