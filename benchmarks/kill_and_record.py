"""Kills a run that records model calls at random moments, and resumes it.

python benchmarks/kill_and_record.py [MOMENTS [SEED]]

The provider never gives the same answer twice, so a replay shows whether the cassette and the
traces belong together.  After each kill, and for the run that resumes it, the following must hold:

- each terminated line of the cassette is complete, and every answer that the agent got is in it;
- no call in the cassette is made again;
- at most one call of each unfinished conversation is missing, and is made again.

In the end, each call is in the cassette once, and a replay without the provider gives the same.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from typing import Any, NamedTuple
from urllib.parse import urlsplit

AGENT = '''
import json, os, urllib.request


def log(said):
    """Note the number of an answer that came."""
    file = os.open("answers.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, (said.rpartition("#")[2] + "\\n").encode())
    os.close(file)
    return said


def ask(text, stream=False):
    body = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({**body, "stream": stream}).encode(),
        {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request) as answer:
        whole = answer.read().decode()
    if not stream:
        return log(json.loads(whole)["choices"][0]["message"]["content"])
    events = [line[6:] for line in whole.splitlines() if line.startswith("data: {")]
    return log("".join(json.loads(each)["choices"][0]["delta"]["content"] for each in events))


def answer(message, history, session):
    state = session["state"]
    before = state.get("said", "")
    said = [ask(f"plain {message} | {before}")]
    said.append(ask(f"stream {message} | {said[0]}", stream=True))
    said.append(ask(f"plain {message} | {before}"))
    state["said"] = " ".join(each.rpartition("#")[2] for each in said)
    return state["said"]
'''
CONFIG = """
agents: {{bot: {{python: "bot:answer", models: {{mode: {mode}, cassette: models.jsonl}}}}}}
evalsets: {{talks: talks.json}}
criteria: {{ci/regex: {{pattern: '[0-9]'}}, ci/model_calls: 10}}
run: {{concurrency: {concurrency}, repeats: {repeats}}}
"""
MODES = ("record", "auto")
CONCURRENCY, REPEATS, TURNS = 4, 2, 2
EACH = {"plain": 2, "stream": 1}
"""How often the agent makes each kind of call, for each message."""
KEYS = {"call", "agent", "evalset", "case", "repeat", "model", "request", "answer"}
"""The content of a line of a cassette."""
DELAY_S = 0.03
"""The longest time that the provider takes."""
KILLS = 3
"""Maximum number of kills of one run."""
END_S = 0.5
"""The longest time that a run continues after its last call, to sort the cassette and to report."""


class Moment(NamedTuple):
    """When a run is killed."""

    calls: int
    """How many calls it has made by then."""
    later_s: float
    """Seconds since the last of them."""


class Provider:
    """Counts calls by their beginning, and never gives the same answer twice."""

    def __init__(self, chance: Random) -> None:
        self.calls: Counter[str] = Counter()
        self.url = ""
        self.connections = 0
        """Those whose end has not been seen."""
        self._chance = chance
        self.lock = threading.Lock()
        self._number = 0

    def answer(self, body: dict[str, Any]) -> tuple[str, bytes]:
        """Return the content type and the body of an answer."""
        asked = body["messages"][0]["content"].partition(" | ")[0]
        with self.lock:
            self.calls[asked] += 1
            self._number += 1
            said, delay_s = f"{asked} #{self._number}", self._chance.uniform(0, DELAY_S)
        time.sleep(delay_s)
        usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
        whole: dict[str, Any] = {"id": "c", "model": "gpt-4.1-mini", "usage": usage}
        if not body.get("stream"):
            whole["choices"] = [{"index": 0, "message": {"role": "assistant", "content": said}}]
            return "application/json", json.dumps(whole).encode()
        head, _, number = said.rpartition(" ")
        chunks = [
            {"choices": [{"index": 0, "delta": {"content": each}}]} for each in (head, number)
        ]
        lines = [f"data: {json.dumps(each)}\n\n" for each in (*chunks, {**whole, "choices": []})]
        return "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    provider: Provider

    def process_request(self, request: Any, client_address: Any) -> None:
        """Count a connection."""
        with self.provider.lock:
            self.provider.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Count the end of one."""
        super().shutdown_request(request)
        with self.provider.lock:
            self.provider.connections -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that were killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:  # as the library names it
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        kind, answer = self.server.provider.answer(body)
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def serving(provider: Provider) -> Iterator[None]:
    """Serve the provider at its `url`."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.provider = provider
        provider.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class Outcome(NamedTuple):
    """The outcome of one killed run."""

    mode: str
    moments: tuple[Moment, ...]
    lost: int
    """How many calls were made whose answer came too late."""
    problems: tuple[str, ...]
    """What should not be; nothing where all went well."""


def write(folder: Path, cases: int, mode: str) -> Counter[str]:
    """Write a project, and return the expected number of each call."""
    folder.mkdir(parents=True)
    (folder / "bot.py").write_text(AGENT)
    options = {"mode": mode, "concurrency": CONCURRENCY, "repeats": REPEATS}
    (folder / "ci-eval.yaml").write_text(CONFIG.format(**options))
    said = [[f"case-{number} {turn}" for turn in range(TURNS)] for number in range(cases)]
    talks = [
        {"id": f"case-{number}", "turns": [{"prompt": each} for each in turns]}
        for number, turns in enumerate(said)
    ]
    (folder / "talks.json").write_text(json.dumps({"name": "talks", "cases": talks}))
    return Counter(
        {
            f"{kind} {message}": times * REPEATS
            for kind, times in EACH.items()
            for turns in said
            for message in turns
        }
    )


def started(folder: Path, provider: Provider, *more: str) -> "subprocess.Popen[str]":
    """Start a run."""
    variables = {"OPENAI_API_KEY": "sk-of-nobody-at-all", "OPENAI_BASE_URL": provider.url}
    return subprocess.Popen(
        [sys.executable, "-m", "ci_eval", "run", *more],
        cwd=folder,
        env=os.environ | variables,  # noqa: TID251  # the caller's own
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(folder: Path, provider: Provider, moment: Moment, *more: str) -> None:
    """Start a run, and kill all its processes at a moment."""
    before = provider.calls.total()
    process = started(folder, provider, *more)
    while provider.calls.total() < before + moment.calls and process.poll() is None:
        time.sleep(0.001)
    time.sleep(moment.later_s)
    with suppress(ProcessLookupError):  # it has already ended
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    # Calls made before the kill may be read and counted only now.
    host, port = urlsplit(provider.url).netloc.split(":")
    with socket.create_connection((host, int(port))) as last:
        last.shutdown(socket.SHUT_WR)
        last.recv(1)
    while provider.connections:
        time.sleep(0.001)


class Cassette(NamedTuple):
    """The content of a cassette."""

    calls: Counter[str]
    """How often each call is recorded."""
    answers: set[str]
    """The numbers of the answers."""


def recorded(folder: Path, problems: list[str]) -> Cassette:
    """Return the recorded calls, and note lines that are broken."""
    path = folder / "models.jsonl"
    *lines, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
    trials: dict[str, dict[str, Any]] = {}
    cut_off = _cut_off(folder)
    for line in lines[1:]:
        try:
            row = json.loads(line)
        except ValueError:
            if line not in cut_off:
                problems.append(f"broken line: {line[:100]!r}")
            continue
        if "anew" in row:
            trials.pop(row["anew"], None)
        elif set(row) == KEYS:
            trials.setdefault(row["call"].partition("-")[0], {})[row["call"]] = row
        else:
            problems.append(f"unknown line: {line[:100]!r}")
    if rest:
        with (folder / "cut_off.log").open("ab") as file:
            file.write(rest + b"\n")
    rows = [row for calls in trials.values() for row in calls.values()]
    asked = (row["request"]["messages"][0]["content"].partition(" | ")[0] for row in rows)
    answers = (re.findall(r"#(\d+)", json.dumps(row["answer"])) for row in rows)
    return Cassette(Counter(asked), {number for found in answers for number in found})


def _cut_off(folder: Path) -> list[bytes]:
    """Return the lines that earlier kills left unterminated; the next line terminated them."""
    path = folder / "cut_off.log"
    return path.read_bytes().split(b"\n") if path.exists() else []


def drawn(left: int, chance: Random) -> Moment:
    """Return a random moment of a run that still has calls to make."""
    calls = chance.randint(0, left)
    return Moment(calls, chance.uniform(0, DELAY_S if 0 < calls < left else END_S))


def killed(
    folder: Path, provider: Provider, expected: Counter[str], chance: Random
) -> tuple[list[Moment], int, list[str]]:
    """Kill the project's run at random moments, resume it, and check the invariants."""
    moments: list[Moment] = []
    problems: list[str] = []
    known = Cassette(Counter(), set())
    lost = 0
    for number in range(chance.randint(1, KILLS)):
        before, earlier = provider.calls.copy(), known
        moments.append(drawn((expected - known.calls).total(), chance))
        kill(folder, provider, moments[-1], *(["--resume"] if number else []))
        made, known = provider.calls - before, recorded(folder, problems)
        if again := made - (expected - earlier.calls):
            problems.append(f"made again: {dict(again)}")
        if gone := earlier.answers - known.answers:
            problems.append(f"no longer recorded: {sorted(gone)}")
        if (missing := made.total() - len(known.answers - earlier.answers)) > CONCURRENCY:
            problems.append(f"{missing} of {made.total()} calls are missing")
        lost += missing
        if gone := _answers_of_agent(folder) - known.answers:
            problems.append(f"the agent got what is not recorded: {sorted(gone)}")
    before = provider.calls.copy()
    ended = started(folder, provider, "--resume")
    _, err = ended.communicate()
    if ended.returncode:
        problems.append(f"exit code {ended.returncode}: {err[-200:]}")
    if (made := provider.calls - before) != expected - known.calls:
        problems.append(f"called: {dict(made)}, not {dict(expected - known.calls)}")
    found = recorded(folder, problems)
    if found.calls != expected or not known.answers <= found.answers:
        problems.append(f"recorded: {dict(found.calls)}, not {dict(expected)}")
    if b'"anew"' in (folder / "models.jsonl").read_bytes():
        problems.append("the cassette is not sorted")
    return moments, lost, problems


