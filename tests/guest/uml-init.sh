#!/bin/bash
# Process 1 of a UML guest. `run` copies it into its directory of this run, which is where everything else about the run is.
# The root is the host's / (hostfs, read-only); what the command sees is built on top of it at /run/r.
# shellcheck disable=SC1091,SC2015
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
D=${0%/*}
R=/run/r

off() {
  sync
  echo o >/proc/sysrq-trigger
  sleep 3
}
fail() {
  echo "guest: $*" # the console, which `run` shows when there is no result
  off
}

mount -t proc proc /proc || fail "cannot mount /proc"
. "$D/conf"
mount -t tmpfs tmpfs /run && mkdir /run/u /run/w $R || fail "no /run"
# Output reaches the host when hostfs writes its pages back: do that twice a second, not every 30 s.
echo 50 >/proc/sys/vm/dirty_writeback_centisecs
echo 100 >/proc/sys/vm/dirty_expire_centisecs

mount -t overlay overlay -o "lowerdir=$ROOT,upperdir=/run/u,workdir=/run/w" $R || fail "cannot lay the root $ROOT"
mkdir -p $R/proc $R/sys $R/dev $R/run $R/tmp
mount -t proc proc $R/proc
mount -t sysfs sys $R/sys
mount -t debugfs debug $R/sys/kernel/debug 2>/dev/null
mount -t devtmpfs dev $R/dev
mkdir -p $R/dev/pts $R/dev/shm
mount -t devpts pts $R/dev/pts
mount -t tmpfs shm $R/dev/shm
mount -t tmpfs run $R/run
ln -sf /proc/self/fd $R/dev/fd
for n in 0:stdin 1:stdout 2:stderr; do ln -sf "/proc/self/fd/${n%:*}" "$R/dev/${n#*:}"; done
while IFS= read -r d; do mkdir -p "$R$d" && mount -t hostfs -o "ro,$d" none "$R$d" || fail "cannot mount $d"; done <"$D/read"
while IFS= read -r d; do mkdir -p "$R$d" && mount -t hostfs -o "$d" none "$R$d" || fail "cannot mount $d"; done <"$D/write"
ip link set lo up

[ ! -e "$R$D/started" ] || fail "the command rebooted the guest" # a reboot makes UML execute itself anew
echo started >"$R$D/started"
sync
chroot $R /bin/bash "$D/command" "$D"
off
