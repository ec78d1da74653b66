"""Attacks on the key that the model gateway has, in the image, by the agent behind it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container.github import SECRET, Job
from servers import gemini, openai
from servers.loopback import Loopback, Reply, Request, as_json, serving
from support.git_repositories import Repo

IMAGE = os.environ.get("CI_EVAL_IMAGE", "")  # how run.sh hands it over
ATTACKER = (Path(__file__).parent / "gateway_attacker.py").read_text(encoding="utf-8")
AGENT_UID = 58734
KEY = f"sk-{SECRET}-1"
STOLEN = "sk-of-the-agent-itself"
PROCESSES = (
    *("environ", "mem", "maps", "files", "root"),
    *("ptrace", "process_vm_readv", "pidfd_getfd"),
)
"""What the agent tries with each process of another user."""
ANSWERS = {
    **dict.fromkeys(("no secret", "no path", "another secret"), "404"),
    **dict.fromkeys(("absolute form", "absolute form of the gateway", "CONNECT"), "404"),
    "fragment": "404",
    **dict.fromkeys(("TRACE", "GET", "files", "two Hosts"), "400"),
    **dict.fromkeys(("up", "up, encoded", "up from the root", "slash, encoded"), "400"),
    "line breaks, encoded": "400",
    **dict.fromkeys(("backslash", "two slashes", "at", "line breaks in a version"), "400"),
    **dict.fromkeys(("two lengths", "a length and chunks", "a second request"), "400"),
    **dict.fromkeys(("what is no JSON", "too long", "reflected in an error"), "400"),
    **dict.fromkeys(("Host", "forwarded", "own keys", "own key in the query"), "200"),
    **dict.fromkeys(("another address in the query", "line breaks in the query"), "200"),
    **dict.fromkeys(("line breaks in the model", "upgrade"), "200"),
    **dict.fromkeys(("reflected", "reflected in a stream", "reflected by Gemini"), "200"),
    "redirected": "307",
}
"""The statuses that it gets; those that are served reach the provider as any call does."""
CALLED = {
    "/v1/chat/completions",
    "/v1beta/models/m:generateContent",
    "/v1beta/models/reflects:generateContent",
}
DROPPED = {
    *("x-forwarded-host", "forwarded", "x-original-url", "x-rewrite-url", "x-goog-upload-url"),
    *("openai-base-url", "x-http-method-override", "api-key", "cookie", "proxy-authorization"),
    *("openai-organization", "upgrade", "x-evil", "x-ci-eval-conversation"),
}
"""Headers of the agent that no provider gets."""
CONFIG = """\
name: shop
agents:
  bot:
    %s
    env: {BACKWARDS: %s, EVIL: '%s'}
    models: {mode: auto, cassette: %s}
