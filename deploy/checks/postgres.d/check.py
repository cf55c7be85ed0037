"""Holds every supported Postgres to the same schema, plans and promises; see deploy/checks/postgres --help."""

import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import matrix  # noqa: E402
import plans  # noqa: E402
from servers import RELEASES, Millrace, Server, Unobtainable, debian, last_line, say  # noqa: E402

SKIPPED = 77


def wanted(arguments):
    """(major, where from) of each row. The drain is compared with PyPI's 15, which is built as the others of PyPI are."""
    majors = [major for major in RELEASES if not arguments.only or major in arguments.only]
    if arguments.short and not arguments.only:
        majors = [min(RELEASES), max(RELEASES)]
    rows = [(major, "PyPI") for major in majors]
    return rows + [(major, "Debian") for major in majors if not arguments.short and debian(major)]


class Row:
    """What was found of one server."""

    def __init__(self, major, where):
        self.major, self.where = major, where
        self.server = None
        self.version = str(major)
        self.cells = {}
        self.wrong = []
        self.made = {}
        self.plans = {}
        self.drains = []

    def step(self, name, act):
        """One column: what act returns, or what went wrong."""
        began = time.monotonic()
        try:
            self.cells[name] = act()
        except (RuntimeError, subprocess.TimeoutExpired, KeyError, ValueError) as error:
            self.cells[name] = "FAILED"
            self.wrong.append(f"{name}: {error}")
        say(f"    {name}: {self.cells[name]} ({time.monotonic() - began:.1f} s)")


class Check:
    def __init__(self, arguments):
        self.arguments = arguments
        self.millrace = Millrace(arguments.millrace)
        self.out = pathlib.Path(arguments.cache)
        self.rows = [Row(major, where) for major, where in wanted(arguments)]
        left_out = arguments.without + (["ledger", "drain"] if arguments.short else [])
        self.columns = [name for name in ("schema", "rooms", "plans", "ledger", "drain") if name not in left_out]

    def run(self):
        try:
            for row in self.rows:
                self.examine(row)
            if "drain" in self.columns:
                self.drain([row for row in self.rows if row.server])
        finally:
            for row in self.rows:
                if row.server:
                    row.server.close()
        return self.judged()

    def examine(self, row):
        say(f"==> Postgres {row.major} of {row.where}")
        try:
            row.server = Server(row.major, row.where, sys.executable, self.out)
        except Unobtainable as error:
            row.wrong.append(str(error))
            say(f"    NOT OBTAINABLE: {error}")
            return
        row.version = row.server.version
        steps = {"schema": self.schema, "rooms": self.rooms, "plans": self.plans, "ledger": self.ledger}
        for name, act in steps.items():
            if name in self.columns:
                row.step(name, lambda act=act: act(row))

    def base(self, row, what):
        """The first row that has it, whose answer the others must give as well: 15's, or the first's."""
        having = [one for one in self.rows if getattr(one, what) and one is not row]
        return next((one for one in having if one.major == 15), having[0] if having else None)

    def alike(self, row, database, made):
        row.made[database] = made
        base = next((one for one in self.rows if database in one.made and one is not row), None)
        if base and (lines := matrix.difference(made, base.made[database])):
            raise RuntimeError(f"it is not what Postgres {base.version} has: " + "\n        ".join(lines))
        return f"{len(made)} objects" + (" alike" if base else "")

    def schema(self, row):
        return self.alike(row, "core", matrix.schema(row.server, self.millrace))

    def rooms(self, row):
        count, made = matrix.rooms(row.server, self.millrace, each=not self.arguments.short)
        said = self.alike(row, "every", made)
        return f"{count if self.arguments.short else f'{count} + each'}, {said}"

    def plans(self, row):
        found = plans.played(row.server, self.millrace, "plans")
        if missing := plans.unseen(found):
            raise RuntimeError(f"the log has no plan of {', '.join(missing)}")
        row.plans = plans.shapes(found)
        if walks := plans.walks(found):
            raise RuntimeError("\n        ".join(["statements read what they do not need:", *walks]))
        base = self.base(row, "plans")
        if not base:
            return f"{len(row.plans)} statements, no walk"
        lines = plans.compared(row.plans, base.plans)
        path = self.out / f"plans-{row.version}-beside-{base.version}.txt"
        path.write_text("\n".join(lines), encoding="utf-8")
        return f"{len(row.plans)} statements, no walk, {plans.differing(lines)} unlike {base.version}"

    def ledger(self, row):
        environment = self.millrace.environment(row.server, MILLRACE_POSTGRES_BIN=str(row.server.bin))
        del environment["DATABASE_URL"]
        done = subprocess.run(
            [self.arguments.millrace, "load", "ledger", "--minutes", str(self.arguments.ledger)],
            env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        (self.out / f"ledger-{row.version}.log").write_text(done.stderr + done.stdout, encoding="utf-8")
        if done.returncode:
            raise RuntimeError(f"exit {done.returncode}: {(done.stdout or done.stderr).strip()[-1500:]}")
        return f"{self.arguments.ledger} min whole"

    def drain(self, rows):
        """Each server in turn, in rounds, so that what else the machine does meets all of them. Nothing is judged."""
        say(f"==> Draining {self.arguments.jobs} jobs on each, {self.arguments.rounds} rounds")
        for row in rows:
            row.server.sql("create database drained template core")
        for turn in range(self.arguments.rounds):
            for row in rows if turn % 2 == 0 else reversed(rows):
                try:
                    done = self.millrace.run(
                        row.server, "load", "drain", "--json", "--jobs", str(self.arguments.jobs), database="drained")
                    row.drains.append(json.loads(done.stdout)["figures"]["one_worker"][0]["per_second"])
                except (RuntimeError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
                    row.wrong.append(f"drain: {error}")
                say(f"    {row.server.name}: {row.drains[-1] if row.drains else 0:.0f}/s")
        base = next((row for row in rows if (row.major, row.where) == (15, "PyPI") and row.drains), None)
        for row in rows:
            if row.drains:
                row.cells["drain"] = f"{statistics.median(row.drains):.0f}/s"
                if base:
                    row.cells["drain"] += f" {statistics.median(row.drains) / statistics.median(base.drains):.2f} x"

    def judged(self):
        if self.arguments.json:
            for row in self.rows:
                print(json.dumps({"version": row.version, "from": row.where, **row.cells, "wrong": row.wrong}))
        else:
            lines = [["version", "from", *self.columns]]
            for row in self.rows:
                lines.append([row.version, row.where, *(row.cells.get(name, "-" if row.server else "NOT OBTAINABLE") for name in self.columns)])
            widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
            for line in lines:
                print("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip())
        for row in self.rows:
            for line in row.wrong:
                say(f"{row.version} of {row.where}: {line}")
        if any(row.server and row.wrong for row in self.rows):
            return 1
        missing = [row.version for row in self.rows if not row.server]
        if missing:
            say(f"NOT CHECKED, because their servers cannot be had here: {', '.join(missing)}")
        return SKIPPED if len(missing) == len(self.rows) else 0


def main():
    parser = argparse.ArgumentParser(prog="deploy/checks/postgres", allow_abbrev=False)
    parser.add_argument("--millrace", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", type=int, action="append", choices=list(RELEASES))
    parser.add_argument("--without", action="append", default=[], choices=["rooms", "plans", "ledger", "drain"])
    parser.add_argument("--ledger", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=50_000)
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda number, _: sys.exit(128 + number))
    return Check(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
