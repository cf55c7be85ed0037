"""For deploy/bench/console: `rooms FILE` prints the SQL that puts something into every room, as the tests do; `measure` loads the pages."""

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse

SCRIPT = "\" onfocus=hacked=1 '><script>hacked=1</script><img src=x onerror=hacked=1>"
PAGE_BAR, PREVIEW_BAR = 200, 50


def rooms(path):
    """The statements of Tests/ConsoleTests/Seed.swift, in their order: one place says what every room can hold."""
    source = open(path, encoding="utf-8").read()
    texts = re.findall(r'#"""\n(.*?)\n\s*"""#', source, re.S)
    if not any("mail_send" in text for text in texts):
        sys.exit(f"{path} no longer has the statements that this reads")
    evil = SCRIPT.replace("'", "''")
    for text in texts:
        print("begin;")
        print(text.replace("{evil}", evil).replace("{jevil}", evil.replace('"', '\\"')))
        print(";\ncommit;")


class Database:
    def __init__(self, url):
        self.url = url

    def value(self, sql):
        command = ["psql", "-qXAt", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-c", sql]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def timed(self, sql, times):
        """Milliseconds of the statement, each time it is run in one session."""
        script = "set jit = off;\n\\timing on\n" + f"{sql};\n" * times
        command = ["psql", "-qXAt", "-v", "ON_ERROR_STOP=1", "-d", self.url]
        said = subprocess.run(command, input=script, check=True, capture_output=True, text=True).stdout
        return [float(ms) for ms in re.findall(r"^Time: ([0-9.]+) ms", said, re.M)]


class Site:
    """One visitor who is signed in, on a connection that stays."""

    def __init__(self, origin):
        self.host = origin.removeprefix("http://")
        self.cookie = ""
        self.connection = None

    def ask(self, method, path, body=None, headers=None):
        for attempt in (1, 2):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.host, timeout=60)
            try:
                self.connection.request(method, path, body, {"Cookie": self.cookie, **(headers or {})})
                answer = self.connection.getresponse()
                return answer, answer.read()
            except (http.client.RemoteDisconnected, ConnectionResetError):
                self.connection.close()
                self.connection = None
                if attempt == 2:
                    raise

    def sign_in(self, name, secret):
        form = urllib.parse.urlencode({"name": name, "secret": secret})
        answer, _ = self.ask("POST", "/console/signin", form, {"Content-Type": "application/x-www-form-urlencoded"})
        cookie = answer.getheader("Set-Cookie")
        if cookie is None:
            sys.exit(f"the console did not let the benchmark in: {answer.status}")
        self.cookie = cookie.split(";")[0]


