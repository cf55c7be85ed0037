"""KEDA's query, as the role of the guide: its number, what else that role may do, and what it costs. deploy/checks/kubernetes runs it."""
import os
import re
import subprocess
import time

from lib import FOLDER, PROGRAM, documents, fail, make_roles, millrace, say, sql, url, within

DATABASE = "scaler"
# What keda.yaml tells the reader to run, but for the password.
LOGIN = "scaler"


def main():
    text = (FOLDER / "keda.yaml").read_text(encoding="utf-8")
    statement = re.search(r"create role .*?;", text)[0].replace("…", "practice")
    query = documents(FOLDER / "keda.yaml")[1]["spec"]["triggers"][0]["metadata"]["query"]
    sql("postgres", f"create database {DATABASE}")
    make_roles(DATABASE)
    sql(DATABASE, statement)
    millrace("migrate", database=DATABASE)

    def number():
        # As KEDA: one row, one number, no transaction of its own.
        return float(sql(DATABASE, query, LOGIN))

    def is_(wanted, what):
        found = number()
        if found != wanted:
            fail(f"{what}: the scaler counts {found:g}, not {wanted}")

    def enqueue(many, kind="practice.sleep", args='{"ms": 4000}', more=""):
        sql(DATABASE, f"select count(millrace.enqueue('{kind}', '{args}'{more})) from generate_series(1, {many})")

    is_(0, "an empty queue")
    enqueue(7)
    enqueue(5, more=", run_at => now() + interval '1 day'")
    enqueue(3, more=", run_at => now() + interval '1 s'")
    enqueue(11, more=", queue => 'halted'")
    sql(DATABASE, "select millrace.pause('halted')")
    time.sleep(1.2)
    is_(10, "7 ready, 3 due, 5 for tomorrow, 11 in a paused queue")
    for call in ("select millrace.enqueue('practice.nothing')", "select * from millrace.job", "select millrace.pause('default')"):
        try:
            sql(DATABASE, call, LOGIN)
        except RuntimeError as refused:
            if "permission denied" in str(refused):
                continue
        fail("the scaler's login may do this:", call)

    # A limit lets one of twenty run. Nobody needs more workers for the others.
    sql(DATABASE, "select millrace.limit_set('key', 'narrow', '{\"concurrency\": 1}')")
    worker = subprocess.Popen([str(PROGRAM), "worker", "--practice", "--slots", "4", "--listen", "off", "--no-checkins"], stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "DATABASE_URL": url(DATABASE)})
    try:
        within(30, "four jobs run", lambda: sql(DATABASE, "select sum(running) from millrace.queues") == "4")
        is_(10, "4 running, 6 ready or due")
        enqueue(20, args='{"ms": 2000}', more=", limit_key => 'narrow'")
        within(60, "many jobs are behind the limit, and the scaler counts few",
               lambda: int(sql(DATABASE, "select count(*) from millrace.parked")) >= 8 and number() <= 2)
    finally:
        worker.terminate()
        worker.wait(60)
    say("scaler: as", LOGIN + ", a role that may only look: ready, due and running jobs; not those for later, of paused queues, or behind a limit")

    for _ in range(10):
        sql(DATABASE, "select count(*) from millrace.enqueue_many((select jsonb_agg(jsonb_build_object('kind', 'practice.nothing', 'queue', 'flood'))"
                      " from generate_series(1, 10000)))")
    waiting = int(sql(DATABASE, "select count(*) from millrace.ready where queue = (select id from millrace.queue where name = 'flood')"))
    if waiting != 100000 or not 10000 <= number() < 10100:
        fail(f"before {waiting} waiting jobs the scaler counts {number():g}")
    costs = []
    for _ in range(5):
        plan = sql(DATABASE, "explain (analyze, buffers) " + query, LOGIN)
        pages = sum(int(n) for n in re.findall(r"(?:hit|read)=(\d+)", plan.split("Planning:")[0].splitlines()[1]))
        costs.append((float(re.search(r"Execution Time: ([\d.]+)", plan)[1]), pages))
    took, pages = sorted(costs)[2]
    if took > 100 or pages > 20000:
        fail(f"before {waiting} waiting jobs the query takes {took:.1f} ms and {pages} pages")
    say(f"scaler: before {waiting} waiting jobs the query takes {took:.1f} ms and looks at {pages} pages")


main()
