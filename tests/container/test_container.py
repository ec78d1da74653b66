"""The action in its image, as GitHub runs it; `run.sh` in this folder builds the image."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from container.github import RUNNER_UID, SECRET, Job
from servers.github import TOKEN, FakeGitHub, Fault, github
from support.copied_examples import copy_examples
from support.git_repositories import Repo

from ci_eval.forge.rest import ANSWER_S

IMAGE = os.environ.get("CI_EVAL_IMAGE", "")  # how run.sh hands it over

pytestmark = pytest.mark.skipif(not IMAGE, reason="tests/container/run.sh runs it with an image")

WEATHER = "examples/weather/ci-eval.yaml"
AGENT_UID = 58734
BASE_AGENT_UID = 58736
"""Of the accounts `ci-eval-agent` and `ci-eval-base-agent`."""
STOP_WITHIN_S = 50
"""How long `docker stop` waits before it kills."""
BASE = "python:3.12-slim"
SPY = (Path(__file__).parent / "spy.py").read_text(encoding="utf-8")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Return a job in which the repository is checked out: its examples, in one commit."""
    job = Job(tmp_path, IMAGE)
    copy_examples(job.workspace / "examples")
    repo = Repo(job.workspace)
    repo.git("init", "--quiet")
    repo.commit("Examples")
    job.give(tmp_path)
    return job


def docker(*arguments: str) -> str:
    return subprocess.check_output(["docker", *arguments], text=True)


def head(job: Job) -> str:
    return Repo(job.workspace).git("-c", "safe.directory=*", "rev-parse", "HEAD")


LOST = """
from csv import reader
from importlib.metadata import distributions
for each in distributions():
    for file, *_ in reader(each.read_text("RECORD").splitlines()):
        if not each.locate_file(file).exists():
            print(file)
"""


def test_packages_are_shipped_as_they_were_installed() -> None:
    python = ["--entrypoint", "/opt/ci-eval/bin/python", IMAGE, "-I", "-c", LOST]
    assert docker("run", "--rm", *python) == ""
    ours, base = (
        docker("run", "--rm", "--entrypoint", "dpkg", image, "--verify").splitlines()
        for image in (IMAGE, BASE)
    )
    # Slim images are installed without manuals; the lists are those of apt-get update.
    elsewhere = re.compile(r" /usr/share/(doc|info|lintian|locale|man)/| /var/lib/apt/lists/")
    assert [line for line in set(ours) - set(base) if not elsewhere.search(line)] == []


def test_the_image_is_at_most_300_mb_larger_than_its_base() -> None:
    ours, base = (
        int(docker("image", "inspect", "--format", "{{.Size}}", image)) for image in (IMAGE, BASE)
    )
    assert 0 < ours - base < 300e6


def test_a_run_that_passes(job: Job) -> None:
    step = job.uses_action({"config": WEATHER})
    assert (step.exit_code, step.annotations) == (0, []), step.stderr
    assert step.outputs == {
        "verdict": "passed",
        "exit-code": "0",
        "report-dir": "ci-eval-report",
        "pass-rate": "1.0000",
        "regressions": "",
        "junit": "ci-eval-report/junit.xml",
        "comment": "ci-eval-report/comment.md",
        "comment-status": "off",
        "comment-url": "",
    }
    assert "weather" in step.summary
    for document in ("junit", "comment"):
        assert (job.workspace / step.outputs[document]).stat().st_size
    run = json.loads((job.workspace / "ci-eval-report" / "run.json").read_text(encoding="utf-8"))
    assert run["meta"]["commit"] == head(job)


def test_a_regression_fails(job: Job) -> None:
    step = job.uses_action({"working-directory": "examples/regression"})
    assert step.exit_code == 1, step.stderr
    assert step.outputs["verdict"] == "failed"
    assert int(step.outputs["regressions"]) >= 1
    assert step.outputs["report-dir"] == "examples/regression/ci-eval-report"
    evalset = "examples/weather/evals/smoke.evalset.json"
    assert any(line.startswith(f"::error file={evalset},line=") for line in step.annotations)


