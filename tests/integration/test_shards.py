"""Suites in shards: merged, they are what one machine would have written."""

import json
import os
import random
import re
import shutil
from pathlib import Path

import pytest
from support.documents import essence
from support.git_suites import CONFIG, Suite, evalset
from support.slow_params import some

BREAKS = """\
import time
def answer(text):
    number = int(text.split()[-1])
    if number % 9 == 4:
        raise ValueError(f"no answer to {number}")
    return "no" if number == 7 else "yes"
"""

AGAINST_BASE = {"ci-eval.yaml": CONFIG.replace("store: file", "store: merge_base")}
SAME = {"bot.py": "def answer(message):\n    return 'yes'  # the same\n"}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path / "shop")


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """A suite with the reports of its shards, which no test may change."""
    suite = Suite(tmp_path_factory.mktemp("shards") / "shop")
    suite.begin(12)
    in_shards(suite, 3)
    return suite


def in_shards(suite: Suite, total: int, *args: str, plan: str = "") -> list[str]:
    """Run every shard, and return their folders in a random order."""
    folders = []
    for number in range(1, total + 1):
        folder = f"shards/{number}"
        more = ("--plan", plan) if plan else ()
        ended = suite.ci_eval("run", "--shard", f"{number}/{total}", "--out", folder, *more, *args)
        assert ended.code in (0, 6), ended.err
        folders.append(folder)
    random.Random(total).shuffle(folders)
    return folders


@pytest.mark.slow
@pytest.mark.parametrize("planned", [False, True], ids=["by hash", "by plan"])
def test_merged_shards_are_the_run_of_one_machine(suite, planned):
    # Errors, a broken case that both arms confirm, and cases that fail as before.
    suite.begin(40)
    suite.commit("change", **{"bot.py": BREAKS})
    whole = suite.ci_eval("run", "--out", "whole", "--repeats", "2")
    plan = "plan.json" if planned else ""
    if planned:
        made = suite.ci_eval("plan", "--shards", "7", "--out", plan, "--repeats", "2")
        assert made.code == 0, made.err
        how = "ci-eval run --shard I/7 --plan plan.json"
        assert made.out.endswith(f"wrote plan.json; run each shard with `{how}`\n")
    folders = in_shards(suite, 7, "--repeats", "2", plan=plan)

    merged = suite.ci_eval("merge", *folders, "--out", "merged", "--repeats", "2")

    assert (merged.code, merged.out.replace("merged", "whole")) == (whole.code, whole.out)
    assert "warning: " not in merged.err
    assert json.loads((suite.folder / "whole/base/run.json").read_text())["results"]
    assert essence(suite, "merged") == essence(suite, "whole")


@pytest.mark.slow
def test_with_no_stored_run_every_shard_tries_its_cases_with_the_merge_base(suite):
    suite.begin(12, **AGAINST_BASE)
    suite.commit("change", **{"bot.py": BREAKS})
    whole = suite.ci_eval("run", "--out", "whole")
    folders = in_shards(suite, 3)
    assert all((suite.folder / each / "base/run.json").exists() for each in folders)

    merged = suite.ci_eval("merge", *folders, "--out", "merged")

    assert merged.code == whole.code, merged.err
    assert essence(suite, "merged") == essence(suite, "whole")


@pytest.mark.slow
@pytest.mark.parametrize("total", [1, 3])
def test_where_the_merge_base_only_ends_in_errors_shards_are_merged(suite, total: int):
    suite.begin(6, **AGAINST_BASE, **{"bot.py": "import nothing_of_this_name\n"})
    suite.commit("change", **{"bot.py": "def answer(message):\n    return 'yes'\n"})
    whole = suite.ci_eval("run", "--out", "whole")
    folders = in_shards(suite, total)
    base = [json.loads((suite.folder / each / "shard.json").read_text()) for each in folders]
    assert sum(each["base_trials"] for each in base) == 6

    merged = suite.ci_eval("merge", *folders, "--out", "merged")

    assert merged.code == whole.code, merged.err
    assert essence(suite, "merged") == essence(suite, "whole")


