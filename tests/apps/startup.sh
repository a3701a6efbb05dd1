#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# startup.sh [KERNEL]: how afalgprov comes into the openssl tool, and what happens where that goes wrong: order of providers, property
# queries, misspelt names, no default provider, algorithms that it has not. KERNEL: in a guest, where counters prove who did the
# work: only what they can prove, since programs start slowly there; without it: in whatever kernel this is. AFALGPROV_BUILD names the build directory.
set -u
. "$(dirname "$0")/../support/config.sh"
kernel=${1:-}
ctl=$AFALGPROV_BUILD/tools/afalgctl
dir=$(mktemp -d) || exit 1
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT

fail() { echo "FAILED: $*"; [ ! -s "$dir/out" ] || cat "$dir/out"; exit 1; }
# check STATUS COMMAND...: its output is in $dir/out; STATUS "some": any but 0, yet by itself, not by a signal or for ever.
check() {
  local want=$1 rc
  shift
  timeout -k 1 60 "$@" >"$dir/out" 2>&1 </dev/null
  rc=$?
  case $want in
    some) [ $rc -gt 0 ] && [ $rc -lt 124 ] || fail "exit status $rc: $*" ;;
    *) [ $rc = "$want" ] || fail "exit status $rc, not $want: $*" ;;
  esac
}
says() { grep -Eq -- "$1" "$dir/out" || fail "it does not say: $1"; }

head -c 100000 /dev/urandom >"$dir/in"
sum=$(sha256sum <"$dir/in" | cut -d' ' -f1)

# --------------------------------------------------------------------------- afalgprov alone
alone() {
  config "$dir/alone" "policy = speed"
  sed -i '/^default = base/d' "$dir/alone"
  export OPENSSL_CONF=$dir/alone
  check 0 openssl list -providers
  says '^ *afalgprov$'
  grep -q '^ *default$' "$dir/out" && fail "default is there all the same"
  check 0 openssl dgst -sha256 -r "$dir/in"
  says "^$sum "
  # What it lacks is missing, and that is said.
  check some openssl rand -hex 8
  says 'unsupported|unable to fetch|error'
  check some openssl genpkey -algorithm RSA
  says 'unsupported|not found|rror'
  check some openssl s_client -connect 127.0.0.1:1
  ! command -v curl >/dev/null || check some curl -sS https://127.0.0.1:1/
  ! command -v nginx >/dev/null || check 0 nginx -t -e stderr -g 'pid /dev/null;'
  unset OPENSSL_CONF
}

