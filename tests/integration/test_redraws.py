"""Doubt that other jobs settle: the plan of a redraw, its shards, and the merge of all reports."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from servers.loopback import Loopback, Reply, Request, as_json, serving
from servers.models import Models
from support.commands import Ended
from support.documents import essence
from support.git_suites import CONFIG, Suite
from support.model_projects import CHAT

pytestmark = pytest.mark.slow

ONE_BREAKS = """\
def answer(text):
    return "no" if text == "question 7" else "yes"
"""
LENIENT = CONFIG.replace("0.8", "0.3")
MANY_FALL = """\
def answer(text):
    return "yes maybe" if int(text.split()[-1]) % 3 == 0 else "yes"
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path / "shop")


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """A suite in doubt with the reports of its shards and of a redraw; no test may change it."""
    suite = Suite(tmp_path_factory.mktemp("redraws") / "shop")
    in_doubt(suite, MANY_FALL, LENIENT)
    assert planned(suite).code == 6
    redraw(suite)
    return suite


def copy_of(suite: Suite, folder: Path) -> Suite:
    shutil.copytree(suite.folder, folder / "shop")
    return Suite(folder / "shop")


def in_doubt(suite: Suite, code: str, config: str = CONFIG) -> None:
    """Begin a suite, change its agent, and run the shards."""
    suite.begin(12)
    suite.commit("change", **{"bot.py": code, "ci-eval.yaml": config})
    for number in (1, 2, 3):
        ended = suite.ci_eval("run", "--shard", f"{number}/3", "--out", f"shards/{number}")
        assert ended.code == 0, ended.err


def planned(suite: Suite, *args: str, **env: str) -> Ended:
    """Merge, and leave a doubt to other jobs."""
    merge = ("merge", "shards/*", "--out", "merged", "--redraw-plan", "redraw.json")
    return suite.ci_eval(*merge, *args, **env)


def plan_of(suite: Suite) -> Any:
    return json.loads((suite.folder / "redraw.json").read_text())


def redraw(suite: Suite, **env: str) -> int:
    """Run the shards of a redraw, and return how many trials of both arms they ran."""
    plan, trials = plan_of(suite), 0
    number, total = plan["redraw"]["number"], len(plan["shards"])
    for index in range(1, total + 1):
        shard = ("--shard", f"{index}/{total}", "--plan", "redraw.json", "--json")
        ended = suite.ci_eval("run", *shard, "--out", f"shards/again{number}-{index}", **env)
        assert ended.code == 0, ended.err
        report = json.loads(ended.out)
        assert report["trials"] + report["base_trials"] == plan["shards"][index - 1]["trials"]
        trials += report["trials"] + report["base_trials"]
    return trials


def merged(suite: Suite) -> Ended:
    return suite.ci_eval("merge", "shards/*", "--out", "merged")


@pytest.mark.parametrize(
    ("code", "config", "first"),
    [
        (ONE_BREAKS, CONFIG, 1),  # of the case
        (MANY_FALL, LENIENT, 12),  # of the merge base
        (MANY_FALL, LENIENT.replace("store: file", "store: merge_base"), 24),  # of both
        (MANY_FALL, LENIENT + "gate: {confirm: candidate}\n", 20),  # five of each suspect
    ],
    ids=["a case breaks", "many scores fall", "nothing is stored", "without the merge base"],
)
def test_a_redraw_decides_what_the_merge_decides_by_itself(suite, code, config, first):
    in_doubt(suite, code, config)
    whole = suite.ci_eval("run", "--out", "whole")
    drawn = []
    while planned(suite).code == 6:
        drawn.append(redraw(suite))
        if len(drawn) == 1:  # the merge itself confirms what is left
            half = suite.ci_eval("merge", "shards/*", "--out", "half")
            assert (half.code, essence(suite, "half")) == (whole.code, essence(suite, "whole"))

    assert drawn[0] == first
    assert not (suite.folder / "redraw.json").exists()
    assert essence(suite, "merged") == essence(suite, "whole")


class Far(Loopback):
    """An agent that anyone with the key can reach."""

    def reply(self, request: Request) -> Reply:
        return as_json({"text": "yes" if request.headers["x-key"] == "far-away-key" else "no"})


