"""The workflow that `init` writes is read back as it is meant."""

import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from ci_eval.cli.init.drafted_config_check import AskedModel
from ci_eval.cli.init.workflow import EXTRAS_OF_ACTION, Packages, workflow_name, workflow_text
from ci_eval.cli.publish.publish_command import publish
from ci_eval.cli.run.run_command import run
from ci_eval.judges.gemini_judge import Gemini
from ci_eval.judges.openai_judge import OpenAI
from ci_eval.judges.vertex_judge import Vertex
from ci_eval.text.yaml_files import parse_yaml

ROOT = Path(__file__).parents[4]

ANY = st.text(max_size=30)
GEMINI = AskedModel("gemini-x", Gemini(), ("a",))
OPENAI = AskedModel("gpt-x", OpenAI(), ("b",))
VERTEX = AskedModel("vertex", Vertex(), ("safety_v1",))
KEY = "${{ secrets.GOOGLE_API_KEY }}"


def read(text: str):
    return parse_yaml(text, shown="draft").value


def draft(**options):
    return workflow_text(**{"folder": "", "packages": None, "needs_key": False, **options})


def steps(job="evaluate", **options):
    """Return the steps of a job between the checkout and, for pull requests, the uploads."""
    _, *found = read(draft(**options))["jobs"][job]["steps"]
    return found[:-3] if job == "evaluate" else found


def test_where_nothing_is_to_be_installed_the_action_does_it():
    assert steps() == [{"uses": "OWNER/ci-eval@v1"}]
    assert steps(folder="a b")[0]["with"] == {"working-directory": "a b"}


def test_beside_packages_of_the_job_the_action_runs_on_the_jobs_machine():
    python, install, evaluate = steps(packages=Packages("-r requirements.txt", environment=""))

    assert python["uses"].startswith("actions/setup-python@")
    assert install["run"] == "python -m pip install -r requirements.txt\n"
    assert evaluate == {"uses": "OWNER/ci-eval/host@v1"}


def test_an_environment_that_the_configuration_names_is_made():
    _, install, evaluate = steps(packages=Packages("-e .", environment=".venv"), folder="x")

    assert install["run"] == "python -m venv .venv\n.venv/bin/pip install -e .\n"
    assert install["working-directory"] == "x"
    assert evaluate["with"] == {"working-directory": "x"}


def test_the_action_has_the_extras_that_its_lock_file_is_made_with():
    lock = (ROOT / ".ci/lock").read_text(encoding="utf-8")
    (line,) = [each for each in lock.splitlines() if "--extra gcs" in each]

    assert set(re.findall(r"--extra (\w+)", line)) == EXTRAS_OF_ACTION


def test_the_inputs_are_those_of_both_variants():
    for variant in ("action.yml", "host/action.yml"):
        action = read((ROOT / variant).read_text(encoding="utf-8"))
        given = steps("baseline", folder="x", branch="main")[-1]["with"]
        assert given.keys() <= action["inputs"].keys()