@pytest.mark.slow
def test_trials_of_the_merge_base_that_are_missing_are_not_counted(suite):
    suite.begin(12, **AGAINST_BASE)
    suite.commit("change", **SAME)
    in_shards(suite, 3)
    shutil.rmtree(suite.folder / "shards/2")
    ran = sum(
        json.loads((suite.folder / f"shards/{number}/shard.json").read_text())["base_trials"]
        for number in (1, 3)
    )

    ended = suite.ci_eval("merge", "shards/*", "--out", "merged")

    assert ended.code == 6
    assert 0 < ran < 12
    report = json.loads((suite.folder / "merged/report.json").read_text())
    assert report["comparison"]["base_trials"] == ran


@pytest.mark.slow
def test_why_a_shard_could_not_run_the_merge_base_is_said(suite):
    suite.begin(12, **AGAINST_BASE)
    suite.commit("change", **SAME)
    in_shards(suite, 2)
    path = suite.folder / "shards/1/shard.json"
    report = json.loads(path.read_text()) | {"unconfirmed": "the disk is full", "base_trials": 0}
    path.write_text(json.dumps(report))
    shutil.rmtree(suite.folder / "shards/1/base")

    ended = suite.ci_eval("merge", "shards/*", "--out", "merged")

    assert "(shards/1) could not run the merge base: the disk is full" in ended.err


@pytest.mark.slow
def test_a_shard_of_a_plan_needs_no_other_options(suite):
    suite.begin(9)
    chosen = ("--case", "c[1-4]", "--repeats", "2")
    assert suite.ci_eval("plan", "--shards", "2", "--out", "plan.json", *chosen).code == 0
    folders = in_shards(suite, 2, plan="plan.json")

    ended = suite.ci_eval("merge", *folders, *chosen, "--out", "merged")

    assert ended.code == 0, ended.err
    results = json.loads((suite.folder / "merged/run.json").read_text())["results"]
    assert sorted(each["key"]["case"] for each in results) == sorted(["c1", "c2", "c3", "c4"] * 2)
    ended = suite.ci_eval("run", "--shard", "1/2", "--plan", "plan.json", "--case", "c1")
    assert "it differs in the evalset 'smoke'" in ended.err
    assert "omit the options that select cases, or create a new plan" in ended.err


@pytest.mark.slow
def test_a_shard_without_cases_tries_nothing_with_the_merge_base(suite):
    suite.begin(4, **AGAINST_BASE)
    suite.commit("change", **SAME)
    folders = in_shards(suite, 4)
    trials = [json.loads((suite.folder / each / "shard.json").read_text()) for each in folders]

    assert 0 in [each["trials"] for each in trials]
    assert suite.ci_eval("merge", *folders, "--out", "merged").code == 0


@pytest.mark.slow
def test_cases_that_a_change_renames_are_missing_in_shards_too(suite):
    suite.begin(3, **AGAINST_BASE)
    suite.commit("rename", **{"evals/smoke.csv": evalset(3).replace("\nc", "\nd")})
    ended = suite.ci_eval("merge", *in_shards(suite, 2), "--out", "merged")

    assert ended.code == 1, ended.err
    assert "in the baseline but not in this run: case 'c0' on smoke" in ended.out


@pytest.mark.slow
def test_shards_of_another_merge_base_are_refused(suite):
    suite.begin(12, **AGAINST_BASE)
    suite.commit("better", **{"bot.py": BREAKS})
    suite.commit("change", **{"bot.py": "def answer(text):\n    return 'no'\n"})
    before, after = suite.git("rev-parse", "main", "HEAD~1").split()
    folders = in_shards(suite, 2)
    suite.git("branch", "--force", "main", after)

    ended = suite.ci_eval("merge", *folders, "--out", "merged")

    assert ended.code == 4
    said = f"it ran the merge base {before[:7]}, but the merge base is now {after[:7]}"
    assert said in ended.err
    assert "run all shards again" in ended.err


