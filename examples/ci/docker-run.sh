#!/bin/sh
# Evaluates the agent in any CI that has Docker: run it in the folder of the repository.
#
#     CI_EVAL_IMAGE=<registry>/ci-eval@sha256:<digest> sh docker-run.sh
#
# It exits as `ci-eval run` does: 0 passed, 1 failed, 4 wrong use, 5 nothing to run, 6 incomplete.
set -eu

# Started as root, it goes on as the owner of the workspace, to whom the reports then belong; the
# agent runs as somebody else. Each input of the action is a variable; those that have a name only
# come from the environment, and are not seen in a list of processes.
exec docker run --rm --init \
  --volume "$PWD:/workspace" --workdir /workspace --env GITHUB_WORKSPACE=/workspace \
  --env "INPUT_CONFIG=${CI_EVAL_CONFIG:-ci-eval.yaml}" \
  --env GOOGLE_API_KEY --env OPENAI_API_KEY \
  "${CI_EVAL_IMAGE:?the image of a release, by its digest}"
