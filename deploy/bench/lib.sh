# shellcheck shell=bash
# What the benchmark scripts share. Sourced after deploy/lib.sh.

# start_postgres <settings…>: a private server on a socket of its own, removed at the end. Its programs are those of the system, or
# below $programs if that is set. Sets socket, postmaster, and the command start_again.
start_postgres() {
    local directory setting arguments=() runner=() programs=${programs:+$programs/bin}
    directory=$(mktemp -d "${TMPDIR:-/tmp}/millrace-bench-XXXXXX")
    undo+=("rm -rf '$directory'")
    [[ -n $programs ]] || programs=$(find /usr/lib/postgresql/*/bin /usr/pgsql-*/bin -name postgres 2>/dev/null | sort -V | tail -n 1 || true)
    programs=${programs%/postgres}
    [[ -n $programs ]] || programs=$(dirname "$(command -v postgres)") || fail "no Postgres server is installed"
    if ((EUID == 0)); then
        id postgres >/dev/null 2>&1 || fail "Postgres does not run as root, and there is no user postgres to run it as"
        chown postgres "$directory"
        runner=(runuser -u postgres --)
    fi
    chmod 755 "$directory"
    for setting in "$@"; do arguments+=(-c "$setting"); done
    quietly "initdb" "${runner[@]}" "$programs/initdb" -D "$directory/data" -U postgres -A trust
    # shellcheck disable=SC2034  # for the caller
    start_again="${runner[*]} '$programs/pg_ctl' -D '$directory/data' -l '$directory/log' -w start -o \"-k $directory -c listen_addresses='' ${arguments[*]}\""
    quietly "Starting Postgres" "${runner[@]}" "$programs/pg_ctl" -D "$directory/data" -l "$directory/log" -w start \
        -o "-k $directory -c listen_addresses='' ${arguments[*]@Q}"
    undo+=("${runner[*]} '$programs/pg_ctl' -D '$directory/data' -m fast -w stop >/dev/null 2>&1")
    socket=$directory
    # shellcheck disable=SC2034  # for the caller
    postmaster=$(head -n 1 "$directory/data/postmaster.pid")
}

# url_of <database>
url_of() { printf 'postgresql://postgres@/%s?host=%s' "$1" "$socket"; }

# start_pooler <database> [<connections>]: a pgbouncer in transaction mode before that database of the private server, with 20 connections to it or
# as many. Sets pooler.
start_pooler() {
    local program directory=$socket/pooler user=()
    program=$(command -v pgbouncer || echo /usr/sbin/pgbouncer)
    [[ -x $program ]] || fail "pgbouncer is not installed; deploy/test installs it"
    mkdir -p "$directory"
    if ((EUID == 0)); then
        chown postgres "$directory"
        user=(-u postgres)
    fi
    printf '%s\n' "[databases]" "$1 = host=$socket port=5432 user=postgres" "[pgbouncer]" "listen_addr =" \
        "unix_socket_dir = $directory" "listen_port = 6543" "auth_type = any" "pool_mode = transaction" "default_pool_size = ${2:-20}" \
        "logfile = $directory/log" "pidfile = $directory/pid" >"$directory/ini"
    quietly "Starting pgbouncer" "$program" -q -d "${user[@]}" "$directory/ini"
    undo+=("kill \"\$(<'$directory/pid')\" 2>/dev/null")
    # shellcheck disable=SC2034  # for the caller
    pooler="postgresql://postgres@/$1?host=$directory&port=6543"
}

# find_millrace: sets millrace to the program to measure, built if there is none.
find_millrace() {
    millrace=${MILLRACE:-$root/.build/release/millrace}
    if [[ ! -x $millrace || ! -x $(dirname "$millrace")/millrace-load ]]; then
        need_swift
        say "Building millrace and millrace-load"
        for product in millrace millrace-load; do
            (cd "$root" && quietly "The build" swift build -c release --product "$product" --static-swift-stdlib)
        done
    fi
}

# write_mirrors FOLDER: has the package there take outside packages from MILLRACE_MIRRORS, a folder with bare repositories owner/name.git;
# "network" is GitHub itself.
write_mirrors() {
    [[ $MILLRACE_MIRRORS != network ]] || return 0
    mkdir -p "$1/.swiftpm/configuration"
    python3 - "$MILLRACE_MIRRORS" >"$1/.swiftpm/configuration/mirrors.json" <<'PYTHON'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1]).resolve()
found = []
for path in sorted(folder.glob("*/*.git")):
    original = "https://github.com/" + str(path.relative_to(folder))
    for name in (original, original.removesuffix(".git")):
        found.append({"mirror": f"file://{path}", "original": name})
print(json.dumps({"object": found, "version": 1}))
PYTHON
}