def _answers_of_agent(folder: Path) -> set[str]:
    """Return the numbers of the answers that the agent got."""
    path = folder / "answers.log"
    return set(path.read_text().split()) if path.exists() else set()


def observed(folder: Path, out: str = "ci-eval-report") -> dict[tuple[str, int], list[str]]:
    """Return the responses of each trial."""
    rows = map(json.loads, (folder / out / "traces.jsonl").read_text().splitlines())
    return {
        (row["eval_id"], row["repeat"]): [
            each["final_response"]["parts"][0]["text"] for each in row["invocations"]
        ]
        for row in rows
    }


def replays(folder: Path, provider: Provider) -> list[str]:
    """Replay without the provider, and return the differences."""
    process = started(folder, provider, "--models", "replay", "--out", "again")
    _, err = process.communicate()
    if process.returncode:
        return [f"exit code {process.returncode} of the replay: {err[-200:]}"]
    return [] if observed(folder, "again") == observed(folder) else ["the replay differs"]


def try_moments(moments: int, seed: int, *, cases: int = 6) -> list[Outcome]:
    """Kill runs at this number of random moments, and return the outcomes."""
    chance = Random(seed)  # noqa: S311  # no secret
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        while sum(len(each.moments) for each in outcomes) < moments:
            mode = MODES[len(outcomes) % len(MODES)]
            expected = write(folder, cases, mode)
            provider = Provider(Random(seed))  # noqa: S311  # no secret
            with serving(provider):
                at, lost, problems = killed(folder, provider, expected, chance)
            problems += replays(folder, provider)
            outcomes.append(Outcome(mode, tuple(at), lost, tuple(problems)))
            shutil.rmtree(folder)
    return outcomes


def main(moments: int, seed: int) -> int:
    """Print the outcomes of the runs, and return the number of failures."""
    print(f"killed at {moments} moments of the seed {seed}, Python {sys.version.split()[0]}")
    outcomes = try_moments(moments, seed)
    for number, each in enumerate(outcomes, 1):
        at = ", ".join(f"{calls} calls and {s * 1000:.0f} ms" for calls, s in each.moments)
        print(f"{number}: {each.mode}, killed after {at}; {each.lost} calls lost", *each.problems)
    kills = sum(len(each.moments) for each in outcomes)
    wrong = sum(bool(each.problems) for each in outcomes)
    print(f"{kills} kills, {wrong} of {len(outcomes)} runs went wrong")
    return wrong


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    seed = given[1] if len(given) > 1 else int.from_bytes(os.urandom(4), "big")
    sys.exit(min(main(given[0] if given else 50, seed), 1))
