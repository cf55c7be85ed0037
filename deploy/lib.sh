# shellcheck shell=bash
# What the scripts in this directory share. Sourced, not run; the caller has set -euo pipefail.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

if [[ -t 2 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
    bold=$'\e[1m' red=$'\e[31m' plain=$'\e[0m'
else
    bold='' red='' plain=''
fi

# In CI with the seconds since it began, which show what takes its time.
say() { printf '%s\n' "${bold}==>${plain} ${CI_BEGAN:+$(($(date +%s) - CI_BEGAN)) s: }$*" >&2; }

fail() {
    printf '%s\n' "${red}error:${plain} $*" >&2
    exit 1
}

# Commands that undo what the script did, however it ends: one command line each, the last one runs first.
undo=()
undo_all() {
    local i
    for ((i = ${#undo[@]} - 1; i >= 0; i--)); do eval "${undo[i]}" || true; done
    undo=()
}
trap undo_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# quietly <what> <command…>: on a terminal shows the last line of its output as it goes; prints all of it if it fails.
quietly() {
    local what=$1 log status=0
    shift
    log=$(mktemp)
    if [[ -t 2 && ${TERM:-dumb} != dumb ]]; then
        local width line
        width=$(tput cols 2>/dev/null || echo 80)
        set +e
        "$@" 2>&1 | tee "$log" | while IFS= read -r line; do
            printf '\r\e[K    %s' "${line:0:width-6}" >&2
        done
        status=${PIPESTATUS[0]}
        set -e
        printf '\r\e[K' >&2
    else
        "$@" >"$log" 2>&1 || status=$?
    fi
    if ((status)); then
        cat "$log" >&2
        rm -f "$log"
        fail "$what failed (exit $status); everything it said is above.${advice:+ Is the network there? $advice}"
    fi
    rm -f "$log"
}

is_installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# The programs of a Postgres server 14 or newer, from any package; the binary looks in the same places.
has_postgres() {
    local directory major
    [[ -n ${MILLRACE_POSTGRES_BIN:-} ]] && return 0 # wrong or right, the binary says it better
    for directory in /usr/lib/postgresql/*/bin; do
        major=${directory%/bin} major=${major##*/}
        [[ $major =~ ^[0-9]+$ && $major -ge 14 && -x $directory/postgres && -x $directory/initdb ]] && return 0
    done
    command -v postgres >/dev/null && command -v initdb >/dev/null
}

is_there() {
    case $1 in
    postgresql | postgresql-[0-9]*) has_postgres ;;
    libpq-dev) is_installed libpq-dev || pkg-config --exists libpq 2>/dev/null ;;
    libmicrohttpd-dev) is_installed libmicrohttpd-dev || pkg-config --exists libmicrohttpd 2>/dev/null ;;
    libseccomp-dev) is_installed libseccomp-dev || pkg-config --exists libseccomp 2>/dev/null ;;
    curl) command -v curl >/dev/null ;;
    libssl-dev) is_installed libssl-dev || pkg-config --exists libcrypto 2>/dev/null ;;
    zlib1g-dev) is_installed zlib1g-dev || pkg-config --exists zlib 2>/dev/null ;;
    libidn2-dev) is_installed libidn2-dev || pkg-config --exists libidn2 2>/dev/null ;;
    libcurl4-openssl-dev) is_installed libcurl4-openssl-dev || pkg-config --exists libcurl 2>/dev/null ;;
    pkg-config) command -v pkg-config >/dev/null ;;
    tzdata) [[ -e ${TZDIR:-/usr/share/zoneinfo}/Europe/Berlin ]] ;;
    nginx-light) command -v nginx >/dev/null || [[ -x /usr/sbin/nginx ]] ;;
    nghttp2-server) command -v nghttpd >/dev/null ;;
    nghttp2-proxy) [[ -x /usr/sbin/nghttpx ]] || command -v nghttpx >/dev/null ;;
    nghttp2-client) command -v h2load >/dev/null ;;
    openssl) command -v openssl >/dev/null ;;
    python3-aiosmtpd) python3 -c 'import aiosmtpd' 2>/dev/null ;;
    chromium) command -v chromium >/dev/null ;;
    python3) command -v python3 >/dev/null ;;
    python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
    etcd-server) command -v etcd >/dev/null ;;
    haproxy) command -v haproxy >/dev/null || [[ -x /usr/sbin/haproxy ]] ;;
    iproute2) command -v ip >/dev/null || [[ -x /usr/sbin/ip ]] ;;
    pgbouncer) command -v pgbouncer >/dev/null || [[ -x /usr/sbin/pgbouncer ]] ;;
    *) is_installed "$1" ;;
    esac
}

# What the worker and its programs are built with, and what those that read documents need to run. One list for all scripts.
# shellcheck disable=SC2034
{
    build_packages=(libmicrohttpd-dev libpq-dev libseccomp-dev libssl-dev libcurl4-openssl-dev libidn2-dev zlib1g-dev pkg-config)
    reader_packages=(libtesseract-dev libleptonica-dev libtiff-dev libpng-dev libjpeg-dev libwebp-dev libopenjp2-7-dev libqpdf-dev
        libpoppler-cpp-dev libpango1.0-dev libfribidi-dev libheif-dev libzxing-dev liblcms2-dev tesseract-ocr-eng tesseract-ocr-osd poppler-data fonts-urw-base35)
}