FAR = """
agents:
  bot: {python: "bot:answer"}
  far:
    http: "%s"
    headers: {X-Key: "${FAR_KEY}"}
    body: {text: "{{ message }}"}
    response: answer.text
"""


def test_a_job_that_runs_no_agent_needs_none_of_their_keys(suite):
    with serving(far := Far()):
        config = CONFIG.replace("store: file", "store: merge_base")
        config = config.replace('agents: {bot: {python: "bot:answer"}}\n', FAR % far.url)
        suite.begin(8, **{"ci-eval.yaml": config})
        suite.commit("change", **{"bot.py": ONE_BREAKS})
        made = suite.ci_eval("plan", "--shards", "2", "--out", "plan.json")
        assert made.code == 0, made.err
        for number in (1, 2):
            shard = ("run", "--shard", f"{number}/2", "--plan", "plan.json")
            refused = suite.ci_eval(*shard, "--out", f"shards/{number}")
            assert (refused.code, "'FAR_KEY' is not set" in refused.err) == (4, True)
            ended = suite.ci_eval(*shard, "--out", f"shards/{number}", FAR_KEY="far-away-key")
            assert ended.code == 0, ended.err
        assert planned(suite).code == 6
        refused = merged(suite)
        assert (refused.code, "'FAR_KEY' is not set" in refused.err) == (4, True)
        merge = ("merge", "shards/*", "--out", "merged")
        assert suite.ci_eval(*merge, FAR_KEY="far-away-key").code == 1
        assert suite.ci_eval("report", "merged").code == 1


ASKS = (
    CHAT
    + """
def answer(text):
    return ask(text) and ("yes maybe" if int(text.split()[-1]) % 3 == 0 else "yes")
"""
)


def test_a_job_that_only_plans_needs_no_key_of_models(suite):
    models = "models: {mode: auto, cassette: models.jsonl}"
    config = LENIENT.replace("store: file", "store: merge_base")
    config = config.replace('"bot:answer"', f'"bot:answer", {models}')
    with serving(server := Models()):
        own = {name: text for name, text in server.environment().items() if "OPENAI" in name}
        suite.begin(12, **{"ci-eval.yaml": config, "bot.py": ASKS.replace(" maybe", "")})
        suite.commit("change", **{"bot.py": ASKS})
        for number in (1, 2, 3):
            shard = ("run", "--shard", f"{number}/3", "--out", f"shards/{number}")
            ended = suite.ci_eval(*shard, **own)
            assert ended.code == 0, ended.err
        assert planned(suite).code == 6
        assert redraw(suite, **own) == 24
    decided = [planned(suite).code, merged(suite).code]
    assert decided == [1, 1]


def test_what_was_left_in_doubt_is_not_green_and_decides_nothing(redrawn, tmp_path):
    suite = copy_of(redrawn, tmp_path)
    for each in (suite.folder / "shards").glob("again*"):
        shutil.rmtree(each)
    outputs = tmp_path / "outputs"

    ended = planned(suite, "--baseline-save", GITHUB_OUTPUT=str(outputs))

    assert (ended.code, "INCOMPLETE: the verdict is in doubt" in ended.out) == (6, True)
    assert "run `ci-eval run --shard I/3 --plan redraw.json`, then merge all" in ended.out
    told = outputs.read_text()
    assert '{"shard": ["1/3", "2/3", "3/3"]}' in told
    assert "\nincomplete\n" in told
    left = {each.name for each in (suite.folder / "merged").iterdir()}
    assert not left & {"run.json", "report.json", "comment.md", "junit.xml"}
    assert "baseline" not in suite.git("status", "--porcelain").replace("merged/", "")
    shown = json.loads(planned(suite, "--json").out)
    assert shown["matrix"] == {"shard": ["1/3", "2/3", "3/3"]}
    assert sum(each["trials"] for each in shown["shards"]) == 12


def test_without_a_doubt_no_redraw_is_planned(suite, tmp_path):
    in_doubt(suite, "def answer(text):\n    return 'yes'\n")
    made = suite.ci_eval("plan", "--shards", "3", "--out", "redraw.json")
    assert made.code == 0  # stands for the plan of an earlier merge
    outputs = tmp_path / "outputs"

    ended = planned(suite, GITHUB_OUTPUT=str(outputs))

    assert (ended.code, (suite.folder / "merged/report.json").exists()) == (0, True)
    assert not (suite.folder / "redraw.json").exists()
    assert "matrix" not in outputs.read_text()


