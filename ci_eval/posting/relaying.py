"""What another workflow run measured is told on its pull request, by a run that may write there.

Pull requests of forks are evaluated without secrets and with a token that only reads.  A second
workflow of the repository, on `workflow_run`, has a token that writes and runs nothing of the
fork's.  Which pull request it is, which commit, and how the run ended, only GitHub is asked; the
report in the artifact is the word of a stranger.
"""


