# shellcheck shell=bash
# What the checks share. Sourced, not run; the caller has set -euo pipefail.

# shellcheck source=deploy/lib.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../lib.sh"
# shellcheck disable=SC2034  # for the caller
checks=$root/deploy/checks
check=$(basename "$0")

misused() {
    printf '%s\n' "error: $*; see deploy/checks/$check --help" >&2
    exit 2
}

# no_arguments "$@": for a check that takes nothing but --help. The caller has a function `help`.
no_arguments() {
    case ${1:-} in
    "") ;;
    -h | --help)
        help
        exit 0
        ;;
    *) misused "$1 is not known" ;;
    esac
}

# skip <why>: nothing was checked, which is neither success nor failure.
skip() {
    printf '%s\n' "${red}SKIPPED${plain} $check: $*; nothing was checked" >&2
    exit 77
}

# need_python <modules> <packages…>: an environment of this check with these packages from PyPI. Sets python.
need_python() {
    local modules=$1 place=$root/.build/checks/$check
    shift
    python=$place/bin/python
    # Not only whether it is there: one whose making broke off has no packages.
    "$python" -c "import $modules" 2>/dev/null && return
    need_packages python3 python3-venv
    say "Getting $* from PyPI"
    python3 -m venv --clear "$place"
    "$place/bin/pip" install --quiet --disable-pip-version-check "$@" || skip "$* cannot be had from PyPI"
}

# find_program <name>: sets program to the newest build of it.
find_program() {
    local candidate
    program=
    for candidate in "$root"/.build/{release,debug}/"$1"; do
        [[ -x $candidate && (-z $program || $candidate -nt $program) ]] && program=$candidate
    done
    [[ -n $program ]] || fail "there is no $1; build it"
}

# find_millrace: sets millrace to MILLRACE, or the newest build.
find_millrace() {
    millrace=${MILLRACE:-}
    if [[ -z $millrace ]]; then
        find_program millrace
        millrace=$program
    fi
}

# started <file> <text>: waits until a program has said so.
started() {
    for _ in $(seq 200); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        sleep 0.1
    done
    cat "$1" >&2
    fail "it did not start"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
