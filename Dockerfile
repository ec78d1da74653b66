# The image of the action, see action.yml. It is built anew by each job that uses the action
# from its repository, so everything here is chosen to build quickly and to start quickly.
#
# The base is named by tag, so that a build takes the base's security fixes without a release
# of ours. What must not change under a user is the result: a release publishes the image that
# was built, and action.yml then names that image by its digest.
FROM python:3.12-slim AS build

WORKDIR /build

# A network that stumbles, or stands still for a while, fails no job.
ENV PIP_DEFAULT_TIMEOUT=60 PIP_RETRIES=8

# Every file that is installed is known by its hash, what builds wheels too; the path from here
# to the final image is wheels only, so neither compiler nor pip's leavings get there.
COPY requirements.lock requirements-build.lock ./
RUN pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
        --require-hashes --only-binary :all: -r requirements-build.lock \
    && pip wheel --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation \
        --require-hashes --wheel-dir wheels -r requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY templates templates
COPY docs/troubleshooting.md docs/troubleshooting.md
COPY ci_eval ci_eval
RUN pip wheel --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation \
        --no-index --wheel-dir wheels .

# The bytecode is made here, once, and trusted as it is: a container starts from nothing every
# time, and would compile again what it imports.
RUN python -m venv --without-pip /opt/ci-eval \
    && pip --python /opt/ci-eval/bin/python install --disable-pip-version-check --no-cache-dir \
        --no-index --no-deps --no-compile wheels/*.whl \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/ci-eval/lib


FROM python:3.12-slim

# What pip and Debian install is shipped as they install it; only apt's downloads go.
# hadolint ignore=DL3008 # a pinned Debian version vanishes with the next security fix of git
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*

# Agents get a user of their own, to whom nothing belongs, and agents of the merge base get another
# (ci_eval/runtime/isolation.py). The numbers are some that no machine gives to a person, for the
# workspace has its owner's number in here too.
# CIs that run a shell in the image, and have no inputs, find the command on the path.
RUN groupadd --gid 58734 ci-eval-agent \
    && useradd --uid 58734 --gid 58734 --create-home --shell /usr/sbin/nologin ci-eval-agent \
    && groupadd --gid 58736 ci-eval-base-agent \
    && useradd --uid 58736 --gid 58736 --create-home --shell /usr/sbin/nologin ci-eval-base-agent \
    && ln -s /opt/ci-eval/bin/ci-eval /usr/local/bin/ci-eval

COPY --from=build /opt/ci-eval /opt/ci-eval

# An image that does not start is not built; and what this imports of Python itself is compiled.
RUN ["/opt/ci-eval/bin/ci-eval", "list"]

# Python itself is the entry, and no shell: GitHub passes an input as INPUT_BASELINE-SAVE, and
# dash drops variables of such names. Isolated (-I): what the job says in PYTHONPATH, and what
# lies in the repository under test, is never imported into ci-eval.
ENTRYPOINT ["/opt/ci-eval/bin/python", "-I", "/opt/ci-eval/bin/ci-eval-action"]