@pytest.mark.slow
def test_uncommitted_changes_of_a_shard_are_not_forgotten(suite):
    suite.begin(6)
    suite.write("bot.py", "def answer(message):\n    return 'yes' + ''\n")
    folders = in_shards(suite, 2)
    suite.git("checkout", "--quiet", "bot.py")

    assert suite.ci_eval("merge", *folders, "--out", "merged").code == 0
    assert json.loads((suite.folder / "merged/run.json").read_text())["meta"]["modified"]


@pytest.mark.slow
def test_a_shard_decides_nothing(suite):
    suite.begin(9)
    suite.commit("change", **{"bot.py": "def answer(text):\n    return 'no'\n"})
    ended = suite.ci_eval("run", "--shard", "1/2", "--out", "one")

    assert ended.code == 0  # all was measured, whatever it scored
    files = {each.name for each in (suite.folder / "one").iterdir()}
    assert files == {".gitignore", "run.json", "shard.json", "traces.jsonl"}
    assert "`ci-eval merge` decides" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ("report", "shards/2", "--out", "again"),
        ("gate", "explain", "shards/2"),
        ("compare", "shards/1", "shards/2", "--gate"),
        ("baseline", "diff", "shards/2"),
        ("baseline", "save", "shards/2"),
        ("baseline", "save", "shards/2/run.json"),
    ],
    ids=" ".join,
)
def test_no_command_decides_on_a_shard(divided, args):
    ended = divided.ci_eval(*args)

    assert ended.code == 4
    assert "of a suite, which decides nothing alone" in ended.err
    assert not (divided.folder / "again").exists()


@pytest.mark.slow
def test_what_an_earlier_run_left_is_no_shard(suite):
    suite.begin(6)
    assert suite.ci_eval("run", "--shard", "1/2", "--out", "one").code == 0
    assert suite.ci_eval("run", "--out", "one").code == 0

    ended = suite.ci_eval("merge", "one", "--out", "merged")

    assert (ended.code, "one: has no shard.json" in ended.err) == (4, True)


def test_a_missing_shard_is_named_and_never_passes(suite):
    suite.begin(9)
    first, *others = in_shards(suite, 3)
    number = first[-1]

    ended = suite.ci_eval("merge", *others, "--out", "merged")

    assert ended.code == 6
    assert f"no report of shard {number}/3" in ended.out
    report = json.loads((suite.folder / "merged/report.json").read_text())
    assert report["meta"]["missing_shards"] == [f"{number}/3"]
    comment = (suite.folder / "merged/comment.md").read_text()
    assert f"no report of shard {number}/3" in comment
    assert "**Next:** run the jobs of the missing shards again, then merge" in comment
    assert "--case" not in comment + ended.out
    explained = suite.ci_eval("gate", "explain", "merged").out
    assert "the results of the missing shards: run their jobs again" in explained
    # Not even if that much may be missing.
    suite.write("ci-eval.yaml", CONFIG + "gate: {max_errors: 100}\n")
    saved = suite.ci_eval("baseline", "save", "merged")
    assert (saved.code, f"not stored: no report of shard {number}/3" in saved.err) == (4, True)
    again = suite.ci_eval("report", "merged", "--out", "again")
    assert (again.code, "no report of shard" in again.out) == (6, True)


@pytest.mark.slow
def test_a_killed_shard_is_resumed(suite):
    suite.begin(9)
    (whole,) = in_shards(suite, 1)
    traces = suite.folder / whole / "traces.jsonl"
    kept = traces.read_text().splitlines(keepends=True)[:4]
    (suite.folder / whole / "run.json").unlink()
    traces.write_text("".join(kept))

    ended = suite.ci_eval("run", "--shard", "1/1", "--out", whole, "--resume")

    assert (ended.code, "reused 4 trials" in ended.err) == (0, True)


