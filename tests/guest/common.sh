# Shared by tests/guest/kernel, tests/guest/run and tests/openssl/build (sourced, not executed).
# shellcheck shell=bash

# What the caller handed over, before anything below changes it: `run` passes exactly this on to the command in the guest.
# shellcheck disable=SC2034  # used by run
mapfile -d '' -t CALLER_ENV <"/proc/$$/environ"

# Our own tools (apt, make, QEMU, UML ...) get a small environment: an LD_PRELOAD, OPENSSL_CONF, ASAN_OPTIONS or MAKEFLAGS meant
# for the command under test would break them, and a PATH with a private python3 or gcc in front would change what they do.
clean_environment() {
  local v
  for v in $(compgen -e); do
    case $v in HOME | TMPDIR | XDG_CACHE_HOME | AFALGPROV_CACHE | PWD | *_proxy | *_PROXY) ;; *) unset "$v" 2>/dev/null ;; esac
  done
  export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
}
clean_environment

die() { # MESSAGE...: one line on stderr, status 125 ("the guest could not be had")
  echo "${0##*/}: $*" >&2
  exit 125
}

PACKAGES=tests/guest/packages.txt

# need TOOL...: name the first missing one together with the file that lists its package
need() {
  local t
  for t; do
    command -v "$t" >/dev/null || die "missing tool: $t (the packages that are needed are in $PACKAGES)"
  done
}

# Kernels and everything fetched or built for them live here, outside git.
CACHE=${AFALGPROV_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/afalgprov}
