# shellcheck shell=bash
# podman for deploy/checks/image: its storage, base images, and how a container can be started here. Sourced; the caller sets root, place, storage.
# shellcheck disable=SC2154,SC2034

# One overlay cannot lie on another.
driver=overlay
[[ $(stat -f -c %T "$storage") == overlayfs ]] && driver=vfs
pod() { podman --log-level fatal --root "$storage/$driver" --runroot "$storage/run" --storage-driver "$driver" --cgroup-manager cgroupfs "$@"; }
undo+=("pod rm --all --force --time 0 >/dev/null 2>&1")

# pulled <image>: whether it is there, or can be pulled.
pulled() {
    pod image exists "$1" ||
        timeout 60 podman --log-level fatal --root "$storage/$driver" --runroot "$storage/run" --storage-driver "$driver" pull --quiet "$1" >/dev/null 2>&1
}

have_debian() {
    pulled "$debian" && return
    say "No registry answers; making $debian with debootstrap"
    debootstrap --variant=minbase --include=ca-certificates bookworm "$work/debian" "${MIRROR:-http://deb.debian.org/debian}" \
        >"$place/debootstrap.log" 2>&1 || skip "debootstrap: $(tail -n 1 "$place/debootstrap.log")"
    # The real one has no documentation either, and packages get none there.
    printf '%s\n' 'path-exclude /usr/share/doc/*' 'path-include /usr/share/doc/*/copyright' 'path-exclude /usr/share/man/*' \
        'path-exclude /usr/share/info/*' 'path-exclude /usr/share/locale/*' >"$work/debian/etc/dpkg/dpkg.cfg.d/docker"
    find "$work/debian"/usr/share/{doc,man,info,locale} -type f ! -name copyright -delete
    find "$work/debian"/usr/share/{man,info,locale} -mindepth 1 -depth -type d -empty -delete
    rm -rf "$work/debian"/var/{cache/apt,lib/apt/lists,log,cache/debconf/*-old} "$work/debian"/etc/apt/apt.conf.d/*prox*
    mkdir -p "$work/debian"/var/{cache/apt,lib/apt/lists,log}
    if compgen -G '/etc/apt/apt.conf.d/*prox*' >/dev/null; then cp /etc/apt/apt.conf.d/*prox* "$work/debian/etc/apt/apt.conf.d/"; fi
    tar -C "$work/debian" -cf "$work/debian.tar" .
    pod import "$work/debian.tar" "$debian" >/dev/null 2>&1
    rm -rf "$work/debian" "$work/debian.tar"
}

# The Swift of this machine, in place of the image's own: mounted where need_swift looks for it.
toolchain=()
have_swift() {
    # One that was made here has no Swift in it.
    local directory made=$storage/swift-is-made
    if [[ ! -e $made ]] && pulled "$swift"; then return; fi
    need_swift
    directory=$(dirname "$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")")
    toolchain=(--volume "$directory:/opt/swift:ro")
    if [[ -e $made ]] && pod image exists "$swift"; then return; fi
    say "Making $swift from $debian, and the Swift in $directory"
    # What its compiler needs, as in the image of swift.org.
    local needs=(binutils git libc6-dev libcurl4-openssl-dev libedit2 libgcc-12-dev libncurses6 libpython3.11 libsqlite3-0
        libstdc++-12-dev libxml2 libz3-dev tzdata zlib1g-dev)
    printf '%s\n' "FROM $debian" "RUN apt-get update && apt-get install -y --no-install-recommends ${needs[*]}" >"$work/Containerfile"
    pod build --isolation chroot --network host --pull-never --tag "$swift" --file "$work/Containerfile" "$work" >"$place/swift.log" 2>&1 ||
        skip "no image with Swift can be made: $(tail -n 1 "$place/swift.log")"
    touch "$made"
}

# can_run <image>: finds flags with which a container starts here, as in a machine whose own limits are low. Sets limits.
can_run() {
    limits=()
    starts "$1" && return
    limits=(--ulimit "nofile=4096:4096" --ulimit "nproc=2000:2000")
    starts "$1" && return
    # crun wants one kind of control groups alone. These mounts are ours.
    mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null || true
    limits+=(--cgroups disabled)
    starts "$1" || skip "podman cannot run a container here: $(tail -n 1 "$work/said")"
    say "The machine lets podman set no limits of memory and processor time; these are not tried"
}
starts() { pod run --rm --network none "${limits[@]}" "$1" true 2>"$work/said"; }