def test_a_missing_shard_of_a_redraw_is_named_and_never_passes(redrawn, tmp_path):
    suite = copy_of(redrawn, tmp_path)
    shutil.rmtree(suite.folder / "shards/again1-2")

    ended = merged(suite)

    assert (ended.code, "no report of shard 2/3 of redraw 1" in ended.out) == (6, True)
    report = json.loads((suite.folder / "merged/report.json").read_text())
    assert report["meta"]["missing_shards"] == ["2/3 of redraw 1"]


def test_the_same_report_of_a_redraw_twice_counts_once(redrawn, tmp_path):
    suite = copy_of(redrawn, tmp_path)
    shutil.copytree(suite.folder / "shards/again1-1", suite.folder / "shards/copy")
    assert merged(suite).code == merged(redrawn).code == 1


def of_another_first_run(suite: Suite) -> None:
    ended = suite.ci_eval("run", "--shard", "1/3", "--out", "shards/1")
    assert ended.code == 0, ended.err


def of_one_shard_again(suite: Suite) -> None:
    shard = ("--shard", "1/3", "--plan", "redraw.json")
    assert suite.ci_eval("run", *shard, "--out", "shards/again1-4").code == 0


def of_one_merge_base_edited(suite: Suite) -> None:
    folder = suite.folder / "shards/copy"
    shutil.copytree(suite.folder / "shards/again1-1", folder)
    path = folder / "base/run.json"
    path.write_text(path.read_text().replace('"value":1.0', '"value":0.0'))


def with_another_trial(suite: Suite) -> None:
    for path in (suite.folder / "shards").glob("again*/shard.json"):
        report = json.loads(path.read_text())
        report["redraw"]["base"]["rounds"] = [0, 2]
        path.write_text(json.dumps(report))


def with_two_plans(suite: Suite) -> None:
    path = suite.folder / "shards/again1-1/shard.json"
    path.write_text(path.read_text().replace('"assignment": "', '"assignment": "0'))


def with_another_number(suite: Suite) -> None:
    for path in (suite.folder / "shards").glob("again*/shard.json"):
        path.write_text(path.read_text().replace('"number": 1', '"number": 2'))


def without_a_result(suite: Suite) -> None:
    path = suite.folder / "shards/again1-1/base/run.json"
    head, *lines, end = path.read_text().splitlines(keepends=True)
    path.write_text("".join((head, *lines[1:], end)))


def without_its_results(suite: Suite) -> None:
    (suite.folder / "shards/again1-1/base/run.json").unlink()


def without_the_first_run(suite: Suite) -> None:
    for number in (1, 2, 3):
        shutil.rmtree(suite.folder / f"shards/{number}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (of_another_first_run, "it confirms reports other than those being merged"),
        (of_one_shard_again, "is another run of the same shard\npass only one of them"),
        (of_one_merge_base_edited, "is another run of the same shard\npass only one of them"),
        (with_another_trial, "its trials are not those that the verdict needs"),
        (with_two_plans, "its cases were assigned differently"),
        (with_another_number, "there is a report of redraw 2, but none of redraw 1"),
        (without_a_result, "no shard has a result for bot on smoke/"),
        (without_its_results, "no shard has a result for bot on smoke/"),
        (without_the_first_run, "there is a report of redraw 1, but none of the shards"),
    ],
)
def test_a_redraw_that_does_not_fit_is_refused(redrawn, tmp_path, change, message):
    suite = copy_of(redrawn, tmp_path)
    change(suite)

    ended = merged(suite)

    assert (ended.code, "Traceback" in ended.err) == (4, False)
    assert message in ended.err


def test_no_plan_is_left_by_a_merge_that_fails(redrawn, tmp_path):
    suite = copy_of(redrawn, tmp_path)
    of_one_shard_again(suite)

    assert planned(suite).code == 4
    assert not (suite.folder / "redraw.json").exists()


def test_a_plan_of_a_redraw_is_of_one_commit(redrawn, tmp_path):
    suite = copy_of(redrawn, tmp_path)
    suite.commit("another change", **{"notes.md": "none"})

    ended = suite.ci_eval("run", "--shard", "1/3", "--plan", "redraw.json")

    assert (ended.code, "it differs in the commit" in ended.err) == (4, True)
    assert "create a new plan: `ci-eval merge REPORT… --redraw-plan FILE`" in ended.err


