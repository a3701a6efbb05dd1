#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# faulty_device.sh FAULT: in a guest whose crypto device has that fault, what a program gets is right all the same, and
# the log and afalgctl tell what happened. AFALGPROV_BUILD names the build directory.
#   fail   some requests are answered with an error
#   wrong  requests are answered with wrong data
#   hang   no request is ever answered
set -u
. "$(dirname "$0")/../support/config.sh"
fault=$1
dir=$(mktemp -d) || exit 1

fail() { echo "FAILED: $*"; cat "$dir"/log "$dir"/stats 2>/dev/null; exit 1; }

encrypt=(openssl enc -aes-128-cbc -K 000102030405060708090a0b0c0d0e0f -iv 0f0e0d0c0b0a09080706050403020100
  -bufsize 65536 -in "$dir/in" -out)
head -c 3000001 /dev/urandom >"$dir/in"
"${encrypt[@]}" "$dir/right" || fail "the default provider"
config "$dir/cnf" "policy = kernel" "hang_limit = 500" "log = info"
export OPENSSL_CONF=$dir/cnf

if [ "$fault" = hang ]; then
  # The program is done, but cannot end: one of its threads waits for the device, and nothing can interrupt that.
  "${encrypt[@]}" "$dir/ours" 2>"$dir/log" &
  for _ in {1..100}; do
    cmp -s "$dir/ours" "$dir/right" && break
    sleep 0.1
  done
else
  "$AFALGPROV_BUILD/tools/afalgctl" stats -- "${encrypt[@]}" "$dir/ours" 2>"$dir/log" || fail "afalgctl"
  cat "$dir/log"
fi
cmp "$dir/ours" "$dir/right" || fail "the result differs"

read -r bytes fallbacks errors < <(awk '$1 == "AES-128-CBC" { print $(NF - 3), $(NF - 2), $(NF - 1) }' "$dir/log")
case $fault in
  fail)
    [ "${bytes:-0}" -gt 0 ] || fail "the device did nothing"
    [ "${fallbacks:-0}" -gt 0 ] || fail "no request has failed"
    [ "${errors:-1}" = 0 ] || fail "errors reached the program"
    grep -Eq "^AES-128-CBC: the kernel failed by E[A-Z]+ $fallbacks\$" "$dir/log" || fail "afalgctl does not tell the errno" ;;
  wrong)
    grep -q "AES-128-CBC stays in software: the driver's results are wrong" "$dir/log" || fail "the log does not say so"
    [ "${bytes:-1}" = 0 ] || fail "the device was used"
    grep -q 'closed: broken: its results are wrong' "$dir/log" || fail "afalgctl does not tell the state of the lane" ;;
  hang)
    grep -q 'AES-128-CBC stays in software: the device does not answer' "$dir/log" || fail "the log does not say so" ;;
esac
echo ok
