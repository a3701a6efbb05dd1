#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tls.sh: inside a guest, `openssl s_server` and `s_client`, one of them with the module (policy=kernel) and one without,
# and a file over TLS in both directions. AFALGPROV_BUILD names the build directory.
set -u
. "$(dirname "$0")/../support/config.sh"
ctl=$AFALGPROV_BUILD/tools/afalgctl
dir=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
fail() {
  echo "FAILED: $*"
  tail -n 20 "$dir"/*.log
  exit 1
}

cd "$dir" || exit 1
config "$dir/cnf" "policy = kernel"
head -c 3000001 /dev/urandom >file
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key -out certificate 2>req.log || fail "certificate"

# with MODULE COMMAND...: with the module and its counters on standard error, or with the default provider alone
with() {
  local module=$1
  shift
  if [ "$module" = yes ]; then OPENSSL_CONF=$dir/cnf exec "$ctl" stats -- "$@"; else exec "$@"; fi
}

# The server takes one connection and is then done. It opens its socket within 10 seconds.
start_server() { # MODULE OPTION...
  local i module=$1
  shift
  with "$module" openssl s_server -accept 127.0.0.1:4433 -naccept 1 -quiet -key key -cert certificate "$@" \
    <pipe >received 2>server.log &
  server=$!
  exec 8>pipe # its standard input stays open, and silent
  for ((i = 0; i < 100; i++)); do
    grep -q '^ *[0-9]*: 0100007F:1151 .* 0A' /proc/net/tcp && return
    sleep 0.1
  done
  fail "the server does not listen"
}

stop_server() {
  wait "$server" || fail "server: status $?"
  server=
  exec 8>&-
}

client() { # MODULE OPTION...
  local module=$1
  shift
  (with "$module" timeout 60 openssl s_client -connect 127.0.0.1:4433 -quiet -CAfile certificate -verify_return_error "$@") \
    2>client.log
}

kernel_bytes() { awk -v a="$1" '$1 == a { n += $(NF - 3) } END { print n + 0 }' server.log client.log; }

# The kernel has done nine tenths of the file with each of these algorithms, if module and kernel have a lane for it.
# Software keeps the end of a record of CBC.
kernel_did() { # ALGORITHM...
  local lane algorithm did
  for algorithm; do
    did=$(kernel_bytes "$algorithm")
    lane=$(OPENSSL_CONF=$dir/cnf "$ctl" list "$algorithm" 2>/dev/null | tail -n 1) || lane=
    case $lane in
      "$algorithm "*' open'* | "$algorithm "*'policy=kernel'*)
        echo "  $did bytes of $algorithm by the kernel"
        [ "$did" -ge $((bytes * 9 / 10)) ] || fail "that is too little" ;;
      *) echo "  no kernel lane for $algorithm" ;;
    esac
  done
}

mkfifo pipe
bytes=$(stat -c %s file)
while read -r version suite algorithms; do
  read -ra algorithms <<<"$algorithms"
  options=("-$version")
  if [ "$version" = tls1_3 ]; then options+=(-ciphersuites "$suite"); else options+=(-cipher "$suite"); fi
  for ours in yes no; do
    if [ $ours = yes ]; then peer=no side=server; else peer=yes side=client; fi
    echo "$version $suite, the module at the $side"
    # From the server to the client, which asks for a file; then from the client to the server.
    start_server $ours "${options[@]}" -HTTP
    printf 'GET /file HTTP/1.0\r\n\r\n' | client $peer "${options[@]}" | cmp - file || fail "download"
    stop_server
    kernel_did "${algorithms[@]}"
    start_server $ours "${options[@]}"
    client $peer "${options[@]}" -no_ign_eof -nocommands <file || fail "upload"
    stop_server
    cmp received file || fail "upload"
    kernel_did "${algorithms[@]}"
  done
done <<'CASES'
tls1_2 AES128-SHA256 AES-128-CBC HMAC-SHA2-256
tls1_2 ECDHE-RSA-AES256-SHA384 AES-256-CBC HMAC-SHA2-384
tls1_2 ECDHE-RSA-AES128-GCM-SHA256 AES-128-GCM
tls1_2 ECDHE-RSA-CHACHA20-POLY1305 ChaCha20-Poly1305
tls1_3 TLS_AES_256_GCM_SHA384 AES-256-GCM
CASES
echo ok
