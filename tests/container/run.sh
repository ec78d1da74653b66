#!/usr/bin/env bash
# Builds the image from Dockerfile and runs the action in it as GitHub does: the tests in this
# folder, and in ../workflows, are handed the image. Everything that is started here is stopped again.
#
# Uses the Docker engine that answers, and python:3.12-slim from a registry. Where no engine
# answers, root on Debian gets one that lives in a temporary folder; where no registry answers,
# a stand-in for the base image is made from Debian packages and this machine's Python 3.12.
#
# usage: tests/container/run.sh [option for pytest]...
#   PYTHON    the interpreter with ci-eval's `dev` extra; default .venv/bin/python
#   CI_EVAL_WORKFLOW_RUNNER   ../workflows/runner in one file, see .ci/run; without it no workflow runs
set -euo pipefail
cd "$(dirname "$0")/../.."

base=python:3.12-slim
image=ci-eval:container-test
state=$(mktemp -d)
network=() # of builds; the engine that is started here has no bridge
engine= # its process, where it is started here
patient=(-o DPkg::Lock::Timeout=600 -o Acquire::Retries=8)

say() { printf '%s\n' "$*" >&2; }

stop() {
  if [[ -n $engine ]]; then
    kill "$engine" 2>/dev/null || true
    wait "$engine" || true
    umount "$state/exec/netns/default" 2>/dev/null || true
  fi
  rm -rf "$state" || say "Left behind: $state"
}
trap stop EXIT

start_engine() {
  if ! command -v dockerd >/dev/null || ! command -v mmdebstrap >/dev/null; then
    say 'Installing a Docker engine'
    apt-get "${patient[@]}" update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get "${patient[@]}" install -qq -y --no-install-recommends \
      docker.io mmdebstrap >"$state/apt.log" 2>&1 || { cat "$state/apt.log" >&2; return 1; }
  fi
  # Debian's client knows the engine's own BuildKit; another one that is first in PATH may not.
  mkdir "$state/bin" && ln -s /usr/bin/docker "$state/bin/" && PATH=$state/bin:$PATH
  export DOCKER_HOST=unix://$state/docker.sock
  setsid dockerd --data-root "$state/data" --exec-root "$state/exec" --host "$DOCKER_HOST" \
    --pidfile "$state/docker.pid" --bridge=none --iptables=false --ip6tables=false \
    --ip-forward=false --ip-masq=false >"$state/dockerd.log" 2>&1 </dev/null &
  engine=$!
  local last=$((SECONDS + 300))
  while ((SECONDS < last)) && kill -0 "$engine" 2>/dev/null; do
    docker info >/dev/null 2>&1 && network=(--network host) && return
    sleep 0.2
  done
  say 'The Docker engine did not start:'
  tail -20 "$state/dockerd.log" >&2
  return 1
}

# Where a Python 3.12 is installed that can be copied: one that is not Debian's own.
python_prefix() {
  local ask='import sys; print(sys.base_prefix) if sys.version_info[:2] == (3, 12) else sys.exit(1)'
  local python prefix
  for python in python3.12 "$(python3 -c 'import sys; print(sys.base_prefix)')"/../*/bin/python3.12; do
    prefix=$("$python" -I -c "$ask" 2>/dev/null) && [[ $prefix != /usr ]] && echo "$prefix" && return
  done
  return 1
}

# What the official image is to our Dockerfile: Debian with Python, pip and CA certificates.
# Its pip and apt reach what this machine's reach: certificates and pip's settings come along.
# shellcheck disable=SC2016 # "$1" is the new root, for the shell that mmdebstrap starts
make_base() {
  local prefix
  if ! prefix=$(python_prefix); then
    say "No $base: no registry answers, and there is no Python 3.12 in a folder of its own."
    return 1
  fi
  say "Making a stand-in for $base from $prefix"
  # The official one's Debian keeps neither manuals nor the indexes of packages, either.
  mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Retries "8"' \
    --aptopt='Dir::Cache::pkgcache ""' --aptopt='Dir::Cache::srcpkgcache ""' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --include=ca-certificates,libbz2-1.0,libffi8,liblzma5,libncursesw6,libreadline8 \
    --include=libsqlite3-0,libssl3,libuuid1,netbase,tzdata,usr-is-merged,zlib1g \
    --customize-hook="tar -C '$prefix' --exclude=test --exclude='*.a' --exclude=__pycache__ \
      --exclude=site-packages -c bin lib include | tar -C \"\$1/usr/local\" -x" \
    --customize-hook='cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"' \
    --customize-hook='! test -e /etc/pip.conf || cp /etc/pip.conf "$1/etc/"' \
    --customize-hook='chroot "$1" sh -c "ldconfig && python3.12 -m ensurepip" >/dev/null 2>&1' \
    --customize-hook='ln -sf python3.12 "$1/usr/local/bin/python"' \
    --customize-hook='ln -sf pip3.12 "$1/usr/local/bin/pip"' \
    bookworm - | docker import --change 'CMD ["python3"]' - "$base" >/dev/null
}

if ! docker info >/dev/null 2>&1; then
  if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
    say 'Not run: no Docker engine answers, and only root on Debian can be given one.'
    [[ -z ${CI:-} ]]
    exit
  fi
  start_engine
fi
docker image inspect "$base" >/dev/null 2>&1 || docker pull --quiet "$base" >/dev/null 2>&1 ||
  make_base

build() {
  DOCKER_BUILDKIT=1 docker build --quiet "${network[@]}" --tag "$image" . >/dev/null
}

started=$SECONDS
build || build # it goes on after the last step that was done: a network may stumble
say "The image was built in $((SECONDS - started)) s"
CI_EVAL_IMAGE=$image "${PYTHON:-.venv/bin/python}" -m pytest tests/container tests/workflows "$@"
