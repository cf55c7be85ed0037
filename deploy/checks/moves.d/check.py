"""Moves a tenant while moves and servers are killed: check.py <millrace> <place> <jobs> <kills> <seed>. deploy/checks/moves runs it."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

from judge import Seen, judge
from world import Callers, Server, say

TENANT = "acme"
MS = 5


class Check:
    def __init__(self, millrace, place, jobs, kills, seed):
        self.millrace, self.place, self.jobs, self.least = millrace, pathlib.Path(place), jobs, kills
        self.random = random.Random(seed)
        lines = (self.place / "servers").read_text().splitlines()
        self.servers = {lines[at]: Server(*lines[at:at + 4]) for at in range(0, len(lines), 4)}
        self.eu, self.us = self.servers["eu"], self.servers["us"]
        self.environment = {**os.environ, "MILLRACE_DATABASES": "\n".join(f"{one.name}={one.url}" for one in self.servers.values())}
        self.workers, self.said = [], ["", ""]
        self.seen = Seen()
        self.callers = Callers(self.servers, self.seen, TENANT, MS)

    def start_workers(self, slots):
        for one in self.servers.values():
            log = open(self.place / f"{one.name}.log", "ab")
            self.workers.append(subprocess.Popen(
                [self.millrace, "worker", "--practice", "--slots", str(slots), "--marks", str(self.place / f"{one.name}.marks"),
                 "--parent", str(os.getpid())], env={**os.environ, "DATABASE_URL": one.url}, stdout=log, stderr=log))

    def stop_workers(self):
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self.workers:
            worker.wait(120)
        self.workers = []

    def fill(self):
        """Ready ones, some that are due in a minute, and some that a limit of four at once holds back; in ten priorities."""
        for server in self.servers.values():
            server.ask("""select millrace.limit_set('key', 'held', '{"concurrency": 4}')""")
        for first in range(0, self.jobs, 5000):
            count = min(5000, self.jobs - first)
            self.callers.enqueue(self.eu, count, TENANT, f"""
                priority => n % 10, run_at => case when n % 8 = 0 then now() + interval '60 s' end,
                limit_key => case when n % 16 = 1 then 'held' end, metadata => case when n % 5 = 0 then '{{"m": 1}}'::jsonb else '{{}}' end""")

    def call(self, *words, killed_after=None):
        """The exit code of a move; None: it was killed."""
        process = subprocess.Popen([self.millrace, "move", *words, "--from", "eu", "--to", "us", "--json"], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.said = [text.decode().strip() for text in process.communicate(timeout=killed_after or 1800)]
            return process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None

    def delay(self):
        """Until a kill: short enough that the move lasts for all of them."""
        return 0.15 + self.random.uniform(0, max(0.2, self.jobs / 60_000))

    def batch(self):
        """Small enough that a kill comes between two steps."""
        most = max(25, self.jobs // 50)
        return ["--batch", str(min(most, self.random.choice([100, 500, 2000])))]

    def on_the_way(self):
        return int(self.eu.ask("select count(*) from millrace_move.departed") or 0) if self.eu.has_books() else 0

    def move_and_undo(self):
        kills = 0
        while (taken := self.on_the_way()) < self.jobs / 3:
            code = self.call("tenant", TENANT, "--hold", *self.batch(), killed_after=self.delay())
            kills += code is None
            self.expect(code in (None, 0), f"the move ended with {code}: {self.said}")
        undos = 0
        while (code := self.call("undo", TENANT, *self.batch(), killed_after=self.random.uniform(0.1, 0.5) if undos < 10 else None)) is None:
            undos += 1
        # Its last breath may have been the end of it.
        self.expect(code == 0 or "is not on its way" in self.said[1], f"the undo ended with {code}: {self.said}")
        books = {name: one.books() for name, one in self.servers.items()}
        self.expect(not any(books["eu"]) and not any(books["us"]), f"the undo has left something in the books: {books}")
        say(f"{taken} jobs were on their way and are back; the move was killed {kills} times, its undo {undos} times")

    def move(self):
        """How often it was killed, and how long it took. The servers go at a third and at two thirds of the kills."""
        began, kills = time.monotonic(), 0
        strikes = [(self.least // 3, self.us), (self.least * 2 // 3, self.eu)]
        while True:
            striker = None
            if strikes and kills >= strikes[0][0]:
                server = strikes.pop(0)[1]
                striker = threading.Timer(self.random.uniform(0.1, 0.6), lambda one=server: self.strike(one))
                striker.start()
            code = self.call("tenant", TENANT, *self.batch(), killed_after=self.delay() if kills < self.least else None)
            if striker:
                striker.join()
            elif code == 0 or (code is not None and not self.eu.is_open(TENANT)):
                break
            else:
                self.expect(code is None, f"the move ended with {code}: {self.said}")
            kills += code is None
        self.expect(not strikes, f"the move had ended after {kills} kills, before each server was killed: give more jobs")
        return kills, time.monotonic() - began

    def strike(self, server):
        killed, there = server.kill()
        self.seen.kills.setdefault(server.name, []).append((killed, there))
        say(f"{server.name} was killed, and was back after {there - killed:.1f} s")

    def expect(self, is_so, sentence):
        if not is_so:
            raise SystemExit(f"wrong: {sentence}")

    def settle(self):
        """Until nothing waits; whatever then is left is a finding."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            if not any(one.waiting() for one in self.servers.values()):
                break
            time.sleep(1)
        self.stop_workers()
        for name, one in self.servers.items():
            departed, arrived, unended = one.books()
            self.seen.left |= {f"jobs that wait in {name}": one.waiting(), f"jobs that left {name} for good too early": departed,
                               f"jobs written down in {name}": arrived, f"moves of {name} that have not ended": unended}
            self.seen.ends[name] = one.ends()
            self.seen.runs[name] = one.runs(self.place / f"{name}.marks")

    def run(self):
        self.fill()
        self.start_workers(slots=2)
        self.callers.start()
        time.sleep(1)
        self.move_and_undo()
        before = sum(len(one.ends()) for one in self.servers.values())
        waiting = self.eu.waiting(TENANT)
        kills, took = self.move()
        self.callers.stop()
        say(f"moved in {took:.1f} s, of {waiting} that waited; killed {kills} times. All of them run now")
        self.stop_workers()
        self.start_workers(slots=60)
        self.settle()
        wrong, repeated = judge(self.seen)
        for what, found in wrong.items():
            if found:
                print(f"wrong: {len(found)} {what}: {', '.join(map(str, found[:10]))}")
        ends = {name: len(one) for name, one in self.seen.ends.items()}
        print(json.dumps({
            "check": "moves", "jobs": len(self.seen.sure), "unanswered": len(self.seen.doubtful), "waiting": waiting,
            "ended_before": before, "ended": ends, "moved": self.said and json.loads(self.said[0] or "{}").get("jobs"),
            "move_s": round(took, 1), "kills": kills, "server_kills": sum(map(len, self.seen.kills.values())), "repeated": repeated,
            **{what: len(found) for what, found in wrong.items()}}))
        return 1 if any(wrong.values()) else 0

    def close(self):
        self.callers.stop()
        for worker in self.workers:
            worker.kill()


def main():
    millrace, place, jobs, kills, seed = sys.argv[1:]
    check = Check(millrace, place, int(jobs), int(kills), int(seed))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return check.run()
    finally:
        check.close()


if __name__ == "__main__":
    sys.exit(main())
