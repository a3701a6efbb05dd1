#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# live.sh: inside a guest with a crypto device, one looks on while `openssl speed` runs, with policy=kernel, since on a
# busy machine software may be faster than the device: the kernel's bytes rise, and the device's interrupts tell the same
# number of requests. AFALGPROV_BUILD names the build directory.
set -u
. "$(dirname "$0")/../support/config.sh"
ctl=$AFALGPROV_BUILD/tools/afalgctl
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail() { echo "FAILED: $*"; cat "$dir/speed"; exit 1; }
# look: interrupts, requests and bytes of AES-128-CBC up to now. The program stands still meanwhile, or it would do more
# between the two.
look() {
  kill -STOP "$speed" && sleep 0.2
  awk '/virtqueues/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts
  "$ctl" stats openssl | awk '$3 == "openssl" && $4 == "AES-128-CBC" { print $(NF - 4), $(NF - 3) }'
  kill -CONT "$speed"
}

config "$dir/cnf" "policy = kernel"
OPENSSL_CONF=$dir/cnf openssl speed -evp aes-128-cbc -bytes 65536 -seconds 20 >"$dir/speed" 2>&1 &
speed=$!
sleep 4
read -r -d '' interrupts1 requests1 bytes1 < <(look)
sleep 4
read -r -d '' interrupts2 requests2 bytes2 < <(look)
"$ctl" stats openssl
wait "$speed" || fail "openssl speed"
cat "$dir/speed"

requests=$((requests2 - requests1)) interrupts=$((interrupts2 - interrupts1)) bytes=$((bytes2 - bytes1))
echo "in four seconds: $requests requests, $bytes bytes, $interrupts interrupts of the device"
difference=$((interrupts - requests))
[ "${bytes1:-0}" -gt 0 ] && [ "$requests" -gt 1000 ] || fail "the kernel's bytes do not rise"
[ $((${difference#-} * 50)) -le "$requests" ] || fail "they differ by more than 2 %"
echo ok
