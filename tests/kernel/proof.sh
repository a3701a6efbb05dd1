#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# proof.sh KERNEL: inside a guest, what a user does with openssl and afalgctl, and whether it tells the truth.
# AFALGPROV_BUILD names the build directory.
set -u
. "$(dirname "$0")/../support/config.sh"
kernel=$1
ctl=$AFALGPROV_BUILD/tools/afalgctl
modules=(-provider-path "$AFALGPROV_BUILD/provider" -provider afalgprov -provider default)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail() { echo "FAILED: $*"; exit 1; }
interrupts() { awk '/virtqueues/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts; }
kernel_of() { awk -v a="$1" '$1 == a { print $(NF - 4), $(NF - 3) }' "$2"; }   # requests and bytes of an algorithm

openssl list -cipher-algorithms "${modules[@]}" | grep -q 'AES-256-CBC, AES256 } @ afalgprov' || fail "ciphers are not listed"
openssl list -digest-algorithms "${modules[@]}" | grep -q 'SHA2-256, SHA256 } @ afalgprov' || fail "digests are not listed"

config "$dir/cnf" "policy = kernel"
head -c 3000001 /dev/urandom >"$dir/in"
key=(-aes-128-cbc -K 000102030405060708090a0b0c0d0e0f -iv 0f0e0d0c0b0a09080706050403020100)

"$ctl" list AES-128-CBC SHA2-256 >"$dir/list" || fail "afalgctl list"
cat "$dir/list"
before=$(interrupts)
OPENSSL_CONF=$dir/cnf "$ctl" stats -- openssl enc "${key[@]}" -in "$dir/in" -out "$dir/ours" 2>"$dir/stats" || fail "enc"
OPENSSL_CONF=$dir/cnf openssl enc -d "${key[@]}" -in "$dir/ours" | cmp - "$dir/in" || fail "decryption differs"
after=$(interrupts)
openssl enc "${key[@]}" -in "$dir/in" | cmp - "$dir/ours" || fail "the default provider encrypts differently"
ours=$(OPENSSL_CONF=$dir/cnf "$ctl" stats -- openssl dgst -sha256 -r "$dir/in" 2>>"$dir/stats")
[ "${ours%% *}" = "$(sha256sum <"$dir/in" | cut -d' ' -f1)" ] || fail "sha256 differs from sha256sum"
cat "$dir/stats"

read -r requests bytes < <(kernel_of AES-128-CBC "$dir/stats")
[ "${bytes:-0}" -ge 2999000 ] || fail "the kernel did ${bytes:-0} of 3000001 bytes of AES-128-CBC"
read -r _ bytes < <(kernel_of SHA2-256 "$dir/stats")
[ "${bytes:-0}" -ge 2999000 ] || fail "the kernel did ${bytes:-0} of 3000001 bytes of SHA2-256"
echo "requests of one encryption: $requests; device interrupts of encryption and decryption: $((after - before))"

# OpenSSL 3.0's random generator draws AES from us: never from the kernel, whatever the policy.
OPENSSL_CONF=$dir/cnf "$ctl" stats -- openssl rand -hex 100000 >/dev/null 2>"$dir/rand" || fail "rand"
for name in AES-256-CTR AES-256-ECB; do
  read -r drawn _ < <(kernel_of $name "$dir/rand") || drawn=0
  [ "${drawn:-0}" = 0 ] || fail "the random generator sent $drawn requests of $name to the kernel"
done

case $kernel in
  6.1 | 6.12)
    grep -Eq '^AES-128-CBC +cbc\(aes\) +virtio_crypto_aes_cbc +hardware +open' "$dir/list" || fail "afalgctl does not name the device"
    [ $((after - before)) -ge $((2 * requests)) ] || fail "the device's interrupts did not rise with the requests" ;;
  7.2)
    grep -q 'keeps virtio_crypto_aes_cbc from AF_ALG' "$dir/list" || fail "afalgctl does not say that the device is out of reach"
    [ "$after" = "$before" ] || fail "the device has worked" ;;
  *)
    grep -Eq '^AES-128-CBC +cbc\(aes\) .*software +closed: software driver' "$dir/list" || fail "afalgctl does not say why not" ;;
esac
echo ok
