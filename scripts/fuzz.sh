#!/usr/bin/env bash
# Runs every fuzz target of some packages, one after the other, each for a time.
#   scripts/fuzz.sh 5s ./internal/validate/... ./internal/actions/...
set -euo pipefail

if [ $# -lt 2 ]; then
  printf 'usage: %s TIME PACKAGE...\n' "$0" >&2
  exit 2
fi
time=$1
shift
cd "$(dirname "$0")/.."
export GOTOOLCHAIN=go1.27.3

ran=0
for package in $(go list "$@"); do
  targets=$(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true)
  for target in $targets; do
    printf 'fuzz %s %s %s\n' "$time" "$package" "$target"
    # Engines walk maps, so that coverage varies and shortening an input by the
    # clock would take a minute each.
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 50x "$package"
    ran=$((ran + 1))
  done
done
if [ "$ran" = 0 ]; then
  printf 'fuzz: no fuzz target in %s\n' "$*" >&2
  exit 1
fi