@pytest.mark.slow
def test_a_shard_is_not_resumed_over_the_report_of_another(suite):
    suite.begin(9)
    second = max(in_shards(suite, 2))
    before = (suite.folder / second / "shard.json").read_text()

    for shard, env in (("1/2", {}), ("2/3", {}), ("2", {"CI_EVAL_SHARDS": "3"})):
        ended = suite.ci_eval("run", "--shard", shard, "--out", second, "--resume", **env)
        said = f"{second} has the report of shard 2/2, which would be overwritten"
        assert (ended.code, said in ended.err) == (4, True)

    assert (suite.folder / second / "shard.json").read_text() == before
    assert suite.ci_eval("run", "--shard", "2/2", "--out", second, "--resume").code == 0


@pytest.mark.slow
def test_neither_a_shard_nor_a_whole_suite_is_resumed_over_the_report_of_the_other(suite):
    suite.begin(9)
    (shard,) = in_shards(suite, 1)
    suite.ci_eval("run", "--out", "whole")
    before = [(suite.folder / name).read_text() for name in (f"{shard}/run.json", "whole/run.json")]

    for folder, what, given in (
        ("whole", "a whole suite", ("--shard", "1/3")),
        (shard, "shard 1/1", ()),
    ):
        ended = suite.ci_eval("run", *given, "--out", folder, "--resume")
        said = f"{folder} has the report of {what}, which would be overwritten"
        assert (ended.code, said in ended.err) == (4, True)

    after = [(suite.folder / name).read_text() for name in (f"{shard}/run.json", "whole/run.json")]
    assert after == before
    assert suite.ci_eval("run", "--out", "whole", "--resume").code == 0


@pytest.mark.slow
def test_a_job_that_was_run_again_replaces_its_earlier_attempt(suite):
    suite.begin(6)
    env = {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "shop/bots",
        "GITHUB_RUN_ID": "7",
    }
    for attempt, folder in (("1", "a"), ("2", "b")):
        more = {**env, "GITHUB_RUN_ATTEMPT": attempt}
        assert suite.ci_eval("run", "--shard", "1/1", "--out", folder, **more).code == 0
    for folder in ("a", "b"):
        path = suite.folder / folder / "run.json"
        path.write_text(path.read_text().replace('"duration_s":0.', f'"duration_s":{ord(folder)}.'))

    ended = suite.ci_eval("merge", "b", "a", "--out", "merged")

    assert ended.code == 0, ended.err
    assert '"duration_s":98.' in (suite.folder / "merged/run.json").read_text()


EDITS = [
    ("2/shard.json", '"index": 2', '"index": 1', "of the same shard\npass only one of them"),
    ("1/shard.json", '"version": "', '"version": "0', "it differs in the version of ci-eval"),
    ("1/shard.json", '"commit": "', '"commit": "0', "it differs in the commit"),
    ("1/shard.json", '"smoke": "', '"smoke": "0', "it differs in the evalset 'smoke'"),
    ("1/shard.json", '"suite": "', f'"suite": "{"x" * 9_000}', "it differs in the suite"),
    ("1/shard.json", '"total": 3', '"total": 4', "its cases were assigned differently"),
    ("1/shard.json", '"index": 1', '"index": 0', "must be at least 1, found 0"),
    ("1/shard.json", '"trials": ', '"trials": 1', "trials, but has "),
    ("1/shard.json", '_version": 1', '_version": 0', "has schema version 0; this version"),
    ("1/shard.json", '"attempt": 1', "", "is not JSON"),
    ("1/run.json", '"suite":"', '"suite":"other ', "its run.json is of another run"),
    ("1/run.json", '"commit":"', '"commit":"0', "its run.json is of another run"),
    ("1/run.json", '"results"', "", "expected a name in double quotes"),
    ("1/run.json", '"case":"c', '"case":"x', "no shard has a result for bot on smoke/"),
    ("1/run.json", '"case_fingerprint":"', '"case_fingerprint":"0', "belongs to another trial"),
    ("1/run.json", 'score","name":"', 'score","name":"other ', "'other response_match_score'"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), some(EDITS, 4))
