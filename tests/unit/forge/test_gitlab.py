"""GitLab's API over real connections: who is asked, pages, limits, and what it may say."""

import asyncio
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from servers.gitlab import NUMBER, PROJECT, TOKEN, FakeGitLab, gitlab
from servers.loopback import CUT, DROPPED, HTML, QuietServer, Reply, as_json, closed_port

from ci_eval.forge import gitlab as module
from ci_eval.forge import rest
from ci_eval.forge.gitlab import GitLab, connected, limit_s
from ci_eval.forge.rest import HostError
from ci_eval.records.cases import Stored
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Request, Response
from ci_eval.runtime.retry import Backoff

NOTES = f"merge_requests/{NUMBER}/notes"
NOW = 1_767_225_600.0
SAID: list[str] = []
Work = Callable[[GitLab], Awaitable[Any]]


class Thing(Stored):
    id: int
    body: str


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitLab]:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))
    SAID.clear()
    with gitlab() as found:
        yield found


def asking(env: dict[str, str], work: Work | None = None) -> Any:
    async def main() -> Any:
        context = RunContext(env, Path(), time.time, say=SAID.append)
        async with connected(context, PROJECT) as found:
            return await (work or things)(found)

    return asyncio.run(main())


async def things(found: GitLab) -> list[Thing]:
    return [each async for each in found.listed(NOTES, Thing, sort="asc")]


def refused(env: dict[str, str], work: Work | None = None) -> HostError:
    with pytest.raises(HostError) as caught:
        asking(env, work)
    assert TOKEN not in f"{caught.value} {caught.value.hint} {SAID}"
    return caught.value


# --- Who is asked, and as whom ----------------------------------------------------------------


def test_a_request_goes_where_the_job_says_with_the_token_in_a_header(fake: FakeGitLab) -> None:
    assert asking(fake.env) == []
    assert fake.request.path == f"/api/v4/projects/{PROJECT}/{NOTES}"
    assert fake.request.query == {"sort": ["asc"], "per_page": ["100"], "page": ["1"]}
    assert fake.request.headers["private-token"] == TOKEN


def test_a_token_of_our_own_goes_before_one_that_others_use(fake: FakeGitLab) -> None:
    both = {"CI_EVAL_GITLAB_TOKEN": TOKEN, "GITLAB_TOKEN": "of-another-tool"}
    assert asking({**fake.env, **both}) == []


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"GITLAB_TOKEN": ""}, "no GitLab token is set"),
        ({"GITLAB_TOKEN": "two\nlines"}, "GITLAB_TOKEN is not a token: it has spaces, line breaks"),
        ({"CI_API_V4_URL": "gitlab.example/api/v4"}, "CI_API_V4_URL: expected an address"),
    ],
)
def test_what_the_environment_lacks_is_said_before_anything_is_sent(
    fake: FakeGitLab, env: dict[str, str], message: str
) -> None:
    assert str(refused({**fake.env, **env})).startswith(message)
    assert fake.requests == []


# --- Pages ------------------------------------------------------------------------------------


def test_pages_are_counted_and_never_looked_for_elsewhere(fake: FakeGitLab) -> None:
    for number in range(205):
        fake.say(f"note {number}")
    assert [each.body for each in asking(fake.env)] == fake.bodies
    assert [each.query["page"] for each in fake.requests] == [["1"], ["2"], ["3"]]


