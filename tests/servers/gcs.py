"""Cloud Storage on this machine: its JSON API, with the preconditions that emulators leave out.

Of https://cloud.google.com/storage/docs/json_api/v1/objects it has list, get, insert (multipart
and in one piece) and delete, with `ifGenerationMatch`.
"""

import base64
import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from servers.loopback import QuietServer

PAGE = 3
"""How many objects one page of a listing has."""


@dataclass(frozen=True)
class Stored:
    """An object."""

    data: bytes
    generation: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    encoding: str = ""


class FakeGcs:
    """Buckets, by name, with their objects."""

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, Stored]] = {}
        self.refusals: deque[tuple[int, str]] = deque()
        """A status and a message for each of the next requests, whatever they are."""
        self.before_insert: list[tuple[str, str, bytes]] = []
        """What somebody else stores just before the next object is inserted."""
        self.lose_answers = 0
        """How many inserts are done, and answered with an error that is worth another try."""
        self.asked: list[tuple[str, str]] = []
        """The method and the path of every request about objects."""
        self.authorizations: list[str | None] = []
        """What each of them had as `Authorization`."""
        self.url = ""
        self._generation = 1000
        self._lock = threading.Lock()

    def put(
        self,
        bucket: str,
        name: str,
        data: bytes | str,
        *,
        metadata: Mapping[str, str] | None = None,
        encoding: str = "",
    ) -> int:
        """Store an object, whatever is there, and return its generation."""
        self._generation += 1
        raw = data.encode() if isinstance(data, str) else data
        there = self.buckets.setdefault(bucket, {})
        there[name] = Stored(raw, self._generation, dict(metadata or {}), encoding)
        return self._generation

    def text(self, bucket: str, name: str) -> str:
        return self.buckets[bucket][name].data.decode()

    def names(self, bucket: str) -> list[str]:
        return sorted(self.buckets[bucket])

    # --- The API ---------------------------------------------------------------------------

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes, Mapping[str, str]]:
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        if re.fullmatch(r"/storage/v1/b/[^/]+", url.path):
            # google-cloud-storage asks this by itself, at any time, and does without an answer.
            return _error(403, "not told")
        with self._lock:
            self.asked.append((method, url.path))
            self.authorizations.append(headers.get("authorization"))
            if self.refusals:
                return _error(*self.refusals.popleft())
            found = re.fullmatch(
                r"/(?:upload/|download/)?storage/v1/b/([^/]+)/o(?:/(.+))?", url.path
            )
            if not found:
                return _error(404, "no such method here")
            bucket, name = found[1], unquote(found[2] or "")
            if bucket not in self.buckets:
                return _error(404, "The specified bucket does not exist.")
            if method == "POST":
                return self._insert(bucket, headers, body, query)
            return self._object(method, bucket, name, query) if name else self._list(bucket, query)

    def _list(self, bucket: str, query: Mapping[str, str]) -> tuple[int, bytes, Mapping[str, str]]:
        names = [n for n in self.names(bucket) if n.startswith(query.get("prefix", ""))]
        start = int(query.get("pageToken", 0))
        size = min(PAGE, int(query.get("maxResults", PAGE)))
        page: dict[str, Any] = {"items": [self._resource(bucket, n) for n in names[start:][:size]]}
        if start + size < len(names):
            page["nextPageToken"] = str(start + size)
        return _json(page)

    def _object(
        self, method: str, bucket: str, name: str, query: Mapping[str, str]
    ) -> tuple[int, bytes, Mapping[str, str]]:
        stored = self.buckets[bucket].get(name)
        if stored is None:
            return _error(404, f"No such object: {bucket}/{name}")
        if query.get("ifGenerationMatch") not in (None, str(stored.generation)):
            return _error(412, "At least one of the pre-conditions you specified did not hold.")
        if method == "DELETE":
            del self.buckets[bucket][name]
            return 204, b"", {}
        if query.get("alt") != "media":
            return _json(self._resource(bucket, name))
        more = {"content-encoding": stored.encoding} if stored.encoding else {}
        return 200, stored.data, {"x-goog-hash": f"md5={_md5(stored.data)}", **more}

    def _insert(
        self, bucket: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]
    ) -> tuple[int, bytes, Mapping[str, str]]:
        resource, data = _parts(headers["content-type"], body)
        for other in self.before_insert:
            self.put(*other)
        self.before_insert.clear()
        name = resource["name"]
        there = self.buckets[bucket].get(name)
        if query.get("ifGenerationMatch") not in (None, str(there.generation if there else 0)):
            return _error(412, "At least one of the pre-conditions you specified did not hold.")
        self.put(bucket, name, data, metadata=resource.get("metadata"))
        if self.lose_answers:
            self.lose_answers -= 1
            return _error(503, "backend error")
        return _json(self._resource(bucket, name))

    def _resource(self, bucket: str, name: str) -> dict[str, Any]:
        stored = self.buckets[bucket][name]
        return {
            "kind": "storage#object",
            "bucket": bucket,
            "name": name,
            "generation": str(stored.generation),
            "size": str(len(stored.data)),
            "timeCreated": "2026-01-01T00:00:00.000Z",
            "md5Hash": _md5(stored.data),
            "metadata": dict(stored.metadata),
            **({"contentEncoding": stored.encoding} if stored.encoding else {}),
        }


def _parts(content_type: str, body: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the two parts of a multipart upload: what is said of the object, and its content."""
    boundary = re.search(r'boundary="?([^";]+)', content_type)
    assert boundary
    first, second = body.split(b"--" + boundary[1].encode())[1:3]
    said = json.loads(first.partition(b"\r\n\r\n")[2])
    return said, second.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _json(value: Any, status: int = 200) -> tuple[int, bytes, Mapping[str, str]]:
    return status, json.dumps(value).encode(), {"content-type": "application/json"}


def _error(status: int, message: str) -> tuple[int, bytes, Mapping[str, str]]:
    return _json({"error": {"code": status, "message": message}}, status)


class _Server(QuietServer):
    gcs: FakeGcs


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:  # as the library names it
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, data, more = self.server.gcs.answer(self.command, self.path, headers, body)
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        self.do_POST()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[FakeGcs]:
    """Give a storage that can be reached at its `url`."""
    gcs = FakeGcs()
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.gcs = gcs
        gcs.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield gcs
        finally:
            server.shutdown()
            thread.join()
