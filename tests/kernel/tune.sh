#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tune.sh KERNEL: afalgctl measure and tune; that what tune writes loads by .include and then holds, as counters show. KERNEL is
# that of the guest, or "host": a kernel of whatever kind. No result of the measurements is expected: only that they are
# told truly. AFALGPROV_BUILD names the build directory.
set -u
. "$(dirname "$0")/../support/config.sh"
top=$(dirname "$0")/../..
kernel=$1
ctl=$AFALGPROV_BUILD/tools/afalgctl
quick=(-r 3 -t 2)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail() { echo "FAILED: $*"; [ ! -s "$dir/out" ] || cat "$dir/out"; exit 1; }
check() { # STATUS COMMAND...: runs it; its output is in $dir/out
  local want=$1 rc
  shift
  "$@" >"$dir/out" 2>&1
  rc=$?
  [ $rc = "$want" ] || fail "exit status $rc, not $want: $*"
}
says() { grep -Eq -- "$1" "$dir/out" || fail "it does not say: $1"; }

config "$dir/cnf" "policy = speed"
export OPENSSL_CONF=$dir/cnf

# --------------------------------------------------------------------------- what is wrong is said
wrong() {
  check 2 "$ctl" measure AES-129-CBC
  says "unknown algorithm 'AES-129-CBC'"
  check 2 "$ctl" measure -b 1024,17 AES-128-CBC
  says '--bytes 1024,17: up to 32 multiples of 16, at most 65536'
  check 2 "$ctl" tune -r 0 AES-128-CBC
  says '--rounds 0: 1 to 101'
  check 2 "$ctl" tune -t 10s AES-128-CBC
  says '--milliseconds 10s: 1 to 10000'
  check 1 "$ctl" measure --plot "$dir/plot.pdf" AES-128-CBC
  says 'plot.pdf: the name of a plot ends in .png or .svg'
  PATH=/nonexistent check 1 "$ctl" measure --plot "$dir/plot.png" AES-128-CBC
  says 'gnuplot, which is not installed: it is in the package gnuplot-nox'
  check 1 "$ctl" measure AFALG-DRBG
  says '^AFALG-DRBG: not measured: random numbers'
}

without_hardware() {
  check 1 "$ctl" measure
  says '^The kernel offers no hardware driver for any algorithm'
  check 0 "$ctl" tune -o "$dir/none"
  says '^The kernel offers no hardware driver for any algorithm'
  [ "$(grep -vc '^#' "$dir/none")" = 0 ] || fail "it sets something: $(cat "$dir/none")"
  config "$dir/empty" ".include $dir/none"
  OPENSSL_CONF=$dir/empty openssl list -providers | grep -q afalgprov || fail "not loaded with an empty file"
}

if [ "$kernel" = host ]; then
  wrong
  "$ctl" list | grep -q ' hardware ' || without_hardware
  if ! python3 -c 'import socket; socket.socket(38, socket.SOCK_SEQPACKET, 0)' 2>/dev/null; then
    check 1 "$ctl" measure AES-128-CBC
    says '^AES-128-CBC: not measured: no AF_ALG'
    check 0 "$ctl" tune AES-128-CBC
    says '^thresholds = AES-128-CBC:never$'
  fi
  echo ok
  exit
fi

# --------------------------------------------------------------------------- measurements
[[ $kernel != *7.2 ]] || without_hardware
# A module that is not there is told.
sed "s|^module = .*|module = $dir/none.so|" "$dir/cnf" >"$dir/bad"
OPENSSL_CONF=$dir/bad check 1 "$ctl" measure AES-128-CBC
says "^afalgctl: afalgprov cannot be loaded from $dir/none.so: "
check 0 "$ctl" measure --json "${quick[@]}" -b 256,65536 AES-128-CBC SHA256 AES-128-GCM HMAC-SHA256
python3 "$top/tests/support/schema.py" "$top/docs/schema/measure.json" <"$dir/out" || fail "not as the schema says"
python3 - "$dir/out" <<'PYTHON' || fail "the counters tell otherwise"
import json, sys
with open(sys.argv[1], encoding="utf-8") as f:
    rows = {a["name"]: a for a in json.load(f)["algorithms"]}
