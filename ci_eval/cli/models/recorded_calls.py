"""The cassettes of a configuration, compared with the trials that it plans."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ci_eval.config.validated_config import Config
from ci_eval.llm.gateway.cassette_lines import Recorded, digest_of_trial
from ci_eval.llm.gateway.gateway import cassette_of
from ci_eval.llm.gateway.gateway_clients import CallingModels
from ci_eval.llm.gateway.model_cassette import MERGE_HINT, ModelCassette
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import TrialKey
from ci_eval.run.plan import Plan, plan
from ci_eval.run_files.report_phrases import listed
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import counted

_KEY = re.compile(
    r"\b(?:AIza[\w-]{30,}|sk-[\w-]{20,}|gh[pousr]_\w{30,}|github_pat_\w{30,}|AKIA[A-Z0-9]{16}"
    r"|xox[abpr]-[\w-]{20,}|hf_\w{30,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----)"
)
"""Keys of widely used services."""


@dataclass(frozen=True)
class Cassette:
    """One cassette, and the agents that use it."""

    agents: Sequence[str]
    cassette: ModelCassette
    planned: Plan
    context: RunContext

    @property
    def shown(self) -> str:
        """The path of the file."""
        return self.cassette.shown

    @cached_property
    def trials(self) -> set[TrialKey]:
        """The planned trials of its agents."""
        return {each.key for each in self.planned.trials() if each.key.agent in self.agents}

    def calls(self, case: str | None = None, agent: str | None = None) -> Iterator[Recorded]:
        """Yield the recorded calls, or those of one case or agent."""
        if case is agent is None:
            yield from self.cassette.calls()
            return
        trials = dict.fromkeys(
            key
            for key, _ in self.cassette.trials_and_models()
            if case in (None, key.case) and agent in (None, key.agent)
        )
        for key in trials:
            yield from self.cassette.calls(digest_of_trial(key))

    def problems(self) -> Iterator[str]:
        """Yield the problems: planned trials without calls, unused or edited calls, and secrets."""
        if not self.cassette.exists:
            how = self.context.command("run", "--models", "record")
            yield f"{self.shown}: no such file; record it with `{how}`"
            return
        suspects, edited = self._suspicious()  # reads all calls, which finds damaged ones
        if damage := self.cassette.damage:
            yield f"{self.shown}: {damage}; {MERGE_HINT}"
        if missing := self.trials - self._held:
            yield f"{self.shown}: no calls of {_listed(missing)}; record them"
        if self._unused:
            hint = f"`{self.context.command('models', 'prune')}` removes them"
            yield f"{self.shown}: calls of {_listed(self._unused)} are not used; {hint}"
        yield from self.conflicts()
        if partial := {key for key in self._held if digest_of_trial(key) in self.cassette.partial}:
            yield f"{self.shown}: calls of {_listed(partial)} are incomplete; record them again"
        if edited:
            yield f"{self.shown}: requests of {_listed(edited)} have been edited; record them again"
        if suspects:
            shown = _listed(suspects)
            yield f"{self.shown}: calls of {shown} seem to contain a key; record them again"

    def conflicts(self) -> Iterator[str]:
        """Yield a message if calls of planned cases have two answers, as a merge leaves them."""
        doubled = {place.trial for place in self.cassette.doubled}
        used = self._held - self._unused
        if again := {key for key in used if digest_of_trial(key) in doubled}:
            yield f"{self.shown}: calls of {_listed(again)} have two answers; record them again"

    def _suspicious(self) -> tuple[set[TrialKey], set[TrialKey]]:
        """Return the trials whose calls seem to contain a key, and those with edited requests."""
        suspects, edited = set[TrialKey](), set[TrialKey]()
        for each in self.calls():
            text = f"{each.request}{each.answer.body.decode(errors='replace')}"
            if _KEY.search(text) or self.context.secrets.text(text) != text:
                suspects.add(each.trial)
            if each.is_edited:
                edited.add(each.trial)
        return suspects, edited

    def remarks(self) -> Iterator[str]:
        """Yield remarks that are no problems."""
        if further := self._held - self.trials - self._unused:
            hint = f"`{self.context.command('models', 'prune')}` removes them"
            yield f"{self.shown}: calls of {_listed(further)} are further repeats; {hint}"

    @cached_property
    def _held(self) -> set[TrialKey]:
        return {key for key, _ in self.cassette.trials_and_models()}

    @cached_property
    def _unused(self) -> set[TrialKey]:
        """The recorded trials of no planned case; a run in doubt records further repeats."""
        planned = {each.place for each in self.trials}
        return {each for each in self._held if each.place not in planned}


def _listed(trials: set[TrialKey]) -> str:
    """Return a count of trials, and the first cases."""
    return f"{counted(len(trials), 'trial')} ({listed(sorted({each.case for each in trials}))})"


def cassettes(config: Config, context: RunContext) -> list[Cassette]:
    """Return the cassettes that the agents of a configuration use.

    Raises:
        UsageError: there is none, or one cannot be read.

    """
    planned = plan(config, context)
    users: dict[str, list[str]] = {}
    found: dict[str, ModelCassette] = {}
    for name, agent in config.agents.items():
        each: object = agent
        if not isinstance(each, CallingModels) or each.models is None or each.models.mode == "live":
            continue
        cassette = cassette_of(each.models, context)
        found[cassette.shown] = cassette
        users.setdefault(cassette.shown, []).append(name)
    if not found:
        message = f"no agent of {config.shown} records model calls"
        raise UsageError(message, hint="add `models: {mode: auto, cassette: FILE}` to an agent")
    return [Cassette(users[shown], each, planned, context) for shown, each in found.items()]