def test_a_report_that_was_edited_is_refused(divided, tmp_path, *, file, old, new, message):
    suite = copy_of(divided, tmp_path)
    path = suite.folder / "shards" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))

    ended = suite.ci_eval("merge", "shards/*", "--out", "merged")

    assert (ended.code, "Traceback" in ended.err) == (4, False)
    assert message in ended.err
    assert len(ended.err) < 2_000


def test_a_report_of_an_older_version_is_refused_with_that_reason(divided, tmp_path):
    suite = copy_of(divided, tmp_path)
    path = suite.folder / "shards/1/shard.json"
    report = json.loads(path.read_text())
    del report["run_id"]
    report["manifest"]["version"] = "0.0.1"
    path.write_text(json.dumps(report))

    ended = suite.ci_eval("merge", "shards/*", "--out", "merged")

    assert (ended.code, "it differs in the version of ci-eval" in ended.err) == (4, True)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["gone", "cut off"])
def test_a_report_that_lacks_its_results_is_refused_with_a_way_out(divided, tmp_path, change):
    suite = copy_of(divided, tmp_path)
    path = suite.folder / "shards/2/run.json"
    if change == "gone":
        path.unlink()
    else:
        path.write_text(path.read_text()[:-200])

    ended = suite.ci_eval("merge", "shards/*", "--out", "merged")

    assert ended.code == 4
    expected = "shard 2/3 (shards/2) cannot be merged: it has no run.json"
    assert (expected if change == "gone" else "shards/2/run.json:") in ended.err
    assert "run the shard again, or omit its folder to merge without a verdict" in ended.err
    shutil.rmtree(path.parent)
    assert suite.ci_eval("merge", "shards/*", "--out", "merged").code == 6


def emptied(path: Path) -> None:
    path.write_text("")