assert set(rows) == {"AES-128-CBC", "SHA2-256", "AES-128-GCM", "HMAC-SHA2-256"}, rows.keys()
for name, a in rows.items():
    n = a["counters"]
    assert a["failed"] is None, a
    assert n["kernel_requests"] >= n["kernel_calls"] > 0 and n["software_calls"] > 0, a
    assert n["software_requests"] == n["fallbacks"] == 0, a
    # A message of 65536 bytes and a tag is too long for a request.
    assert [s["bytes"] for s in a["sizes"]] == ([256] if name == "AES-128-GCM" else [256, 65536]), a
    wins = [s for s in a["sizes"] if s["better"] == "kernel"]
    assert a["crossover"] is None or a["crossover"] in [s["bytes"] for s in wins], a
    assert (a["crossover"] is not None) == (a["sizes"][-1]["better"] == "kernel"), a
PYTHON
check 0 "$ctl" measure "${quick[@]}" -b 1024 AES-128-CBC
says '^AES-128-CBC +1024 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +(kernel|software|even)$'
says 'By the counters: [1-9][0-9]* calls with policy=kernel were [1-9][0-9]* requests of the kernel, and [1-9][0-9]* calls with policy=software 0\.'
cat "$dir/out"

# --------------------------------------------------------------------------- the file, and that it holds
check 0 "$ctl" tune "${quick[@]}" -b 1024,8192,65536 -o "$dir/thresholds" AES-128-CBC SHA256
cat "$dir/out" "$dir/thresholds"
grep -q "^# kernel:  Linux $(uname -r)" "$dir/thresholds" || fail "the kernel is not named"
grep -Eq '^# driver:  AES-128-CBC, .+ \((hardware|software)\)$' "$dir/thresholds" || fail "the driver is not named"
grep -Eq '^# date:    20[0-9-]+ [0-9:]+ UTC$' "$dir/thresholds" || fail "no date"
grep -Eq '^thresholds = AES-128-CBC:(never|[0-9]+),SHA2-256:never$' "$dir/thresholds" || fail "not the lines"
[ "$(stat -c %a "$dir/thresholds")" = 644 ] || fail "not for all to read"
[[ $kernel != *7.2 ]] || grep -q 'AES-128-CBC:never' "$dir/thresholds" || fail "a software driver got a threshold"
[ -z "$(find "$dir" -name 'thresholds.*')" ] || fail "something is left behind"

# speed BYTES COLUMN: what `openssl speed` does under the file, with calls of so many bytes; a column of afalgctl stats.
config "$dir/tuned" ".include $dir/thresholds"
speed() {
  OPENSSL_CONF=$dir/tuned "$ctl" stats -- openssl speed -elapsed -seconds 1 -bytes "$1" -evp aes-128-cbc >"$dir/speed" 2>"$dir/out" ||
    fail "openssl speed"
  awk -v n="$2" '$1 == "AES-128-CBC" { print $n }' "$dir/out"
}
OPENSSL_CONF=$dir/tuned AFALGPROV_LOG=debug openssl list -providers >"$dir/out" 2>&1
says 'setting thresholds = AES-128-CBC:(never|[0-9]+),SHA2-256:never'
if grep -q 'AES-128-CBC:never' "$dir/thresholds"; then
  in_kernel=$(speed 65536 5)
  [ "${in_kernel:-0}" = 0 ] || fail "the kernel did $in_kernel bytes in spite of 'never'"
  sed -i 's/AES-128-CBC:never/AES-128-CBC:8192/' "$dir/thresholds" # as a faster device would have it
fi
least=$(sed -n 's/^thresholds = AES-128-CBC:\([0-9]*\),.*/\1/p' "$dir/thresholds")
in_kernel=$(speed $((least - 16)) 5) in_software=$(speed $((least - 16)) 3)
[ "$in_kernel" = 0 ] && [ "$in_software" -gt 0 ] || fail "below the threshold: $in_kernel bytes in the kernel, $in_software in software"
in_kernel=$(speed "$least" 5) in_software=$(speed "$least" 3)
[ "$in_kernel" -gt 0 ] && [ "$in_software" = 0 ] || fail "from the threshold on: $in_kernel bytes in the kernel, $in_software in software"
echo ok
