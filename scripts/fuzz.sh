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

# One build a package with the fuzzer's own instrumentation, not one a target.
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
cache=$(go env GOCACHE)/fuzz

ran=0
while read -r package dir; do
  grep -qs '^func Fuzz' "$dir"/*_test.go || continue
  go test -c -fuzz=. -o "$built/fuzz.test" "$package"
  for target in $(cd "$dir" && "$built/fuzz.test" -test.list '^Fuzz'); do
    printf 'fuzz %s %s %s\n' "$time" "$package" "$target"
    # Engines walk maps, so that coverage varies and shortening an input by the
    # clock would take a minute each.
    (cd "$dir" && "$built/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" \
      -test.fuzzminimizetime 50x -test.fuzzcachedir "$cache/$package")
    ran=$((ran + 1))
  done
done < <(go list -f '{{.ImportPath}} {{.Dir}}' "$@")
if [ "$ran" = 0 ]; then
  printf 'fuzz: no fuzz target in %s\n' "$*" >&2
  exit 1
fi
