"""What an agent tells of a key it was given is written down nowhere, and found all the same.

A run as CI has it, in a process of its own, with secrets of every shape; and then a look into every
file that it left, and all that it printed.
"""

import base64
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from servers.gemini import KEY, FakeGemini, answer
from servers.loopback import Loopback, Reply, Request, as_json, serving
from support.agent_sessions import waits_for
from support.git_repositories import ENV, Repo

from ci_eval.cli.main import main

SECRET = 'sk-"Zq4wv'
AGENT = """
import os, sys
def answer(message):
    key = os.environ["SHOP_API_KEY"]
    print("asking with", key)
    if message == "fail":
        raise RuntimeError("401 for " + key)
    return {"response": "I use " + key, "tool_calls": [{"name": "ask", "args": {"key": key}}]}
"""
CONFIG = """
agents: {bot: {python: "shop:answer", env: [SHOP_API_KEY]}}
evalsets: {all: cases.yaml}
criteria:
  quiet: {use: ci/regex, pattern: "sk-", absent: true, threshold: 1}
  tool_trajectory_avg_score: 1.0
"""
CASES = """
- {id: leaks, prompt: Hi, expected: Hello, expected_tools: []}
- {id: fails, prompt: fail, expected: Hello, expected_tools: []}
- id: 'asks for sk-"Zq4wv'
  prompt: 'Is sk-"Zq4wv yours?'
  expected: 'sk-"Zq4wv'
  expected_tools: []
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_API_KEY", SECRET)
    monkeypatch.chdir(tmp_path)
    for name, text in {"shop.py": AGENT, "ci-eval.yaml": CONFIG, "cases.yaml": CASES}.items():
        Path(name).write_text(text)
    return tmp_path


def test_a_key_is_in_no_document_and_a_criterion_finds_the_leak(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--record", "record.jsonl", "--adk-results", "adk"]) == 1
    printed = "".join(capsys.readouterr())
    assert "recorded conversations had the value of a secret; replays are scored with" in printed
    written = {
        path.relative_to(shop): path.read_text(encoding="utf-8")
        for path in [
            *shop.glob("ci-eval-report/*"),
            *shop.glob("adk/bot/.adk/*/*.json"),
            shop / "record.jsonl",
        ]
        if path.is_file()
    }
    assert len(written) > 6
    for form in (SECRET, json.dumps(SECRET)[1:-1], "Zq4wv"):
        assert form not in printed
        assert {name for name, text in written.items() if form in text} == set()
    results = json.loads((shop / "ci-eval-report/run.json").read_text())["results"]
    assert [score["status"] for score in results[0]["scores"]] == ["failed", "failed"]
    assert "[SHOP_API_KEY]" in results[0]["output"]
    assert "401 for [SHOP_API_KEY]" in results[1]["error"]["message"]


def test_what_held_a_secret_is_observed_again(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run"])
    first = json.loads((shop / "ci-eval-report/run.json").read_text())["results"]
    capsys.readouterr()
    main(["run", "--resume"])
    again = json.loads((shop / "ci-eval-report/run.json").read_text())["results"]

    assert "reused 0 trials from the previous run" in "".join(capsys.readouterr())
    assert [each["scores"] for each in again] == [each["scores"] for each in first]


def test_a_secret_that_the_command_line_quotes_is_not_printed(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--case", f"no-{SECRET}-no"]) != 0
    printed = "".join(capsys.readouterr())

    assert "Zq4wv" not in printed
    assert "[SHOP_API_KEY]" in printed


HANDED = "blue-giraffe-4471"
"""A value that only `env:` makes a secret: its variable has no name that says so."""


@pytest.mark.slow
def test_a_secret_that_an_older_baseline_holds_is_in_no_document(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = CONFIG.replace("[SHOP_API_KEY]", "[SHOP_API_KEY, HANDED]")
    (shop / "ci-eval.yaml").write_text(f"{config}baseline: {{store: file, path: base.json}}\n")
    cases = CASES.replace("prompt: fail", "prompt: Hi")
    (shop / "cases.yaml").write_text(f"{cases}- {{id: {HANDED}, prompt: Hi, expected: Hello}}\n")
    main(["run", "--out", "old"])
    main(["baseline", "save", "old"])
    document = json.loads((shop / "base.json").read_text())
    (meta,) = document["runs"]
    planted = {"branch": HANDED, "job": HANDED, "config": HANDED, "warnings": [f"saw {HANDED}"]}
    meta |= {**planted, "agents": ["bot", HANDED]}
    (shop / "base.json").write_text(json.dumps(document))
    assert len(re.findall(HANDED, json.dumps(document))) > 5
    capsys.readouterr()

    (shop / "cases.yaml").write_text(cases)  # so that a case is reported as vanished
    monkeypatch.setenv("HANDED", HANDED)
    main(["run"])
    main(["run", "--json"])
    main(["report", "--out", "again"])
    main(["baseline", "show"])
    main(["baseline", "show", "--json"])
    main(["baseline", "diff", "--json"])
    main(["compare", "old", "ci-eval-report", "-c", "ci-eval.yaml"])
    main(["gate", "explain", "-c", "ci-eval.yaml"])
    written = {
        path.relative_to(shop): path.read_text()
        for folder in ("ci-eval-report", "again")
        for path in (shop / folder).iterdir()
    }
    printed = "".join(capsys.readouterr())

    assert len(written) > 10
    assert {str(name) for name, text in written.items() if HANDED in text} == set()
    assert HANDED not in printed
    assert "[HANDED]" in printed
    assert "[HANDED]" in written[Path("ci-eval-report/comment.md")]


TOLD = f"""
def answer(message):
    if message == "fail":
        raise RuntimeError("401 for {HANDED}")
    said = message == "Hi" and "{HANDED}" or "nothing"
    return {{"response": said, "tool_calls": [{{"name": "ask", "args": {{"key": said}}}}]}}
