#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# evp_test.sh POLICY [FILE...]: OpenSSL's own evp_test with the built module preferred under this policy. For each of
# its data files, or those named (such as evpmd_sha), the outcome must be that of the default provider alone. Under
# policy "kernel" the kernel must have worked for each algorithm that it serves and that evp_test tries.
# Needs tests/openssl/build. AFALGPROV_BUILD names the build directory. Exit status 77: the outcomes are the same, but
# this kernel serves nothing, so that they say nothing about the kernel lane.
set -u
here=$(dirname "$0")
. "$here/../support/config.sh"
policy=${1:?"which policy: kernel, cpu, speed or software"}
shift
ctl=${AFALGPROV_BUILD:?"which build directory"}/tools/afalgctl
evp=$("$here/build" --cached) || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
unset OPENSSL_CONF OPENSSL_MODULES

all_files=$(($# == 0))
files=()
for f; do files+=("$evp/data/${f%.txt}.txt"); done
[ $all_files = 0 ] || files=("$evp"/data/*.txt)

config "$dir/ours.cnf" "policy = $policy" '[providers]' 'legacy = base'
cat >"$dir/default.cnf" <<'CNF'
openssl_conf = init
[init]
providers = providers
[providers]
default = base
legacy = base
[base]
activate = 1
CNF

# Programs start slowly in a guest: only what must run for each file does so here, and judge.awk reads it all at once.
mkdir "$dir/log"
for file in "${files[@]}"; do
  log=$dir/log/${file##*/}
  printf '%s ' "${file##*/}" # where it stood, should the time limit of a guest end it
  timeout -k 5 120 "$evp/evp_test" -config "$dir/default.cnf" "$file" >"$log.default" 2>&1
  echo "status $?" >>"$log.default"
  "$ctl" stats -- timeout -k 5 120 "$evp/evp_test" -config "$dir/ours.cnf" "$file" >"$log.ours" 2>&1
  echo "status $?" >>"$log.ours"
done
echo
"$ctl" list >"$dir/list" || fail "afalgctl list"
openssl list -cipher-algorithms -digest-algorithms -mac-algorithms -random-generators \
  -provider-path "$AFALGPROV_BUILD/provider" -provider afalgprov -provider default >"$dir/names" 2>&1 || fail "openssl list"

openssl version
awk -v policy="$policy" -v all_files="$all_files" -v differ="$dir/differ" -f "$here/judge.awk" part=names "$dir/names" \
  part=list "$dir/list" part=data "${files[@]}" part=log "$dir"/log/*
verdict=$?
[ ! -s "$dir/differ" ] || while read -r file; do
  echo "$file, what evp_test says differently than with the default provider alone:"
  diff "$dir/log/$file.default" "$dir/log/$file.ours" | grep '^>' | head -n 40
done <"$dir/differ"
exit $verdict
