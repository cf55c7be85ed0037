# shellcheck shell=bash
# What deploy/checks/image looks for in an image. Sourced; the caller sets locked, limits, url, variant, work.
# shellcheck disable=SC2154

unfinished="select count(*) from millrace.job j where not exists (select from millrace.history h where h.id = j.id and h.outcome = 1)"

sizes() {
    local bytes packed base
    bytes=$(pod image inspect --format '{{.Size}}' "$1")
    base=$(pod image inspect --format '{{.Size}}' "$debian")
    packed=$(pod save "$1" 2>/dev/null | gzip -6 | wc -c)
    say "    $variant: $(numfmt --to=si "$bytes")B on disk, $(numfmt --to=si $((bytes - base)))B of them above Debian; $(numfmt --to=si "$packed")B packed"
}

config_is_as_documented() {
    local said
    said=$(pod image inspect --format '{{.User}} {{.Config.Entrypoint}} {{.Config.Cmd}} {{.Config.StopSignal}} {{.Config.WorkingDir}}' "$1")
    [[ $said == "10001:10001 [millrace] [worker] SIGTERM /tmp" ]] || fail "the image's config is $said"
    # Of a health check podman's own look has another name in each version.
    said=$(pod image inspect "$1")
    [[ $said == *'workers\u003c1'* || $said == *'workers<1'* ]] || fail "the image has no health check"
    said=$(once --entrypoint id "$1" -u)
    [[ $said == 10001 ]] || fail "it runs as user $said"
    said=$(once --entrypoint sh "$1" -c 'grep -E "^(CapBnd|CapEff|NoNewPrivs)" /proc/self/status | tr -s "\n\t" "  "; touch /usr/x 2>&1 || true')
    [[ $said == "CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 "*"Read-only file system"* ]] || fail "it is not locked up: $said"
    once "$1" version | sed 's/^/    /' >&2
}

# migrates <image> <rooms>
migrates() {
    say "    migrate"
    once "$1" migrate ${2:+--rooms "$2"} >"$work/migrate" 2>&1 || fail "$(cat "$work/migrate")"
    once "$1" migrate >"$work/migrate" 2>&1 || fail "$(cat "$work/migrate")"
    grep -q 'up to date' "$work/migrate" || fail "a second migrate changes something: $(cat "$work/migrate")"
}

# begin <flags…> <image> <command…>: a worker; $worker is its name.
worker=millrace-worker
begin() {
    # podman would want a systemd for the clock of the health check; it is asked for by hand.
    pod run --detach --name "$worker" --health-interval=disable "${limits[@]}" "${locked[@]}" --env "DATABASE_URL=$url" --env MILLRACE_PRACTICE=on "$@" >/dev/null
}

works() {
    say "    worker"
    begin "$1"
    within 60 holds "$variant" "select count(*) > 0 from millrace.session"
    sql "$variant" "select count(millrace.enqueue('practice.nothing')) from generate_series(1, 100)" >/dev/null
    within 60 holds "$variant" "select ($unfinished) = 0"
}

is_well() { pod healthcheck run "$worker"; }
is_ill() { ! is_well; }
stop_postgres() { runuser -u postgres -- "$(dirname "$(readlink -f "/proc/$(head -n 1 "$socket/data/postmaster.pid")/exe")")/pg_ctl" -D "$socket/data" -m fast -w stop >/dev/null; }
is_healthy_while_it_is() {
    say "    health"
    within 30 is_well
    stop_postgres
    within 60 is_ill
    [[ $(pod inspect --format '{{.State.Running}}' "$worker") == true ]] || fail "the worker has ended with its database"
    quietly "Starting Postgres" eval "$start_again"
    within 60 is_well
}

drains() {
    say "    drain"
    local job code runs
    job=$(sql "$variant" "select millrace.enqueue('practice.sleep', '{\"ms\": 4000}', max_attempts => 1)")
    within 30 holds "$variant" "select count(*) > 0 from millrace.lease"
    pod stop --time 60 "$worker" >/dev/null
    code=$(pod inspect --format '{{.State.ExitCode}}' "$worker")
    [[ $code == 0 ]] || fail "after a TERM it ended with $code: $(pod logs "$worker" 2>&1 | tail -n 3)"
    runs=$(sql "$variant" "select count(*) filter (where outcome = 1) || ' of ' || count(*) from millrace.history where id = $job")
    [[ $runs == "1 of 1" ]] || fail "of the job that ran $runs runs ended well"
    pod rm "$worker" >/dev/null
}

# A page with a text. It is drawn and recognised all the same (--mode force).
page() {
    python3 - "$1" <<'PYTHON'
import sys
content = b"BT /F1 24 Tf 72 700 Td (The harbour opens again in September) Tj ET"
parts = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
         b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
         b"<</Length %d>>stream\n%s\nendstream" % (len(content), content), b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
out, places = b"%PDF-1.4\n", []
for number, part in enumerate(parts, 1):
    places.append(len(out))
    out += b"%d 0 obj%s endobj\n" % (number, part)
table = len(out)
out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(parts) + 1) + b"".join(b"%010d 00000 n \n" % place for place in places)
out += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(parts) + 1, table)
open(sys.argv[1], "wb").write(out)
PYTHON
    chmod 644 "$1"
}

# Docker's and containerd's rules let no process make namespaces that has no capability to. Podman's do, and these are made from them.
without_namespaces() {
    python3 - /usr/share/containers/seccomp.json "$1" <<'PYTHON'
import json, sys
rules = json.load(open(sys.argv[1]))
taken = {"unshare", "setns", "clone", "clone3", "mount", "umount", "umount2", "pivot_root"}
kept = []
for rule in rules["syscalls"]:
    rule["names"] = [name for name in rule["names"] if name not in taken]
    if rule["names"]:
        kept.append(rule)
# CLONE_NEW… of any kind; and no clone3, whose flags no filter can read.
kept.append({"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 0x7E020000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]})
kept.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "args": []})
rules["syscalls"] = kept
json.dump(rules, open(sys.argv[2], "w"))
PYTHON
}

# read_under <rules> <what doctor must say of the sandbox> <image>
read_under() {
    local flags=() said id
    [[ -z $1 ]] || flags=(--security-opt "seccomp=$1")
    said=$(once ${flags[@]+"${flags[@]}"} "$3" doctor 2>&1 | grep -o 'sandbox: .*' || true)
    [[ $said == *"$2"* ]] || fail "doctor says of the sandbox: ${said:-nothing}"
    say "    $said"
    begin ${flags[@]+"${flags[@]}"} "$3"
    id=$(once --volume "$work/page.pdf:/page.pdf:ro" "$3" documents submit /page.pdf --mode force --quiet)
    said=$(once "$3" documents watch "$id" --timeout 120s 2>&1) || fail "the document $id was not read: $said"
    said=$(once "$3" documents text "$id")
    [[ $said == *"harbour opens again"* ]] || fail "what was read is: $said"
    pod stop --time 60 "$worker" >/dev/null
    pod rm "$worker" >/dev/null
}

reads_documents() {
    say "    document"
    page "$work/page.pdf"
    read_under '' "all layers hold" "$1"
    if [[ -e /usr/share/containers/seccomp.json ]]; then
        without_namespaces "$work/rules.json"
        read_under "$work/rules.json" "the kernel refuses namespaces" "$1"
    else
        say "    ${red}not tried${plain} where no namespaces are allowed: podman's rules are not in /usr/share/containers"
    fi
}
