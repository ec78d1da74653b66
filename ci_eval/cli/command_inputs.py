"""Loading of configurations, plans, stored runs and baselines named on the command line."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ci_eval.cli import console, logs
from ci_eval.config import load_config as configuration
from ci_eval.config.engine_section import engine_named
from ci_eval.config.handed_secrets import with_secrets
from ci_eval.config.selection import Selection
from ci_eval.config.validated_config import Config
from ci_eval.forge.ci_job import job_name, selection, workflow_name
from ci_eval.llm.gateway.gateway_clients import calls_directly, gateway_options, with_models
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.records.cases import Status
from ci_eval.records.errors import CiEvalError, ConfigError, NothingSelectedError, UsageError
from ci_eval.records.findings import Report
from ci_eval.records.results import Run, RunMeta
from ci_eval.records.trials import Place
from ci_eval.run import report_assembly
from ci_eval.run.arms import base_folder
from ci_eval.run.baseline_choice import Baseline, load_baseline
from ci_eval.run.collect import Collected, collected_from
from ci_eval.run.confirmation import NOT_CONFIRMED, Confirmation, confirmed_by
from ci_eval.run.plan import Plan, plan
from ci_eval.run.requirements import absent
from ci_eval.run_files.file_names import CONFIG_FILE, REPORT_FILE, RUN_FILE, TRACES_FILE
from ci_eval.run_files.report_file import read_report
from ci_eval.run_files.run_file import read_run
from ci_eval.runtime.clone import from_top, top_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained, similar_path
from ci_eval.text.redact import Secrets


def context_of(config: Path = Path(CONFIG_FILE)) -> RunContext:
    """Return the run context of the configuration at `config`."""
    return RunContext(
        env=dict(os.environ),
        root=config.absolute().parent,
        now=time.time,
        folder=str(config.parent),
        config=str(config),
        say=(lambda _: None) if logs.is_quiet() else console.say,
    )


def load(
    config: str, *, runs_agents: bool = False, runs_python: bool = False, models_mode: str = ""
) -> tuple[Config, RunContext]:
    """Return the configuration at `config` and its run context.

    With `runs_agents`, the keys of all agents have to be set.  With `runs_python`, Python files
    that build criteria or evalsets are run.  A `models_mode` replaces the mode of all agents.
    """
    path = Path(config)
    require_config(path, config)
    context = replace(
        context_of(path), runs_agents=runs_agents, runs_python=runs_python, models_mode=models_mode
    )
    loaded = configuration.load(path, shown=config, context=context)
    return loaded, with_secrets(context, loaded)


def require_config(path: Path, shown: str) -> None:
    """Reject a configuration that does not exist.

    Raises:
        UsageError: it does not exist.

    """
    if path.exists():
        return
    message = f"no such file{similar_path(path.parent, path.name)}"
    if shown == CONFIG_FILE and (found := _nearby(path)):
        message = f"no such file, but {found} exists; name it with `-c {found}`"
    elif shown == CONFIG_FILE:
        message = "no such file; `ci-eval init` writes one, and `-c` names another"
    raise UsageError(message, file=shown)


def _nearby(config: Path) -> str:
    """Return a configuration named `.yml`, or in a folder above, within the repository."""
    here = config.absolute().parent
    top = top_of(here) or here
    folders = [each for each in (here, *here.parents) if each.is_relative_to(top)]
    names = (CONFIG_FILE, CONFIG_FILE.replace(".yaml", ".yml"))
    found = (folder / name for folder in folders for name in names)
    return next((os.path.relpath(each, here) for each in found if each.is_file()), "")


def planned(
    config: str,
    options: Mapping[str, Any],
    *,
    runs_python: bool = True,
    runs_agents: bool = True,
    again: frozenset[Place] | None = None,
) -> tuple[Plan, RunContext]:
    """Return the trials that the options of `run` and `plan` select.

    Of the cases, only those in `again` are selected, if given.

    Raises:
        ConfigError: a Python module or name of an agent or criterion does not exist, or a Python
            file was not run.

    """
    mode = options.get("models") or ""
    loaded, context = load(
        config, runs_agents=runs_agents, runs_python=runs_python, models_mode=mode
    )
    context = replace(
        in_job(context, options),
        page_url=options.get("report_url", ""),
        resumes=options.get("resume", False),
    )
    if mode and not any(map(gateway_options, loaded.agents.values())):
        message = f"--models {mode} changes nothing, because no agent has `models`"
        raise UsageError(message, hint="add `models: auto` to the agents that it should apply to")
    loaded = replace(loaded, agents=with_models(loaded.agents, lambda _, each: each.in_mode(mode)))
    if options.get("judge_mode"):
        loaded = replace(loaded, judging=loaded.judging.in_mode(options["judge_mode"]))
    if options.get("engine"):
        loaded = replace(loaded, engine=engine_named(options["engine"], loaded.engine))
    selection = Selection(
        agents=options["agent"],
        evalsets=options["evalset"],
        cases=options["case"],
        criteria=options["criterion"],
        tags=options["tag"],
        places=again,
    )
    found = plan(loaded, context, selection=selection, repeats=options["repeats"])
    if problems := [*absent(loaded, found.pairs, context)]:
        raise ConfigError(problems=problems)
    for name in dict.fromkeys(name for name, _ in found.pairs) if mode else ():
        if calls_directly(loaded.agents[name]):
            message = f"--models {mode} does not apply to agent {name!r}, which has no `models`"
            context.say(f"warning: {message}")
    return found, context


def in_job(context: RunContext, options: Mapping[str, Any]) -> RunContext:
    """Return the context with what identifies the job, and the step in it, in comments."""
    config = context.root / Path(context.config).name
    step = filter(None, (workflow_name(context.env), from_top(config), selection(options)))
    job = job_name(context.env, options.get("section", ""))
    return replace(context, job=job, step=", ".join(step))


def not_passed(folder: Path) -> frozenset[Place]:
    """Return the cases that failed or erred in the run in a folder, with their agents.

    Raises:
        UsageError: there is no run.
        NothingSelectedError: all cases passed in it, or it has none.

    """
    path = folder / RUN_FILE
    if not path.exists():
        message = f"there is no {path}, so the failed cases are unknown"
        raise UsageError(message, hint="run once without --failed first")
    ended = {
        (result.key.place, result.status) for result in read_run(path, shown=str(path)).results()
    }
    found = frozenset(place for place, status in ended if status in (Status.FAILED, Status.ERROR))
    if not found:
        what = "everything passed" if ended else "no case was run"
        raise NothingSelectedError(f"nothing to rerun: {what} in {path}")
    return found


def run_file(given: str) -> Path:
    """Return the file of a stored run, given itself or by its report folder.

    Raises:
        UsageError: the file does not exist.

    """
    folder = Path(given)
    path = folder / RUN_FILE if folder.is_dir() else folder
    if not path.exists():
        hint = "run `ci-eval run` first, or name its output directory or run.json"
        if (folder / TRACES_FILE).is_file():
            hint = "the run did not finish; `ci-eval run --resume` continues it"
        raise UsageError("no such file", file=str(path), hint=hint)
    return path


def stored_run(given: str) -> Collected:
    """Return a stored run of a whole suite from its file or report folder.

    Raises:
        UsageError: the file does not exist, or the run is a shard.

    """
    path = run_file(given)
    run = read_run(path, shown=str(path))
    if run.meta.shard:
        message = f"{given} is shard {run.meta.shard} of a suite, which decides nothing alone"
        hint = "merge all shards with `ci-eval merge`, and pass the output directory of the merge"
        raise UsageError(message, hint=hint)
    return collected_from(run)


def secrets_of(*runs: Run) -> Secrets:
    """Return all secrets known now, which may be unknown to earlier `runs`.

    These are the secrets of the environment, and of the configurations of the runs and in the
    working directory, as far as they can be loaded.
    """
    found = context_of().secrets
    for given in dict.fromkeys((*(each.meta.config for each in runs), CONFIG_FILE)):
        with suppress(CiEvalError):
            found = found.with_more(load(str(contained(Path.cwd(), given)))[1].secrets.given)
    return found


def confirmation_beside(given: str, run_id: str, config: Config) -> Confirmation:
    """Return the confirmation by the merge base that lies beside a stored run, if any.

    Without one, it has the reason that the report of the run gives for that.
    """
    folder = Path(given) if Path(given).is_dir() else Path(given).parent
    path = base_folder(folder) / RUN_FILE
    if not path.exists():
        return _not_run(folder, run_id, config)
    return confirmed_by(collected_from(read_run(path, shown=str(path))))


def _not_run(folder: Path, run_id: str, config: Config) -> Confirmation:
    """Return why the merge base was not run, which only the report of the run says.

    If it was run, but its results are gone, that is the reason: there is nothing else to compare
    with unless runs are stored.
    """
    path = folder / REPORT_FILE
    with suppress(UsageError):
        report = read_report(path, shown=str(path))
        for each in report.verdict.reasons if report.meta.run_id == run_id else ():
            if each.kind == "unconfirmed":
                why, is_new = report.verdict.unconfirmed, each.severity == "info"
                return NOT_CONFIRMED._replace(unconfirmed=why, base_is_new=is_new)
    if config.baseline and not config.baseline.stores:
        path = base_folder(folder) / RUN_FILE
        return NOT_CONFIRMED._replace(unconfirmed=f"{path} is missing")
    return NOT_CONFIRMED


def require_baseline(config: Config) -> BaselineStore:
    """Return the baseline store of a configuration.

    Raises:
        ConfigError: it has none.

    """
    if config.baseline is None:
        raise ConfigError(f"{config.shown} has no baseline", hint="add `baseline: {store: file}`")
    return config.baseline


def require_suite(config: Config, meta: RunMeta) -> None:
    """Reject a run that belongs to another suite than the configuration.

    Raises:
        UsageError: the suites differ.

    """
    if meta.suite != config.suite:
        raise UsageError(
            f"the run belongs to suite {meta.suite!r}, but {config.shown} defines {config.suite!r}",
            hint="pass the configuration the run was made with: -c FILE",
        )


def stored_baseline(config: Config, context: RunContext) -> Baseline:
    """Return the baseline of the change that is checked out, or of one that begins there.

    Raises:
        ConfigError: no baseline is configured.
        BaselineError: it cannot be read.

    """
    require_baseline(config)
    return load_baseline(config, context, for_next_change=True) or Baseline(())


def baseline_for(config: Config, context: RunContext, meta: RunMeta) -> Baseline | None:
    """Return the baseline of the run `meta`, without that run itself.

    It is looked up from the commit of the run, or, if the clone lacks it, from the one that is
    checked out now.
    """
    commit = meta.commit and context.clone.view.commit(meta.commit)
    found = load_baseline(config, context, commit, without_change=meta.without_change)
    if found is None:
        return None
    return replace(
        found,
        runs=[past for past in found.runs if past.meta.run_id != meta.run_id],
        history=[noted for noted in found.history if noted.run_id != meta.run_id],
    )


def _config_of(given: str, meta: RunMeta) -> str:
    """Return the configuration that a stored run was made with, if it is there."""
    for name in (meta.config, CONFIG_FILE):
        with suppress(UsageError):
            if name and contained(Path.cwd(), name).is_file():
                return name
    message = f"no configuration was found to reevaluate the run of {given}"
    raise UsageError(message, hint="pass the configuration the run was made with: -c FILE")


def judge_again(
    given: str, collected: Collected, config: str | None
) -> tuple[Report, Config, RunContext]:
    """Reevaluate the stored run at `given` with the baseline and gate of a configuration.

    Without a `config`, it is the one that the run was made with, or else `ci-eval.yaml`.

    Raises:
        UsageError: there is neither, or `ci-eval.yaml` defines another suite.

    """
    meta = collected.run.meta
    loaded, context = load(config or _config_of(given, meta))
    if config is None:
        require_suite(loaded, meta)
    loaded = replace(loaded, suite=meta.suite)  # whose runs it is compared with
    # The report shows the gate that decided it.
    gate = loaded.gate.model_dump(mode="json", exclude_defaults=True)
    again = collected.run._replace(meta=meta.model_copy(update={"gate": gate}))
    found = collected._replace(run=again)
    baseline = baseline_for(loaded, context, meta)
    report = report_assembly.compare_and_decide(
        found, loaded.gate, baseline, confirmation_beside(given, meta.run_id, loaded)
    )
    return context.secrets.cleaned(report), loaded, context