# --------------------------------------------------------------------------- the order of providers
permutations() { python3 -c 'import itertools
for p in itertools.permutations(["afalgprov", "default", "legacy", "base"]): print(*p)'; }

# arrange FILE QUERY PROVIDER...: a configuration that activates them in this order; QUERY "-": none.
arrange() {
  local file=$1 query=$2 p
  shift 2
  {
    printf '%s\n' 'openssl_conf = init' '[init]' 'providers = providers' 'alg_section = algorithms' '[providers]'
    for p in "$@"; do echo "$p = ${p}_section"; done
    echo '[algorithms]'
    [ "$query" = - ] || echo "default_properties = $query"
    for p in "$@"; do
      printf '%s\n' "[${p}_section]" 'activate = 1'
      [ "$p" != afalgprov ] || printf '%s\n' "module = $AFALGPROV_BUILD/provider/afalgprov.so" 'policy = kernel'
    done
  } >"$file"
}

# digest COMMAND...: the right digest; with a kernel, whether afalgprov made it: "yes" or "no" in $ours.
digest() {
  "$ctl" stats -- timeout -k 1 60 "$@" >"$dir/digest" 2>"$dir/out" || fail "exit status $?: $*"
  [ "$(cut -d' ' -f1 "$dir/digest")" = "$sum" ] || fail "a wrong digest: $(cat "$dir/digest"): $*"
  ours=no
  grep -Eq '^SHA2-256 +0 +0 +[1-9][0-9]* +100000 ' "$dir/out" && ours=yes
}
must_be_ours() { [ -z "$kernel" ] || [ "$ours" = yes ] || fail "not by afalgprov: $*"; }

handshake() {
  local i
  OPENSSL_CONF=$dir/order openssl s_server -accept 127.0.0.1:44330 -cert "$dir/cert" -key "$dir/key" -naccept 1 -quiet >"$dir/out" 2>&1 &
  for ((i = 0; i < 200; i++)); do
    echo Q | OPENSSL_CONF=$dir/order timeout 20 openssl s_client -connect 127.0.0.1:44330 -CAfile "$dir/cert" >"$dir/client" 2>&1 && break
    grep -q 'refused' "$dir/client" || break
    sleep 0.05
  done
  grep -q 'Verify return code: 0 (ok)' "$dir/client" || { cat "$dir/client"; fail "no handshake: $*"; }
  kill %% 2>/dev/null
  wait
}

order() {
  local order n=0 p options
  [ -n "$kernel" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout "$dir/key" -out "$dir/cert" 2>/dev/null ||
    fail "no certificate"
  # Known, but not activated: for the command line, with a policy that shows.
  sed '/^activate/d; /^default = /d' <(arrange /dev/stdout - afalgprov) >"$dir/known"
  while read -ra order; do
    arrange "$dir/order" '?provider=afalgprov' "${order[@]}"
    OPENSSL_CONF=$dir/order digest openssl dgst -sha256 -r "$dir/in"
    must_be_ours "file: ${order[*]}"
    options=()
    for p in "${order[@]}"; do options+=(-provider "$p"); done
    OPENSSL_CONF=$dir/known OPENSSL_MODULES=$dir/modules digest openssl dgst -sha256 -r "${options[@]}" -propquery '?provider=afalgprov' "$dir/in"
    must_be_ours "command line: ${order[*]}"
    n=$((n + 1))
    [ -z "$kernel" ] || continue
    # A handshake is slow; of those that differ in what comes first, one each.
    [ $((n % 6)) != 1 ] || handshake "${order[*]}"
    arrange "$dir/order" - "${order[@]}"
    OPENSSL_CONF=$dir/order digest openssl dgst -sha256 -r "$dir/in"
    [ $((n % 6)) != 1 ] || handshake "${order[*]}, no query"
    OPENSSL_CONF=$dir/known OPENSSL_MODULES=$dir/modules digest openssl dgst -sha256 -r "${options[@]}" "$dir/in"
  done < <(permutations)
  [ $n = 24 ] || fail "$n permutations"
}

# --------------------------------------------------------------------------- names that are wrong
misspelt() {
  local modules=(-provider-path "$AFALGPROV_BUILD/provider")
  check some openssl dgst -sha256 "${modules[@]}" -provider afalgprv -provider default "$dir/in"
  says 'afalgprv'
  check some openssl speed -elapsed -seconds 1 -bytes 1024 "${modules[@]}" -provider afalgprv -provider default -evp aes-128-cbc
  says 'afalgprv'
  check some openssl dgst -sha256 -provider-path "$dir/none" -provider afalgprov "$dir/in"
  says 'afalgprov'
  check some openssl dgst -sha256 "${modules[@]}" -provider afalgprov -provider default -propquery provider=afalgprv "$dir/in"
  says 'unsupported|unable to fetch|nknown|rror'
  # In a file: passed over without a word, and afalgctl check tells.
  config "$dir/wrong" "policy = speed"
  sed -i 's|^module = .*|&x|' "$dir/wrong"
  OPENSSL_CONF=$dir/wrong check 0 openssl dgst -sha256 -r "$dir/in"
  says "^$sum "
  OPENSSL_CONF=$dir/wrong check 1 "$ctl" check SHA256
  says 'afalgprov.sox: No such file'
  # A value that is not allowed says so itself.
  config "$dir/wrong" "ciphers = AES-129-CBC"
  OPENSSL_CONF=$dir/wrong check 0 openssl dgst -sha256 -r "$dir/in"
  says "afalgprov: not loaded: configuration ciphers = AES-129-CBC: 'AES-129-CBC' is no cipher that afalgprov has; allowed is "
  config "$dir/wrong" "thresholds = SHA256:4096" "digests = NONE"
  OPENSSL_CONF=$dir/wrong check 0 openssl dgst -sha256 -r "$dir/in"
  says "not loaded: configuration 'thresholds' has SHA2-256:4096, but 'digests' leaves it out"
}

# --------------------------------------------------------------------------- what is listed works; what is not is not fetched
listed() {
  local name n=0 key=00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef
  config "$dir/cnf" "policy = kernel"
  export OPENSSL_CONF=$dir/cnf
  check some openssl dgst -shake256 -xoflen 32 -propquery provider=afalgprov "$dir/in"
  says 'unsupported|unable to fetch|rror'
  while read -r name; do
    check 0 openssl dgst "-$name" -r -propquery provider=afalgprov "$dir/in"
    cp "$dir/out" "$dir/ours"
    env -u OPENSSL_CONF openssl dgst "-$name" -r "$dir/in" | cmp - "$dir/ours" || fail "$name differs"
    n=$((n + 1))
  done < <(openssl list -digest-algorithms | sed -n 's/^ *{ .*, \([A-Za-z0-9-]*\) } @ afalgprov$/\1/p; s/^ *\([A-Z0-9-]*\) @ afalgprov$/\1/p')
  [ $n -ge 8 ] || fail "only $n digests are listed"
  for name in aes-128-cbc aes-256-ctr aes-192-ecb des-ede3-cbc camellia-128-cbc aria-128-cbc chacha20; do
    check 0 openssl enc "-$name" -K "${key:0:$((${#key}))}" -iv 00112233445566778899aabbccddeeff -in "$dir/in" -out "$dir/ours"
    env -u OPENSSL_CONF openssl enc "-$name" -K "$key" -iv 00112233445566778899aabbccddeeff -in "$dir/in" 2>/dev/null | cmp - "$dir/ours" ||
      fail "$name differs"
  done
  unset OPENSSL_CONF
}

mkdir "$dir/modules"
cp "$AFALGPROV_BUILD/provider/afalgprov.so" "$dir/modules/"
legacy=$(openssl version -m | sed 's/.*"\(.*\)".*/\1/')/legacy.so
[ ! -e "$legacy" ] || cp "$legacy" "$dir/modules/"
order
if [ -z "$kernel" ]; then
  alone
  misspelt
  listed
fi
echo ok
