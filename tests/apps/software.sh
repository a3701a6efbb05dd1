#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In a kernel without AF_ALG everything works in software, says at most one line, and afalgctl tells why.
set -u
. "$(dirname "$0")/../support/config.sh"
ctl=$AFALGPROV_BUILD/tools/afalgctl
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

if python3 -c 'import socket; socket.socket(38, socket.SOCK_SEQPACKET, 0)' 2>/dev/null; then
  echo "this kernel has AF_ALG"
  exit 77
fi
head -c 3000001 /dev/urandom >"$dir/in"
key=(-aes-256-cbc -pbkdf2 -S 0011223344556677 -pass pass:123)
for policy in speed cpu kernel software; do
  config "$dir/cnf" "policy = $policy" "counters = $dir"
  export OPENSSL_CONF=$dir/cnf AFALGPROV_LOG=info
  openssl list -providers 2>"$dir/log" | grep -q afalgprov || fail "not loaded"
  openssl enc "${key[@]}" -in "$dir/in" -out "$dir/ours" 2>"$dir/log" || { cat "$dir/log"; fail "enc with policy $policy"; }
  [ "$(wc -l <"$dir/log")" -le 1 ] || fail "more than a line of log: $(cat "$dir/log")"
  grep -q 'everything stays in software: the kernel has no AF_ALG' "$dir/log" || fail "the log does not say why"
  env -u OPENSSL_CONF openssl enc -d "${key[@]}" -in "$dir/ours" | cmp - "$dir/in" || fail "wrong ciphertext with policy $policy"
  openssl enc -d "${key[@]}" -in "$dir/ours" 2>/dev/null | cmp - "$dir/in" || fail "wrong plaintext with policy $policy"
  [ "$(openssl dgst -sha256 -r "$dir/in" 2>/dev/null | cut -d' ' -f1)" = "$(sha256sum <"$dir/in" | cut -d' ' -f1)" ] ||
    fail "wrong digest with policy $policy"
  AFALGPROV_LOG=error openssl rand -hex 16 2>"$dir/log" >/dev/null || fail "rand"
  [ ! -s "$dir/log" ] || fail "says something by default: $(cat "$dir/log")"
done
(ulimit -f 0; exec openssl list -providers >/dev/null 2>&1) || fail "killed by the limit of file sizes, or failed"
[ -z "$(find "$dir" -name '[0-9]*')" ] || fail "counters outlived their processes"
"$ctl" list >"$dir/list" || fail "afalgctl list"
grep -q 'the kernel has no AF_ALG' "$dir/list" || fail "afalgctl does not say why"
cat "$dir/list"