SUITE = """
agents: {bot: {python: "bot:answer"}}
evalsets: {smoke: smoke.csv}
criteria: {response_match_score: 0.8}
baseline: {store: merge_base}
"""
BOT = """
import glob, os, tempfile

def answer(text):
    for tree in glob.glob(tempfile.gettempdir() + "/ci-eval-base-*"):
        try:
            found = os.listdir(tree + "/tree")
        except OSError as exc:
            found = type(exc).__name__
        print(os.getuid(), "sees", found)
    return ANSWER
"""


def test_the_arms_of_a_run_are_users_of_their_own_and_do_not_see_each_other(job: Job) -> None:
    repo = Repo(job.workspace)
    files = {"ci-eval.yaml": SUITE, "smoke.csv": "prompt,expected\nhello,yes\nbye,yes\n"}
    safe = "-c", "safe.directory=*"
    for name, answer in (("base", "'yes'"), ("change", "'no' if 'bye' in text else 'yes'")):
        for path, text in {**files, "bot.py": BOT.replace("ANSWER", answer)}.items():
            (job.workspace / "arms").mkdir(exist_ok=True)
            (job.workspace / "arms" / path).write_text(text)
        repo.git(*safe, "add", "--all")
        repo.git(*safe, "commit", "--quiet", "-m", name)
    job.give(job.workspace)
    step = job.uses_action({"working-directory": "arms"})

    report = job.workspace / "arms/ci-eval-report"
    assert step.exit_code == 1, step.stderr
    printed = [
        {
            line
            for trace in (folder / "traces.jsonl").read_text(encoding="utf-8").splitlines()
            for line in json.loads(trace).get("output", "").splitlines()
        }
        for folder in (report, report / "base")
    ]
    assert printed[0] == {f"{AGENT_UID} sees PermissionError"}
    (of_base,) = printed[1]
    assert of_base.startswith(f"{BASE_AGENT_UID} sees ['")
    assert "arms" in of_base


def test_a_broken_configuration_is_shown_on_its_line(job: Job) -> None:
    config = job.workspace / WEATHER
    lines = config.read_text(encoding="utf-8").splitlines()
    wrong = next(number for number, line in enumerate(lines, 1) if "response_match_score" in line)
    config.write_text("\n".join(lines).replace("response_match", "respnse_match"), encoding="utf-8")
    step = job.uses_action({"config": WEATHER})
    assert step.exit_code == 4
    assert step.outputs["verdict"] == "usage-error"
    (annotation,) = step.annotations
    assert annotation.startswith(f"::error file={WEATHER},line={wrong},")
    assert "Did you mean" in annotation


def test_a_scripted_judge_decides(job: Job) -> None:
    step = job.uses_action({"working-directory": "examples/judged"})
    assert (step.exit_code, step.outputs["verdict"]) == (0, "passed"), step.stderr
    assert "18 judge calls" in step.summary


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"judge-mode": "replay"}, "the answer is not in"),
        ({}, "considered unavailable: no successful response for 3 s"),
    ],
    ids=["without kept answers", "without a network"],
)
def test_a_judge_that_cannot_be_asked_is_no_pass(
    job: Job, inputs: dict[str, str], said: str
) -> None:
    config = job.workspace / "examples/judged/ci-eval.yaml"
    text = config.read_text(encoding="utf-8")
    block = "judge: {model: gemini-2.5-flash, patience_s: 3}\n"
    config.write_text(text[: text.index("judge:")] + block, encoding="utf-8")
    job.env["GOOGLE_API_KEY"] = "no-real-key"
    step = job.uses_action({"working-directory": "examples/judged", **inputs})
    assert (step.exit_code, step.outputs["verdict"]) == (6, "incomplete"), step.stderr
    assert said in step.stderr
    assert "no-real-key" not in step.stderr + step.summary


@pytest.fixture
def fake(job: Job) -> Iterator[FakeGitHub]:
    """Return GitHub with a pull request of what is checked out."""
    with github() as found:
        found.add_pull(head=head(job))
        job.env |= found.env | {"GITHUB_SHA": head(job)}
        yield found


def test_the_comment_is_written(job: Job, fake: FakeGitHub) -> None:
    given = {"config": WEATHER, "github-token": TOKEN}
    step = job.uses_action(given, network="host")
    assert (step.exit_code, step.annotations) == (0, []), step.stderr
    assert step.outputs["comment-status"] == "created"
    [body] = fake.bodies()
    assert "weather passed" in body