"""


@pytest.mark.parametrize("is_resumed", [True, False], ids=["resumed", "merged"])
def test_a_secret_in_an_earlier_conversation_is_in_no_document(
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_resumed: bool,
) -> None:
    (shop / "shop.py").write_text(TOLD)
    (shop / "ci-eval.yaml").write_text(CONFIG.replace("[SHOP_API_KEY]", "[SHOP_API_KEY, HANDED]"))
    (shop / "cases.yaml").write_text(CASES.replace('sk-"Zq4wv', "who"))
    earlier = [[]] if is_resumed else [["--shard", "1/2"], ["--shard", "2/2"]]
    for number, shard in enumerate(earlier):
        main(["run", *shard, "--out", f"out{number}"])
    assert HANDED in "".join(path.read_text() for path in shop.glob("out*/traces.jsonl"))
    capsys.readouterr()

    monkeypatch.setenv("HANDED", HANDED)
    merged = ["merge", "out0", "out1", "--out", "all"]
    main(["run", "--resume", "--out", "out0"] if is_resumed else merged)
    out = shop / ("out0" if is_resumed else "all")
    main(["show", "*", "--out", str(out)])
    printed = "".join(capsys.readouterr())
    written = {path.name: path.read_text() for path in out.iterdir() if path.is_file()}
    assert {"traces.jsonl", "report.html", "run.json"} < written.keys()
    assert {name for name, text in written.items() if HANDED in text} == set()
    assert HANDED not in printed
    assert 'ask(key="[HANDED]")' in printed
    assert not is_resumed or "reused 1 trial from the previous run" in printed


@pytest.mark.parametrize("has_config", [True, False])
def test_a_secret_in_an_earlier_run_is_in_no_document_made_of_it(
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    has_config: bool,
) -> None:
    (shop / "shop.py").write_text(TOLD)
    config = CONFIG.replace("[SHOP_API_KEY]", "[SHOP_API_KEY, HANDED]")
    more = "gate: {max_errors: 1}\nbaseline: {store: file, path: base.json}\n"
    (shop / "other.yaml").write_text(config + more)
    for out in ("before", "old"):
        main(["run", "-c", "other.yaml", "--out", out])
    shutil.copytree("before", "old/base")  # as a run of the merge base
    capsys.readouterr()

    monkeypatch.setenv("HANDED", HANDED)
    named = ["-c", "other.yaml"] if has_config else []
    (shop / "ci-eval.yaml").unlink()
    main(["report", "old", "--out", "new", *named])
    main(["compare", "before", "old", "--html", "both.html", *named])
    main(["baseline", "save", "old", "-c", "other.yaml"])
    pages = [*(shop / "new").iterdir(), shop / "both.html", shop / "base.json"]
    written = {path.name: path.read_text() for path in pages}
    for name in ("report.html", "both.html"):
        written[f"data of {name}"] = _chunks(written[name])
        assert "401 for [HANDED]" in written[f"data of {name}"]
        assert '"agent":"[HANDED]"' in written[f"data of {name}"]
    written["console"] = "".join(capsys.readouterr())
    assert {name for name, text in written.items() if HANDED in text} == set()
    assert "401 for [HANDED]" in written["junit.xml"]


def _chunks(page: str) -> str:
    """Return the compressed data of a page."""
    found = re.findall(r'id="chunk-\d+">([^<]*)<', page)
    return "\n".join(gzip.decompress(base64.b64decode(each)).decode() for each in found)


LITERAL = """
agents:
  bot: {python: "literal:answer", env: {SHOP_TOKEN: lit-9f8e7d6c5b, SHOP_COLOUR: light-blue}}
  web:
    http: "%s/chat"
    headers: {Authorization: Bearer literal-hdr-4711, X-Visitor: light-green}
    body: {text: "{{ message }}"}
    response: answer.text
