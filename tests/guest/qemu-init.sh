#!/bin/busybox sh
# /init of a QEMU guest, in an initial file system with busybox only; `run` appends it, `conf`, `read` and `write`.
# The host's / comes by virtio-9p at /mnt; what the command sees is an overlay on top of it.
# shellcheck shell=dash disable=SC1091,SC2015,SC2016
B=/bin/busybox
R=/new/r

fail() {
  echo "guest: $*" # the console, which `run` shows when there is no result
  $B poweroff -f
}

$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B mount -t devtmpfs dev /dev
. /conf
for m in $($B cat /order); do $B insmod "/mods/$m"; done
# cache=none: what one side writes the other sees at once
$B mount -t 9p -o trans=virtio,version=9p2000.L,msize=1048576,cache=none host0 /mnt || fail "cannot mount the host's files"
$B mount -t tmpfs tmpfs /new
$B mkdir /new/u /new/w $R
$B mount -t overlay overlay -o "lowerdir=/mnt$ROOT,upperdir=/new/u,workdir=/new/w" $R || fail "cannot lay the root $ROOT"
while IFS= read -r d; do
  $B mkdir -p "$R$d"
  $B mount --bind "/mnt$d" "$R$d" && $B mount -o remount,bind,ro "$R$d" || fail "cannot mount $d"
done </read
while IFS= read -r d; do
  $B mkdir -p "$R$d"
  $B mount --bind "/mnt$d" "$R$d" || fail "cannot mount $d"
done </write
$B mkdir -p $R/lib/modules $R/proc $R/sys $R/dev $R/run $R/tmp
$B mount --bind "/mnt$MODULES" $R/lib/modules
$B mount -t proc proc $R/proc
$B mount -t sysfs sys $R/sys
$B mount -t debugfs debug $R/sys/kernel/debug
$B mount -t devtmpfs dev $R/dev
$B mkdir -p $R/dev/pts $R/dev/shm
$B mount -t devpts pts $R/dev/pts
$B mount -t tmpfs shm $R/dev/shm
$B mount -t tmpfs run $R/run
$B ln -sf /proc/self/fd $R/dev/fd
for n in 0:stdin 1:stdout 2:stderr; do $B ln -sf "/proc/self/fd/${n%:*}" "$R/dev/${n#*:}"; done
if [ ! -e $R/sbin/modprobe ]; then
  # A root without kmod: the kernel's module requests go to the host's modprobe, run in the host's root.
  $B mkdir $R/run/host
  $B mount --bind /mnt $R/run/host
  $B mount -t proc proc $R/run/host/proc
  $B mount -t sysfs sys $R/run/host/sys
  printf '#!/bin/sh\nexec /usr/sbin/chroot /run/host /sbin/modprobe -d %s "$@"\n' "${MODULES%/lib/modules}" >$R/run/modprobe
  $B chmod 755 $R/run/modprobe
  echo /run/modprobe >/proc/sys/kernel/modprobe
fi
$B ifconfig lo 127.0.0.1 up
echo started >"$R$D/started"
# switch_root, not chroot: the kernel looks for /sbin/modprobe in its own root when AF_ALG asks for a module.
exec $B switch_root $R /bin/bash -c 'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  /bin/bash "$1/command" "$1"; sync; echo o >/proc/sysrq-trigger; sleep 30' guest "$D"