evalsets: {smoke: smoke.csv}
criteria: {response_match_score: 0.1}
"""

pytestmark = [
    pytest.mark.skipif(not IMAGE, reason="tests/container/run.sh runs it with an image"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a workspace cannot be given to another user"),
]


class Evil(Loopback):
    """A server that nobody is to call."""

    def reply(self, request: Request) -> Reply:
        return as_json({})


class Provider(Loopback):
    """A provider that sends its clients elsewhere, and says what they sent, if it is asked to."""

    def __init__(self, elsewhere: str) -> None:
        super().__init__()
        self._elsewhere = elsewhere

    def reply(self, request: Request) -> Reply:
        model = request.body.get("model")
        said = json.dumps(dict(request.headers))
        if model == "redirects":
            return Reply(b"", 307, headers={"location": self._elsewhere, "set-cookie": KEY})
        if model == "refuses":
            return as_json({"error": {"message": f"Incorrect API key provided: {said}"}}, 400)
        if "generateContent" in request.path:
            return as_json(gemini.answer(said))
        if request.body.get("stream"):
            chunk = {"choices": [{"index": 0, "delta": {"content": said}}]}
            return gemini.streamed(chunk)
        return as_json(openai.completion(said))


@pytest.fixture
def evil() -> Iterator[Evil]:
    found = Evil()
    with serving(found):
        yield found


@pytest.fixture
def provider(evil: Evil) -> Iterator[Provider]:
    found = Provider(evil.url)
    with serving(found):
        yield found


class Attacked:
    """A job with a suite whose agent attacks the gateway."""

    def __init__(self, folder: Path, evil: Evil, provider: Provider) -> None:
        self.job = Job(folder, IMAGE)
        self._evil = evil.url.removeprefix("http://")
        self.job.env |= {
            **dict.fromkeys(("OPENAI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"), KEY),
            "OPENAI_BASE_URL": f"{provider.url}/v1",
            "GOOGLE_GEMINI_BASE_URL": provider.url,
            "ANTHROPIC_BASE_URL": provider.url,
            "RUNNER_DEBUG": "1",
        }

    def runs(self, agent: str, cassette: str = "models.jsonl") -> Any:
        """Run the action, and return the step."""
        workspace = self.job.workspace
        config = CONFIG % (agent, KEY[::-1], self._evil, cassette)
        files = {"ci-eval.yaml": config, "attacker.py": ATTACKER}
        for name, text in {**files, "smoke.csv": "prompt,expected\nHello,It is sunny.\n"}.items():
            (workspace / name).write_text(text, encoding="utf-8")
        repo = Repo(workspace)
        repo.git("init", "--quiet", "--initial-branch=main")
        repo.commit("A suite")
        (self.job.folder / "home" / "key").write_text("a key", encoding="utf-8")
        self.job.give(self.job.folder)
        return self.job.uses_action({"comment": "off"}, network="host")


@pytest.fixture
def attacked(tmp_path: Path, evil: Evil, provider: Provider) -> Attacked:
    return Attacked(tmp_path, evil, provider)


@pytest.mark.parametrize("agent", ["python: 'attacker:answer'", "command: [python3, attacker.py]"])
def test_an_agent_behind_the_gateway_does_not_get_the_key(
    attacked: Attacked, evil: Evil, provider: Provider, agent: str
) -> None:
    step = attacked.runs(agent)

    assert step.exit_code == 6, step.stderr  # what is refused is an error of the trial
    workspace = attacked.job.workspace
    found = json.loads((workspace / "found.json").read_text(encoding="utf-8"))
    assert found == {
        "user": AGENT_UID,
        "places": [],
        "processes": {name: ["PermissionError"] for name in PROCESSES},
        "gateway": ANSWERS,
        "cassette": {
            **dict.fromkeys(("removed", "moved", "written"), "PermissionError"),
            "a draft that is a link": "done",
        },
        "places, after that": [],
    }
    assert evil.requests == []
    place = provider.url.removeprefix("http://")
    assert {each.path for each in provider.requests} == CALLED
    for each in provider.requests:
        assert each.headers["host"] == place
        assert not {*each.headers} & DROPPED
        assert STOLEN not in str([*each.headers.values(), *each.query.items()])
        assert KEY in str([*each.headers.values()])
    assert (attacked.job.folder / "home" / "key").read_text(encoding="utf-8") == "a key"
    cassette = (workspace / "models.jsonl").read_text(encoding="utf-8")
    assert "[OPENAI_API_KEY]" in cassette
    assert not (workspace / ".models.jsonl.draft").is_symlink()
    for path in workspace.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert SECRET.encode() not in path.read_bytes(), path
    for text in (step.stdout, step.stderr, step.summary, str(step.outputs)):
        assert SECRET not in text
        assert "Traceback" not in text
    assert attacked.job.commands() == {"set_env": "", "add_path": "", "save_state": ""}


@pytest.mark.parametrize(
    "cassette", ["link/models.jsonl", "linked.jsonl", "/github/home/key", ".git/models.jsonl"]
)
def test_no_cassette_leads_out_of_the_checkout(
    attacked: Attacked, provider: Provider, cassette: str
) -> None:
    (attacked.job.workspace / "link").symlink_to("/github/home")
    (attacked.job.workspace / "linked.jsonl").symlink_to("/github/home/key")
    step = attacked.runs("command: [python3, attacker.py]", cassette)

    assert (step.exit_code, step.outputs["verdict"]) == (4, "usage-error"), step.stderr
    assert provider.requests == []
    assert not (attacked.job.workspace / "found.json").exists()
    home = attacked.job.folder / "home"
    assert [path.name for path in home.iterdir()] == ["key"]
    assert (home / "key").read_text(encoding="utf-8") == "a key"
    assert SECRET not in step.stdout + step.stderr + step.summary
