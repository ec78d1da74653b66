"""A project whose agent calls models through the gateway, run by the command in this process."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from servers.models import Models
from support.commands import Ended
from support.project import Project

CHAT = '''\
import json, os, urllib.request


def ask(text, **more):
    """Ask a model, as clients do, but with the standard library."""
    body = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": text}], **more}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "text/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]
'''
PYTHON = CHAT + "\n\ndef answer(message):\n    return ask(message)\n"
COMMAND = (
    "import sys\n"
    + CHAT
    + "\n\nfor line in sys.stdin:\n"
    + "    print(json.dumps(ask(json.loads(line)['message'])), flush=True)\n"
)

SERVER = (
    CHAT
    + """
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CARD = {"name": "bot", "protocolVersion": "0.3.0", "url": "/rpc", "preferredTransport": "JSONRPC"}


def answer(text):
    time.sleep(globals().get("PAUSES", {}).get(text, 0))
    found = []
    # In a thread of its own, as servers hold conversations in threads that nobody knows.
    thread = threading.Thread(target=lambda: found.append(ask(text)))
    thread.start()
    thread.join()
    return found[0] + "".join(sorted(value for value in os.environ.values() if "real-key" in value))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        known = {"/health": {}, "/list-apps": ["bot"], "/version": {"version": "2.13.0"}}
        card = "agent-card.json" in self.path
        self.reply(CARD if card else known.get(self.path, {"id": "s", "state": {}}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/rpc":
            text = answer(body["params"]["message"]["parts"][0]["text"])
            parts = [{"kind": "text", "text": text}]
            message = {"kind": "message", "role": "agent", "messageId": "m", "parts": parts}
            self.reply({"jsonrpc": "2.0", "id": body["id"], "result": message})
        elif "newMessage" in body or "new_message" in body:
            asked = body.get("newMessage") or body["new_message"]
            parts = [{"text": answer(asked["parts"][0]["text"])}]
            event = {"content": {"role": "model", "parts": parts}, "author": "bot", "id": "e",
                     "invocationId": "i", "timestamp": 1, "actions": {"stateDelta": {}}}
            self.reply(f"data: {json.dumps(event)}\\n\\n")
        elif "message" in body:
            self.reply({"response": answer(body["message"])})
        else:
            self.reply({"id": self.path.rpartition("/")[2], "state": {}})

    def reply(self, found):
        text = found if isinstance(found, str) else json.dumps(found)
        kind = "text/event-stream" if text is found else "application/json"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
)
"""Speaks as an HTTP service, as an A2A agent and as an API server of ADK."""


class ModelProject(Project):
    """Cases `c0`, `c1` …, each with one message, and an agent in `bot.py`."""

    def __init__(self, folder: Path, capsys: Any, patch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, capsys)
        self._patch = patch
        patch.chdir(folder)
        for name in [each for each in os.environ if each.endswith(("_API_KEY", "_BASE_URL"))]:
            patch.delenv(name)

    def agent(self, code: str, models: str, *, kind: str = "python", cases: int = 3) -> None:
        """Write the agent, its cases and the configuration."""
        (self.folder / "bot.py").write_text(code)
        agent = {"python": 'python: "bot:answer"', "command": "command: [python3, bot.py]"}.get(
            kind, kind
        )
        rows = "".join(f"c{at},question {at},question {at}\n" for at in range(cases))
        (self.folder / "smoke.csv").write_text("id,prompt,expected\n" + rows)
        self.config(
            f"agents: {{bot: {{{agent}, models: {models}}}}}\nevalsets: {{smoke: smoke.csv}}\n"
            "criteria: {response_match_score: 0.5, ci/tokens: {}, ci/cost_usd: {}, "
            "ci/model_calls: {}}\n"
        )

    def edit(self, before: str, after: str) -> None:
        """Replace a part of the configuration."""
        text = (self.folder / "ci-eval.yaml").read_text()
        assert before in text
        self.config(text.replace(before, after))

    def with_keys(self, models: Models) -> None:
        self.set(**models.environment())

    def without_keys(self) -> None:
        self.set(**dict.fromkeys(Models().environment()))

    def set(self, **variables: str | None) -> None:
        """Set variables of ours, or remove them."""
        for name, value in variables.items():
            if value is None:
                self._patch.delenv(name, raising=False)
            else:
                self._patch.setenv(name, value)

    def run(self, *arguments: str, out: str = "out") -> Ended:
        return self.ci_eval("run", "--out", out, *arguments)

    def cassette(self) -> list[str]:
        """Return the lines of the cassette, the first included."""
        return (self.folder / "models.jsonl").read_text().splitlines()

    def responses(self, out: str = "out") -> dict[tuple[str, int], list[str]]:
        """Return the answers of the agent, by case and repeat."""
        found = {}
        for line in (self.folder / out / "traces.jsonl").read_text().splitlines():
            row = json.loads(line)
            texts = [each["final_response"]["parts"][0]["text"] for each in row["invocations"]]
            found[row["eval_id"], row["repeat"]] = texts
        return found

    def observed(self, out: str = "out") -> dict[tuple[str, int], Any]:
        """Return all that was observed, by case and repeat, without times and ids of a run."""
        rows = map(json.loads, (self.folder / out / "traces.jsonl").read_text().splitlines())
        return {(each["eval_id"], each["repeat"]): _lasting(each) for each in rows}

    def errors(self, out: str = "out") -> dict[str, tuple[str, str]]:
        """Return the kind and the message of each trial's error, by case."""
        results = json.loads((self.folder / out / "run.json").read_text())["results"]
        return {
            each["key"]["case"]: (each["error"]["kind"], each["error"]["message"])
            for each in results
            if each.get("error")
        }

    def values(self, name: str, out: str = "out") -> list[float | None]:
        results = json.loads((self.folder / out / "run.json").read_text())["results"]
        scores = [score for each in results for score in each["scores"]]
        return [score.get("value") for score in scores if score["name"] == name]


_VARYING = {
    *("duration", "duration_s", "model_duration", "tool_duration", "creation_timestamp"),
    *("seconds", "replayed"),
    "output",  # a client warns once, in whichever trial comes first
}
"""What differs from run to run, whatever the models answer."""


def _lasting(row: dict[str, Any]) -> Any:
    ids: dict[str, int] = {}

    def visit(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: visit(each, name) for name, each in value.items() if name not in _VARYING}
        if isinstance(value, list):
            return [visit(each) for each in value]
        # Frameworks make ids of their own: of invocations, and of calls that have none.
        return ids.setdefault(value, len(ids)) if key in ("id", "invocation_id") else value

    return visit(row)
