#!/usr/bin/env bash
# Names the Go files that gofmt would change, and fails if there are any.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOTOOLCHAIN=go1.27.3
# The toolchain's own gofmt, so that a newer or older one on PATH has no say.
gofmt="$(go env GOROOT)/bin/gofmt"
bad=$("$gofmt" -l cmd contracts deploy docs internal)
if [ -n "$bad" ]; then
  printf 'gofmt would change these files (run gofmt -w on them):\n%s\n' "$bad" >&2
  exit 1
fi
