# shellcheck shell=bash
# The Debian of deploy/checks/packages: with a systemd in namespaces of its own, or without. Sourced; the caller sets box, place, url.
# shellcheck disable=SC2154

why_not=''
init=''

# boot: starts the box's systemd. False, with the reason in why_not, where the kernel does not let it.
boot() {
    local cgroups group jailer _
    cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    if [[ -z $cgroups ]]; then
        why_not="no cgroup2 is mounted"
        return 1
    fi
    group=$cgroups/millrace-check-$$
    if ! mkdir "$group" 2>/dev/null; then
        why_not="no cgroup can be made in $cgroups"
        return 1
    fi
    # What ran in it may take a moment to be gone.
    undo+=("for _ in 1 2 3 4 5 6 7 8 9 10; do find '$group' -depth -type d -exec rmdir {} + 2>/dev/null; [[ -e $group ]] || break; sleep 0.3; done")
    # shellcheck disable=SC2016  # for the inner shells
    bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec unshare --fork --kill-child --pid --mount --cgroup --uts --ipc bash -euc "$@"' \
        _ "$group" '
        box=$1
        mount --make-rprivate /
        mount --rbind "$box" "$box"
        cd "$box"
        hostname box
        mount -t proc proc proc
        mount -t sysfs -o ro sysfs sys
        mount -t tmpfs -o mode=755 tmpfs dev
        for one in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
            set -- $one
            mknod -m 666 "dev/$1" c "$2" "$3"
        done
        mkdir dev/pts dev/shm
        mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
        ln -s pts/ptmx dev/ptmx
        ln -s /proc/self/fd dev/fd
        mount -t tmpfs tmpfs dev/shm
        mount -t tmpfs -o mode=755 tmpfs run
        mount -t tmpfs tmpfs tmp
        mount -t cgroup2 cgroup2 sys/fs/cgroup
        mkdir -p outside
        pivot_root . outside
        umount -l /outside
        exec env -i container=millrace PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target --log-target=journal
        ' _ "$box" </dev/null >"$place/systemd.log" 2>&1 &
    jailer=$!
    undo+=("kill -9 $jailer 2>/dev/null; wait $jailer 2>/dev/null")
    for _ in $(seq 150); do
        init=$(pgrep -P "$jailer" 2>/dev/null | head -n 1 || true)
        if ! kill -0 "$jailer" 2>/dev/null; then break; fi
        if [[ -n $init && $(inside systemctl is-system-running 2>/dev/null) =~ ^(running|degraded)$ ]]; then return 0; fi
        sleep 0.2
    done
    why_not="it did not come up: $(tail -n 1 "$place/systemd.log")"
    kill -9 "$jailer" 2>/dev/null || true
    init=''
    return 1
}

without_boot() {
    mount -t proc proc "$box/proc"
    undo+=("umount '$box/proc'")
    mount --bind /dev "$box/dev"
    undo+=("umount '$box/dev'")
}

# inside <command…>
inside() {
    local clean=(env -i "PATH=/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root LC_ALL=C.UTF-8)
    if [[ -n $init ]]; then
        nsenter --target "$init" --mount --pid --uts --ipc --cgroup --root --wd "${clean[@]}" "$@"
    else
        chroot "$box" "${clean[@]}" "$@"
    fi
}

by_hand=''

start_worker() {
    if [[ -n $init ]]; then
        inside systemctl enable --quiet --now millrace.service || fail "$(inside journalctl --no-pager -n 30 -u millrace.service)"
        return
    fi
    local settings
    mapfile -t settings < <(grep -E '^[A-Z]' "$box/etc/millrace/millrace.env")
    # Of its own, not of `inside`: the process of the worker is the one that is killed.
    chroot "$box" setpriv --reuid millrace --regid millrace --clear-groups env -i PATH=/usr/bin:/bin "${settings[@]}" \
        /usr/bin/millrace worker </dev/null >>"$place/worker.log" 2>&1 &
    by_hand=$!
    undo+=("kill -9 $by_hand 2>/dev/null")
}

running() { [[ -n $init ]] && inside systemctl --quiet is-active millrace.service; }

# As the box counts processes.
worker_pid() {
    if [[ -n $init ]]; then inside systemctl show -p MainPID --value millrace.service; else printf '%s\n' "$by_hand"; fi
}

kill_worker() { inside bash -c "kill -9 $1"; }

is_another() { running && [[ $(worker_pid) != "$1" ]] && [[ $(inside readlink "/proc/$(worker_pid)/exe") == /usr/lib/millrace/millrace ]]; }

# started_again <process>: by its systemd, or by hand.
started_again() {
    if [[ -n $init ]]; then within 60 is_another "$1"; else start_worker; fi
}

# upgraded <process>: the worker of before has drained, and one of the new program runs.
upgraded() {
    if [[ -n $init ]]; then
        within 90 is_another "$1"
        return
    fi
    kill -TERM "$1"
    wait "$1" || fail "the worker of the old program did not drain: $(tail -n 3 "$place/worker.log")"
    start_worker
}

stopped() {
    if [[ -n $init ]]; then
        if running; then fail "the worker still runs"; fi
        return
    fi
    kill -TERM "$by_hand"
    wait "$by_hand" || fail "the worker did not drain: $(tail -n 3 "$place/worker.log")"
}

# doctor_in_unit: what doctor says under the worker's unit, with all that the unit takes away.
doctor_in_unit() {
    sed -e 's|^ExecStart=.*|ExecStart=/usr/bin/millrace doctor|' -e 's/^Type=notify/Type=oneshot/' -e '/^Restart/d' -e '/^WatchdogSec=/d' \
        -e '/^NotifyAccess=/d' -e 's/^\[Service\]/&\nSuccessExitStatus=10 11/' "$box/lib/systemd/system/millrace.service" >"$box/debs/millrace-look.service"
    inside cp /debs/millrace-look.service /run/systemd/system/
    inside systemctl daemon-reload
    inside systemctl start millrace-look.service || true
    inside journalctl --sync
    inside journalctl --no-pager -o cat -u millrace-look.service
    inside rm /run/systemd/system/millrace-look.service
}
