"""Builds the Swift peers, runs them and millrace on one Postgres, and prints the table. Started by deploy/bench/peers --swift."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

from judge import Judge
from measure import Bench, run, say, server_cpu

HERE = pathlib.Path(__file__).resolve().parent
PEERS = {"swift-jobs": 20_000, "strand": 20_000, "millrace": 200_000}


def options():
    parser = argparse.ArgumentParser()
    for name in ("root", "work", "socket", "start", "data"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", action="append", default=[], choices=PEERS)
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--strict", action="store_true")
    return parser.parse_args()


class Package:
    """A peer's package, put together in a folder of its own, where its mirrors stand beside it."""

    def __init__(self, given, name):
        self.given, self.name = given, name
        self.folder = pathlib.Path(given.work) / f"{name}-peer"  # its identity, which must not be that of a package it uses
        self.mode = "debug" if given.debug else "release"
        self.program = self.folder / f".build/{self.mode}/peer"

    def build(self):
        """What it took, as it was when it was built from nothing."""
        noted = self.folder / f"built-{self.mode}.json"
        sources = self.folder / "Sources/peer"
        sources.mkdir(parents=True, exist_ok=True)
        place = HERE / "swift"
        for source, target in ((place / self.name / "Package.swift", self.folder / "Package.swift"),
                               (place / self.name / "main.swift", sources / "main.swift"),
                               (place / "Peer.swift", sources / "Peer.swift")):
            if not target.exists() or target.read_bytes() != source.read_bytes():
                shutil.copyfile(source, target)
        shared = pathlib.Path(self.given.work)
        say(f"{self.name}: building")
        command = ["swift", "build", "-c", self.mode, "--product", "peer", "--static-swift-stdlib",
                   "--package-path", str(self.folder), "--cache-path", str(shared / "cache"),
                   "--security-path", str(shared / "security"), "--resolver-fingerprint-checking", "warn"]
        spent = self.run_build(command)
        if not noted.exists():
            noted.write_text(json.dumps(spent | {"packages": self.packages()}))
        stripped = self.folder / "stripped"
        run(["strip", "-o", str(stripped), str(self.program)])
        return json.loads(noted.read_text()) | {"mb": stripped.stat().st_size / 1e6, "version": self.version()}

    def run_build(self, command):
        """What it has taken, with earlier ones that failed: a build goes on where the last one ended. One that was stopped begins again."""
        said, tally = self.folder / "said", self.folder / f"spent-{self.mode}.json"
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
        spent = json.loads(tally.read_text()) if tally.exists() else {"cpu_seconds": 0.0, "seconds": 0.0}
        try:
            with said.open("w") as out, subprocess.Popen(
                    command, env=os.environ | {"PEER_MILLRACE": self.given.root}, stdout=out, stderr=subprocess.STDOUT) as build:
                try:
                    code = build.wait()
                except SystemExit:
                    build.terminate()
                    raise
        except OSError as error:
            raise RuntimeError(f"the build cannot be started: {error}") from error
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent["cpu_seconds"] += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        spent["seconds"] += time.time() - began
        tally.write_text(json.dumps(spent))
        if code:
            errors = [line for line in said.read_text().splitlines() if "error:" in line]
            raise RuntimeError(f"the build failed, see {said}: {(errors or ['?'])[0]}")
        return spent

    def packages(self):
        """How many outside packages it takes."""
        with contextlib.suppress(OSError):
            return len(json.loads((self.folder / "Package.resolved").read_text())["pins"])
        return 0

    def version(self):
        with contextlib.suppress(OSError):
            for pin in json.loads((self.folder / "Package.resolved").read_text())["pins"]:
                if pin["identity"] in ("swift-jobs-postgres", "strand"):
                    return pin["state"].get("version") or pin["state"]["revision"][:8]
        return ""