# need_packages <package…>: installs what is missing, and says what that is.
need_packages() {
    local package missing=() as_root=() advice # the functions called from here see them
    for package in "$@"; do is_there "$package" || missing+=("$package"); done
    ((${#missing[@]})) || return 0

    advice="Install it yourself: apt-get install --no-install-recommends ${missing[*]}."
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        fail "These Debian packages, or what your system calls them, are missing: ${missing[*]}." \
            "There is no apt-get here to install them with; please do that, then run this again."
    fi
    if ((EUID != 0)); then
        command -v sudo >/dev/null || fail "Missing: ${missing[*]}. You are not root and there is no sudo. $advice"
        as_root=(sudo)
        [[ -t 0 ]] || as_root=(sudo -n)
        "${as_root[@]}" true || fail "Missing: ${missing[*]}. sudo does not let you install them. $advice"
    fi

    say "Installing what is missing: ${missing[*]}"
    # Cheap when the lists are there: it reads only the cache.
    for package in "${missing[@]}"; do
        apt-cache show "$package" >/dev/null 2>&1 && continue
        update_lists
        break
    done
    local i
    for i in "${!missing[@]}"; do
        [[ ${missing[i]} == postgresql-[0-9]* ]] || continue
        # On a system with another version it has the plain name.
        apt-cache show "${missing[i]}" >/dev/null 2>&1 || missing[i]=postgresql
    done
    without_services
    if [[ " ${missing[*]} " == *" postgresql"* ]]; then
        # Installed first and alone, because it brings the file that keeps the server's package from creating a cluster.
        apt_install postgresql-common
        without_main_cluster
    fi
    apt_install "${missing[@]}"
    if [[ " ${missing[*]} " == *" pgbouncer "* && -d /run/systemd/system ]]; then
        "${as_root[@]}" systemctl disable --quiet pgbouncer || true # the tests start their own
    fi
    if [[ " ${missing[*]} " == *" nginx-light "* && -d /run/systemd/system ]]; then
        "${as_root[@]}" systemctl disable --quiet nginx || true # likewise
    fi
    undo_all
}

update_lists() { quietly "apt-get update" "${as_root[@]}" apt-get update -q; }

apt_install() {
    # Another apt-get may be running; on a fresh machine that is the automatic upgrade.
    local command=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300
        install --no-install-recommends "$@")
    # Old lists name packages that the archive no longer has. So after a first failure we update the lists and try again.
    "${command[@]}" >/dev/null 2>&1 && return
    update_lists
    quietly "Installing $*" "${command[@]}"
}

# Debian starts the services it installs. We want only the programs, so every start is refused until the script ends.
without_services() {
    local policy=/usr/sbin/policy-rc.d
    [[ -e $policy ]] && return 0 # somebody decided already
    undo+=("${as_root[*]} rm -f $policy")
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
}

without_main_cluster() {
    local file=/etc/postgresql-common/createcluster.conf
    [[ -e $file ]] || return 0
    "${as_root[@]}" cp -a "$file" "$file.millrace"
    undo+=("${as_root[*]} mv -f $file.millrace $file")
    printf '\ncreate_main_cluster = false\n' | "${as_root[@]}" tee -a "$file" >/dev/null
}

need_swift() {
    if ! command -v swift >/dev/null && [[ -x /opt/swift/usr/bin/swift ]]; then PATH=$PATH:/opt/swift/usr/bin; fi
    command -v swift >/dev/null ||
        fail "Swift is missing. Install Swift 6.2 or newer from https://www.swift.org/install/linux and put it in the PATH."
    local version
    version=$(swift --version 2>/dev/null | grep -oE 'Swift version [0-9]+\.[0-9]+' | head -n 1 | grep -oE '[0-9.]+$') ||
        fail "swift --version does not answer; is the Swift in $(command -v swift) whole?"
    if ((${version%%.*} < 6 || (${version%%.*} == 6 && ${version#*.} < 2))); then
        fail "The Swift in $(command -v swift) is $version; Millrace needs 6.2 or newer: https://www.swift.org/install/linux"
    fi
}

# Every debug build of a CI run has these, so that none of them builds again what another has built: nothing for debuggers, which took a tenth
# of the time. The index stays, for without one SwiftPM finds no tests.
lean=()
[[ -z ${CI:-} ]] || lean=(-debug-info-format none)

# build release|debug [product]: sets $binary for a product. Does nothing when no source is newer than the binary.
build() {
    local configuration=$1 product=${2:-} options directory
    options=(--package-path "$root" -c "$configuration" --explicit-target-dependency-import-check error)
    if [[ $configuration == release ]]; then
        directory=$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")
        # The binary then runs on machines without Swift; not every toolchain has the archives.
        [[ -d $directory/lib/swift_static ]] && options+=(--static-swift-stdlib)
    else
        options+=(${lean[@]+"${lean[@]}"})
    fi
    if [[ -n $product ]]; then
        options+=(--product "$product")
        binary=$root/.build/$configuration/$product
        is_current "$binary" && return 0
    fi
    local begin
    begin=$(date +%s.%N)
    say "Building${product:+ $product} ($configuration; the first time takes minutes)"
    quietly "The build" swift build "${options[@]}"
    # The linker leaves a binary alone that would not change, and the next look would take it for old. Not the time of
    # now: what was edited during the build is not in it.
    if [[ -n $product ]]; then touch -d "@$begin" "$binary"; fi
}

# The programs that read documents, beside `millrace`.
readers=(millrace-probe millrace-raster millrace-picture millrace-heic millrace-ocr millrace-assemble millrace-report millrace-codes)

# build_readers release|debug: leaves $binary as it was.
build_readers() {
    local reader kept=${binary:-}
    for reader in "${readers[@]}"; do build "$1" "$reader"; done
    binary=$kept
}

is_current() {
    [[ -x $1 ]] || return 1
    local sources=("$root/Package.swift") part newer
    for part in Sources sql; do [[ -d $root/$part ]] && sources+=("$root/$part"); done
    # Directories too: their time changes when a file is deleted.
    newer=$(find "${sources[@]}" -newer "$1" -print -quit)
    [[ -z $newer ]]
}