@pytest.mark.parametrize("change", ["more", "fewer", "unknown", "twice", "endless"])
def test_a_plan_of_a_redraw_that_was_edited_is_refused(redrawn, tmp_path, change):
    suite = copy_of(redrawn, tmp_path)
    plan = plan_of(suite)
    base, (first, second, _) = plan["redraw"]["base"], plan["shards"]
    trials = first["trials"]
    match change:
        case "more":
            base["rounds"] = [0, 2]
        case "fewer":
            base["pairs"] = []
        case "unknown":
            first["cases"]["bot"]["smoke"][0] = "nobody"
        case "twice":
            second["cases"]["bot"]["smoke"] += first["cases"]["bot"]["smoke"]
        case "endless":
            base["rounds"] = [0, 10**9]
    suite.write("redraw.json", json.dumps(plan))

    ended = suite.ci_eval("run", "--shard", "1/3", "--plan", "redraw.json")

    assert (ended.code, "Traceback" in ended.err) == (4, False)
    message = {
        "more": f"the plan has {trials} trials for this shard, but {2 * trials} can be run",
        "fewer": f"the plan has {trials} trials for this shard, but 0 can be run",
        "endless": "must be at most 100",
    }
    assert message.get(change, "the plan does not assign each case of the suite") in ended.err


def test_a_shard_whose_merge_base_cannot_be_run_says_so(redrawn, tmp_path):
    suite = copy_of(redrawn, tmp_path)
    shutil.rmtree(suite.folder / ".git/objects/pack", ignore_errors=True)
    base = suite.git("merge-base", "main", "HEAD").strip()
    (suite.folder / ".git/objects" / base[:2] / base[2:]).unlink()

    ended = suite.ci_eval("run", "--shard", "1/3", "--plan", "redraw.json")

    assert (ended.code, "the merge base" in ended.err) == (4, True)
    assert "trials for this shard, but 0 can be run" in ended.err


def test_a_redraw_of_an_earlier_attempt_does_not_count(redrawn, tmp_path):
    suite = copy_of(redrawn, tmp_path)
    for path in (suite.folder / "shards").glob("*/shard.json"):
        attempt = 1 if "again" in str(path) else 2
        report = json.loads(path.read_text())
        report |= {"workflow_run": "https://github.com/shop/bots/actions/runs/7"}
        path.write_text(json.dumps(report | {"attempt": attempt}))

    ended = planned(suite)

    assert (ended.code, plan_of(suite)["redraw"]["number"]) == (6, 1)
    assert ended.err.count("belongs to an earlier attempt than the shards that it confirms") == 3


@pytest.mark.parametrize(
    "gate", ["confirm: off", "mode: threshold", "on_inconclusive: warn", "rerun_budget: 1"]
)
def test_a_suite_that_never_confirms_has_no_redraw(suite, gate):
    suite.begin(4)
    suite.write("ci-eval.yaml", f"{CONFIG}gate: {{{gate}}}\n")

    ended = planned(suite)

    assert (ended.code, f"--redraw-plan has nothing to plan: gate.{gate}" in ended.err) == (4, True)


def test_recordings_and_suites_without_a_baseline_have_no_redraw(suite):
    suite.begin(4)
    suite.write("ci-eval.yaml", CONFIG.replace("baseline: {store: file}\n", ""))
    assert "has nothing to plan: no baseline is configured" in planned(suite).err
    suite.write("tape.jsonl", "")
    suite.write("ci-eval.yaml", CONFIG.replace('python: "bot:answer"', "recorded: tape.jsonl"))
    assert "has nothing to plan: every agent replays a recording" in planned(suite).err


def test_a_redraw_is_not_resumed_over_a_shard_of_the_first_run(redrawn, tmp_path):
    suite = copy_of(redrawn, tmp_path)
    shard = ("--shard", "1/3", "--resume", "--plan", "redraw.json")

    ended = suite.ci_eval("run", *shard, "--out", "shards/1")
    assert (ended.code, "has the report of shard 1/3, which would be" in ended.err) == (4, True)
    assert suite.ci_eval("run", *shard, "--out", "shards/again1-1").code == 0
    assert merged(suite).code == 1
