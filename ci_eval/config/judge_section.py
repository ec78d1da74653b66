"""Reader of `judge:` and `simulator:` in a configuration."""

from collections.abc import Iterable, Mapping
from typing import Any

from ci_eval.config.config_document import DocumentReader
from ci_eval.config.eval_config import EvalConfigFile
from ci_eval.llm.judge_settings import JudgeOptions, Judging, Simulation, identity
from ci_eval.llm.prompts import SUFFIX, Prompts
from ci_eval.plugins import points
from ci_eval.plugins.points import Judge, Simulator
from ci_eval.records.errors import Problem, UsageError
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import describe
from ci_eval.text.yaml_files import Document, Loc


def read_judging(
    document: Document, raw: Any, context: RunContext
) -> tuple[Judging, list[Problem]]:
    """Return the judges in the block `raw` of `document`, with their problems."""
    reader = _Reader(document, context)
    return reader.judging(raw), reader.problems


def read_simulation(
    document: Document, raw: Mapping[str, Any], context: RunContext, file: EvalConfigFile | None
) -> tuple[Simulation, list[Problem]]:
    """Return the simulated user of the configuration `raw` in `document`, with its problems.

    Default: the one that the eval config `file` sets, else the usual one of the dialect.
    """
    dialect = (file and file.dialect) or raw.get("dialect")
    usual = "agentflow" if dialect == "agentflow" else "llm_backed"
    default = (file and file.simulator) or points.simulator[usual]()
    reader = _Reader(document, context)
    found = reader.simulation(raw.get("simulator"), default, usual)
    return found, list(dict.fromkeys(reader.problems))


class _Reader(DocumentReader):
    def judging(self, raw: Any) -> Judging:
        """Read the block `raw`."""
        if not isinstance(raw, dict):
            if raw is not None:
                self.problem(f"expected options, found {describe(raw)}", ("judge",))
            return Judging(JudgeOptions())
        own = {key: value for key, value in raw.items() if key in JudgeOptions.model_fields}
        rest = {key: value for key, value in raw.items() if key not in own}
        options = self.validated(JudgeOptions, own, ("judge",)) or JudgeOptions()
        default = (
            self._judge(options.provider, rest, ("judge",), beside=JudgeOptions.model_fields)
            if rest or "provider" in own
            else None
        )
        jury: list[Judge] = []
        for number, given in enumerate(options.jury):
            judge = self._juror(given, ("judge", "jury", number))
            if judge and identity(judge) in map(identity, jury):
                message = (
                    "has the model and settings of another judge: both would get the same answers"
                )
                self.problem(message, ("judge", "jury", number))
            jury += [judge] if judge else []
        if default and jury:
            message = "replaces the single judge; remove its provider and options, or the jury"
            self.problem(message, ("judge", "jury"))
        return Judging(options, default, tuple(jury), self._prompts(options.prompts))

    def simulation(self, raw: Any, default: Simulator, usual: str) -> Simulation:
        """Read the block `raw`; without one, return the `default`."""
        loc = ("simulator",)
        if not isinstance(raw, dict):  # reported with the other keys
            return Simulation(default)
        name = str(raw.get("type") or usual)
        if name not in points.simulator:
            message = f"unknown simulator {name!r}{did_you_mean(name, points.simulator)}"
            self.problem(message, (*loc, "type"))
            return Simulation(default)
        kind = points.simulator[name]
        beside = {*kind.model_fields, "type", "provider"}
        provider = raw.get("provider") or _recognised(raw.get("model"))
        judge = None
        if raw.get("provider") is not None or (provider and raw.keys() - beside):
            judge = self._judge(provider, raw, loc, beside=beside)
        elif unknown := raw.keys() - beside:
            self._note_unknown(unknown, beside, loc)
        own = {key: value for key, value in raw.items() if key in kind.model_fields}
        found = self.validated(kind, own, loc)
        return Simulation(found or default, judge)

    def _juror(self, given: Mapping[str, Any], loc: Loc) -> Judge | None:
        rest = {key: value for key, value in given.items() if key != "provider"}
        judge = self._judge(given.get("provider"), rest, loc, beside=())
        if judge and judge.model is None:
            self.problem("'model' is missing", loc)
        return judge

    def _judge(
        self, provider: Any, given: Mapping[str, Any], loc: Loc, *, beside: Iterable[str]
    ) -> Judge | None:
        """Return the judge with the options `given`, of the named or recognised provider.

        `beside` are keys that do not belong to the judge.
        """
        name = provider if provider is not None else _recognised(given.get("model"))
        if name is None:
            listed = ", ".join(points.judge)
            model = given.get("model")
            why = f"cannot infer the provider of model {model!r}" if model else "'model' is missing"
            self.problem(f"{why}; set `provider`, one of {listed}", loc)
            return None
        if str(name) not in points.judge:
            message = f"unknown judge {name!r}{did_you_mean(str(name), points.judge)}"
            self.problem(message, (*loc, "provider"))
            return None
        kind = points.judge[name]
        known = {*kind.model_fields, *beside}
        self._note_unknown(given.keys() - known, known, loc)
        theirs = {key: value for key, value in given.items() if key in kind.model_fields}
        return self.validated(kind, theirs, loc)

    def _note_unknown(self, keys: Iterable[str], known: Iterable[str], loc: Loc) -> None:
        for key in keys:
            self.problem(f"unknown key{did_you_mean(key, known)}", (*loc, key))

    def _prompts(self, folder: str | None) -> Prompts:
        if folder is None:
            return Prompts()
        try:
            path = contained(self.context.root, folder)
        except UsageError as exc:
            self.problems += self.document.placed(exc.problems, ("judge", "prompts"))
            return Prompts()
        if not path.is_dir():
            self.problem(f"there is no folder {folder!r}", ("judge", "prompts"))
        known = Prompts().names()
        for name in Prompts(path).names():
            if name not in known:
                message = f"no criterion uses {name}{SUFFIX}{did_you_mean(name, known)}"
                self.problem(message, ("judge", "prompts"))
        return Prompts(path)


def _recognised(model: Any) -> str | None:
    """Return the provider to which `model` clearly belongs, if any."""
    if not isinstance(model, str):
        return None
    return next((name for name in points.judge if points.judge[name].recognises(model)), None)
