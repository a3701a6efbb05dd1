# Runs the command inside the guest, in its final root: bash command.sh DIRECTORY-OF-THIS-RUN  (copied there by `run`)
# shellcheck shell=bash
D=$1
# shellcheck disable=SC1091
. "$D/conf"
mapfile -d '' -t environment <"$D/env"
mapfile -d '' -t argv <"$D/argv"
exec 2>/dev/null # for this shell's own remarks ("Segmentation fault"); the command's stderr is below

as=()
[ -z "$GUEST_USER" ] || as=(setpriv --reuid="$GUEST_USER" --regid="$(id -g "$GUEST_USER")" --init-groups)
rc=126
if cd "$CWD"; then
  SECONDS=0
  # The caller's environment is for the command alone (env -i): an LD_PRELOAD in it must not reach timeout, setpriv or bash.
  # keyctl's asymmetric keys need a session keyring; keyctl gives one to its parent, here a shell that is not process 1.
  # shellcheck disable=SC2016  # "$@" is for the inner shell
  timeout -k 5 "$LIMIT" "${as[@]}" \
    /bin/bash -c 'keyctl new_session >/dev/null 2>&1; exec env -i -- "$@"' guest "${environment[@]}" "${argv[@]}" \
    <"$D/stdin" >"$D/stdout" 2>"$D/stderr"
  rc=$?
  # timeout says 137 when the command ignored SIGTERM
  if [ $rc = 137 ] && [ "$SECONDS" -ge "${LIMIT%.*}" ]; then rc=124; fi
else
  echo "run: no directory $CWD in the guest (--write or --read shows it there)" >"$D/stderr"
fi
echo $rc >"$D/rc"