class SwiftBench(Bench):
    def __init__(self, given):
        super().__init__(given)
        given.postmaster = self.postmaster()

    def postmaster(self):
        return int(pathlib.Path(self.given.data, "postmaster.pid").read_text().split()[0])

    def version(self):
        return run(["psql", "-XAtq", "-d", self.url("postgres"), "-c", "show server_version"]).strip()

    def ready(self, package, database):
        """An empty database with the peer's tables; the program with its first words."""
        self.fresh(database)
        if package.name == "strand":
            self.strand_tables(package, database)
        program = [str(package.program), self.given.socket, database]
        run(program + ["setup"])
        return program

    def strand_tables(self, package, database):
        """Its file, without the extension, which not every server brings. Identifiers are made by its clients."""
        text = (package.folder / ".build/checkouts/strand/strand.sql").read_text()
        text = text.replace("CREATE EXTENSION IF NOT EXISTS pgcrypto;", """
            create function public.gen_random_bytes(n int) returns bytea language sql
            as $$ select substring(uuid_send(gen_random_uuid()) from 1 for n) $$;""")
        run(["psql", "-qX", "-d", self.url(database), "-v", "ON_ERROR_STOP=1", "-f", "-"], input=text)

    def measure(self, package, jobs):
        database = f"bench_{package.name.replace('-', '_')}"
        program = self.ready(package, database)
        row = {"jobs": jobs, "drain": {}}
        for processes in (1, 2):
            say(f"{package.name}: {jobs} jobs, {processes} process{'es' if processes > 1 else ''}")
            inserted = json.loads(run(program + ["insert", str(jobs)]))
            row["insert_bulk_per_second"] = max(row.get("insert_bulk_per_second", 0), jobs / inserted["seconds"])
            before = server_cpu(self.given.postmaster)
            started = [subprocess.Popen(program + ["work"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                       for _ in range(processes)]
            told = []
            for process in started:
                output, errors = process.communicate()
                if process.returncode or not output.strip():
                    raise RuntimeError(errors.strip()[-600:] or "a worker said nothing")
                told.append(json.loads(output.strip().splitlines()[-1]))
            done = sum(one["jobs"] for one in told)
            if done != jobs:
                raise RuntimeError(f"{done} of {jobs} jobs were handled")
            span = max(one["last"] for one in told) - min(one["first"] for one in told if one["first"])
            row["drain"][processes] = {
                "per_second": jobs / span, "worker_us": sum(one["cpu"] for one in told) / jobs * 1e6,
                "postgres_us": (server_cpu(self.given.postmaster) - before) / jobs * 1e6,
                "mb": max(one["mb"] for one in told)}
        row["insert_one_per_second"] = json.loads(run(program + ["insert-one", "3"]))["per_second"]
        row["pick_up_ms"] = self.lags(self.ready(package, database))
        return row

    def lags(self, program):
        """From the call of enqueue to the start of the handler, of a worker that has nothing else to do."""
        say(f"  {self.tries} pick-ups")
        serving = subprocess.Popen(program + ["serve", str(self.tries)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        watch = threading.Timer(60 + self.tries, serving.kill)
        watch.start()
        try:
            run(program + ["call", "1"])
            if serving.stdout.readline().strip() == "first":
                run(program + ["call", str(self.tries)])
            said, errors = serving.communicate()
        finally:
            watch.cancel()
            serving.kill()
        if not said.strip():
            raise RuntimeError(errors.strip()[-600:] or "not every job was picked up")
        found = sorted(json.loads(said.strip().splitlines()[-1]))
        return {"p50": found[len(found) // 2], "p99": found[len(found) * 99 // 100]}

    def crash(self, package):
        """Two clients and two workers; a worker is killed every two seconds, and Postgres is stopped at once in the middle."""
        seconds = max(8, int(20 * self.given.scale))
        say(f"{package.name}: {seconds} s of enqueuing with programs killed")
        database = f"crash_{package.name.replace('-', '_')}"
        program = self.ready(package, database)
        ledger = pathlib.Path(self.given.work) / f"ledger-{package.name}"
        ledger.unlink(missing_ok=True)
        judge = Judge(ledger)
        workers = Workers(program + ["run", str(ledger), "20"], 2)
        clients = [subprocess.Popen(program + ["put", str(place * 1_000_000), str(seconds * 100), "10000"],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for place in range(2)]
        heard = [threading.Thread(target=lambda one=one: [judge.hear(line) for line in one.stdout]) for one in clients]
        for thread in heard:
            thread.start()
        kills = self.strike(workers, seconds)
        ends = time.time() + 60 + seconds
        while any(one.poll() is None for one in clients) and time.time() < ends:
            time.sleep(0.1)
        for one in clients:
            one.kill()
        for thread in heard:
            thread.join()
        settled = self.settle(judge)
        workers.stop()
        return judge.verdict() | {
            "kills": kills, "settled_seconds": settled, "ended_alone": workers.starts - 2 - kills}

    def strike(self, workers, seconds):
        kills, began, is_stopped = 0, time.time(), False
        while time.time() - began < seconds:
            time.sleep(2)
            if not is_stopped and time.time() - began >= seconds / 2:
                is_stopped = True
                os.kill(self.postmaster(), signal.SIGQUIT)  # as pg_ctl stop -m immediate
                time.sleep(1)
                subprocess.run(self.given.start, shell=True, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.given.postmaster = self.postmaster()
            else:
                kills += workers.kill()
        return kills

    def settle(self, judge):
        """Seconds until nothing is missing; None: nothing came for as long as anybody's leases last twice over."""
        began = news = time.time()
        missing = judge.look()
        while missing and time.time() - news < 150:
            time.sleep(0.2)
            left = judge.look()
            if left != missing:
                missing, news = left, time.time()
        time.sleep(2)  # what is done twice now counts, too
        return None if missing else news - began


class Workers:
    """Workers under a process manager: one that has ended is started again half a second later."""

    def __init__(self, command, count):
        self.command, self.starts, self.running = command, 0, True
        self.lock = threading.Lock()
        self.processes = [self.start() for _ in range(count)]
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def start(self):
        self.starts += 1
        return subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def watch(self):
        while self.running:
            time.sleep(0.5)
            with self.lock:
                if self.running:
                    self.processes = [one if one.poll() is None else self.start() for one in self.processes]

    def kill(self):
        """One that lives; how many were."""
        with self.lock:
            living = [one for one in self.processes if one.poll() is None]
            if living:
                random.choice(living).kill()
            return min(1, len(living))

    def stop(self):
        with self.lock:
            self.running = False
        self.thread.join()
        for one in self.processes:
            one.terminate()
        for one in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(40)
            one.kill()


def figures(row):
    crash, is_debug = row["crash"], row["debug"]
    for what, *more in speeds(row, row["drain"]):
        yield ("built without optimization: " if is_debug else "") + what, *more
    yield "crash test: accepted jobs", crash["accepted"], "{:,}", None
    yield "crash test: lost", crash["lost"], "{:,}", min
    yield "crash test: done twice", crash["twice"], "{:,}", min
    yield "crash test: all done after, s", crash["settled_seconds"], "{:.1f}", min
    yield "crash test: workers that ended by themselves", crash["ended_alone"], "{:,}", min
    yield "outside packages", row["build"]["packages"], "{:,}", min
    if not is_debug:
        yield "built from nothing, s of processor time", row["build"]["cpu_seconds"], "{:,.0f}", min
        yield "program, stripped, MB", row["build"]["mb"], "{:,.1f}", min


def speeds(row, drain):
    best = max(drain.values(), key=lambda one: one["per_second"])
    yield "no-op jobs a second, best of 1 and 2 workers", best["per_second"], "{:,.0f}", max
    yield "enqueued one at a time, a second", row["insert_one_per_second"], "{:,.0f}", max
    yield "enqueued in bulk, a second", row["insert_bulk_per_second"], "{:,.0f}", max
    yield "processor time of workers, µs a job", drain[1]["worker_us"], "{:,.0f}", min
    yield "processor time of Postgres, µs a job", drain[1]["postgres_us"], "{:,.0f}", min
    yield "memory of a worker, MB", max(one["mb"] for one in drain.values()), "{:,.0f}", min
    yield "pick-up, median, ms", row["pick_up_ms"]["p50"], "{:.2f}", min
    yield "pick-up, 99 of 100, ms", row["pick_up_ms"]["p99"], "{:.2f}", min


def shown(what, value, form):
    """Without a value a crash test has not come to its end, and anything else was not measured."""
    return form.format(value) if value is not None else "never" if what.startswith("crash test") else "–"


def bars(rows):
    """Ours beside the best of the others, a bar for each figure that has a better and a worse."""
    whole = {name: list(figures(row)) for name, row in rows.items() if "failure" not in row}
    ours = whole.pop("millrace", None)
    if not ours or not whole:
        return []
    found = []
    for place, (what, value, form, judge) in enumerate(ours):
        if not judge:
            continue
        others = {name: row[place][1] for name, row in whole.items() if row[place][1] is not None}
        best = judge(others, key=others.get) if others else None
        is_met = value is not None and (best is None or judge(value, others[best]) == value)
        beside = ", ".join(f"{name} {form.format(other)}" for name, other in others.items())
        found.append({"what": what, "bar": f"{'≥' if judge is max else '≤'} the best of: {beside or 'none'}",
                      "measured": shown(what, value, form), "met": is_met})
    return found


def show(rows):
    whole = {name: list(figures(row)) for name, row in rows.items() if "failure" not in row}
    lines = [[""] + [f"{name} {rows[name]['build']['version']}".strip() for name in whole] + ["ahead"]]
    for place, (what, _, form, judge) in enumerate(next(iter(whole.values()), [])):
        values = {name: found[place][1] for name, found in whole.items()}
        known = {name: value for name, value in values.items() if value is not None}
        best = judge(known.values()) if judge and known else None
        ahead = [name for name, value in known.items() if value == best]
        lines.append([what] + [shown(what, value, form) for value in values.values()]
                     + [", ".join(ahead) if judge and len(ahead) < len(values) else ""])
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) if place in (0, len(line) - 1) else cell.rjust(width)
                        for place, (cell, width) in enumerate(zip(line, widths))).rstrip())
    for name, row in rows.items():
        if "failure" in row:
            print(f"{name}: {row['failure'].strip().splitlines()[-1][:300]}")


def main():
    given = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench, rows, built = SwiftBench(given), {}, {}
    troubles = (RuntimeError, OSError, ValueError, KeyError, subprocess.SubprocessError)
    # All before the first is measured: a build leaves a machine warm, and its caches full.
    for name in given.only or PEERS:
        try:
            built[name] = Package(given, name).build()
            say(f"{name}: built in {built[name]['cpu_seconds']:,.0f} s of processor time")
        except troubles as error:
            rows[name] = {"failure": str(error) or repr(error)}
    for name in [] if given.build else built:
        try:
            package = Package(given, name)
            rows[name] = bench.measure(package, max(1000, int(PEERS[name] * given.scale)))
            rows[name] |= {"debug": given.debug, "build": built[name], "crash": bench.crash(package)}
            (package.folder / "row.json").write_text(json.dumps(rows[name], indent=2))  # for one who breaks off before the end
        except troubles as error:
            rows[name] = {"failure": str(error) or repr(error)}
    if given.build:
        for name, row in rows.items():
            print(f"{name}: {row['failure'].strip().splitlines()[-1][:300]}")
        sys.exit(1 if rows else 0)
    if given.json:
        print(json.dumps({"version": 1, "scenario": "peers-swift", "postgres": bench.version(), "bars": bars(rows), "figures": rows}, indent=2, ensure_ascii=False))
    else:
        show(rows)
    ours = rows.get("millrace", {}).get("crash", {})
    if any("failure" in row for row in rows.values()) or (given.strict and ours.get("lost", 1)):
        sys.exit(1)


if __name__ == "__main__":
    main()
