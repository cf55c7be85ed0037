# shellcheck shell=bash
# What the runs of the apps share. Sourced, not run; the caller has set -euo pipefail.

here=$(dirname "$(readlink -f "${BASH_SOURCE[1]}")")
# shellcheck source=deploy/checks/lib.sh
source "$here/../../checks/lib.sh"
check=${here##*/}

misused() {
    printf '%s\n' "error: $*; see deploy/examples/$check/run --help" >&2
    exit 2
}
