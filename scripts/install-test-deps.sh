#!/usr/bin/env bash
# Installs what the tests need from Debian: a real Secret Service on a private
# bus, a real Alertmanager, container registry and PowerDNS that shipped
# contracts meet, an OpenSSH server, systemd's credentials, and a C compiler for
# the race detector. Does nothing and says nothing when all of it is there. Safe to
# run again.
#
# On an ordinary Debian machine a package may start its service when it is
# installed. So the services are held back while this script installs, and a
# service that was already there is left as it was.
set -euo pipefail

# package:command pairs; a package is wanted when its command is not there.
wanted=(
  gcc:gcc
  libc6-dev:/usr/include/stdlib.h
  python3:python3
  ca-certificates:/etc/ssl/certs/ca-certificates.crt
  curl:curl
  dbus:dbus-run-session
  gnome-keyring:gnome-keyring-daemon
  prometheus-alertmanager:prometheus-alertmanager
  docker-registry:docker-registry
  pdns-server:/usr/sbin/pdns_server
  pdns-backend-sqlite3:/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql
  sqlite3:sqlite3
  openssh-server:/usr/sbin/sshd
  openssh-client:ssh-keygen
  systemd:systemd-creds
)

missing=()
for pair in "${wanted[@]}"; do
  what=${pair#*:}
  case "$what" in
    /*) [ -e "$what" ] || missing+=("${pair%%:*}") ;;
    *) command -v "$what" >/dev/null 2>&1 || missing+=("${pair%%:*}") ;;
  esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

say() { printf 'install-test-deps: %s\n' "$*" >&2; }

if ! command -v apt-get >/dev/null 2>&1; then
  say "not there: ${missing[*]}"
  say "this script knows Debian and its relatives only; install these with your own package manager"
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  say "not there: ${missing[*]}"
  say "run as root:  sudo apt-get install --no-install-recommends ${missing[*]}"
  exit 1
fi

# While this file exists and answers 101, Debian starts no service.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi

say "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  rm -f "$log"
  say "the installation failed; what the package manager said stands above"
  exit 1
fi
rm -f "$log"
