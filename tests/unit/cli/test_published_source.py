"""Links to pages of ci-eval, where it is known from where it came."""

import json

import pytest

from ci_eval.cli import published_source
from ci_eval.cli.main import main
from ci_eval.cli.published_source import page_url

COMMIT = "0123456789abcdef0123456789abcdef01234567"
IN_ACTION = {"GITHUB_ACTION_REPOSITORY": "acme/ci-eval", "GITHUB_ACTION_REF": "v1"}


@pytest.fixture
def _installed_from_git(monkeypatch: pytest.MonkeyPatch) -> None:
    class Distribution:
        def read_text(self, _name: str) -> str:
            source = {"url": "https://github.com/acme/ci-eval", "vcs_info": {"commit_id": COMMIT}}
            return json.dumps(source)

    monkeypatch.setattr(published_source, "distribution", lambda _name: Distribution())


@pytest.mark.parametrize(
    ("env", "url"),
    [
        ({}, ""),
        (IN_ACTION, "https://github.com/acme/ci-eval/blob/v1/docs/gate.md"),
        (IN_ACTION | {"GITHUB_ACTION_REPOSITORY": "actions/checkout"}, ""),
        (IN_ACTION | {"GITHUB_ACTION_REPOSITORY": ""}, ""),
        (IN_ACTION | {"GITHUB_ACTION_REF": "v1)[x](y"}, ""),
    ],
)
def test_in_a_workflow_the_action_says_where_the_pages_are(env: dict[str, str], url: str) -> None:
    assert page_url("docs/gate.md", env) == url


@pytest.mark.usefixtures("_installed_from_git")
def test_an_error_has_the_address_of_its_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", "none.yaml"])
    page = f"https://github.com/acme/ci-eval/blob/{COMMIT}/docs/troubleshooting.md#ce0101"
    assert f"CE0101: see `ci-eval explain CE0101` or {page}\n" in capsys.readouterr().err


@pytest.mark.usefixtures("_installed_from_git")
def test_a_guide_is_named_by_its_address(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "CE0501"])
    said = " ".join(capsys.readouterr().out.split())
    page = f"https://github.com/acme/ci-eval/blob/{COMMIT}/docs/which-criterion.md"
    assert f"Which criterion ({page})" in said
