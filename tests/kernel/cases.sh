#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cases.sh SPEED: what users of kernel crypto ran into, in this kernel: the cases_*_test programs, then command lines whose
# results must be those of OpenSSL alone and of other programs. SPEED says how much is done: host, fast, middle or slow.
# Where the kernel has AF_ALG, counters prove that it worked. AFALGPROV_BUILD names the build directory.
set -u
. "$(dirname "$0")/../support/config.sh"
ctl=$AFALGPROV_BUILD/tools/afalgctl
watch=$AFALGPROV_BUILD/tests/support/libafalgwatch.so
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

ciphers=(aes-256-cbc:AES-256-CBC aes-128-ctr:AES-128-CTR des-ede3-cbc:DES-EDE3-CBC)
case $1 in
  host) few=() rounds=2000 iterations=10000 huge=1 ;;
  fast) few=() rounds=300 iterations=1000 huge=1 ;;
  middle) few=() rounds=100 iterations=1000 huge='' ;;
  slow) few=(few) rounds=5 iterations=10 huge='' ciphers=("${ciphers[0]}") ;;
  *) fail "no speed $1" ;;
esac

"$AFALGPROV_BUILD/tests/kernel/watch_test" # 77: without AF_ALG
case $? in 0 | 77) ;; *) false ;; esac || fail "the watch over AF_ALG sockets"
for theme in aead cipher digest mac; do
  "$AFALGPROV_BUILD/tests/kernel/cases_${theme}_test" "${few[@]}" || fail "$theme"
done
"$AFALGPROV_BUILD/tests/kernel/cases_thread_test" $rounds || fail "threads"

config "$dir/cnf" "policy = kernel"
"$ctl" list SHA2-256 >"$dir/list" || fail "afalgctl list"
grep -q 'the kernel has no AF_ALG' "$dir/list" && have_afalg='' || have_afalg=1

# ours and software: openssl with the module, watched and counted, and without it.
ours() { OPENSSL_CONF=$dir/cnf "$ctl" stats -- env LD_PRELOAD="$watch" openssl "$@" 2>"$dir/stats"; }
software() { env -u OPENSSL_CONF openssl "$@" 2>"$dir/errors"; }

# worked ALGORITHM BYTES: the kernel did at least so many bytes of it in the last run of `ours`.
worked() {
  local bytes
  [ -n "$have_afalg" ] || return 0
  bytes=$(awk -v a="$1" '$1 == a { print $(NF - 3) }' "$dir/stats")
  [ "${bytes:-0}" -ge "$2" ] || { cat "$dir/stats"; fail "the kernel did ${bytes:-0} bytes of $1, not $2"; }
}

# RSA-OAEP hashes an empty label, and little pieces for its mask.
software genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out "$dir/key" || fail "RSA key"
software pkey -in "$dir/key" -pubout -out "$dir/pub" || fail "public key"
printf 'a secret' >"$dir/secret"
oaep=(-pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256)
for there in ours software; do
  $there pkeyutl -encrypt -pubin -inkey "$dir/pub" "${oaep[@]}" -in "$dir/secret" -out "$dir/sealed" || fail "OAEP by $there"
  [ $there = software ] || worked SHA2-256 32
  for back in ours software; do
    $back pkeyutl -decrypt -inkey "$dir/key" "${oaep[@]}" -in "$dir/sealed" | cmp - "$dir/secret" || fail "OAEP by $there, then $back"
    [ $back = software ] || worked SHA2-256 32
  done
done

# HKDF without salt, and with an empty one: RFC 5869, A.3.
hkdf=(kdf -keylen 42 -kdfopt digest:SHA256 -kdfopt hexkey:0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b)
for salt in '' '-kdfopt salt: -kdfopt info:'; do
  # shellcheck disable=SC2086  # two options or none
  [ "$(ours "${hkdf[@]}" $salt HKDF | tr -d ':\n')" = \
    8DA4E775A563C18F715F802A063C5A31B8A11F5C5EE1879EC3454E5F3C738D2D9D201395FAA4B61A96C8 ] || fail "HKDF $salt"
done

# Files that one side encrypts and the other decrypts, with keys that one digest or many make of a password.
head -c 6000 /dev/urandom >"$dir/in"
for cipher in "${ciphers[@]}"; do
  for derivation in "-pbkdf2 -iter $iterations" '-md sha256'; do
    # shellcheck disable=SC2206  # options
    enc=(enc "-${cipher%:*}" $derivation -S 0011223344556677 -pass pass:123)
    software "${enc[@]}" -in "$dir/in" -out "$dir/software" || fail "${enc[*]}"
    ours "${enc[@]}" -in "$dir/in" -out "$dir/ours" || fail "${enc[*]}"
    worked "${cipher#*:}" 4096
    [ "$derivation" = '-md sha256' ] || worked SHA2-256 $((32 * iterations))
    cmp "$dir/ours" "$dir/software" || fail "${enc[*]}: another ciphertext"
    [ "$(ours "${enc[@]}" -P)" = "$(software "${enc[@]}" -P)" ] || fail "${enc[*]}: another key"
    for there in ours software; do
      for back in ours software; do
        $back "${enc[@]}" -d -in "$dir/$there" | cmp - "$dir/in" || fail "${enc[*]}: $there, then $back"
      done
    done
  done
done

# Digests of files beyond a device's limits. GNU programs tell what is right.
check_digest() { # DIGEST ALGORITHM FILE RIGHT
  [ "$(ours dgst "-$1" -r "$3" | cut -d' ' -f1)" = "${4%% *}" ] || fail "$1 of $3"
  worked "$2" "$(stat -c %s "$3")"
}
head -c 5242880 /dev/urandom >"$dir/large"
check_digest md5 MD5 "$dir/large" "$(md5sum "$dir/large")"
check_digest sha1 SHA1 "$dir/large" "$(sha1sum "$dir/large")"
check_digest sha256 SHA2-256 "$dir/large" "$(sha256sum "$dir/large")"
check_digest sha512 SHA2-512 "$dir/large" "$(sha512sum "$dir/large")"
if [ -n "$huge" ]; then # zeros, of which the digest is known, and told again where that is fast
  right=93794b48a73b8463e5170103ab94e72ad5398ca0135d641243e5a11765111402
  truncate -s 2254857831 "$dir/huge"
  check_digest sha256 SHA2-256 "$dir/huge" $right
  if [ "$1" = host ]; then
    [ "$(sha256sum "$dir/huge" | cut -d' ' -f1)" = $right ] || fail "sha256sum of 2.1 GiB"
    [ "$(software dgst -sha256 -r "$dir/huge" | cut -d' ' -f1)" = $right ] || fail "2.1 GiB in software"
  fi
fi
echo ok
