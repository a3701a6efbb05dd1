#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# diagnose.sh KERNEL [PART]: what afalgctl says where something is wrong, and that it says nothing where nothing is. KERNEL is
# that of the guest, or "host": a kernel of whatever kind. PART "barred": the guest was started with a module barred; else what is
# to be said of its device.
# AFALGPROV_BUILD names the build directory.
set -u
. "$(dirname "$0")/../support/config.sh"
top=$(dirname "$0")/../..
kernel=$1 part=${2:-}
ctl=$AFALGPROV_BUILD/tools/afalgctl
refuse=$AFALGPROV_BUILD/tests/support/refuse
# QEMU loads modules and starts programs slowly: there only what differs.
few=(AES-128-CBC SHA2-256) brief=1
[[ $kernel != uml* && $kernel != host ]] || { few+=(AES-128-GCM HMAC-SHA2-256) brief=''; }
dir=$(mktemp -d) || exit 1
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir" /etc/modprobe.d/afalgprov-test.conf' EXIT

AF_ALG=38 AF_NETLINK=16 NETLINK_CRYPTO=21 EPERM=1 EACCES=13 EAFNOSUPPORT=97

fail() { echo "FAILED: $*"; [ ! -s "$dir/out" ] || cat "$dir/out"; exit 1; }

# check STATUS COMMAND...: runs it; its output is in $dir/out.
check() {
  local want=$1 rc
  shift
  "$@" >"$dir/out" 2>&1
  rc=$?
  [ $rc = "$want" ] || fail "exit status $rc, not $want: $*"
}
says() { grep -Eq -- "$1" "$dir/out" || fail "it does not say: $1"; }
silent() { ! grep -Eq -- "$1" "$dir/out" || fail "it says: $1"; }
valid() { python3 "$top/tests/support/schema.py" "$top/docs/schema/$1.json" || fail "$1 --json is not as its schema says"; }

config "$dir/cnf" "policy = speed"
export OPENSSL_CONF=$dir/cnf

# --------------------------------------------------------------------------- modules that are barred
barred() {
  # On the kernel's command line, by the options that meson gives.
  case $kernel in
    uml*) check 1 "$ctl" check "${few[@]}"
      says 'PROBLEM  hash: serves none of 2 algorithms .*: module algif_hash is barred: "initcall_blacklist=algif_hash_init" on the kernel.s command line' ;;
    *) check 1 "$ctl" check AES-128-GCM
      says 'PROBLEM  aead: serves none of 1 algorithms .*: module algif_aead is barred: "module_blacklist=algif_aead" on the kernel.s command line'
      check 0 "$ctl" list --why AES-128-GCM
      says '^Cause: .*algif_aead is barred' ;;
  esac
  case $kernel in uml*) return ;; esac
  # By a rule of modprobe, as advice against holes in AF_ALG has it. The guest's own modprobe is not that of its root.
  echo /sbin/modprobe >/proc/sys/kernel/modprobe
  printf '%s\n' '# no kernel crypto here' 'install algif-skcipher /bin/false' >/etc/modprobe.d/afalgprov-test.conf
  check 1 "$ctl" check AES-128-CBC
  says 'PROBLEM  skcipher: serves none of 1 algorithms .*: module algif_skcipher is barred: "install algif-skcipher /bin/false" in /etc/modprobe.d/afalgprov-test.conf'
  says '-> remove that, then as root: modprobe algif_skcipher'
  check 0 "$ctl" list --why AES-128-CBC
  says '^Cause: .*algif_skcipher is barred'
  # The algorithm's own module.
  printf '%s\n' 'install rmd160 /bin/true' >/etc/modprobe.d/afalgprov-test.conf
  check 1 "$ctl" check SHA2-256 RIPEMD-160
  says 'PROBLEM  RIPEMD-160: module rmd160, which has rmd160, is barred: "install rmd160 /bin/true"'
  rm /etc/modprobe.d/afalgprov-test.conf
  check 0 "$ctl" check AES-128-CBC SHA2-256 RIPEMD-160
  says 'ok       3 algorithms done by the kernel'
}

# --------------------------------------------------------------------------- sandboxes
sandboxed() {
  check 1 "$refuse" $AF_ALG -1 $EPERM "$ctl" check "${few[@]}"
  says 'PROBLEM  no AF_ALG sockets \(Operation not permitted\).*a seccomp filter refuses AF_ALG sockets'
  says '-> allow it in the sandbox'
  [ -z "$brief" ] || return
  check 1 "$refuse" $AF_ALG -1 $EACCES "$ctl" check "${few[@]}"
  says 'PROBLEM  no AF_ALG sockets \(Permission denied\).*a seccomp filter refuses AF_ALG sockets'
  check 0 "$refuse" $AF_ALG -1 $EPERM "$ctl" list --why SHA256
  says '^Cause:  a seccomp filter refuses AF_ALG sockets'
  check 1 "$refuse" $AF_ALG -1 $EAFNOSUPPORT "$ctl" check "${few[@]}"
  if [ "$kernel" = host ]; then says 'PROBLEM  no AF_ALG sockets \(Address family not supported'
  else says 'PROBLEM  no AF_ALG sockets \(Address family not supported.*a seccomp filter refuses AF_ALG sockets'; fi
}

