"""Names and ids as ADK 2.13.0 has them."""

import pytest
from servers.gcs import serving

from ci_eval.records.errors import UsageError
from ci_eval.runtime.storage.adk_storage import (
    BucketHistory,
    FolderHistory,
    check_segment,
    evalset_object,
    evalset_place,
)
from ci_eval.runtime.storage.gcs import GcsOptions, Storage


@pytest.fixture
def fake():
    with serving() as found:
        found.buckets["b"] = {}
        yield found


def history(fake, bucket: str = "b") -> BucketHistory:
    storage = Storage(GcsOptions(), {"STORAGE_EMULATOR_HOST": fake.url})
    return BucketHistory(storage.bucket(bucket))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("gs://b/shop/smoke", "shop/evals/eval_sets/smoke.evalset.json"),
        ("gs://b/shop/smoke-2", "shop/evals/eval_sets/smoke-2.evalset.json"),
        ("gs://b/shop/*", "shop/evals/eval_sets/*.evalset.json"),
        ("gs://b/shop/smoke.evalset.json", "shop/smoke.evalset.json"),
        ("gs://b/shop/smoke.YAML", "shop/smoke.YAML"),
        ("gs://b/shop/deep/smoke", "shop/deep/smoke"),
        ("gs://b/smoke", "smoke"),
        ("gs://b/shop/", "shop/"),
    ],
)
def test_an_app_and_an_id_mean_the_evalset_that_adk_keeps(given, meant):
    assert evalset_place(given) == ("b", meant)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "app_name must not be empty."),
        ("a\0", "app_name must not contain null bytes."),
        ("a/b", "app_name 'a/b' must not contain path separators."),
        ("a\\b", r"app_name 'a\\b' must not contain path separators."),
        ("c:", "app_name 'c:' must not be drive-qualified."),
        ("..", "app_name '..' must not contain traversal segments."),
    ],
)
def test_what_is_no_part_of_a_path_is_refused_in_the_words_of_adk(value, message):
    with pytest.raises(UsageError) as caught:
        check_segment(value, "app_name")
    assert str(caught.value) == message


def test_an_evalset_has_an_id_and_an_app():
    assert evalset_object("shop", "smoke") == "shop/evals/eval_sets/smoke.evalset.json"
    for app, eval_set_id in (("", "smoke"), ("shop", "a/b"), ("..", "smoke"), ("shop", ".")):
        with pytest.raises(UsageError):
            evalset_object(app, eval_set_id)


def test_a_result_in_a_bucket_is_written_whole_or_not_at_all(fake):
    kept = history(fake)
    with kept.writing("shop", "shop_smoke_1.5") as file:
        file.write("{}")
    with pytest.raises(ZeroDivisionError), kept.writing("shop", "shop_smoke_2.5") as file:
        file.write(str(1 / 0))

    name = "shop/evals/eval_history/shop_smoke_1.5.evalset_result.json"
    assert fake.names("b") == [name]
    assert fake.text("b", name) == "{}"
    assert kept.shown("shop", "shop_smoke_1.5") == f"gs://b/{name}"


def test_a_result_never_takes_the_place_of_another(fake):
    kept = history(fake)
    for text in ("first", "second"):
        try:
            with kept.writing("shop", "r") as file:
                file.write(text)
        except UsageError as exc:
            refused = str(exc)

    assert "was changed by another writer" in refused
    assert fake.text("b", "shop/evals/eval_history/r.evalset_result.json") == "first"


def test_where_nothing_could_be_kept_is_said_before_a_run(fake):
    history(fake).check("shop")
    with pytest.raises(UsageError, match=r"gs://nob/shop/evals/eval_history/: no such bucket"):
        history(fake, "nob").check("shop")
    with pytest.raises(UsageError, match="must not contain path separators"):
        history(fake).check("team/shop")


def test_a_result_in_a_folder_is_where_adk_web_looks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = FolderHistory(tmp_path / "agents", tmp_path)
    with kept.writing("shop", "r") as file:
        file.write("{}")

    assert kept.shown("shop", "r") == "agents/shop/.adk/eval_history/r.evalset_result.json"
    assert (tmp_path / kept.shown("shop", "r")).read_text() == "{}"


def test_a_folder_is_never_reached_by_a_link_that_leads_out(tmp_path):
    (tmp_path / "repository/agents").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "repository/agents/shop").symlink_to(tmp_path / "out")
    kept = FolderHistory(tmp_path / "repository/agents", tmp_path / "repository")

    with pytest.raises(UsageError, match="symlink out of the repository"):
        kept.check("shop")
