"""Runs every peer and millrace on one Postgres and prints the table. Started by deploy/bench/peers."""

import argparse
import json
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
DRAIN_BAR = 4.0
# 1.5 ms, where the best of these took 3.6.
PICK_UP_BAR = 0.42


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", required=True)
    parser.add_argument("--millrace", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--postmaster", type=int, required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--versions", required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--strict", action="store_true")
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}")[-600:])
    return done.stdout


def server_cpu(postmaster):
    """Seconds that the postmaster, those it waits for and those it has waited for have used."""
    tick, total = os.sysconf("SC_CLK_TCK"), 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(name) == postmaster or int(fields[1]) == postmaster:
            total += sum(map(int, fields[11:15]))
    return total / tick


class Bench:
    def __init__(self, given):
        self.given = given

    def url(self, database):
        return f"postgresql://postgres@/{database}?host={self.given.socket}"

    def fresh(self, database):
        run(["psql", "-qX", "-d", self.url("postgres"), "-v", "ON_ERROR_STOP=1",
             "-c", f"drop database if exists {database} with (force)", "-c", f"create database {database}"])

    def peer(self, name, jobs):
        database = f"bench_{name}"
        program = [self.given.python, os.path.join(HERE, f"{name}_peer.py"), self.url(database)]
        self.fresh(database)
        run(program + ["setup"])
        row = {"name": f"{name} {self.version(name)}", "jobs": jobs, "drain": {}}
        for processes in (1, 2):
            say(f"{name}: {jobs} jobs, {processes} process{'es' if processes > 1 else ''}")
            inserted = json.loads(run(program + ["insert", str(jobs)]))
            row["insert_bulk_per_second"] = max(row.get("insert_bulk_per_second", 0), jobs / inserted["seconds"])
            before = server_cpu(self.given.postmaster)
            started = [subprocess.Popen(program + ["work"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                       for _ in range(processes)]
            said = [process.communicate() for process in started]
            if any(process.returncode for process in started):
                raise RuntimeError("".join(errors for _, errors in said).strip()[-600:])
            told = [json.loads(output.strip().splitlines()[-1]) for output, _ in said]
            done = sum(one["jobs"] for one in told)
            if done != jobs:
                raise RuntimeError(f"{done} of {jobs} jobs were handled")
            span = max(one["last"] or 0 for one in told) - min(one["first"] for one in told if one["first"])
            row["drain"][processes] = {
                "per_second": jobs / span, "worker_us": sum(one["cpu"] for one in told) / jobs * 1e6,
                "postgres_us": (server_cpu(self.given.postmaster) - before) / jobs * 1e6,
                "mb": max(one["mb"] for one in told),
            }
        row["insert_one_per_second"] = json.loads(run(program + ["insert-one", "3"]))["per_second"]
        row["pick_up_ms"] = self.pick_up(name, database, program)
        return row

    def pick_up(self, name, database, program):
        """From the call of enqueue to the start of the handler, of a worker that has nothing else to do."""
        tries = self.tries
        say(f"{name}: {tries} pick-ups")
        self.fresh(database)
        run(program + ["setup"])
        serving = subprocess.Popen(program + ["serve", str(tries)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # A worker that never says so is killed, which ends the line.
        watch = threading.Timer(30 + tries, serving.kill)
        watch.start()
        try:
            run(program + ["call", "1"])
            if serving.stdout.readline().strip() == "first":
                run(program + ["call", str(tries)])
            said, errors = serving.communicate()
        finally:
            watch.cancel()
            serving.kill()
        if not said.strip():
            raise RuntimeError(errors.strip()[-600:] or "not every job was picked up")
        found = sorted(json.loads(said.strip().splitlines()[-1]))
        return {"p50": found[len(found) // 2], "p99": found[len(found) * 99 // 100]}

    @property
    def tries(self):
        return max(20, int(200 * self.given.scale))

    def version(self, name):
        return json.loads(self.given.versions).get(name, "")

    def millrace(self, jobs):
        database = "bench_millrace"
        environment = os.environ | {"DATABASE_URL": self.url(database)}
        self.fresh(database)
        run([self.given.millrace, "migrate"], env=environment)
        say(f"millrace: {jobs} jobs, 1 and 2 processes")
        drain = json.loads(run([self.given.millrace, "load", "drain", "--jobs", str(jobs), "--json"], env=environment))
        say("millrace: enqueue")
        enqueue = json.loads(run(
            [self.given.millrace, "load", "enqueue", "--rounds", "1", "--seconds", "3", "--jobs", str(jobs), "--json"],
            env=environment))
        row = {"name": f"millrace {self.version('millrace')}", "jobs": jobs, "drain": {}}
        for processes, key in ((1, "one_worker"), (2, "two_workers")):
            one = drain["figures"][key][0]
            row["drain"][processes] = {
                "per_second": one["per_second"], "worker_us": one["worker_us_per_job"],
                "postgres_us": one.get("postgres_us_per_job"), "mb": one["worker_resident_mb"],
            }
        row["insert_bulk_per_second"] = enqueue["figures"]["bulk"]["calls"][0]["per_second"]
        say(f"millrace: {self.tries} pick-ups")
        latency = json.loads(run([self.given.millrace, "load", "latency", "--tries", str(self.tries), "--json"], env=environment))
        row["pick_up_ms"] = {"p50": latency["figures"]["p50_ms"], "p99": latency["figures"]["p99_ms"]}
        row["insert_one_per_second"] = max(
            pair["calls"][0]["per_second"] for pair in enqueue["figures"]["single"] if pair["callers"] == 1)
        return row


def best(row):
    return max(row["drain"].values(), key=lambda one: one["per_second"])["per_second"]


def show(rows, bars):
    head = ["", "processes", "jobs", "drain/s", "insert one/s", "bulk/s", "worker µs", "Postgres µs", "MB", "pick-up p50/p99 ms"]
    lines = [head]
    for row in rows:
        if "failure" in row:
            lines.append([row["name"], f"failed: {row['failure'].splitlines()[-1][:80]}"] + [""] * (len(head) - 2))
            continue
        for processes, one in row["drain"].items():
            postgres = one["postgres_us"]
            lines.append([
                row["name"] if processes == 1 else "", str(processes), f"{row['jobs']:,}", f"{one['per_second']:,.0f}",
                f"{row['insert_one_per_second']:,.0f}", f"{row['insert_bulk_per_second']:,.0f}",
                f"{one['worker_us']:,.1f}", "–" if postgres is None else f"{postgres:,.1f}", f"{one['mb']:,.0f}",
                "{p50:.1f} / {p99:.1f}".format(**row["pick_up_ms"])])
    widths = [max(len(line[i]) for line in lines if line[1][:6] != "failed") for i in range(len(head))]
    for line in lines:
        if line[1][:6] == "failed":
            print(f"{line[0]:<{widths[0]}}  {line[1]}")
            continue
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))).rstrip())
    if bars:
        print()
    for bar in bars:
        print(f"{bar['what']}: bar {bar['bar']}, measured {bar['measured']}, {'met' if bar['met'] else 'missed'}")


def main():
    given = options()
    bench = Bench(given)
    rows = []
    amounts = {"pgqueuer": 100_000, "chancy": 20_000, "procrastinate": 20_000}
    for name, jobs in amounts.items():
        try:
            rows.append(bench.peer(name, max(100, int(jobs * given.scale))))
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            rows.append({"name": f"{name} {bench.version(name)}", "failure": str(error)})
    failed = None
    try:
        rows.append(bench.millrace(max(1000, int(500_000 * given.scale))))
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        failed = str(error)
        rows.append({"name": "millrace", "failure": failed})
    whole = [row for row in rows if "failure" not in row]
    ours = next((row for row in whole if row["name"].startswith("millrace")), None)
    theirs = next((row for row in whole if row["name"].startswith("pgqueuer")), None)
    peers = [row for row in whole if row is not ours]
    bars, ratio, lag = [], None, None
    if ours and theirs:
        share = best(ours) / best(theirs)
        bars.append({"what": "drain, share of pgqueuer's best", "bar": f"≥ {DRAIN_BAR:.0f} ×", "measured": f"{share:.2f} ×",
                     "met": share >= DRAIN_BAR})
    if ours and peers:
        ratio = best(ours) / max(best(row) for row in peers)
        soonest = min(peers, key=lambda row: row["pick_up_ms"]["p50"])
        lag = ours["pick_up_ms"]["p50"] / soonest["pick_up_ms"]["p50"]
        bars.append({"what": f"idle pick-up, median, share of that of the soonest ({soonest['name']})", "bar": f"≤ {PICK_UP_BAR} ×",
                     "measured": f"{lag:.2f} ×", "met": lag <= PICK_UP_BAR})
    if given.json:
        print(json.dumps({"version": 1, "scenario": "peers", "figures": {"rows": rows, "ratio_to_best": ratio, "pick_up_share": lag},
                          "bars": bars}, indent=2, ensure_ascii=False))
    else:
        show(rows, bars)
    if len(whole) < len(rows) or (given.strict and not all(bar["met"] for bar in bars)):
        sys.exit(1)


if __name__ == "__main__":
    main()