def test_a_list_without_end_is_given_up(fake: FakeGitLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAGES", 3)
    fake.script.extend(Reply(b"[]", headers={"x-next-page": str(page)}) for page in (2, 3, 4))
    assert str(refused(fake.env)).endswith("has more than 3 pages")
    assert len(fake.requests) == 3


@pytest.mark.parametrize("following", ["", "0", "1", "-2", "two", "9" * 4400])
def test_what_is_no_later_page_is_the_end(fake: FakeGitLab, following: str) -> None:
    fake.script.append(Reply(b"[]", headers={"x-next-page": following}))
    assert asking(fake.env) == []
    assert len(fake.requests) == 1


# --- Limits, and servers that are not well ----------------------------------------------------


def answer(status: int, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(Request("GET", "https://gitlab.example"), status, named, b"Retry later")


@pytest.mark.parametrize(
    ("response", "pause_s"),
    [
        (answer(429, **{"Retry-After": "30", "RateLimit-Reset": "1767225999"}), 30.0),
        (answer(429, **{"RateLimit-Remaining": "0", "RateLimit-Reset": "1767225645"}), 45.0),
        (answer(429, **{"RateLimit-Remaining": "0", "RateLimit-Reset": "1767225000"}), 0.0),
        # A limit of notes says nothing, and the other limit is not what was met.
        (answer(429, **{"RateLimit-Remaining": "1999", "RateLimit-Reset": "1767225645"}), 60.0),
        (answer(429), 60.0),
        (answer(200, **{"RateLimit-Remaining": "0", "RateLimit-Reset": "1767225645"}), None),
        (answer(403, **{"Retry-After": "30"}), None),
    ],
)
def test_a_limit_is_waited_for_as_it_says(response: Response, pause_s: float | None) -> None:
    assert limit_s(response, NOW) == pause_s


def test_a_limit_that_lasts_longer_than_we_wait_is_told(fake: FakeGitLab) -> None:
    fake.script.append(Reply(b"Retry later", 429, "text/plain", {"Retry-After": "600"}))
    error = refused(fake.env)
    assert str(error) == "GitLab rate limit exceeded; try again in 600 s"
    assert len(fake.requests) == 1


@pytest.mark.parametrize("trouble", [Reply(status=502), Reply(status=503), DROPPED, CUT])
def test_a_server_that_is_not_well_is_asked_again(fake: FakeGitLab, trouble: Reply) -> None:
    fake.say("there")
    fake.script.extend([trouble, trouble, trouble])
    assert [each.body for each in asking(fake.env)] == ["there"]
    assert all("retrying in" in each for each in SAID)


def test_a_server_that_stays_unwell_is_given_up(fake: FakeGitLab) -> None:
    fake.script.extend([Reply(status=500)] * 4)
    assert "answered 500" in str(refused(fake.env))
    assert len(fake.requests) == 4


def test_what_is_made_is_not_made_twice(fake: FakeGitLab) -> None:
    fake.script.append(Reply(status=502))
    refused(fake.env, lambda found: found.post(NOTES, {"body": "text"}, Thing))
    assert len(fake.requests) == 1


# --- What it may say --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (HTML, "which is not JSON"),
        (as_json({"id": 1}), "did not return a list"),
        (as_json([{"id": "x", "body": "y"}]), "returned unexpected data: id: "),
        (as_json([{"id": 1}]), "returned unexpected data: 'body' is missing"),
        (as_json([7]), "returned unexpected data"),
    ],
)
def test_what_is_not_as_described_is_an_error(fake: FakeGitLab, reply: Reply, said: str) -> None:
    fake.script.append(reply)
    assert said in str(refused(fake.env))


def test_a_redirect_is_not_followed_with_the_token(fake: FakeGitLab) -> None:
    fake.script.append(Reply(status=302, headers={"Location": "https://elsewhere.example/x"}))
    error = refused(fake.env)
    assert "answered 302" in str(error)
    assert len(fake.requests) == 1


def test_nobody_at_the_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))
    env = {"CI_API_V4_URL": f"http://127.0.0.1:{closed_port()}/api/v4", "GITLAB_TOKEN": TOKEN}
    assert "could not be reached" in str(refused(env))


# --- Servers with a certificate of their own --------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # as the library names it
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """A server that nobody vouches for but the file beside it."""
    if not (openssl := shutil.which("openssl")):
        pytest.skip("openssl makes the certificate")
    certificate, key = tmp_path / "server.pem", tmp_path / "key.pem"
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-subj", "/CN=gitlab", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    made += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *made], check=True, capture_output=True)
    with QuietServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"https://127.0.0.1:{server.server_port}/api/v4"
        yield {"CI_API_V4_URL": url, "GITLAB_TOKEN": TOKEN}, certificate
        server.shutdown()
        thread.join()


Encrypted = tuple[dict[str, str], Path]


def test_what_the_runner_trusts_is_trusted(encrypted: Encrypted) -> None:
    env, certificate = encrypted
    assert asking({**env, "CI_SERVER_TLS_CA_FILE": str(certificate)}) == []


def test_what_nobody_vouches_for_is_not_told_the_token(
    encrypted: Encrypted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "RETRIES", 0)
    said = str(refused(encrypted[0]))
    assert "its certificate is not trusted: self" in said


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_of_authorities_that_is_none_is_told(
    fake: FakeGitLab, tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    error = refused({**fake.env, "CI_SERVER_TLS_CA_FILE": str(path)})
    assert str(error).startswith("CI_SERVER_TLS_CA_FILE: ")
    assert fake.requests == []