evalsets: {all: cases.yaml}
criteria: {response_match_score: 1}
"""
ECHO = """
import os
def answer(message):
    return f"{os.environ['SHOP_TOKEN']} {os.environ['SHOP_COLOUR']}"
"""


class EchoedHeaders(Loopback):
    def reply(self, request: Request) -> Reply:
        headers = request.headers
        return as_json({"text": f"{headers['authorization']} {headers['x-visitor']}"})


def test_a_secret_that_the_configuration_contains_is_in_no_document(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "literal.py").write_text(ECHO)
    (shop / "cases.yaml").write_text("- {id: a, prompt: Hi, expected: Hello}\n")
    with serving(web := EchoedHeaders()):
        (shop / "ci-eval.yaml").write_text(LITERAL % web.url)
        main(["run", "-vv"])
    written = {
        path.name: path.read_text()
        for path in (shop / "ci-eval-report").iterdir()
        if path.is_file()
    }
    written["printed"] = "".join(capsys.readouterr())

    for secret in ("lit-9f8e7d6c5b", "literal-hdr-4711"):
        assert {name for name, text in written.items() if secret in text} == set()
    assert "[SHOP_TOKEN] light-blue" in written["traces.jsonl"]
    assert "[Authorization] light-green" in written["traces.jsonl"]


@pytest.mark.parametrize("config", ["ci-eval.yaml", "other.yaml"])
def test_a_secret_in_an_earlier_conversation_is_not_shown(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    split = TOLD.replace('{"key": said}', '{"key": said[:12], "rest": said[12:]}')
    (shop / "shop.py").write_text(split)
    (shop / config).write_text(CONFIG.replace("[SHOP_API_KEY]", "[SHOP_API_KEY, HANDED]"))
    main(["run", "-c", config])
    capsys.readouterr()

    monkeypatch.setenv("HANDED", HANDED)
    monkeypatch.setattr("ci_eval.cli.console.width", lambda: 24)  # a line ends inside the secret
    for options in ([], ["--json"]):
        main(["show", "*", *options])
        printed = "".join(capsys.readouterr())
        assert "[HANDED]" in printed
        assert not [at for at in range(len(HANDED) - 7) if HANDED[at : at + 8] in printed]


# --- A run with everything ------------------------------------------------------------------

_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDPlanted0000{:02}"
PEM = "\n".join(
    ["-----BEGIN PRIVATE KEY-----", *map(_LINE.format, range(4)), "-----END PRIVATE KEY-----", ""]
)
PLANTED: Mapping[str, str] = {
    "SHOP_API_KEY": "sk-live-PlantedPlain0123456789",
    "SIGNING_SECRET": "Pl4nt+ed/B4se64Text+abc/def0123==",
    "DB_PASSWORD": "p%l'a\"n\\tedQuoted ü&<x>?#12",
    "DEPLOY_KEY": PEM,
    "GCP_CREDENTIALS": json.dumps(
        {"type": "service_account", "private_key_id": "f00dplanted7777", "private_key": PEM}
    ),
    "INPUT_GITHUB-TOKEN": "ghs_PlantedTokenOfTheJob000111222",
    "ACTIONS_RUNTIME_TOKEN": "eyJplanted.eyJydW50aW1lIjoxfQ.c2lnbmF0dXJl",
    # Its name tells nothing; the configuration hands it on.
    "SHOP_VISITOR": "PlantedVisitor4711",
    "HTTPS_PROXY_OF_SHOP": "http://user:PlantedProxy99@proxy.example:3128",
}
PIECES = (
    *("PlantedPlain0123456789", "B4se64Text", "tedQuoted", "Planted0000", "f00dplanted7777"),
    *("PlantedTokenOfTheJob", "eyJydW50aW1lIjoxfQ", "PlantedVisitor4711", "PlantedProxy99"),
)
"""Of each secret a piece that every way to write it keeps, but for base64."""

SHOP = """
import base64, json, os, sys, time
from pathlib import Path
from urllib.parse import quote, quote_plus

