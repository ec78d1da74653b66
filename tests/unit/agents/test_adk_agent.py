"""What an `adk` agent knows without google-adk."""

from pathlib import Path
from typing import Any

import pytest
from support.agent_sessions import Place, trial
from support.git_repositories import git_init

from ci_eval.agents.adk_agent import MAX_EVENTS, Adk
from ci_eval.records.cases import Content
from ci_eval.records.errors import TrialError

ASKED = Content.of_text("Hello", role="user")
SAID = {"author": "bot", "invocation_id": "e-1", "content": {"parts": [{"text": "Hi."}]}}


def reply(*events: Any, **fields: Any) -> dict[str, Any]:
    return {"rules": "adk", "events": events, "behind": 0, "app_details": None, **fields}


@pytest.mark.parametrize("name", ["__init__.py", "agent.py", "root_agent.yaml"])
def test_a_folder_with_one_of_its_files_is_an_agent(tmp_path: Path, name: str) -> None:
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / name).touch()

    assert list(Adk(adk="bot").check(Place(tmp_path).context)) == []


def test_what_is_no_agent_is_told_before_anything_runs(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "empty").mkdir()
    place.write("agent.py", "")

    def told(adk: str) -> list[tuple[str, str]]:
        return list(Adk(adk=adk).check(place.context))

    assert told("empty") == [("adk", "empty has none of __init__.py, agent.py and root_agent.yaml")]
    assert told("agent.py") == [("adk", "'agent.py' is not a folder; name its folder")]
    assert told("agents/bot") == [("adk", "there is no folder 'agents/bot'")]
    # Whether there is such a module only its interpreter knows.
    assert told("agents.bot") == []


@pytest.mark.parametrize(
    ("files", "is_wrong"),
    [
        ({"__init__.py": "from . import agent", "agent.py": "root = 1"}, True),
        ({"__init__.py": "rot_agent = 1"}, True),
        ({"__init__.py": "from . import agent", "agent/__init__.py": "root_agent = 1"}, False),
        ({"__init__.py": "from . import core as agent", "core.py": "root_agent = 1"}, False),
        ({"__init__.py": "from . import agent", "agent.py": "root_agent = 1"}, False),
    ],
)
def test_a_folder_whose_modules_name_no_agent_has_an_error(
    tmp_path: Path, files: dict[str, str], is_wrong: bool
) -> None:
    place = Place(tmp_path)
    for name, text in files.items():
        (tmp_path / "bot" / name).parent.mkdir(parents=True, exist_ok=True)
        place.write(f"bot/{name}", text)

    found = list(Adk(adk="bot").check(place.context))

    assert ["has no 'root_agent'" in message for _, message in found] == [True] * is_wrong


def test_a_link_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    git_init(tmp_path / "repository")
    (tmp_path / "repository" / "bot").symlink_to(tmp_path / "outside")

    [(field, message)] = Adk(adk="bot").check(Place(tmp_path / "repository").context)

    assert field == "adk"
    assert "symlink out of the repository" in message


def test_a_case_that_names_no_session_has_that_of_adk() -> None:
    given = {"app_name": "shop", "user_id": "ada", "state": {"x": 1}}

    assert Adk(adk="bot").opening(trial(), "s-1") == {
        "id": "s-1",
        "app_name": "EvaluationGenerator",
        "user_id": "test_user_id",
        "state": {},
    }
    assert Adk(adk="bot").opening(trial(session_input=given), "s-1") == {"id": "s-1", **given}


def test_what_was_seen_before_an_error_is_no_silence() -> None:
    bot = Adk(adk="bot")

    assert bot.invocation(ASKED, reply(SAID, duration=0.5), 1.0).duration == 0.5
    assert bot.invocation(ASKED, reply(SAID), 1.0).duration == 1.0
    with pytest.raises(TrialError, match="without a single event"):
        bot.invocation(ASKED, reply(), 1.0)
    failed = reply(error={"kind": "raised", "message": "no"})
    assert bot.invocation(ASKED, failed, 1.0).events == ()


def test_a_memento_holds_all_events_or_is_none() -> None:
    bot = Adk(adk="bot")

    first = bot.memento(None, reply(SAID), {"x": 1})
    second = bot.memento(first, reply(SAID, SAID, behind=1), {"x": 2})

    assert first == {"events": [SAID], "state": {"x": 1}}
    assert second == {"events": [SAID, SAID, SAID], "state": {"x": 2}}
    assert bot.memento(None, reply(SAID, behind=3), {}) is None
    long = {"events": [SAID] * (MAX_EVENTS + 1), "state": {}}
    assert bot.memento(long, reply(SAID, behind=MAX_EVENTS + 1), {}) is None