def test_what_publish_looks_for_is_uploaded_whatever_became_of_the_run():
    *_, page, link, upload = read(draft(folder="a"))["jobs"]["evaluate"]["steps"]
    assert page["with"]["path"] == "a/ci-eval-report/report.html"
    assert page["with"]["archive"] is False  # a click opens it
    inputs = read((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert link["with"].keys() <= inputs.keys()
    assert link["with"]["working-directory"] == "a"
    assert link["with"]["reports"] == inputs["out"]["default"]
    assert f"steps.{page['id']}.outputs.artifact-url" in link["with"]["report-url"]

    assert upload["if"] == "always()"
    assert upload["with"]["path"] == f"a/{inputs['out']['default']}/report.json"
    assert fnmatch(upload["with"]["name"], inputs["artifact"]["default"])


def test_without_a_branch_only_pull_requests_are_evaluated():
    workflow = read(draft())

    assert list(workflow["on"]) == ["pull_request"]
    assert list(workflow["jobs"]) == ["evaluate"]
    assert "if" not in workflow["jobs"]["evaluate"]


def test_what_is_pushed_to_a_branch_is_stored_by_the_one_job_that_may_write():
    workflow = read(draft(branch="main", packages=Packages("-e .", environment="")))

    on, jobs = workflow["on"], workflow["jobs"]
    assert on["push"] == {"branches": ["main"], "paths": on["pull_request"]["paths"]}
    assert {name: (job["if"], job["permissions"]) for name, job in jobs.items()} == {
        "evaluate": (
            "github.event_name == 'pull_request'",
            {"contents": "read", "pull-requests": "write"},
        ),
        "baseline": ("github.event_name == 'push'", {"contents": "write"}),
    }
    *prepared, last = jobs["baseline"]["steps"]
    assert prepared == jobs["evaluate"]["steps"][:3]
    assert last == {"uses": "OWNER/ci-eval/host@v1", "with": {"comment": "off"}}
    assert all(
        steps[0]["with"] == {"fetch-depth": 0, "persist-credentials": False}
        for steps in (job["steps"] for job in jobs.values())
    )


def test_a_folder_gets_a_workflow_of_its_own():
    assert workflow_name("") == ".github/workflows/ci-eval.yml"
    assert workflow_name("apps/My shop") == ".github/workflows/ci-eval-apps-My-shop.yml"


@given(ANY.filter(bool))
@example("0\n")
@example("a\nb: c")
def test_no_name_of_a_folder_changes_the_workflow(folder):
    packages = Packages("-e .", environment=".venv")
    text = draft(folder=folder, packages=packages, needs_key=True, branch="main")

    evaluate, baseline = read(text)["jobs"].values()
    assert [list(each) for each in evaluate["steps"]] == [
        ["uses", "with"],
        ["uses", "with"],
        ["name", "working-directory", "run"],
        ["uses", "with"],
        ["if", "id", "uses", "with"],
        ["if", "uses", "with"],
        ["if", "uses", "with"],
    ]
    for job in (evaluate, baseline):
        assert job["steps"][2]["working-directory"] == folder
        assert job["steps"][3]["with"]["working-directory"] == folder


def test_a_path_is_no_pattern_in_the_workflow():
    workflow = read(draft(folder="a[1]*"))

    assert workflow["on"]["pull_request"]["paths"][0] == r"a\[1\]\*/**"
    *_, upload = workflow["jobs"]["evaluate"]["steps"]
    assert upload["with"]["path"] == r"a\[1\]\*/ci-eval-report/report.json"


def test_the_step_gets_the_key_of_a_judge_and_only_of_one_that_is_asked():
    assert steps(asked=[GEMINI]) == [{"uses": "OWNER/ci-eval@v1", "env": {"GOOGLE_API_KEY": KEY}}]
    assert "secrets" not in draft()


def test_the_job_that_stores_gets_the_keys_too():
    *_, evaluate = steps("baseline", branch="main", asked=[GEMINI])

    assert evaluate["env"] == {"GOOGLE_API_KEY": KEY}


def test_a_key_that_two_models_need_is_handed_on_once():
    other = AskedModel("gemini-y", Gemini(), ("c",))

    assert steps(asked=[GEMINI, other])[0]["env"] == {"GOOGLE_API_KEY": KEY}


def test_a_judge_whose_package_the_action_has_takes_nothing_more():
    (evaluate,) = steps(asked=[OPENAI, GEMINI])

    assert evaluate["uses"] == "OWNER/ci-eval@v1"
    assert list(evaluate["env"]) == ["OPENAI_API_KEY", "GOOGLE_API_KEY"]


def test_a_judge_whose_package_the_action_lacks_gets_it_beside_the_command():
    python, install, evaluate = steps(asked=[VERTEX, OPENAI])

    assert python["uses"].startswith("actions/setup-python@")
    assert '"ci-eval[vertex] @ git+https://github.com/OWNER/ci-eval@v1"' in install["run"]
    assert evaluate["run"].endswith(" run --comment update --baseline-save auto")
    assert list(evaluate["env"]) == ["CI_EVAL_INTERPRETER", "GITHUB_TOKEN", "OPENAI_API_KEY"]
    _, links, _ = read(draft(asked=[VERTEX]))["jobs"]["evaluate"]["steps"][-3:]
    _, *args = shlex.split(links["run"].replace("$REPORT_URL", "https://x.example/7"))
    params = publish.make_context("publish", args[1:]).params
    assert params["report_url"] == "https://x.example/7"
    *_, stores = steps("baseline", branch="main", asked=[VERTEX])
    assert stores["run"].endswith(" run --baseline-save auto")


def test_the_command_takes_the_options_that_the_workflow_gives_it():
    *_, evaluate = steps(asked=[VERTEX])
    _, _, *args = shlex.split(evaluate["run"])

    params = run.make_context("run", args).params
    assert (params["comment"], params["baseline_save"]) == ("update", "auto")


def test_an_agent_with_a_judge_gets_told_where_its_own_key_goes():
    packages = Packages("-e .", environment="")
    alone = draft(packages=packages, needs_key=True)
    judged = draft(packages=packages, needs_key=True, asked=[OPENAI])

    assert "#   GOOGLE_API_KEY: ${{" in alone
    assert "# What the agent needs goes here, too" in judged
    assert list(steps(packages=packages, asked=[OPENAI])[-1]["env"]) == ["OPENAI_API_KEY"]


def test_what_no_secret_alone_can_bring_is_said_and_not_left_out():
    text = draft(asked=[VERTEX])

    assert "# vertex is used by safety_v1. It needs " in text
    assert "secrets." not in text


@given(name=ANY)
def test_no_name_of_a_criterion_changes_the_workflow(name):
    asked = [AskedModel(name, Vertex(), (name,))]

    *_, evaluate = steps(packages=Packages("-e .", environment=""), asked=asked)

    assert list(evaluate) == ["name", "run", "env"]
