"""All documents of one run say the same, whatever a change does to a suite."""

import json
import random
import re
from collections import Counter
from typing import Any

import pytest
from lxml import etree
from support.git_suites import Suite
from support.slow_params import some

pytestmark = pytest.mark.processes

AGENTS = """\
import json, pathlib

ANSWERS = json.loads((pathlib.Path(__file__).parent / "answers.json").read_text())


def answer(agent, message):
    if ANSWERS[agent][message] == "crash":
        raise RuntimeError(message)
    return ANSWERS[agent][message]


def a(message):
    return answer("a", message)


def b(message):
    return answer("b", message)
"""
NAMES = ("comment.md", "summary.md", "junit.xml", "annotations.txt", "report.json")
WORDS = {
    "passed": r"shop (passed|is not decided)",
    "failed": r"shop (failed|got worse)",
    "incomplete": r"shop (has no verdict|was not evaluated)",
}
BAD = (
    r" · (\d+) (?:broke|scored worse|suspected|flaked|fails? with the merge base|(?:other )?failed)"
)


def files(
    answers: dict[str, dict[str, str]], cases: list[str], gate: dict[str, Any], **config: Any
) -> dict[str, str]:
    """Return the files of a suite in which `answers` are what the agents say to each case."""
    agents = {name: {"python": f"bot:{name}"} for name in answers}
    whole = {"name": "shop", "agents": agents, "evalsets": {"smoke": "smoke.csv"}, "gate": gate}
    rows = "".join(f"{case},{case},yes\n" for case in cases)
    return {
        "bot.py": AGENTS,
        "answers.json": json.dumps(answers),
        "smoke.csv": f"id,prompt,expected\n{rows}",
        "ci-eval.yaml": json.dumps({**whole, **config}),
    }


def changed_suite(suite: Suite, dice: random.Random) -> None:
    """Commit a random suite, store a run of it if it has a store, and commit a random change."""
    cases = [f"c{number}" for number in range(dice.choice([1, 3, 6]))]
    answers = {
        agent: {case: dice.choice(["yes"] * 5 + ["no"]) for case in [*cases, "new"]}
        for agent in dice.choice([["a"], ["a", "b"]])
    }
    gate = {
        key: value
        for key, value in {
            "mode": dice.choice(["both", "threshold"]),
            "on_loosened": "fail",
            "on_vanished": dice.choice(["warn", "pass"]),
            "max_errors": 1,
            "min_pass_rate": 0.7,
        }.items()
        if dice.random() < 0.25
    }
    store = dice.choice([None, "file", "merge_base"])
    config: dict[str, Any] = {
        "criteria": {"response_match_score": 0.8},
        "baseline": store and {"store": store},
        "run": {"repeats": dice.choice([1, 2]), "concurrency": 4},
    }
    ignored = "ci-eval-report\n__pycache__\n"
    suite.commit("agents", **{".gitignore": ignored}, **files(answers, cases, gate, **config))
    if store == "file":
        suite.ci_eval("run", "--baseline-save")
        suite.commit("baseline")
    suite.git("checkout", "--quiet", "-b", "change")
    share = dice.choice([0.0, 0.3, 1.0])
    for said in answers.values():
        said.update(
            {case: dice.choice(["no", "no", "crash"]) for case in cases if dice.random() < share}
        )
    kept = cases[: len(cases) - dice.choice([0, 0, 1])] or cases
    config["criteria"] = {"response_match_score": dice.choice([0.8, 0.8, 0.5])}
    added = ["new"] * dice.choice([0, 1])
    suite.commit("change", **files(answers, [*kept, *added], gate, **config))


@pytest.mark.parametrize("seed", some(range(40), 1))
def test_all_documents_of_a_run_agree(tmp_path, seed):
    suite = Suite(tmp_path / "shop")
    changed_suite(suite, random.Random(seed))

    ended = suite.ci_eval("run")

    folder = suite.folder / "ci-eval-report"
    before = {name: (folder / name).read_text() for name in NAMES}
    report, totals = suite.report(), suite.report()["totals"]
    verdict = report["verdict"]
    weights = Counter(reason["severity"] for reason in verdict["reasons"])
    assert ended.code == {"passed": 0, "failed": 1, "incomplete": 6}[verdict["outcome"]]
    assert (ended.code == 1) is (weights["blocks"] > 0)
    assert (ended.code == 0) is not (weights["blocks"] or weights["incomplete"])
    counted = [totals[key] for key in ("passed", "failed", "errors", "skipped")]
    assert sum(counted) == totals["cases"]

    for name in ("comment.md", "summary.md"):
        assert re.search(rf"^> \*\*{WORDS[verdict['outcome']]}", before[name], re.MULTILINE)
        tally = re.search(r"^> (\d+) of (\d+) cases? passed.*", before[name], re.MULTILINE)
        assert tally
        assert [int(tally[1]), int(tally[2])] == [totals["passed"], totals["cases"]]
        assert sum(map(int, re.findall(BAD, tally[0]))) == totals["failed"]

    junit = etree.fromstring(before["junit.xml"].encode())
    for kind in ("failure", "error"):
        stated = sum(int(each.get(f"{kind}s")) for each in junit.iterfind("testsuite"))
        assert stated == len(junit.findall(f".//{kind}"))
    is_red = junit.find(".//failure") is not None or junit.find(".//error") is not None
    assert is_red or ended.code == 0
    assert ("::error" in before["annotations.txt"]) or ended.code == 0

    again = suite.ci_eval("report")
    assert again.code == ended.code
    assert {name: (folder / name).read_text() for name in NAMES} == before
    assert suite.ci_eval("gate", "explain").code == 0
