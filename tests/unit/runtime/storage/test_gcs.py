"""Objects are listed, copied and stored; whatever goes wrong is said about their addresses."""

import gzip
import io
import json
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from pydantic import ValidationError
from servers.gcs import FakeGcs, serving
from servers.loopback import closed_port

from ci_eval.records.errors import UsageError
from ci_eval.runtime.storage import downloads, gcs
from ci_eval.runtime.storage.gcs import Bucket, ChangedError, GcsOptions, Storage
from ci_eval.runtime.storage.gs_uri import Place

pytestmark = pytest.mark.processes


@pytest.fixture
def fake():
    with serving() as found:
        found.buckets["b"] = {}
        yield found


def bucket(fake: FakeGcs, name: str = "b", **options: Any) -> Bucket:
    env = {"STORAGE_EMULATOR_HOST": fake.url}
    return Storage(GcsOptions(**options), env).bucket(name)


def put(where: Bucket, name: str, text: str, instead_of: int = 0) -> None:
    where.put(name, io.BytesIO(text.encode()), instead_of=instead_of, metadata={"branch": "größe"})


# --- What goes well -------------------------------------------------------------------------


def test_what_is_stored_is_found_listed_and_copied(fake):
    where = bucket(fake)
    put(where, "a/x.json", "größe")
    found = where.find("a/x.json")

    assert found is not None
    assert (found.size, found.metadata) == (7, {"branch": "größe"})
    assert where.listed("a/") == [found]
    copy = where.copy("a/x.json")
    assert copy.path.read_text() == "größe"
    assert (copy.path.name, copy.generation) == ("x.json", found.generation)


def test_a_copy_is_there_as_long_as_somebody_has_it(fake):
    fake.put("b", "x.json", "{}")
    copy = bucket(fake).copy("x.json")
    folder = copy.path.parent

    assert list(folder.iterdir()) == [copy.path]
    del copy
    assert not folder.exists()


def test_a_listing_of_several_pages_is_whole_and_bounded(fake):
    for number in range(8):
        fake.put("b", f"a/{number}", "x")
    fake.put("b", "ab", "x")
    where = bucket(fake)

    assert [each.place.name for each in where.listed("a/")] == [f"a/{n}" for n in range(8)]
    assert len(where.listed("a/", most=8)) == 8
    with pytest.raises(UsageError, match=r"^gs://b/a/: holds more than 7 objects"):
        where.listed("a/", most=7)


def test_an_object_is_removed_once(fake):
    fake.put("b", "x", "1")
    where = bucket(fake)
    (entry,) = where.listed("")

    assert where.delete(entry) is True
    assert where.delete(entry) is False
    assert fake.names("b") == []


# --- Somebody else --------------------------------------------------------------------------


def test_what_somebody_else_stored_meanwhile_is_never_overwritten(fake):
    old = fake.put("b", "x", "old")
    where = bucket(fake)
    fake.before_insert = [("b", "x", b"theirs"), ("b", "new", b"theirs")]
    with pytest.raises(
        ChangedError, match=r"^gs://b/x: was changed by another writer in the meantime"
    ):
        put(where, "x", "mine", instead_of=old)
    with pytest.raises(ChangedError, match="gs://b/new"):
        put(where, "new", "mine")

    assert (fake.text("b", "x"), fake.text("b", "new")) == ("theirs", "theirs")


def test_what_was_stored_though_the_answer_was_lost_is_stored(fake):
    """The second try finds an object, which is the one that the first stored."""
    fake.lose_answers = 1
    put(bucket(fake), "x", "mine")

    assert fake.text("b", "x") == "mine"
    assert [method for method, _ in fake.asked] == ["POST", "POST", "GET"]


def test_what_changed_since_it_was_listed_is_neither_copied_nor_removed(fake):
    fake.put("b", "x", "old")
    where = bucket(fake)
    (entry,) = where.listed("")
    fake.put("b", "x", "new")

    with pytest.raises(ChangedError):
        where.copied(entry)
    with pytest.raises(ChangedError):
        where.delete(entry)
    assert fake.text("b", "x") == "new"


# --- Bounds ---------------------------------------------------------------------------------


def test_what_is_packed_is_unpacked_up_to_a_bound(fake, monkeypatch):
    monkeypatch.setattr(downloads, "MAX_OBJECT", 1 << 20)
    fake.put("b", "fits", gzip.compress(b"x" * (1 << 20)), encoding="gzip")
    fake.put("b", "bomb", gzip.compress(b"x" * ((1 << 20) + 1)), encoding="gzip")
    fake.put("b", "lie", b"plain", encoding="gzip")
    where = bucket(fake)

    assert where.copy("fits").path.stat().st_size == 1 << 20
    with pytest.raises(UsageError, match=r"^gs://b/bomb: is larger than 1 MiB"):
        where.copy("bomb")
    with pytest.raises(UsageError, match=r"^gs://b/lie: is not gzip, although its Content-"):
        where.copy("lie")