def test_a_job_that_is_cancelled_while_it_posts_ends_at_once(job: Job, fake: FakeGitHub) -> None:
    """What is the first process of a container ends by no signal that it does not handle.

    What waits for the answer, as long as it waits for any, is killed before it has it.
    """
    assert STOP_WITHIN_S < ANSWER_S
    fake.faults.append(Fault(delay_s=10 * ANSWER_S))
    name = f"ci-eval-{uuid4().hex}"
    given = {"config": WEATHER, "github-token": TOKEN}
    with ThreadPoolExecutor() as threads:
        running = threads.submit(job.uses_action, given, network="host", name=name)
        while not fake.arrived.wait(1):
            assert not running.done(), running.result().stderr
        stop = ["docker", "stop", "--time", str(STOP_WITHIN_S), name]
        subprocess.run(stop, check=True, stdout=subprocess.PIPE)
        step = running.result()
    assert step.exit_code == 2  # killed it were 137
    assert step.stderr.endswith("interrupted\n")
    assert step.outputs["verdict"] == "passed"


def test_wrong_inputs_are_all_told(job: Job) -> None:
    step = job.uses_action({"repeats": "many", "resume": "perhaps", "agnt": "weather"})
    assert step.exit_code == 4
    assert step.outputs["verdict"] == "usage-error"
    assert [line.partition("::input ")[2].partition(":")[0] for line in step.annotations] == [
        "'repeats'",
        "'resume'",
        "'agnt'",
    ]


def test_a_template_of_the_repository_is_filled_in_and_none_goes_on_for_ever(job: Job) -> None:
    config = job.workspace / WEATHER
    documents = "{markdown: {template: good.md.j2}}, {summary: {template: endless.md.j2}}"
    config.write_text(f"{config.read_text(encoding='utf-8')}\nreports: [{documents}]\n")
    (config.parent / "good.md.j2").write_text("Of {{ page.meta.suite }}: {{ page.totals.cases }}")
    loops = "{% for _ in range(99999) %}" * 3 + "{% endfor %}" * 3
    (config.parent / "endless.md.j2").write_text("{% if page %}" + loops + "{% endif %}")
    step = job.uses_action({"config": WEATHER})
    assert step.exit_code == 0, step.stderr
    comment = (job.workspace / step.outputs["comment"]).read_text(encoding="utf-8")
    assert "Of weather: 6" in comment
    assert "The template `examples/weather/endless.md.j2` failed" in step.summary
    assert "tool_trajectory_avg_score" in step.summary


def test_nothing_selected_is_no_pass(job: Job) -> None:
    evalset = job.workspace / "examples" / "weather" / "evals" / "smoke.evalset.json"
    evalset.write_text('{"eval_set_id": "smoke", "eval_cases": []}', encoding="utf-8")
    step = job.uses_action({"config": WEATHER})
    assert (step.exit_code, step.outputs["verdict"]) == (5, "nothing-selected"), step.stderr


