# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# config FILE LINE...: writes an OpenSSL configuration that prefers the built module, with these lines in its section.
# AFALGPROV_BUILD names the build directory. To be sourced.
config() {
  local file=$1
  shift
  cat >"$file" <<CNF
openssl_conf = init
[init]
providers = providers
alg_section = algorithms
[algorithms]
default_properties = ?provider=afalgprov
[providers]
afalgprov = ours
default = base
[base]
activate = 1
[ours]
module = $AFALGPROV_BUILD/provider/afalgprov.so
activate = 1
CNF
  printf '%s\n' "$@" >>"$file"
}
