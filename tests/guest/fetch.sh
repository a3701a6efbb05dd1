# What tests/guest/kernel and tests/openssl/build have in common: Debian packages of this machine's own mirror, and a cache of what
# is made of them (sourced after common.sh, not executed).
# shellcheck shell=bash
#
# Nothing is installed: packages are downloaded and unpacked with the system's own apt-get and dpkg-deb, in an apt directory of
# our own that takes only the mirror addresses, proxy settings and keyring from the host's configuration.

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
APT_TYPE=deb # what apt_setup asks the suites for: deb or deb-src

progress() { echo "${0##*/}: $NAME: $*" >&2; }

# --------------------------------------------------------------------------- cache

# ready NAME DIR COMMAND: prints DIR, which is in the cache and has a file `version`. If it is not there, COMMAND makes it: as
# $T/out, where $T is a temporary directory. It is renamed when whole. One process at a time makes NAME.
ready() {
  NAME=$1
  local dir=$2 command=$3
  [ -e "$dir/version" ] || (
    mkdir -p "$CACHE" || die "cannot write the cache $CACHE (AFALGPROV_CACHE chooses another)"
    exec 8>"$CACHE/$NAME.lock" || die "cannot write the cache $CACHE (AFALGPROV_CACHE chooses another)"
    flock -n 8 || { progress "another process is preparing it: waiting"; flock 8; }
    [ ! -e "$dir/version" ] || exit 0
    need apt-get apt-cache dpkg dpkg-deb flock awk
    rm -rf "$CACHE/.$NAME."?????? "$CACHE/$NAME-"?????????? # left by a killed run, or of an older recipe
    T=$(mktemp -d "$CACHE/.$NAME.XXXXXX") || die "cannot write the cache $CACHE"
    trap 'rm -rf "$T"' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    mkdir "$T/out"
    SECONDS=0
    "$command"
    mv "$T/out" "$dir" || die "cannot write $dir"
    progress "ready after $SECONDS s: $(cat "$dir/version")"
  ) || return
  echo "$dir"
}

# --------------------------------------------------------------------------- private apt directory

# mirror PATTERN: the address under which the host's own apt configuration has a Debian suite matching the ERE PATTERN
mirror() {
  # shellcheck disable=SC2016  # apt expands these
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -v p="^($1)\$" '$3 == "main" && $2 ~ p { if ($1 ~ /\/debian(-security)?\/?$/) { print $1; found = 1; exit } other = other ? other : $1 }
                        END { if (!found && other) print other }'
}

# apt_setup SUITE...: an apt directory under $T/apt that knows these suites, updated. Sets APT_CONFIG.
apt_setup() {
  local suite url a=$T/apt conf arch
  arch=$(dpkg --print-architecture)
  rm -rf "$a"
  mkdir -p "$a/lists/partial" "$a/archives/partial" "$a/conf.d" "$a/empty"
  : >"$a/status"
  for suite; do
    case $suite in
      *-security) url=$(mirror '[a-z]+-security|[a-z]+/updates'); url=${url:-$(mirror '[a-z]+' | sed 's|/*$|-security|')} ;;
      *) url=$(mirror '[a-z]+') ;;
    esac
    [ -n "$url" ] || die "$NAME: the host's apt configuration names no Debian mirror for $suite"
    echo "$APT_TYPE [arch=$arch signed-by=$T/keyring.gpg] $url $suite main"
  done >"$a/sources.list" || exit 125
  # The host's settings (proxies and so on), but not its hooks: those act on the host.
  conf=$(apt-config shell d Dir::Etc::parts/d) && eval "$conf"
  cp "${d:-/etc/apt/apt.conf.d}"/* "$a/conf.d/" 2>/dev/null
  cat >"$a/conf.d/zz-hooks" <<CONF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
CONF
  cat >"$a/apt.conf" <<CONF
Dir::State "$a";
Dir::State::lists "$a/lists";
Dir::State::status "$a/status";
Dir::Cache "$a";
Dir::Cache::archives "$a/archives";
Dir::Log "$a";
Dir::Etc::parts "$a/conf.d";
Dir::Etc::sourcelist "$a/sources.list";
Dir::Etc::sourceparts "$a/empty";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$a/empty";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
CONF
  export APT_CONFIG=$a/apt.conf
  apt-get -q --error-on=any update >"$a/update.log" 2>&1
}

# suites SUITE...: apt_setup, or the end.
# Without apt_setup's own APT_CONFIG: `mirror` must see the host's configuration, not ours.
suites() {
  unset APT_CONFIG
  cp "$KEYRING" "$T/keyring.gpg" 2>/dev/null || die "$NAME: no $KEYRING (package debian-archive-keyring)"
  apt_setup "$@" && return
  # A release newer than the installed keyring: the package of Debian 12, checked with the installed one, has the newer keys.
  local log
  log=$(grep -m1 -E '^[EW]:' "$T/apt/update.log")
  unset APT_CONFIG
  { APT_TYPE=deb apt_setup bookworm bookworm-updates && download debian-archive-keyring &&
    dpkg-deb -x "$T"/debs/debian-archive-keyring_*.deb "$T/k" && cp "$T/k/usr/share/keyrings/debian-archive-keyring.gpg" "$T/keyring.gpg"; } || die "$NAME: apt-get update: $log"
  rm -rf "$T/debs"
  unset APT_CONFIG
  apt_setup "$@" || die "$NAME: apt-get update: $(grep -m1 -E '^[EW]:' "$T/apt/update.log")"
}

download() { # PACKAGE...: into $T/debs
  mkdir -p "$T/debs"
  (cd "$T/debs" && apt-get -q download "$@") >"$T/download.log" 2>&1
}

# depends PACKAGE PATTERN: the first package matching PATTERN that PACKAGE depends on
depends() { apt-cache depends "$1" 2>/dev/null | awk -v p="$2" '$1 ~ /Depends:$/ && $2 ~ p { print $2; exit }'; }

candidate() { apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'; }
