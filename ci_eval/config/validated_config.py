"""The validated configuration that the stages use."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_eval.config.config_schema import EvalSetSpec, GateOptions, MatrixRow, RunOptions
from ci_eval.config.criterion_names import Dialect
from ci_eval.config.eval_config import EvalConfigFile
from ci_eval.llm.judge_settings import Judging, Simulation
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.engine import Engine
from ci_eval.plugins.points import Agent, Reporter
from ci_eval.records.errors import Problem
from ci_eval.runtime.storage.gcs import GcsOptions
from ci_eval.text.yaml_files import Document


@dataclass(frozen=True)
class Config:
    """A validated configuration."""

    path: Path
    suite: str
    dialect: Dialect
    agents: Mapping[str, Agent]
    evalsets: Mapping[str, EvalSetSpec]
    criteria: Mapping[str, AnyCriterion]
    judging: Judging
    run: RunOptions
    engine: Engine
    """Where trials are run."""
    baseline: BaselineStore | None
    gcs: GcsOptions
    """Options for Google Cloud Storage."""
    gate: GateOptions
    reports: Mapping[str, Reporter]
    matrix: tuple[MatrixRow, ...]
    document: Document
    """The parsed file, with line numbers."""
    disabled: tuple[str, ...] = ()
    """The disabled criteria."""
    mock: bool = False
    """Whether no agent is to be run, as with AgentFlow's `mock_mode`."""
    simulation: Simulation | None = None
    """The simulated user for scenarios; `None` if no agent needs one."""
    eval_config: EvalConfigFile | None = None
    """The eval config that `criteria.from` names, if it was read."""
    not_run: tuple[Problem, ...] = ()
    """The Python files that were not run, so that criteria or evalsets are missing."""
    warnings: tuple[Problem, ...] = ()

    @property
    def shown(self) -> str:
        """The file, as the user named it."""
        return self.document.shown

    def criteria_for(self, agent: str, evalset: str) -> dict[str, AnyCriterion]:
        """Return the criteria for `agent` on `evalset`; empty if the matrix excludes the pair."""
        rows = self.matrix or (MatrixRow(),)
        return {
            name: criterion
            for name, criterion in self.criteria.items()
            if any(row.covers(agents=agent, evalsets=evalset, criteria=name) for row in rows)
        }
