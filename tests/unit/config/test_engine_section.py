"""The engine in `run:` is a plugin whose options are beside those of all runs."""

import pytest

from ci_eval.config.engine_section import engine_named
from ci_eval.config.load_config import load
from ci_eval.config.validated_config import Config
from ci_eval.engines.local_engine import Local
from ci_eval.engines.ray_engine import Ray
from ci_eval.records.errors import ConfigError, UnknownPluginError
from ci_eval.runtime.context import RunContext

REST = "agents: {a: {python: 'm:f'}}\nevalsets: {e: e.json}\ncriteria: {response_match_score: 1}\n"


@pytest.fixture
def read(tmp_path):
    def read(run: str) -> Config:
        (tmp_path / "ci-eval.yaml").write_text(f"run: {run}\n{REST}")
        context = RunContext({}, tmp_path, lambda: 0.0)
        return load(tmp_path / "ci-eval.yaml", shown="ci-eval.yaml", context=context)

    return read


def test_trials_run_on_this_machine_by_default(read):
    assert read("{repeats: 2}").engine == Local()


def test_its_options_are_beside_those_of_all_runs(read):
    config = read("{engine: ray, address: 'head:6379', concurrency: 64}")

    assert config.engine == Ray(address="head:6379")
    assert config.run.concurrency == 64


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("{engine: rai}", "run.engine: unknown engine. Did you mean 'ray'?"),
        ("{engine: ray, cpus: -1}", "run.cpus: must be at least 0"),
        ("{engine: ray, adress: x}", "run.adress: unknown key"),
        ("{address: auto}", "run.address: unknown key"),
        ("{engine: 3}", "run.engine: "),
    ],
)
def test_a_mistake_is_named_with_its_place(run, said, read):
    with pytest.raises(ConfigError) as found:
        read(run)

    assert said in str(found.value)
    assert str(found.value).startswith("ci-eval.yaml:1: ")


def test_the_command_line_names_another_engine():
    configured = Ray(cpus=2)

    assert engine_named("ray", configured) is configured
    assert engine_named("local", configured) == Local()
    with pytest.raises(UnknownPluginError, match="unknown engine"):
        engine_named("rai", configured)