NAMES = ["SHOP_API_KEY", "SIGNING_SECRET", "DB_PASSWORD", "DEPLOY_KEY", "GCP_CREDENTIALS",
         "SHOP_VISITOR", "HTTPS_PROXY_OF_SHOP"]


def forms(value):
    data = value.encode()
    yield value
    yield json.dumps(value)
    yield json.dumps(json.dumps(value))
    yield repr(value)
    yield quote(value)
    yield quote(value, safe="").replace("%2F", "%2f")
    yield quote_plus(value)
    for before in (b"", b"x", b"xy", b"x-access-token:"):
        yield base64.b64encode(before + data).decode()
        yield base64.urlsafe_b64encode(before + data + b" and more").decode().rstrip("=")
    yield base64.encodebytes(data).decode()


def answer(message):
    values = {name: os.environ[name] for name in NAMES}
    said = [form for value in values.values() for form in forms(value)]
    git = Path(".git/config").read_text()
    print("out", *said)
    print("err", git, *said, file=sys.stderr)
    if message == "fail":
        raise RuntimeError("401 for " + " ".join(said))
    if message == "hang" and not Path("go").exists():
        time.sleep(600)
    key = values["SHOP_API_KEY"]
    calls = [
        {"name": "pay-" + key, "args": {"head": key[:11], "tail": key[11:], "all": said}},
        {"name": "split", "args": {"pieces": list(key), key: {key[:9]: key[9:]}}},
    ]
    return {"response": "before " + " and ".join(said) + " after " + git, "tool_calls": calls}
"""
PLANTED_CONFIG = """
name: planted
agents:
  bot:
    python: "shop:answer"
    env: [SHOP_API_KEY, SIGNING_SECRET, DB_PASSWORD, DEPLOY_KEY, GCP_CREDENTIALS, SHOP_VISITOR,
          HTTPS_PROXY_OF_SHOP]
  web:
    http: "%(web)s/chat"
    headers: {X-Visitor: "${SHOP_VISITOR}"}
    body: {text: "{{ message }}"}
    response: answer.text
evalsets: {all: all.evalset.json}
matrix: [{agents: [bot, web], evalsets: [all]}]
criteria:
  quiet: {use: ci/regex, pattern: "sk-", absent: true, threshold: 1}
  final_response_match_v2: 0.5