def addresses(database):
    """Every page, with what it is asked for."""
    one = database.value
    queue = one("select name from millrace.queue where name like 'queue-%' order by name limit 1 offset 40")
    dead = one("select max(id) from millrace.jobs where state = 'dead' and kind = 'work.021'")
    flow = one("select min(pred) from millrace.edge e where (select count(*) from millrace.edge o where o.pred = e.pred) >= 100")
    steps = one("select job from millrace.step group by job order by count(*) desc limit 1")
    large = one("select id from millrace.job where id < (select min(id) + 100000 from millrace.job) order by pg_column_size(args) desc limit 1")
    group = one("select id from millrace.failure_group order by failed desc limit 1")
    at = one("select to_char(max(at) - interval '1 minute', 'YYYY-MM-DD\"T\"HH24:MI:SS') from millrace.sample_fresh")
    tenant = urllib.parse.quote(one("select tenant from millrace.limit_list() l, lateral (select l.name as tenant) x where l.scope = 'tenant' and l.name like 'tenant-%' limit 1"), safe="")
    ids = {
        "mail": one("select id from millrace.mail limit 1"), "document": one("select id from millrace.document limit 1"),
        "webhook": one("select id from millrace.webhook limit 1"), "alarm": one("select id from millrace.alarm limit 1"),
        "approval": one("select id from millrace.approval limit 1"), "operation": one("select min(id) from millrace.operation"),
        "subscription": one("select id from millrace.subscription limit 1"),
    }
    return [
        "", "?span=24h", "?span=14d", "/findings", "/queues", "/queues?after=" + queue, "/queues?q=long", f"/queue?name={queue}", "/limits", "/kinds",
        "/kind?name=work.021&span=1h", "/kind?name=work.021", "/jobs", "/jobs?state=ready", f"/jobs?state=ready&queue={queue}", "/jobs?state=scheduled", "/jobs?state=blocked",
        "/jobs?state=dead", "/jobs?state=dead&kind=work.021", f"/jobs?state=dead&queue={queue}", "/jobs?state=dead&tag=night", f"/jobs?state=dead&tenant={tenant}",
        "/jobs?state=dead&error=printer", "/jobs?state=dead&sort=kind", "/jobs?state=succeeded", f"/jobs?state=succeeded&queue={queue}", "/jobs?state=succeeded&kind=work.022",
        "/jobs?state=cancelled", f"/jobs?state=dead&group={group}", "/search?q=queue-0004", "/search?q=printer", f"/jobs/{dead}", f"/jobs/{dead}/edit",
        f"/jobs/{steps}", f"/jobs/{large}", f"/jobs/{flow}?flow=yes", "/failures", "/failures?sort=failed", f"/failures/{group}", "/schedules", "/schedules/new",
        "/schedule?name=schedule-7", "/schedule/edit?name=schedule-7", "/workers", "/versions", "/providers", "/provider?name=resend", "/mail", f"/mail/{ids['mail']}",
        "/templates", "/template?name=invoice&locale=en&version=1", "/documents", f"/documents/{ids['document']}", f"/documents/{ids['document']}/page?page=1",
        "/approvals", f"/approvals/{ids['approval']}", "/checkins", f"/alarms/{ids['alarm']}", "/quests", "/notices", "/webhooks", f"/webhooks/{ids['webhook']}",
        "/subscriptions", f"/subscriptions/{ids['subscription']}", "/operations", "/operations/new?state=dead&action=retry",
        f"/operations/new?state=dead&action=retry&group={group}", f"/operations/{ids['operation']}", "/audit", "/audit?action=queue.pause", f"/past?at={at}", "/storage",
    ]


def previews(database):
    queue = database.value("select name from millrace.queue where name like 'queue-%' order by name limit 1 offset 40")
    group = database.value("select id from millrace.failure_group order by failed desc limit 1")
    filters = [
        {"state": "dead"}, {"state": "dead", "kind": "work.021"}, {"state": "dead", "queue": queue}, {"state": "dead", "queue": queue, "kind": "work.021"},
        {"state": "dead", "group": group}, {"state": "dead", "error": "printer"}, {"state": "dead", "tag": "night"},
    ]
    return [(f, f"select jobs from millrace.operation_preview('retry', '{json.dumps(f)}')") for f in filters]


def is_true(database, asked):
    """Whether a preview says the number of jobs within 1 %, or says that there are at least as many; and what it says."""
    conditions = {
        "kind": "h.kind = any (millrace.kind_ids('{}'))", "queue": "h.queue = any (millrace.queue_ids('{}'))",
        "error": "position(lower('{}') in lower(h.error)) > 0", "tag": "exists (select from millrace.job j where j.id = h.id and '{}' = any (j.tags))",
        "group": "(select millrace.failure_is_of(g, h.kind, h.error) from millrace.failure_group g where g.id = {})",
    }
    fits = " and ".join(["h.outcome = 3"] + [conditions[name].format(value) for name, value in asked.items() if name != "state"])
    if "group" in asked:
        fits += f" and h.kind = (select g.kind from millrace.failure_group g where g.id = {asked['group']})"
    there = int(database.value(f"set jit = off; select count(*) from millrace.history h where {fits}"))
    jobs, is_exact = database.value(f"select jobs || ' ' || is_exact from millrace.operation_preview('retry', '{json.dumps(asked)}')").split(" ")
    if is_exact == "true":
        return abs(int(jobs) - there) <= there / 100, f"{jobs} of {there}"
    return int(jobs) <= there, f"at least {jobs} of {there}"


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 100) * len(ordered) // 100) - 1))]


