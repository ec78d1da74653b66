#!/bin/sh
# Evaluates the agent in any CI that has Docker. Run it in the folder of the repository.
#
#     CI_EVAL_IMAGE=<registry>/ci-eval@sha256:<digest> sh docker-run.sh
#
# Exit codes are those of `ci-eval run`: 0 passed, 1 failed, 4 usage error, 5 nothing selected,
# 6 incomplete.
set -eu

# The container starts as root and continues as the owner of the workspace, who then owns the
# reports; the agent runs as another user. Each input of the action is a variable. Variables without
# a value here come from the environment, so they do not appear in a list of processes.
exec docker run --rm --init \
  --volume "$PWD:/workspace" --workdir /workspace --env GITHUB_WORKSPACE=/workspace \
  --env "INPUT_CONFIG=${CI_EVAL_CONFIG:-ci-eval.yaml}" \
  --env GOOGLE_API_KEY --env OPENAI_API_KEY \
  "${CI_EVAL_IMAGE:?the image of a release, by its digest}"