gate: {max_errors: 20}
simulator: {type: llm_backed, max_allowed_invocations: 2}
baseline: {store: %(store)s, branches: [main]}
"""


def _case(name: str, *asked: str) -> dict[str, object]:
    turns = [
        {
            "user_content": {"role": "user", "parts": [{"text": text}]},
            "final_response": {"role": "model", "parts": [{"text": "Hello"}]},
        }
        for text in asked
    ]
    return {"eval_id": name, "conversation": turns}


PLAYED = {
    "eval_id": "played",
    "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Say hello."},
}


class Echo(Loopback):
    """Says what it was sent, headers included."""

    def reply(self, request: Request) -> Reply:
        return as_json({"text": f"You are {request.headers['x-visitor']}, are you not?"})


class Quoting(FakeGemini):
    """A judge, and a user, who quote what they were told."""

    def reply(self, request: Request) -> Reply:
        reply = super().reply(request)
        if reply.status != 200:
            return reply
        quoted = f"It says {PLANTED['SHOP_API_KEY']} and {PLANTED['DB_PASSWORD']}."
        if "responseJsonSchema" not in request.body["generationConfig"]:
            return as_json(answer(quoted))
        said = {"reasoning": quoted, "is_the_agent_response_valid": "invalid"}
        return as_json(answer(json.dumps(said)))


class Planted:
    """A repository in CI, with a remote."""

    def __init__(self, folder: Path, urls: Mapping[str, str]) -> None:
        self.folder = folder / "work"
        self._urls = urls
        remote = folder / "remote.git"
        repo = Repo(self.folder)
        repo.git("init", "--quiet", "--bare", str(remote))
        repo.git("remote", "add", "origin", str(remote))
        login = base64.b64encode(f"x-access-token:{PLANTED['INPUT_GITHUB-TOKEN']}".encode())
        header = f"AUTHORIZATION: basic {login.decode()}"
        repo.git("config", "http.https://example.com/.extraheader", header)
        repo.write("shop.py", SHOP)
        repo.write("ci-eval.yaml", PLANTED_CONFIG % {"web": urls["web"], "store": "branch"})
        self.evalset(_case("leaks", "Hi"), _case("fails", "fail"), PLAYED)
        repo.commit()
        repo.git("push", "--quiet", "origin", "main")
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            (folder / name).touch()
        self.repo = repo
        self.env = {
            **ENV,
            **PLANTED,
            "HOME": str(folder),
            "GOOGLE_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": urls["gemini"],
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_REF_NAME": "main",
            "GITHUB_REF_TYPE": "branch",
            "GITHUB_OUTPUT": str(folder / "GITHUB_OUTPUT"),
            "GITHUB_STEP_SUMMARY": str(folder / "GITHUB_STEP_SUMMARY"),
        }

    def evalset(self, *cases: Mapping[str, object]) -> None:
        text = json.dumps({"eval_set_id": "all", "eval_cases": cases})
        (self.folder / "all.evalset.json").write_text(text)

    def store_in(self, store: str) -> None:
        config = PLANTED_CONFIG % {"web": self._urls["web"], "store": store}
        (self.folder / "ci-eval.yaml").write_text(config)

    def start(self, *args: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "ci_eval", *args],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def ci_eval(self, *args: str) -> str:
        """Run a command that ends with a verdict, and return what it printed."""
        with self.start(*args) as process:
            printed = process.communicate(timeout=300)[0].decode()
        assert process.returncode in (0, 1, 6), printed
        return printed

    def left(self) -> Iterator[tuple[str, str]]:
        """Yield all that can be read afterwards, by what it is called."""
        for path in sorted(self.folder.parent.rglob("*")):
            inside = path.relative_to(self.folder.parent).as_posix()
            if path.is_file() and "objects/" not in inside and not inside.endswith(".git/config"):
                yield inside, path.read_text(encoding="utf-8", errors="replace")
        for folder in (self.folder, self.folder.parent / "remote.git"):
            batch = ("cat-file", "--batch-all-objects", "--batch", "--unordered")
            done = subprocess.run(
                ["git", *batch], cwd=folder, env=ENV, capture_output=True, check=True
            )
            yield f"the objects of {folder.name}", done.stdout.decode(errors="replace")


def _in_base64(value: str) -> Iterator[str]:
    """Yield the middle of `value` in base64, wherever it begins."""
    for shift in range(3):
        made = base64.b64encode(b"\0" * shift + value.encode()).decode()
        inner = made[4:-4]
        yield inner[:20]
        yield inner[-20:].replace("+", "-").replace("/", "_")


def _found(text: str) -> set[str]:
    """Return the planted secrets that occur in `text`, in any encoding."""
    values = [*PLANTED.values(), PEM.splitlines()[2], PLANTED["INPUT_GITHUB-TOKEN"]]
    forms = {
        *PIECES,
        *(form for value in values for form in _in_base64(value)),
        *(quote(value, safe="") for value in values),
        *(quote_plus(value) for value in values),
        *(json.dumps(value)[1:-1] for value in values),
    }
    return {form for form in forms if form in text}


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Planted]:
    with serving(web := Echo()), serving(gemini := Quoting()):
        yield Planted(tmp_path, {"web": web.url, "gemini": gemini.url})


@pytest.mark.slow
def test_no_planted_secret_is_left_anywhere(planted: Planted) -> None:
    printed = planted.ci_eval(
        "run", "--baseline-save", "--record", "record.jsonl", "--adk-results", "adk"
    )
    planted.store_in("file")
    printed += planted.ci_eval("run", "--baseline-save")
    left = dict(planted.left())

    assert _found(printed) == set(), printed
    assert {name: found for name, text in left.items() if (found := _found(text))} == {}
    # It did all that it was asked for, and the text round the secrets is there.
    names = "".join(left)
    for name in ("record.jsonl", "judge.jsonl", "adk/bot", "baseline", "comment.md", "junit.xml"):
        assert name in names
    assert '"planted"' in left["the objects of remote.git"]
    run = left["work/ci-eval-report/run.json"]
    assert "before [SHOP_API_KEY] and " in run
    assert "You are [SHOP_VISITOR], are you not?" in left["work/record.jsonl"]
    assert "It says [SHOP_API_KEY] and [DB_PASSWORD]." in left["work/.ci-eval/cache/judge.jsonl"]
    assert "401 for [SHOP_API_KEY]" in run
    assert '"pay-[SHOP_API_KEY]"' in left["work/record.jsonl"]


@pytest.mark.slow
def test_a_killed_run_leaves_no_secret_and_is_gone_on_with(planted: Planted) -> None:
    planted.evalset(_case("hangs", "Hi", "hang"))
    underway = planted.folder / "ci-eval-report/underway.jsonl"
    process = planted.start("run", "--agent", "bot")
    _wait_for(underway, process)
    os.kill(process.pid, signal.SIGKILL)
    printed = process.communicate()[0].decode()
    killed = dict(planted.left())

    assert "before [SHOP_API_KEY]" in killed["work/ci-eval-report/underway.jsonl"]
    assert _found(printed) == set()
    assert {name: found for name, text in killed.items() if (found := _found(text))} == {}

    (planted.folder / "go").touch()
    printed = planted.ci_eval("run", "--agent", "bot", "--resume")
    assert _found(printed) == set()
    assert {name: found for name, text in planted.left() if (found := _found(text))} == {}
    assert not underway.exists()
    assert [each["status"] for each in _results(planted)] == ["failed"]


def _wait_for(path: Path, process: "subprocess.Popen[bytes]") -> None:
    def a_line_is_there() -> bool:
        return path.exists() and path.read_bytes().endswith(b"\n")

    assert waits_for(lambda: a_line_is_there() or process.poll() is not None)
    assert process.poll() is None, process.communicate()[0].decode()


def _results(planted: Planted) -> list[dict[str, object]]:
    text = (planted.folder / "ci-eval-report/run.json").read_text()
    results: list[dict[str, object]] = json.loads(text)["results"]
    return results