def test_what_is_written_belongs_to_the_owner_of_the_workspace(job: Job) -> None:
    config = job.workspace / WEATHER
    with config.open("a", encoding="utf-8") as file:
        file.write("\nbaseline: {store: file, path: kept/baseline.json, base: main}\n")
    given = {"config": WEATHER, "baseline-save": "true"}
    step = job.uses_action(given)
    assert "not stored: this is a pull request" in step.stderr
    assert not (config.parent / "kept").exists()
    pushed = {"GITHUB_EVENT_NAME": "push", "GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "main"}
    job.env |= pushed
    step = job.uses_action(given)
    assert step.exit_code == 0, step.stderr
    assert (config.parent / "kept" / "baseline.json").stat().st_size
    assert job.owners() == {RUNNER_UID if os.geteuid() == 0 else os.geteuid()}


def test_nothing_of_the_repository_is_imported(job: Job) -> None:
    for module in ("click", "yaml", "sitecustomize", "ci_eval"):
        (job.workspace / f"{module}.py").write_text("raise SystemExit(99)", encoding="utf-8")
    job.env["PYTHONPATH"] = "/github/workspace"
    step = job.uses_action({"config": WEATHER})
    assert step.exit_code == 0, step.stderr


AS_ON_GITHUB = pytest.mark.skipif(
    os.geteuid() != 0, reason="the workspace cannot be given to another user"
)


def weather_by(job: Job, agent: str, **files: str) -> Path:
    """Let the weather example be answered by `agent`; return its folder."""
    example = job.workspace / "examples" / "weather"
    for name, text in files.items():
        (example / f"{name}.py").write_text(text, encoding="utf-8")
    config = example / "ci-eval.yaml"
    recorded = "{recorded: traces/weather.jsonl}"
    config.write_text(config.read_text(encoding="utf-8").replace(recorded, agent), encoding="utf-8")
    job.give(example)
    return example


def answers(recording: Path) -> list[str]:
    """Return the first response of each recorded conversation."""
    rows = map(json.loads, recording.read_text(encoding="utf-8").splitlines())
    return [row["invocations"][0]["final_response"]["parts"][0]["text"] for row in rows]


@AS_ON_GITHUB
@pytest.mark.parametrize("agent", ["{python: 'spy:answer'}", "{command: [python3, spy.py]}"])
def test_an_agent_gets_nothing_and_changes_nothing(job: Job, agent: str) -> None:
    example = weather_by(job, agent, spy=SPY)
    git = job.workspace / ".git"
    with (git / "config").open("a", encoding="utf-8") as file:
        file.write('[http "https://github.com/"]\n\textraheader = ' + SECRET + "\n")
    modes = example.stat().st_mode, git.stat().st_mode
    given = {"config": WEATHER, "record": "spied.jsonl", "github-token": SECRET}
    step = job.uses_action(given)
    assert step.exit_code in (0, 1), step.stderr
    assert json.loads(answers(job.workspace / "spied.jsonl")[0]) == {
        "user": [[AGENT_UID] * 3, [AGENT_UID] * 3, []],
        "secrets": [],
        "names": [],
        "command files": "PermissionError",
        "the summary": "PermissionError",
        "docker": "PermissionError",
        "ending us": "PermissionError",
        "memory of ours": "PermissionError",
        "our code": "PermissionError",
        "importing us": "ModuleNotFoundError",
        "what is checked out": "PermissionError",
        "a name that is taken": "PermissionError",
        "the configuration": "PermissionError",
        "our reports": "PermissionError",
        "our notes": "PermissionError",
        "becoming root": "PermissionError",
        "a new file": "made",
        "home": "made",
    }
    assert (example.stat().st_mode, git.stat().st_mode) == modes
    lines = [line.strip() for line in (step.stdout + step.stderr).splitlines()]
    assert not [line for line in lines if "##[" in line or line.startswith("::set-output")]
    assert "forged" not in step.outputs.values()
    assert job.commands() == {"set_env": "", "add_path": "", "save_state": ""}


@AS_ON_GITHUB
def test_what_agents_make_can_be_removed_by_the_runner(job: Job) -> None:
    example = weather_by(job, "{command: [python3, spy.py]}", spy=SPY)
    job.uses_action({"config": WEATHER})
    made = [example / "made", example / "made" / "deep", example / "made" / "deep" / "file"]
    found = [path.lstat() for path in made]
    assert {(each.st_uid, each.st_gid) for each in found} == {(AGENT_UID, RUNNER_UID)}
    assert [oct(each.st_mode & 0o7777) for each in found] == ["0o775", "0o775", "0o664"]


@AS_ON_GITHUB
def test_a_set_up_makes_what_the_agent_runs_in_and_later_steps_may_do_it_again(job: Job) -> None:
    setup = "setup: [python3 -m venv --without-pip .venv], interpreter: .venv/bin/python"
    code = "import sys\ndef answer(message): return sys.prefix"
    weather_by(job, f"{{python: 'own:answer', {setup}}}", own=code)
    for record in ("first.jsonl", "second.jsonl"):
        step = job.uses_action({"config": WEATHER, "record": record})
        assert step.exit_code in (0, 1), step.stderr
        assert step.stderr.count("running setup: python3 -m venv") == 1
        said = set(answers(job.workspace / record))
        assert said == {"/github/workspace/examples/weather/.venv"}
