"""What another workflow run measured is told on its pull request, by a run that may write there.

Pull requests of forks are evaluated without secrets and with a token that only reads.  A second
workflow of the repository, on `workflow_run`, has a token that writes and runs nothing of the
fork's.  Which pull request it is, which commit, and how the run ended, only GitHub is asked; the
report in the artifact is the word of a stranger.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ci_eval.errors import CiEvalError, UsageError
from ci_eval.findings import Report, Totals, Verdict
from ci_eval.findings import Reason
from ci_eval.github import API, GitHub, connected
from ci_eval.github_answers import GitHubError
from ci_eval.lineage import event
from ci_eval.posting import artifacts, check_run, pull_request
from ci_eval.posting.after_run import Place, told
from ci_eval.posting.github_thread import GitHubThread
from ci_eval.posting.options import Options
from ci_eval.posting.pull_request import PullRequest
from ci_eval.posting.sticky import Posted
from ci_eval.posting.thread import PostingError
from ci_eval.records import Stored
from ci_eval.results import RunMeta
from ci_eval.templating import code
from ci_eval.world import World