netlink() {
  check 0 "$refuse" $AF_NETLINK $NETLINK_CRYPTO $EPERM "$ctl" check "${few[@]}"
  says 'note     no NETLINK_CRYPTO \(Operation not permitted\).*a seccomp filter refuses NETLINK_CRYPTO'
  says "ok       ${#few[@]} algorithms done by the kernel"
  [ -z "$brief" ] || return
  config "$dir/kcapi" "transport = kcapi"
  OPENSSL_CONF=$dir/kcapi check 1 "$refuse" $AF_NETLINK $NETLINK_CRYPTO $EPERM "$ctl" check SHA2-256
  says 'PROBLEM  no NETLINK_CRYPTO .* which .transport = kcapi. cannot do without'
}

# --------------------------------------------------------------------------- what the kernel has
served() {
  local algorithms=("${few[@]}")
  [[ $kernel != uml* ]] || algorithms=()
  check 0 "$ctl" check "${algorithms[@]}"
  says 'ok       programs get AF_ALG sockets'
  says 'ok       [0-9]+ algorithms done by the kernel, as the counters show: results right'
  silent PROBLEM
  case $kernel in
    6.1) says 'ok       hardware does .*AES-128-CBC \(virtio_crypto_aes_cbc\)'
      check 0 "$ctl" list --why AES-128-CBC
      says '^AES-128-CBC: the kernel is used for large calls'
      says 'driver virtio_crypto_aes_cbc .*That is hardware|^That is hardware' ;;
    7.2) says 'note     the machine has hardware \(virtio_crypto_aes_cbc\), but Linux 7.2 and later do not offer hardware here'
      check 0 "$ctl" list --why 'cbc(aes)'
      says 'Linux 7.2 and later do not offer it there' ;;
    *) says 'note     the kernel has software drivers only|note     Linux 7.2 and later do not offer hardware here'
      check 0 "$ctl" list --why SHA256
      says '^That driver is software' ;;
  esac
  [ -z "$brief" ] || return
  check 0 "$ctl" list --json "${algorithms[@]}"
  valid list <"$dir/out"
  check 0 "$ctl" check --json "${few[@]}"
  valid check <"$dir/out"
}

# --------------------------------------------------------------------------- programs that run
running() {
  local n first second
  config "$dir/busy" "policy = kernel"
  config "$dir/idle" "policy = software"
  OPENSSL_CONF=$dir/busy openssl speed -elapsed -seconds 600 -bytes 16384 -evp sha256 >/dev/null 2>&1 &
  for ((n = 0; n < 100; n++)); do
    "$ctl" stats openssl 2>/dev/null | grep -Eq 'SHA2-256 +0 +0 +[1-9]' && break
    sleep 0.1
  done
  check 0 "$ctl" stats $!
  says "^ *$! +root +openssl +SHA2-256 +0 +0 +[1-9]"
  says "^ *$! +openssl +kernel +SHA2-256 +- +- +- +- +- +- +open$"
  first=$(awk '$4 == "SHA2-256" { print $8; exit }' "$dir/out")
  check 0 "$ctl" top -d 0.5 -n 2
  says "^ *$! +root +openssl +SHA2-256 +[1-9][0-9.]* [KM]iB +0 B +[1-9][0-9]* +100.0% +0 +0 +open$"
  [ "$(grep -c '^afalgctl top, ' "$dir/out")" = 2 ] || fail "not two looks"
  check 0 "$ctl" list --json SHA2-256
  valid list <"$dir/out"
  says "\"pid\": $!,"
  check 0 "$ctl" stats --json openssl
  valid stats <"$dir/out"
  second=$(awk '/"kernel_bytes"/ && $2 > 0 { sub(",", "", $2); print $2; exit }' "$dir/out")
  [ "$second" -gt "$first" ] || fail "kernel bytes do not rise: $first, $second"
  check 1 "$ctl" stats nobody
  says "no running process named 'nobody' counts"
  kill $!
  wait
}

# --------------------------------------------------------------------------- configurations
# edit SCRIPT: $dir/edited is the plain configuration, changed by sed.
edit() { sed -E "$1" "$dir/cnf" >"$dir/edited"; export OPENSSL_CONF=$dir/edited; }

