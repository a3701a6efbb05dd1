#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# printed.sh: the commands and configurations that the documents print do what they say, as printed. AFALGPROV_BUILD names the build
# directory.
set -u
tests=$(realpath "$(dirname "$0")/..")
top=$(dirname "$tests")
printed() { python3 "$tests/apps/printed.py" "$@" || exit 1; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; [ ! -s "$dir/out" ] || cat "$dir/out"; exit 1; }

# As after an installation.
mkdir "$dir/modules"
cp "$AFALGPROV_BUILD/provider/afalgprov.so" "$dir/modules/"
export OPENSSL_MODULES=$dir/modules PATH=$AFALGPROV_BUILD/tools:$PATH
cd "$top" || exit 1
head -c 10000 /dev/urandom >"$dir/in"

# --------------------------------------------------------------------------- configurations
loads() { # FILE WHAT
  OPENSSL_CONF=$1 openssl list -providers >"$dir/out" 2>&1 || fail "$2: openssl list"
  for p in afalgprov default; do
    grep -q "^  $p$" "$dir/out" || fail "$2: $p is not loaded"
  done
  OPENSSL_CONF=$1 afalgctl check SHA256 >"$dir/out" 2>&1
  grep -E 'PROBLEM +(.* is not known|.*not loaded|there is no|.*comes from)' "$dir/out" && fail "$2: afalgctl finds something"
  grep -q 'programs get from afalgprov: AES-128-CBC, AES-256-GCM, SHA2-256, HMAC' "$dir/out" || fail "$2: it is not preferred"
}
blocks=$(printed --block ini README.md)
printf '%s\n' "${blocks%%$'\f'*}" | sed '${/^$/d}' >"$dir/readme.cnf"
diff "$dir/readme.cnf" examples/openssl.cnf || fail "the README's configuration is not examples/openssl.cnf"
loads "$dir/readme.cnf" README.md
printed --block ini docs/from-engines.md | tr -d '\f' >"$dir/engines.cnf"
grep -q '^CIPHERS = ' "$dir/engines.cnf" || fail "docs/from-engines.md has no configuration"
loads "$dir/engines.cnf" docs/from-engines.md

# --------------------------------------------------------------------------- commands
export OPENSSL_CONF=$dir/readme.cnf
n=0
while read -r command; do
  command=${command//FILE/$dir/file}
  command=${command//PROGRAM/openssl version}
  cp "$dir/in" "$dir/file"
  echo "$command"
  bash -c "$command" >"$dir/out" 2>&1 </dev/null || fail "exit status $?: $command"
  case $command in
    *'list -providers'*) grep -q '^  afalgprov$' "$dir/out" || fail "afalgprov is not listed" ;;
    *-algorithms* | *-generators*) grep -q '@ afalgprov' "$dir/out" || fail "nothing of afalgprov is listed" ;;
    *dgst*) grep -q "$(sha256sum <"$dir/file" | cut -d' ' -f1)" "$dir/out" || fail "a wrong digest" ;;
  esac
  n=$((n + 1))
done < <(printed README.md)
[ $n -ge 12 ] || fail "only $n commands were found in README.md"

# Numbers of `openssl speed` mean nothing without -elapsed: what waits for a device takes no time of the processor. And engines
# are what there was before.
for f in README.md docs/*.md examples/README.md; do
  printed "$f" | grep 'openssl speed' | grep -v -e '-elapsed' && fail "$f: openssl speed without -elapsed"
  [ "$f" = docs/from-engines.md ] || ! printed "$f" | grep -e ' -engine' || fail "$f speaks of engines"
done
grep -n 'openssl speed' docs/man/* | grep -v -e '-elapsed' && fail "a manual page: openssl speed without -elapsed"
echo ok
