"""The plans of the statements that real workers make, in front of a backlog that must not be read; see deploy/checks/postgres --help."""

import collections
import json
import re
import signal
import subprocess
import tempfile
import time

# More than any statement has a reason to read: the promoter's and the status's samples are bounded by 20,000 and some.
MANY = 25_000
BACKLOG = 100_000
# Each must be seen among the plans: that none of it walks says nothing of what was not called.
HOT = ("claim", "finish", "beat", "rescue", "promote", "enqueue", "enqueue_bulk", "enqueue_many", "step", "signal")
SCANS = ("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Tid Scan", "Tid Range Scan", "Sample Scan")

# A hundred thousand each of what waits in a queue of others, and of what is due tomorrow. Nothing is analysed.
FILL = f"""
select millrace.limit_set('key', 'plans.*', '{{"concurrency": 2}}');
select millrace.enqueue_bulk('practice.nothing', array(select '{{}}' from generate_series(1, {BACKLOG})), 'elsewhere');
select millrace.enqueue_bulk('practice.nothing', array(select '{{}}' from generate_series(1, {BACKLOG})), 'default',
    the_run_at => now() + interval '1 day');
"""

LOAD = (
    "select millrace.enqueue_bulk('practice.nothing', array(select '{}' from generate_series(1, 500)), 'default')",
    "select millrace.enqueue_bulk('practice.nothing', array(select '{}' from generate_series(1, 500)), 'default', the_priority => 1)",
    "select count(millrace.enqueue('practice.nothing', queue => 'default')) from generate_series(1, 50)",
    "select count(millrace.enqueue('practice.nothing', unique_key => n::text)) from generate_series(1, 50) n",
    "select count(millrace.enqueue('practice.nothing', limit_key => 'plans.' || n % 4)) from generate_series(1, 50) n",
    "select count(millrace.enqueue('practice.nothing', tenant => 'tenant' || n % 4)) from generate_series(1, 50) n",
    "select count(millrace.enqueue('practice.nothing', run_at => now() + interval '1 s')) from generate_series(1, 50) n",
    "select count(millrace.enqueue('practice.steps', '{\"steps\": 2, \"ms\": 1}')) from generate_series(1, 20)",
    "select count(millrace.enqueue('practice.wait', jsonb_build_object('n', n, 'name', 'go', 'key', n::text))) from generate_series(1, 20) n",
    "select count(millrace.enqueue('practice.fail', '{\"times\": 1}', options => '{\"backoff\": {\"base\": 1, \"cap\": 1}}'))"
    " from generate_series(1, 20)",
    "select count(*) from millrace.enqueue_many((select jsonb_agg('{\"kind\": \"practice.nothing\", \"queue\": \"default\"}'::jsonb)"
    " from generate_series(1, 200)))",
)
SIGNALS = "select count(millrace.signal('go', n::text, to_jsonb(n))) from generate_series(1, 20) n"
UNDONE = """
set auto_explain.log_min_duration = -1;
select count(*) from millrace.job j
 where j.id > {after} and not exists (select from millrace.history h where h.id = j.id and h.outcome = 1)
"""
SETTINGS = {
    "session_preload_libraries": "auto_explain",
    "auto_explain__log_min_duration": "0",
    "auto_explain__log_analyze": "on",
    "auto_explain__log_timing": "off",
    "auto_explain__log_nested_statements": "on",
    "auto_explain__log_format": "json",
}


def played(server, millrace, database):
    """Makes two workers do a bit of everything, one of them killed; returns the plans, each with its statement."""
    server.sql(f"create database {database} template core")
    server.sql(FILL, database)
    after = int(server.sql("select max(id) from millrace.job", database)[0])
    server.stop()
    log = server.home / "log"
    log.unlink()
    server.start(**SETTINGS)
    workers = []
    try:
        with tempfile.TemporaryFile() as said:
            def worker():
                workers.append(subprocess.Popen(
                    [millrace.program, "worker", "--practice", "--queue", "default", "--listen", "off", "--log-level", "warning"],
                    env=millrace.environment(server, database), stdin=subprocess.DEVNULL, stdout=said, stderr=said))
            worker()
            for statement in LOAD[:5]:
                server.sql(statement, database)
            time.sleep(0.5)
            workers[0].kill()
            worker()
            for statement in LOAD[5:]:
                server.sql(statement, database)
            deadline = time.monotonic() + 60
            while int(server.sql(SIGNALS + ";\n" + UNDONE.format(after=after), database)[-1]):
                if time.monotonic() > deadline or workers[1].poll() is not None:
                    said.seek(0)
                    raise RuntimeError(f"the workers did not end all jobs within a minute; they said: {said.read().decode()[-1500:]}")
                time.sleep(0.5)
            workers[1].send_signal(signal.SIGTERM)
            workers[1].wait(30)
    finally:
        for one in workers:
            if one.poll() is None:
                one.kill()
            one.wait()
        server.stop()
    text = log.read_text(encoding="utf-8", errors="replace")
    server.start()
    return list(parsed(text))


def parsed(text):
    """(statement, root of the plan) for each plan in the log, whose further lines begin with a tab."""
    for found in re.finditer(r"^LOG:  duration: [0-9.]+ ms  plan:\n((?:\t.*\n?)+)", text, re.M):
        plan = json.loads("".join(line.removeprefix("\t") for line in found[1].splitlines()), strict=False)
        yield " ".join(plan["Query Text"].split()), plan["Plan"]


def nodes(plan):
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def rows_read(node):
    read = node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return read * node.get("Actual Loops", 1)


def relation(node):
    return re.sub(r"_(\d+|default)(?=_|$)", "_#", node.get("Relation Name") or node.get("Index Name") or "")


def shape(plan):
    """What a plan does, without its numbers. Partitions look alike."""
    below = tuple(dict.fromkeys(shape(one) for one in plan.get("Plans", ())))
    index = re.sub(r"_(\d+|default)(?=_|$)", "_#", plan.get("Index Name", ""))
    words = " ".join(filter(None, (plan["Node Type"], plan.get("Join Type"), relation(plan), index if index != relation(plan) else "")))
    return f"{words} ({', '.join(below)})" if below else words


def walks(plans):
    """The statements that read more than they can need, with the most rows of a node."""
    worst = {}
    for statement, plan in plans:
        for node in nodes(plan):
            if node["Node Type"] in SCANS and node.get("Relation Name") and rows_read(node) > MANY:
                found = (rows_read(node), f"{node['Node Type']} on {node['Relation Name']}")
                worst[statement] = max(worst.get(statement, (0, "")), found)
    return [f"{what} reads {int(rows)} rows: {statement[:160]}" for statement, (rows, what) in worst.items()]


def unseen(plans):
    called = set()
    for statement, _ in plans:
        called.update(re.findall(r"millrace\.(\w+)\(", statement))
    return [name for name in HOT if name not in called]


def shapes(plans):
    by_statement = collections.defaultdict(set)
    for statement, plan in plans:
        by_statement[statement].add(shape(plan))
    return by_statement


def compared(found, wanted):
    """Lines of statements whose plans have a shape that the other version's plans do not have."""
    lines = []
    for statement, these in sorted(found.items()):
        if statement in wanted and (other := these - wanted[statement]):
            lines += [statement, *(f"    here  {one}" for one in sorted(other)), *(f"    there {one}" for one in sorted(wanted[statement])), ""]
    return lines


def differing(lines):
    return sum(1 for line in lines if line and not line.startswith(" "))
