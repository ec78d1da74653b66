"""Servers that are started for a run, and what is told of them when they fail."""

import asyncio
import socket
import sys
from typing import Any

import pytest
from support.agent_sessions import LONG_S, Place, converse

from ci_eval.agents import _agent_server
from ci_eval.agents.http_agent import Http

SERVER = """
    import os, sys, time
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            if b"die" in asked:
                os._exit(5)
            body = b'{"response": "fine"}'
            self.send_response(500 if b"fail" in asked else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
            if b"flood" in asked:
                sys.stdout.write("x" * (17 << 20))
            if b"fail" in asked:
                time.sleep(0.05)
                print("KeyError: city", file=sys.stderr, flush=True)

        def log_message(self, *_):
            pass

    print("starting", file=sys.stderr, flush=True)
    if sys.argv[2:]:
        os.close(1)
        time.sleep(1.2)  # longer than a process may that closed it and has to answer there
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def server(place: Place) -> Place:
    place.write("server.py", SERVER)
    return place


def http(*arguments: str, port: str = "{port}") -> Http:
    start = (sys.executable, "server.py", port, *arguments)
    given: dict[str, Any] = {"http": f"http://127.0.0.1:{port}/", "start": start}
    return Http.model_validate({**given, "env": ["COVERAGE_*"]})


@pytest.mark.slow
def test_what_a_server_wrote_after_it_was_asked_is_told(
    server: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_agent_server, "_LOG_WAIT_S", 5.0)  # a hundred times as long as it takes
    kind, message = server.talk(http(), "fail").failure
    assert kind == "connection"
    first, *written = message.splitlines()
    assert first.endswith(' answered 500: {"response": "fine"}')
    assert written == ["KeyError: city"]


def test_a_server_that_died_is_started_again(
    server: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_agent_server, "_EXIT_WAIT_S", LONG_S)

    async def hold(running: Any) -> Any:
        return [await converse(running, said) for said in ("die", "hello")]

    died, after = server.run(http(), hold)
    kind, message = died.failure
    assert kind == "crash"
    assert message.endswith("; the server itself exited with code 5")
    assert after.responses == ["fine"]


def test_a_server_on_the_port_of_another_is_not_taken_for_it(server: Place) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    agent = http(port=port)

    async def hold(first: Any) -> Any:
        async with agent.start(server.context) as second:
            return await asyncio.gather(converse(first, "hello"), converse(second, "hello"))

    first, second = server.run(agent, hold)
    assert first.responses == ["fine"]
    kind, message = second.failure
    assert kind == "start"
    assert message.startswith(f"another server of this run is started on port {port}, too")


def test_a_server_may_write_without_line_breaks(server: Place) -> None:
    assert server.talk(http(), "flood", "hello").responses == ["fine", "fine"]


@pytest.mark.slow
def test_a_server_may_close_its_standard_output(server: Place) -> None:
    assert server.talk(http("closed"), "hello").responses == ["fine"]
