#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random numbers as users configure them, in whatever kernel this is: they come from where they were asked for, or from
# getrandom(2), and afalgctl tells which. AFALGPROV_BUILD names the build directory.
set -u
. "$(dirname "$0")/../support/config.sh"
top=$(dirname "$0")/../..
ctl=$AFALGPROV_BUILD/tools/afalgctl
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# What this kernel serves, asked without afalgprov.
served=$(python3 - <<'PYTHON'
import socket
for name in 'stdrng', 'jitterentropy_rng':
    try:
        socket.socket(38, socket.SOCK_SEQPACKET, 0).bind(('rng', name))
        print(name)
    except OSError:
        pass
PYTHON
) || exit 1
serves() { [[ " ${served//$'\n'/ } " == *" $1 "* ]]; }

# draw CONFIG: 4096 bytes by openssl; the counters go to $dir/stats.
draw() { OPENSSL_CONF=$1 "$ctl" stats -- openssl rand -hex 4096 2>"$dir/stats" || { cat "$dir/stats"; fail "openssl rand with $1"; }; }
column() { awk -v a="$1" -v n="$2" '$1 == a { print $n }' "$dir/stats"; }

# check NAME KERNEL-NAME LEAST MOST: who gave the bytes of the last draw, and how many they were.
check() {
  local in_kernel in_software
  in_software=$(column "$1" 3) in_kernel=$(column "$1" 5)
  if serves "$2"; then
    [ "${in_kernel:-0}" -ge "$3" ] && [ "$in_kernel" -le "$4" ] || { cat "$dir/stats"; fail "the kernel gave ${in_kernel:-0} bytes of $1"; }
    [ "$in_software" = 0 ] || fail "getrandom(2) gave $in_software bytes of $1, which the kernel serves"
  else
    [ "${in_software:-0}" -ge "$3" ] && [ "$in_software" -le "$4" ] || { cat "$dir/stats"; fail "getrandom(2) gave ${in_software:-0} bytes of $1"; }
    [ "$in_kernel" = 0 ] || fail "the kernel gave $in_kernel bytes of $1, which it does not serve"
  fi
  [ "$(column "$1" 7)" = 0 ] || fail "errors of $1"
}

config "$dir/plain" "policy = speed"
{ cat "$dir/plain"; printf '%s\n' '[init]' 'random = r' '[r]' 'random = AFALG-DRBG' 'properties = provider=afalgprov'; } >"$dir/drbg"
{ cat "$dir/plain"; printf '%s\n' '[init]' 'random = r' '[r]' 'seed = AFALG-JITTER' 'seed_properties = provider=afalgprov'; } >"$dir/jitter"
# What the example says, once its "#" are gone; and what the manual page says, its examples of configuration together.
module="s|^\\[afalgprov_provider\\]|&\nmodule = $AFALGPROV_BUILD/provider/afalgprov.so|"
sed -e 's/^#random = random_numbers/random = random_numbers/' -e '/^#\[random_numbers\]/,$s/^#//' \
  -e "$module" "$top/examples/openssl.cnf" >"$dir/example"
awk '/^\.Bd -literal/ { getline; inside = !/^\$/ } /^\.Ed/ { inside = 0 } inside' "$top/docs/man/afalgprov.7" |
  sed -e "$module" >"$dir/manual"
for c in example manual; do
  grep -q '^random = AFALG-DRBG' "$dir/$c" || fail "the $c has no random numbers"
done

OPENSSL_CONF=$dir/plain openssl list -random-generators >"$dir/list" || fail "openssl list"
grep -q 'AFALG-DRBG @ afalgprov' "$dir/list" && grep -q 'AFALG-JITTER @ afalgprov' "$dir/list" || fail "not listed: $(cat "$dir/list")"
OPENSSL_CONF=$dir/drbg openssl list -random-instances >"$dir/list" || fail "openssl list -random-instances"
[ "$(grep -c AFALG-DRBG "$dir/list")" = 3 ] || fail "not the three instances of a thread: $(cat "$dir/list")"

draw "$dir/plain" >/dev/null
grep -q AFALG- "$dir/stats" && fail "used without being asked for: $(cat "$dir/stats")"
for c in drbg example manual; do
  a=$(draw "$dir/$c")
  check AFALG-DRBG stdrng 4096 4096
  b=$(draw "$dir/$c")
  [ ${#a} = 8192 ] && [ ${#b} = 8192 ] && [ "$a" != "$b" ] || fail "twice the same, or too little"
done
a=$(draw "$dir/jitter")
check AFALG-JITTER jitterentropy_rng 32 1000
b=$(draw "$dir/jitter")
[ ${#a} = 8192 ] && [ "$a" != "$b" ] || fail "twice the same from AFALG-JITTER, or too little"

# A key pair is all random numbers.
OPENSSL_CONF=$dir/drbg openssl genpkey -algorithm EC -pkeyopt group:P-256 -out "$dir/key" 2>"$dir/log" &&
  openssl pkey -in "$dir/key" -check -noout >/dev/null || fail "genpkey: $(cat "$dir/log")"

"$ctl" list AFALG-DRBG AFALG-JITTER >"$dir/list" || fail "afalgctl list"
cat "$dir/list"
for pair in AFALG-DRBG:stdrng AFALG-JITTER:jitterentropy_rng; do
  if serves "${pair#*:}"; then
    grep -Eq "^${pair%:*} +${pair#*:} .*software +open to programs that choose it" "$dir/list" || fail "afalgctl does not say that ${pair%:*} is open"
  else
    grep -Eq "^${pair%:*} +${pair#*:} .*closed: .*; getrandom\(2\) gives the bytes" "$dir/list" || fail "afalgctl does not say that ${pair%:*} is closed"
    OPENSSL_CONF=$dir/drbg AFALGPROV_LOG=info openssl rand -hex 100 2>"$dir/log" >/dev/null
    [ "${pair%:*}" = AFALG-JITTER ] || [ "$(grep -c 'AFALG-DRBG stays in software' "$dir/log")" = 1 ] || fail "the log does not say so once: $(cat "$dir/log")"
  fi
done
echo ok
