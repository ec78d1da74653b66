"""The checked configuration, as the stages get it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_eval.config.criterion_names import Dialect
from ci_eval.config.schema import EvalSetSpec, GateOptions, MatrixRow, RunOptions
from ci_eval.llm.judge_settings import Judging, Simulation
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.points import Agent, Reporter
from ci_eval.records.errors import Problem
from ci_eval.storage.gcs import GcsOptions
from ci_eval.text.yaml_files import Document


@dataclass(frozen=True)
class Config:
    """A checked configuration."""

    path: Path
    suite: str
    dialect: Dialect
    agents: Mapping[str, Agent]
    evalsets: Mapping[str, EvalSetSpec]
    criteria: Mapping[str, AnyCriterion]
    judging: Judging
    run: RunOptions
    baseline: BaselineStore | None
    gcs: GcsOptions
    """How Google Cloud Storage is reached."""
    gate: GateOptions
    reports: Mapping[str, Reporter]
    matrix: tuple[MatrixRow, ...]
    document: Document
    """The file as it was read, which knows the line of everything."""
    disabled: tuple[str, ...] = ()
    """The criteria that are switched off."""
    mock: bool = False
    """Whether nothing is to be executed, as AgentFlow's `mock_mode` asks for."""
    simulation: Simulation | None = None
    """Who plays the users of scenarios; `None` where no agent has to be talked to."""
    warnings: tuple[Problem, ...] = ()

    @property
    def shown(self) -> str:
        """The file, as the user named it."""
        return self.document.shown

    def criteria_for(self, agent: str, evalset: str) -> dict[str, AnyCriterion]:
        """Return what `agent` is scored by on `evalset`; nothing where they do not meet."""
        rows = self.matrix or (MatrixRow(),)
        return {
            name: criterion
            for name, criterion in self.criteria.items()
            if any(row.covers(agents=agent, evalsets=evalset, criteria=name) for row in rows)
        }
