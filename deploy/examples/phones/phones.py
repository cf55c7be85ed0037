"""Plays an app that is written in Swift: starts a Postgres, a worker and a gateway, and does what the app's program asks for, such as killing them.
deploy/examples/phones/run runs it: phones.py <peachy|lifesignal> <program>."""

import json
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from rig import Rig, expect, finish, say, token, until

PEOPLE = {"peachy": ["mia", "tom", "eve"], "lifesignal": ["lena", "omar", "eve"]}


class Around:
    """What happens around the phones."""

    def __init__(self, rig):
        self.rig, self.workers = rig, 0

    def start(self):
        self.workers += 1
        self.rig.start_worker(f"worker-{self.workers}")
        self.rig.start_gateway()
        until("the worker", lambda: self.rig.sql("select 1 from millrace.setting where name = 'link_key'"))

    def kill(self):
        for name in ("gateway", f"worker-{self.workers}"):
            self.rig.kill(name)
        say("the gateway and the worker are killed")

    def due(self, person):
        """The interval is an hour, so the operator moves the time of the next check-in: to now."""
        self.rig.sql(f"update millrace.watch set expires_at = millrace.now(), wake_at = millrace.now() where person = '{person}'")


def play(rig, app, program):
    """Runs the program to its end, and does what its lines ask for. Returns its exit code."""
    around = Around(rig)
    around.start()
    say("a gateway and a worker run")
    tokens = {person: token(sub=person) for person in PEOPLE[app]}
    (rig.place / "phones").mkdir()
    environment = {**rig.environment, "PHONES_URL": rig.url, "PHONES_PLACE": str(rig.place / "phones"), "PHONES_TOKENS": json.dumps(tokens)}
    with subprocess.Popen([program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as running:
        limit = threading.Timer(600, running.kill)         # for a program that never ends
        limit.start()
        try:
            for line in running.stdout:
                line = line.rstrip("\n")
                if not line.startswith("@"):
                    say(line)
                    continue
                what, *arguments = line[1:].split()
                {"start": around.start, "kill": around.kill, "due": around.due}[what](*arguments)
                print("done", file=running.stdin, flush=True)
        except BaseException:
            running.kill()
            raise
        finally:
            limit.cancel()
    return running.returncode


def peachy(rig):
    expect("messages, and other ones", rig.sql("select count(*), count(distinct text), max(n) from millrace.chat_message"), ["24|24|24"])
    expect("moods", rig.sql("select person, count(*) from millrace.mood where deleted_at is null group by 1 order by 1"), ["mia|4", "tom|3"])
    expect("hobbies, cards and answers", rig.sql(
        "select (select count(*) from millrace.hobby), (select count(*) from millrace.card), (select count(*) from millrace.card_reply where is_right)"), ["2|2|2"])
    expect("quests that were done", rig.sql("select person from millrace.quest_completion where undone_at is null order by 1"), ["mia", "tom"])
    expect("points", rig.sql("select person, sum(delta) from millrace.points_ledger group by 1 order by 1"), ["mia|6", "tom|11"])


def lifesignal(rig):
    expect("alarms", rig.sql("select cause, state, resolution from millrace.alarm order by raised_at"), ["expired|resolved|contact", "help|resolved|contact"])
    expect("how often Omar was told of each", rig.sql(
        "select count(*) from millrace.alarm_event where what = 'told' and contact = 'omar' group by alarm"), ["1", "1"])
    expect("answers", rig.sql("select contact, what, count(*) from millrace.alarm_event where what in ('acknowledged', 'on_my_way', 'cannot', 'safe') "
                              "group by 1, 2 order by 1, 2"), ["lena|safe|2", "omar|on_my_way|2"])
    expect("Lena's watch", rig.sql("select state from millrace.watch"), ["armed"])


def main():
    app, program = sys.argv[1:]
    # A fast machine makes more calls in a second than people do.
    with Rig(MILLRACE_GATEWAY_RATES="subject=10000:10000,operations=10000:10000,address=10000:10000") as rig:
        say("the database is there")
        expect("the app's exit code", play(rig, app, program), 0)
        say("the database has")
        {"peachy": peachy, "lifesignal": lifesignal}[app](rig)
    finish()


if __name__ == "__main__":
    main()
