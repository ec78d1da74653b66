"""Metadata of a run: everything that all its trials share."""

from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

from ci_eval import __version__
from ci_eval.config.criterion_facts import facts_of
from ci_eval.forge.ci_job import artifact_link, run_link
from ci_eval.forge.lineage import current_branch, from_fork, is_without_change
from ci_eval.plugins import points
from ci_eval.records.cases import Json, Record
from ci_eval.records.results import RunMeta
from ci_eval.run.plan import Plan
from ci_eval.run_files.file_names import PAGE_FILE
from ci_eval.runtime.checkout import untracked
from ci_eval.runtime.clone import from_top
from ci_eval.runtime.context import RunContext


def describe(plan: Plan, context: RunContext, folder: Path) -> RunMeta:
    """Return the metadata of a run of `plan` that begins now; its documents go to `folder`."""
    created = datetime.fromtimestamp(context.now(), UTC)
    config, store = plan.config, plan.config.baseline
    agents = tuple(dict.fromkeys(agent for agent, _ in plan.pairs))
    return RunMeta(
        run_id=f"{created:%Y%m%dT%H%M%SZ}-{token_hex(4)}",
        suite=config.suite,
        created=created.isoformat(timespec="seconds"),
        version=__version__,
        config=config.shown,
        config_from_top=from_top(context.root / config.path.name) if run_link(context.env) else "",
        commit=context.clone.head,
        modified=context.clone.head is not None and not context.clone.is_unchanged,
        untracked=untracked(context.clone, folder),
        branch=current_branch(context.clone),
        without_change=is_without_change(context.env),
        job=context.job,
        step=context.step,
        url=run_link(context.env),
        page_url=context.page_url or artifact_link(context.env, folder / PAGE_FILE),
        agents=agents,
        evalsets={name: chosen.opened.header for name, chosen in plan.evalsets.items()},
        criteria={
            name: facts_of(criterion, config.judging, context)
            for name, criterion in plan.criteria.items()
        },
        gate=_given(config.gate),
        store={"store": store.type_name, **_given(store)} if store else {},
        repeats=plan.repeats,
        configured_repeats=config.run.repeats,
        filtered=plan.filtered,
        disabled=config.disabled,
        overrides={
            name: module for point in points.POINTS for name, module in point.overridden.items()
        },
        warnings=tuple(map(str, plan.warnings)),
        recordings=tuple(name for name in agents if not config.agents[name].converses),
        from_fork=from_fork(context.env),
        lacking={
            name: missing
            for name in agents
            if (missing := config.agents[name].missing(context.env))
        },
    )


def _given(options: Record) -> dict[str, Json]:
    return options.model_dump(mode="json", exclude_defaults=True)
