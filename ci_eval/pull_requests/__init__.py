"""Output on a pull request: comments, check runs, forks; and on the GitHub runner.

The runner gets the job summary, annotations and outputs of the step.

Imports `config` and below; of the stages it uses only the records.
"""