def test_what_is_too_large_is_not_even_fetched(fake, monkeypatch):
    monkeypatch.setattr(gcs, "MAX_OBJECT", 3)
    fake.put("b", "x", "four")
    with pytest.raises(UsageError, match="is larger than"):
        bucket(fake).copy("x")

    assert [path for _, path in fake.asked if path.startswith("/download")] == []


# --- What goes wrong ------------------------------------------------------------------------


def test_what_is_not_there_is_said(fake):
    with pytest.raises(UsageError, match=r"^gs://b/no\.json: no such object$"):
        bucket(fake).copy("no.json")
    for ask in (
        lambda: bucket(fake, "nob").listed("a/"),
        lambda: bucket(fake, "nob").require("a/"),
    ):
        with pytest.raises(UsageError, match=r"^gs://nob/a/: no such bucket$"):
            ask()
    with pytest.raises(UsageError, match=r"^gs://nob/x: no such bucket$"):
        put(bucket(fake, "nob"), "x", "mine")
    assert bucket(fake).find("no.json") is None


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "is not public, and no credentials are sent"),
        (403, "the credentials lack a permission: 403"),
        (400, "Cloud Storage rejected the request: 400"),
    ],
)
def test_what_the_service_refuses_is_said_in_one_bounded_line(fake, status, said):
    fake.refusals.append((status, "bot@x does not have storage.objects.list\n" + "y" * 5000))
    with pytest.raises(UsageError) as caught:
        bucket(fake).listed("a/")

    assert str(caught.value).startswith(f"gs://b/a/: {said}")
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def test_a_service_that_cannot_be_reached_is_given_up_in_time(monkeypatch):
    pauses, threads = [], []
    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(pauses))
    monkeypatch.setattr(threading.Thread, "start", lambda thread: threads.append(thread.name))
    options = GcsOptions(endpoint=f"http://127.0.0.1:{closed_port()}", anonymous=True, timeout_s=60)
    with pytest.raises(UsageError, match=r"^gs://b/x: Cloud Storage cannot be reached: Connection"):
        Storage(options, {}).bucket("b").find("x")

    assert len(pauses) >= 5  # of up to 1, 2, 4, 8, 16 … seconds
    assert sum(pauses) <= 60
    assert threads == [], "nothing goes on in the background"


def test_without_credentials_the_way_to_some_is_told(tmp_path, monkeypatch):
    key = tmp_path / "key.json"
    key.write_text(json.dumps({"type": "no_such_type"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    with pytest.raises(UsageError, match="no usable Google Cloud credentials") as caught:
        Storage(GcsOptions(), {}).bucket("b")

    assert "google-github-actions/auth" in caught.value.hint


def test_without_the_extra_the_way_to_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.cloud", None)
    with pytest.raises(UsageError, match=r"^gs://no-extra: needs the package .*'ci-eval\[gcs\]'$"):
        Storage(GcsOptions(anonymous=True, endpoint="http://127.0.0.1:1"), {}).bucket("no-extra")


LATER = """
import datetime
class Later(datetime.date):
    today = classmethod(lambda cls: cls(2099, 1, 1))
datetime.date = Later
from ci_eval.runtime.storage.gcs import GcsOptions, Storage
Storage(GcsOptions(anonymous=True), {}).bucket("b")
"""


def test_nobody_is_warned_when_this_version_of_python_has_grown_old():
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


# --- Whom it talks to -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://storage.googleapis.com",
        "https://storage.googleapis.com.evil.example",
        "https://evilgoogleapis.com",
        "https://127.0.0.1:8443",
    ],
)
def test_credentials_only_go_to_google(endpoint):
    with pytest.raises(ValidationError, match="credentials are only sent to"):
        GcsOptions(endpoint=endpoint)

    assert GcsOptions(endpoint=endpoint, anonymous=True).endpoint == endpoint


@pytest.mark.parametrize(
    "endpoint", ["https://storage.googleapis.com", "https://storage-x.p.googleapis.com:443/"]
)
def test_endpoints_of_google_get_credentials(endpoint):
    assert GcsOptions(endpoint=endpoint).anonymous is False


@pytest.mark.parametrize(
    "endpoint", ["ftp://x", "storage", "https://", "https://u:p@googleapis.com"]
)
def test_what_is_no_endpoint_is_refused(endpoint):
    with pytest.raises(ValidationError, match="expected an 'endpoint'"):
        GcsOptions(endpoint=endpoint, anonymous=True)


def test_an_emulator_gets_no_credentials(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    host = fake.url.removeprefix("http://")
    found = Storage(GcsOptions(), {"STORAGE_EMULATOR_HOST": host}).bucket("b").find("x")

    assert found is None
    assert fake.authorizations == [None]


def test_the_endpoint_of_the_configuration_comes_before_the_emulator(fake):
    env = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{closed_port()}"}
    options = GcsOptions(endpoint=fake.url, anonymous=True)

    assert Storage(options, env).bucket("b").find("x") is None
    assert len(fake.asked) == 1


def test_a_place_is_copied_by_its_address(fake):
    fake.put("b", "deep/x.json", "[]")
    storage = Storage(GcsOptions(), {"STORAGE_EMULATOR_HOST": fake.url})

    assert storage.copy(Place.parse("gs://b/deep/x.json")).path.read_text() == "[]"
