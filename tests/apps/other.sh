#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# other.sh [KERNEL]: the module under another release of OpenSSL than it was built for. KERNEL: in a guest, where counters prove that
# the kernel did the work. AFALGPROV_BUILD names the build directory.
set -u
. "$(dirname "$0")/../support/config.sh"
kernel=${1:-}
ctl=$AFALGPROV_BUILD/tools/afalgctl
other=$("$(dirname "$0")/../openssl/other" --cached 2>&1) || { echo "$other"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; [ ! -s "$dir/out" ] || cat "$dir/out"; exit 1; }

head -c 1000000 /dev/urandom >"$dir/in"
config "$dir/cnf" "policy = kernel" "counters = $dir"
with() { OPENSSL_CONF=$dir/cnf "$@"; }
new() { timeout -k 1 60 "$other/run" openssl "$@"; }
key=(-K 00112233445566778899aabbccddeeff -iv 00112233445566778899aabbccddeeff)

echo "built for: $(openssl version); run by: $(new version)"
[ "$(new version | cut -d' ' -f2)" != "$(openssl version | cut -d' ' -f2)" ] || fail "it is the same release"
with new list -providers >"$dir/out" 2>&1 || fail "openssl list"
grep -q '^  afalgprov$' "$dir/out" || fail "afalgprov is not loaded"

with "$ctl" stats -- "$other/run" openssl dgst -sha256 -r "$dir/in" >"$dir/digest" 2>"$dir/out" || fail "dgst"
[ "$(cut -d' ' -f1 "$dir/digest")" = "$(sha256sum <"$dir/in" | cut -d' ' -f1)" ] || fail "a wrong digest"
[ -z "$kernel" ] || grep -Eq '^SHA2-256 +0 +0 +[1-9][0-9]* +1000000 ' "$dir/out" || fail "not in the kernel"
with "$ctl" stats -- "$other/run" openssl enc -aes-128-cbc "${key[@]}" -in "$dir/in" -out "$dir/ours" 2>"$dir/out" || fail "enc"
openssl enc -aes-128-cbc "${key[@]}" -in "$dir/in" | cmp - "$dir/ours" || fail "the ciphertext differs"
[ -z "$kernel" ] || grep -Eq '^AES-128-CBC .* [1-9][0-9]*  *(99[0-9]{4}|1000000) ' "$dir/out" || fail "not in the kernel"
with new enc -d -aes-128-cbc "${key[@]}" -in "$dir/ours" | cmp - "$dir/in" || fail "the plaintext differs"
# All that is listed, MACs, public keys and speed, where other modules of another release crashed.
with new list -cipher-algorithms >"$dir/out" 2>&1 || fail "list"
[ "$(grep -c '@ afalgprov' "$dir/out")" -ge 40 ] || fail "too few ciphers"
with new mac -digest SHA256 -macopt hexkey:00112233 -in "$dir/in" HMAC >"$dir/mac" 2>"$dir/out" || fail "mac"
openssl mac -digest SHA256 -macopt hexkey:00112233 -in "$dir/in" HMAC | cmp - "$dir/mac" || fail "the MAC differs"
with new genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$dir/key" >"$dir/out" 2>&1 || fail "genpkey"
with new dgst -sha256 -sign "$dir/key" -out "$dir/signature" "$dir/in" 2>"$dir/out" || fail "sign"
openssl pkey -in "$dir/key" -pubout -out "$dir/public" && openssl dgst -sha256 -verify "$dir/public" -signature "$dir/signature" "$dir/in" >"$dir/out" ||
  fail "the signature is wrong"
for name in aes-128-cbc sha256 aes-256-gcm; do
  with new speed -elapsed -seconds 1 -bytes 16384 -evp $name >"$dir/out" 2>&1 || fail "speed $name"
done
echo ok