def machine():
    cpu = "?"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), cpu)
    return f"{len(os.sched_getaffinity(0))} × {cpu}, load {os.getloadavg()[0]:.1f} of {os.cpu_count()}"


def measure(arguments):
    database, site = Database(arguments.database), Site(arguments.origin)
    site.sign_in("bench", "a password of the benchmark")
    try:
        database.value("select count(*) from pg_stat_statements")
        has_statements = True
    except subprocess.CalledProcessError:
        has_statements = False
    counts = database.value("select (select count(*) from millrace.queue where main is null) || ' queues, ' || (select count(*) from millrace.history where outcome in (1, 2, 3)) || ' ended jobs'")
    build = subprocess.run([arguments.program, "version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    kind = "a debug build" if "/debug/" in arguments.program else "a release build"
    print(f"{counts}; {arguments.times} loads a page, one after the other\n{machine()}; {build}, {kind}\n")
    print(f"{'page':<72} {'p50 ms':>8} {'p95 ms':>8} {'SQL ms':>8} {'bar':>5}")
    missed = 0
    for address in addresses(database):
        if arguments.only and not re.search(arguments.only, address):
            continue
        if has_statements:
            database.value("select pg_stat_statements_reset()")
        times, statuses = [], set()
        for _ in range(arguments.times):
            began = time.perf_counter()
            answer, _body = site.ask("GET", "/console" + address)
            times.append((time.perf_counter() - began) * 1000)
            statuses.add(answer.status)
        sql = "–"
        others = "query not like '%pg_stat_statements%' and query not like '%sample_take%' and query not like '%operation_step%'"
        if has_statements:
            sql = float(database.value(f"select coalesce(sum(total_exec_time + total_plan_time), 0) from pg_stat_statements where {others}")) / arguments.times
            sql = f"{sql:.0f}"
        is_met = quantile(times, 0.95) <= PAGE_BAR and statuses == {200}
        missed += not is_met
        word = "met" if is_met else "missed" + ("" if statuses == {200} else f" {sorted(statuses)}")
        print(f"{(address or '/')[:72]:<72} {quantile(times, 0.5):>8.0f} {quantile(times, 0.95):>8.0f} {sql:>8} {PAGE_BAR:>5}  {word}", flush=True)
        if arguments.statements and has_statements and not is_met:
            rows = database.value(
                f"select round(total_exec_time / {arguments.times}) || ' ms, ' || round(calls / {arguments.times}.0, 1) || ' calls, '"
                f" || (shared_blks_hit + shared_blks_read) / {arguments.times} || ' pages: ' || left(regexp_replace(query, '\\s+', ' ', 'g'), 150)"
                f" from pg_stat_statements where {others} order by total_exec_time desc limit 3")
            print("\n".join("      " + row for row in rows.split("\n")))
    print(f"\n{'preview of a bulk action, as SQL':<72} {'p50 ms':>8} {'p95 ms':>8} {'':>8} {'bar':>5}")
    for asked, sql in previews(database):
        name = json.dumps(asked)
        if arguments.only and not re.search(arguments.only, name):
            continue
        times = database.timed(sql, arguments.times + 1)[1:]
        is_right, said = is_true(database, asked)
        is_met = quantile(times, 0.95) <= PREVIEW_BAR and is_right
        missed += not is_met
        word = "met" if is_met else "missed" if is_right else "wrong"
        print(f"{name[:72]:<72} {quantile(times, 0.5):>8.0f} {quantile(times, 0.95):>8.0f} {'':>8} {PREVIEW_BAR:>5}  {word}, {said}", flush=True)
    print(f"\n{missed} of the bars missed" if missed else "\nevery bar met")
    return 1 if missed and arguments.strict else 0


def main():
    if sys.argv[1:2] == ["rooms"]:
        rooms(sys.argv[2])
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("what")
    parser.add_argument("database")
    parser.add_argument("origin")
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--statements", action="store_true")
    return measure(parser.parse_args())


sys.exit(main())
