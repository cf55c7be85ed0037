"""Fails over a database again and again under load, and lets an outside checker judge; see deploy/checks/ha --help."""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import faults  # noqa: E402
import judge  # noqa: E402
import load  # noqa: E402
import world as worlds  # noqa: E402
from world import say  # noqa: E402

SMTP = 2525


def workers(world, program):
    mail = {
        "EMAIL_SERVICE_PROVIDER": "smtp", "MILLRACE_MAIL_SMTP_URL": f"smtp://127.0.0.1:{SMTP}?tls=none",
        "EMAIL_FROM_ADDRESS": "check@example.net", "MILLRACE_APP_NAME": "Check", "MILLRACE_CHECKINS": "on",
        "MILLRACE_BREAKER_OPEN": "1s",
    }
    return [world.worker(f"worker-{n}", program, port, mail) for n, port in ((1, 5000), (2, 5000), (3, 6432))]


def play(world, arguments, mailbox):
    say("starting three etcd, three Postgres, haproxy and pgbouncer")
    world.open()
    worlds.until("haproxy leads to the leader alone", world.leads, 60, 0.3)
    say("migrating")
    migrate = [arguments.millrace, "migrate", "--rooms", "all", "--quiet"]
    done = subprocess.run(migrate, env=world.environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"millrace migrate: {done.stderr}")
    world.sql(load.STATE)
    programs = workers(world, arguments.load)
    ours = load.Load(world, arguments.seed)
    began = time.monotonic()
    try:
        worlds.until("work is done", lambda: len(ours.book.ends) > 20, 90)
        chaos = faults.Chaos(world, random.Random(arguments.seed), arguments.only)
        trouble = None
        try:
            number = 0
            while number < arguments.failovers:
                if arguments.minutes and time.monotonic() - began > arguments.minutes * 60:
                    say(f"{arguments.minutes} minutes are over")
                    break
                if ours.failure():
                    raise RuntimeError(f"a client failed: {ours.failure()}")
                for one in programs:
                    if one.poll() is not None:
                        raise RuntimeError(f"a worker ended by itself, with {one.returncode}")
                strike = chaos.strike()
                if not strike:
                    continue
                number += 1
                say(f"{number:4}  {strike.what:<16} {strike.beside:<15} {strike.leader}, timeline {strike.timeline}: promoted after "
                    f"{strike.promoted - strike.struck:5.1f} s, whole after {strike.whole - strike.struck:5.1f} s; "
                    f"{len(ours.book.jobs)} enqueues, {len(ours.book.ends)} ends")
        except RuntimeError as error:
            # What was told until now is judged all the same.
            trouble = error
            say(f"stopped: {error}")
            for machine in world.stores + world.nodes:
                machine.mend()
        say("waiting for what was acknowledged")
        # What is lost does not come.
        ours.end(mailbox, 30 if world.is_asynchronous else 90)
    finally:
        for one in programs:
            if one.poll() is None:
                one.terminate()
    for one in programs:
        one.wait(30)
    return judge.Judge(world, ours.book, mailbox, chaos.strikes), chaos, trouble


def main():
    parser = argparse.ArgumentParser(prog="deploy/checks/ha", add_help=False)
    parser.add_argument("--failovers", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--place", required=True)
    parser.add_argument("--patroni", required=True)
    parser.add_argument("--millrace", required=True)
    parser.add_argument("--load", required=True)
    arguments = parser.parse_args()
    arguments.seed = arguments.seed or random.SystemRandom().randrange(1, 1 << 31)
    arguments.only = [name for name in arguments.only.split(",") if name]
    unknown = set(arguments.only) - set(faults.KINDS)
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    if arguments.failovers < 1:
        parser.error("--failovers is at least 1")
    began = time.monotonic()
    world = worlds.World(arguments.place, arguments.patroni, arguments.asynchronous)
    if not world.has_netem:
        say("this kernel has no netem: a slow link has a rate of 300 kbit/s here, and no delay")
    mailbox = load.Mailbox(SMTP)
    judged, chaos, trouble = play(world, arguments, mailbox)
    row = judged.judge()
    lines = judge.verdict(row, arguments.asynchronous)
    is_bad = trouble is not None or any(line[3] == "MISSED" for line in lines)
    row |= {"kinds": dict(chaos.kinds), "seed": arguments.seed, "seconds": round(time.monotonic() - began, 1),
            "asynchronous": arguments.asynchronous, "stopped": trouble and str(trouble), "examples": judged.examples, "outcome": "FAILED" if is_bad else "ok"}
    if arguments.json:
        print(json.dumps(row))
    else:
        for what, value, bar, word in lines:
            print(f"{what:<36}{value:>10}{bar:>10}  {word}".rstrip())
        print(", ".join(f"{count} {kind}" for kind, count in chaos.kinds.most_common()), f"in {row['seconds']:.0f} s; seed {arguments.seed}")
    for one in judged.examples:
        say(one)
    if trouble:
        print(f"error: {trouble}", file=sys.stderr)
    return 1 if is_bad else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        code = main()
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1
    # Not through what is left of threads.
    sys.stdout.flush()
    os._exit(code)