def shortened(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def made_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", some([Path.unlink, emptied, shortened, made_folder], 1))
def test_a_merge_warns_of_missing_conversations_of_a_shard(divided, tmp_path, change):
    suite = copy_of(divided, tmp_path)
    traces = suite.folder / "shards/2/traces.jsonl"
    trials = len(traces.read_text().splitlines())
    change(traces)

    ended = suite.ci_eval("merge", "shards/*", "--out", "merged")

    assert ended.code == 0
    kept = trials - 1 if change is shortened else 0
    said = f"warning: shards/2/traces.jsonl has the conversations of only {kept} of {trials} trials"
    assert said in ended.err
    assert ended.err.count("warning: ") == 1


def copy_of(suite: Suite, folder: Path) -> Suite:
    shutil.copytree(suite.folder, folder / "shop")
    return Suite(folder / "shop")


def test_the_results_of_a_shard_are_not_those_of_another(divided, tmp_path):
    suite = copy_of(divided, tmp_path)
    shards = suite.folder / "shards"
    shutil.copy(shards / "1/run.json", shards / "2/run.json")

    ended = suite.ci_eval("merge", "shards/*", "--out", "merged")

    assert (ended.code, "its run.json is of another run" in ended.err) == (4, True)


@pytest.mark.slow
def test_the_results_of_an_earlier_run_of_a_shard_are_refused(divided, tmp_path):
    suite = copy_of(divided, tmp_path)
    assert suite.ci_eval("run", "--shard", "1/3", "--out", "earlier").code == 0
    shutil.copy(suite.folder / "earlier/run.json", suite.folder / "shards/1/run.json")

    ended = suite.ci_eval("merge", "shards/*", "--out", "merged")

    assert (ended.code, "its run.json is of another run" in ended.err) == (4, True)


def test_the_same_report_twice_counts_once(divided, tmp_path):
    suite = copy_of(divided, tmp_path)
    shutil.copytree(suite.folder / "shards/1", suite.folder / "shards/9")
    assert suite.ci_eval("merge", "shards/*", "--out", "merged").code == 0


@pytest.mark.slow
def test_a_quiet_merge_says_nothing_of_its_shards(divided, tmp_path):
    suite = copy_of(divided, tmp_path)
    assert "merging 3 of 3 shards" in suite.ci_eval("merge", "shards/*", "--out", "merged").err
    assert suite.ci_eval("merge", "shards/*", "--out", "merged", "-q").err == ""


@pytest.mark.slow
def test_the_merge_writes_over_no_report(divided, tmp_path):
    suite = copy_of(divided, tmp_path)
    (suite.folder / "shards/1").rename(suite.folder / "shards/base")
    for out in ("shards/2", "shards"):
        ended = suite.ci_eval("merge", "shards/*", "--out", out)
        assert (ended.code, f"--out {out} is one of the reports" in ended.err) == (4, True)
    assert (suite.folder / "shards/base/run.json").exists()


@pytest.mark.slow
def test_no_trace_of_a_shard_replaces_a_trial_that_confirms(suite):
    suite.begin(12)
    suite.commit("change", **{"bot.py": BREAKS})
    folders = in_shards(suite, 2)
    texts = {each: (suite.folder / each / "traces.jsonl").read_text() for each in folders}
    shard = next(each for each, text in texts.items() if '"c7"' in text)
    lines = texts[shard].splitlines()
    own = next(json.loads(line) for line in lines if '"c7"' in line)
    turns = next(json.loads(line)["invocations"] for line in lines if '"yes"' in line)
    with (suite.folder / shard / "traces.jsonl").open("a") as file:
        for repeat in range(10, 60):
            file.write(json.dumps(own | {"repeat": repeat, "invocations": turns}) + "\n")

    ended = suite.ci_eval("merge", *folders, "--out", "merged")

    assert (ended.code, "'c7'" in ended.out) == (1, True)
    kept = (suite.folder / "merged/traces.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in kept if '"c7"' in line]
    assert {each["invocations"][0]["final_response"]["parts"][0]["text"] for each in told} == {"no"}


@pytest.mark.parametrize(
    ("args", "message"),
    some(
        [
            (("run", "--shard", "4/3"), "there is no shard 4/3; they are numbered from 1, up to 3"),
            (("run", "--shard", ""), "--shard is empty"),
            (("run", "--out", ""), "--out is empty"),
            (("run", "--shard", "1/3", "--plan", ""), "--plan is empty"),
            (("plan", "--shards", "3", "--out", ""), "--plan/--out is empty"),
            (("merge", "nowhere", "--redraw-plan", ""), "--redraw-plan is empty"),
            (("run", "--engine", "rai"), "--engine rai: unknown engine"),
            (("run", "--shard", "0/3"), "there is no shard 0/3"),
            (("run", "--shard", "1/2000"), "2000 shards are too many; the maximum is 1000"),
            (("run", "--shard", "2"), "the number of shards is unknown"),
            (("run", "--shard", "two"), "found 'two'"),
            (("run", "--shard", "auto"), "found no number of this job"),
            (("run", "--shard", "1/3", "--maxfail", "1"), "cannot be run with --maxfail"),
            (("run", "--shard", "1/3", "--failed"), "cannot be run with --failed"),
            (("run", "--shard", "1/3", "--plan", "none.json"), "none.json"),
            (("run", "--shard", "1/3", "--plan", "ci-eval.yaml"), "is not JSON"),
            (("run", "--plan", "plan.json"), "--plan needs --shard"),
            (("plan", "--out", "plan.json"), "--out needs --shards"),
            (("merge", "nowhere"), "nowhere: is not a folder"),
            (("merge", "nowhere/*"), "nowhere/*: matches no folder"),
            (("merge",), "Missing argument"),
        ],
        5,
    ),
)
def test_wrong_arguments_are_explained(suite, args, message):
    suite.begin(9)
    ended = suite.ci_eval(*args)
    assert (ended.code, "Traceback" in ended.err) == (4, False)
    assert message in ended.err


@pytest.mark.parametrize(
    "args",
    [
        ("merge", "shards/*", "--out", "merged", "--redraw-plan", "shards/1/run.json"),
        ("merge", "shards/*", "--out", "merged", "--redraw-plan", "shards/1/shard.json"),
        ("merge", "shards/*", "--out", "merged", "--redraw-plan", "ci-eval.yaml"),
        ("plan", "--shards", "2", "--out", "ci-eval.yaml"),
        ("plan", "--shards", "2", "--out", "evals/smoke.csv"),
        ("run", "--record", "ci-eval.yaml"),
        ("run", "--record", "evals/smoke.csv"),
        ("run", "--record", "shards/1/run.json"),
        ("run", "--shard", "1/2", "--record", "ci-eval.yaml"),
    ],
    ids=" ".join,
)
def test_no_file_of_another_kind_is_overwritten(divided, args):
    path = divided.folder / args[-1]
    before = path.read_bytes()

    ended = divided.ci_eval(*args)

    assert (ended.code, "so it is not overwritten" in ended.err) == (4, True)
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
@pytest.mark.parametrize("args", [("plan", "--shards", "2", "--out"), ("run", "--record")])
def test_no_pipe_or_device_is_replaced(divided, args):
    os.mkfifo(path := divided.folder / "pipe")

    ended = divided.ci_eval(*args, "pipe")

    assert (ended.code, "pipe: is not a file" in ended.err) == (4, True)
    assert path.is_fifo()
    path.unlink()


@pytest.mark.slow
def test_a_file_of_the_same_kind_is_overwritten(suite):
    suite.begin(6)
    for _ in range(2):
        assert suite.ci_eval("plan", "--shards", "2", "--out", "plan.json").code == 0
        assert suite.ci_eval("run", "--record", "tape.jsonl").code == 0


def test_a_shard_with_nothing_to_rerun_keeps_its_report(divided, tmp_path):
    suite = copy_of(divided, tmp_path)
    assert suite.ci_eval("run", "--failed", "--out", "shards/2").code == 5
    assert (suite.folder / "shards/2/shard.json").exists()


@pytest.mark.slow
def test_a_plan_of_something_else_is_refused(suite):
    suite.begin(9)
    assert suite.ci_eval("plan", "--shards", "3", "--out", "plan.json").code == 0
    count = suite.ci_eval("run", "--shard", "1/2", "--plan", "plan.json")
    assert "--shard says 2 shards, but the plan has 3" in count.err
    number = {"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "2"}
    count = suite.ci_eval("run", "--shard", "auto", "--plan", "plan.json", **number)
    assert "the environment says 2 shards, but the plan has 3" in count.err
    suite.write("evals/smoke.csv", evalset(10))
    ended = suite.ci_eval("run", "--shard", "1/3", "--plan", "plan.json")
    assert (ended.code, "it differs in the evalset 'smoke'" in ended.err) == (4, True)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["gone", "twice", "unknown"])
def test_a_plan_that_was_edited_by_hand_is_refused(suite, change):
    suite.begin(9)
    assert suite.ci_eval("plan", "--shards", "2", "--out", "plan.json").code == 0
    path = suite.folder / "plan.json"
    plan = json.loads(path.read_text())
    first, second = (each["cases"]["bot"]["smoke"] for each in plan["shards"])
    match change:
        case "gone":
            first.pop()
        case "twice":
            second.append(first[0])
        case "unknown":
            second.append("nobody")
    path.write_text(json.dumps(plan))

    ended = suite.ci_eval("run", "--shard", "1/2", "--plan", "plan.json")

    assert (ended.code, "each case of the suite to one shard" in ended.err) == (4, True)


@pytest.mark.slow
def test_the_number_of_a_job_is_found_in_its_environment(suite):
    suite.begin(9)
    numbers = {
        "2/3": {"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "3"},
        "1/2": {"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "2"},
        "3/4": {"JOB_COMPLETION_INDEX": "2", "CI_EVAL_SHARDS": "4"},
    }
    for shown, env in numbers.items():
        ended = suite.ci_eval("run", "--shard", "auto", "--out", "one", **env)
        assert f"shard {shown}: " in ended.out


@pytest.mark.slow
def test_the_number_of_shards_may_be_in_the_environment(suite):
    suite.begin(9)
    for given, env in (("2", {}), ("auto", {"CI_NODE_INDEX": "2"})):
        ended = suite.ci_eval("run", "--shard", given, "--out", "one", CI_EVAL_SHARDS="3", **env)
        assert "shard 2/3: " in ended.out
    assert "no shard 1/0" in suite.ci_eval("run", "--shard", "1/0", CI_EVAL_SHARDS="3").err
    assert suite.ci_eval("plan", "--shards", "2", "--out", "plan.json").code == 0
    planned = ("--shard", "2", "--plan", "plan.json")
    assert "shard 2/2: " in suite.ci_eval("run", *planned, CI_EVAL_SHARDS="3").out


@pytest.mark.slow
@pytest.mark.parametrize("planned", [False, True], ids=["by hash", "by plan"])
def test_some_of_more_shards_than_cases_have_nothing_to_run(suite, planned):
    suite.begin(2)
    if planned:
        ended = suite.ci_eval("plan", "--shards", "3", "--out", "plan.json")
        assert "1 of 3 shards have nothing to run" in ended.err
    folders = in_shards(suite, 3, plan="plan.json" if planned else "")
    ended = suite.ci_eval("merge", *folders)
    assert (ended.code, suite.report()["totals"]["cases"]) == (0, 2), ended.err


@pytest.mark.slow
def test_a_plan_balances_what_stored_runs_took(suite):
    slow = "def answer(text):\n    time.sleep(1.5 if '3' in text else 0.001)\n    return 'yes'\n"
    suite.begin(8, **{"bot.py": f"import time\n{slow}"})
    made = suite.ci_eval("plan", "--shards", "2", "--json", "--out", "plan.json")
    plan = json.loads((suite.folder / "plan.json").read_text())
    cases = [each["cases"]["bot"]["smoke"] for each in plan["shards"]]
    assert [len(each) for each in cases] == [1, 7]
    assert cases[0] == ["c3"]
    assert json.loads(made.out)["matrix"] == {"shard": ["1/2", "2/2"]}


def test_a_plan_tells_when_more_shards_do_not_help(suite):
    suite.begin(9)
    shown = suite.ci_eval("plan", "--shards", "3").out
    assert re.search(r"^3 shards of [1-4]( to [3-7])? trials, expected to ", shown, re.MULTILINE)
    assert "run.concurrency is 2 for the whole suite, so more than 2 shards do not help" in shown


@pytest.mark.slow
def test_a_plan_counts_the_trials_of_the_merge_base(suite):
    suite.begin(10)
    assert suite.ci_eval("plan").out.endswith("\n10 trials; at most 100 if in doubt\n")

    suite.commit("change", **AGAINST_BASE)
    counted = "\n10 trials, and as many with the merge base, on cases that it also has; at most 100"
    assert counted in suite.ci_eval("plan").out

    assert suite.ci_eval("plan", "--json").json["base_trials"] == 10
    with_base = ", and as many with the merge base, on cases that it also has"
    for gate, ending in (
        ("confirm: candidate", f"{with_base}; at most 100 if in doubt\n"),
        ("rerun_budget: 1", f"{with_base}\n"),
        ("on_inconclusive: fail", f"{with_base}\n"),
        ("mode: threshold", "\n"),
    ):
        suite.commit(
            "change", **{"ci-eval.yaml": AGAINST_BASE["ci-eval.yaml"] + f"gate: {{{gate}}}\n"}
        )
        assert f"\n10 trials{ending}" in suite.ci_eval("plan").out