configurations() {
  local one=(SHA2-256)
  OPENSSL_CONF='' check 1 "$ctl" check "${one[@]}"
  says 'PROBLEM  OPENSSL_CONF is empty'
  OPENSSL_CONF=$dir/none check 1 "$ctl" check "${one[@]}"
  says 'PROBLEM  .*/none cannot be read: No such file'
  edit 's/^\[init\]/[init/'
  check 1 "$ctl" check "${one[@]}"
  says 'PROBLEM  .*/edited, line 2: '
  edit 's/^openssl_conf/openssl_config/'
  check 1 "$ctl" check "${one[@]}"
  says "PROBLEM  there is no 'openssl_conf = SECTION' before the first section"
  says 'PROBLEM  afalgprov can.* be loaded|PROBLEM  afalgprov is not loaded'
  edit 's/^providers =/providrs =/'
  check 1 "$ctl" check "${one[@]}"
  says "PROBLEM  'providrs' in \[init\] is not known; OpenSSL .*stops there"
  says "-> did you mean 'providers'?"
  says 'PROBLEM  OpenSSL stops in the configuration file: '
  edit 's/^afalgprov = ours/afalgprov = our/'
  check 1 "$ctl" check "${one[@]}"
  says "PROBLEM  'afalgprov = our', but there is no section \[our\]"
  edit 's/^policy/polcy/'
  check 1 "$ctl" check "${one[@]}"
  says "PROBLEM  'polcy' in \[ours\] is not known; afalgprov does not see it"
  says "-> did you mean 'policy'?"
  edit 's/^policy = speed/policy = fast/'
  check 1 "$ctl" check "${one[@]}"
  says 'PROBLEM  afalgprov is not loaded from .*: policy = fast: allowed is speed, cpu, kernel or software'
  edit 's/^module = .*/&x/'
  check 1 "$ctl" check "${one[@]}"
  says "PROBLEM  provider 'afalgprov' in \[ours\]: .*/afalgprov.sox: No such file"
  says 'PROBLEM  afalgprov is not loaded from .*/afalgprov.sox: '
  edit '/^module/,/^activate/{/^activate/d}'
  check 1 "$ctl" check "${one[@]}"
  says "PROBLEM  \[ours\] has no 'activate'"
  edit '/^default = /d'
  check 1 "$ctl" check "${one[@]}"
  says 'PROBLEM  the default provider is not activated'
  says 'PROBLEM  SHAKE256 is "unsupported"'
  edit '/^default_properties/d'
  check 1 "$ctl" check "${one[@]}"
  says 'PROBLEM  \[algorithms\] has no default_properties'
  edit 's/^(default_properties = )\?/\1/'
  check 1 "$ctl" check "${one[@]}"
  says 'PROBLEM  .default_properties = provider=afalgprov. allows afalgprov only'
  # The other order of providers: not what decides.
  edit '/^afalgprov = ours/d; s/^default = base/&\nafalgprov = ours/'
  "$ctl" check "${one[@]}" >"$dir/out" 2>&1
  says 'ok       programs get from afalgprov: AES-128-CBC, AES-256-GCM, SHA2-256, HMAC'
  export OPENSSL_CONF=$dir/cnf
}

# --------------------------------------------------------------------------- no AF_ALG, and what needs none
without() {
  check 1 "$ctl" check
  says 'PROBLEM  no AF_ALG sockets \(Address family not supported by protocol\)'
  says 'the kernel is built without it|the kernel has no such thing|module af_alg is barred|module af_alg exists'
  says 'CONFIG_CRYPTO_USER_API|af_alg'
  check 0 "$ctl" list --why AES-128-CBC
  says '^Cause: .*af_alg'
}

anywhere() {
  check 0 "$ctl" list --json
  valid list <"$dir/out"
  "$ctl" check --json SHA2-256 >"$dir/out" 2>&1
  valid check <"$dir/out"
  check 0 "$ctl" stats --json
  valid stats <"$dir/out"
  check 2 "$ctl" stats --json -- true
  check 2 "$ctl" list --why
  check 2 "$ctl" list --why SM9
  check 0 "$ctl" list sha256 hmac 'gcm(aes)'
  says '^SHA2-256 '
  says '^HMAC-SM3 '
  says '^AES-256-GCM '
  [ "$(wc -l <"$dir/out")" -le 21 ] || fail "more than was asked for"
  check 0 "$ctl" top -n 2 -d 0.1
  [ "$(grep -c '^PID ' "$dir/out")" = 2 ] || fail "not two looks"
  check 0 script -qec "$ctl top -n 1 -d 0.1" /dev/null
  grep -q $'\033\\[?1049h.*top' "$dir/out" && grep -q $'\033\\[?1049l' "$dir/out" || fail "the terminal's screen is not switched and restored"
}

if [ "$part" = barred ]; then
  barred
elif [ -n "$part" ]; then
  check 1 "$ctl" check AES-128-CBC SHA2-256
  says "PROBLEM  AES-128-CBC by virtio_crypto_aes_cbc: the kernel failed 1 of 1 requests, and software redid them: .*$part"
  says 'ok       1 algorithms done by the kernel'
elif [ "$kernel" = host ]; then
  if python3 -c 'import socket; socket.socket(38, socket.SOCK_SEQPACKET, 0)' 2>/dev/null; then
    served
  else
    without
  fi
  anywhere
  "$refuse" 0 0 0 true && sandboxed
  configurations
else
  served
  sandboxed
  netlink
  [[ $kernel != uml ]] || running
fi
echo ok
