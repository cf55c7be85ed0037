"""Judges a run by what clients were told, what runs wrote down outside, and what the database says in the end."""

import collections
import dataclasses

import psycopg

ACCEPTED = {1, 4, 5, 8}  # succeeded, retried, snoozed, waits: ends that the run itself reported
BAR = 5.0


@dataclasses.dataclass
class Strike:
    """A failover."""

    what: str
    beside: str
    began: float  # when something happened beside it, or the strike itself
    struck: float
    promoted: float
    timeline: int
    leader: str
    whole: float = 0.0


def token(text):
    """As runs spell it: session in hexadecimal, number, job."""
    session, number, _ = text.split("-")
    session = int(session, 16)
    return (session - (1 << 64) if session >= 1 << 63 else session), int(number)


def share(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else None


class Judge:
    def __init__(self, world, book, mailbox, strikes):
        self.book, self.mailbox, self.strikes = book, mailbox, strikes
        with psycopg.connect(world.ledger) as ledger:
            self.entries = ledger.execute("select job, token, what, extract(epoch from at)::float8 from ledger.entry order by at").fetchall()
        with psycopg.connect(world.url()) as database:
            self.history = database.execute(
                "select id, session, number, outcome, extract(epoch from finished)::float8 from millrace.history where session <> 0").fetchall()
        self.examples = []

    def find(self, what, found):
        """How many, with an example of them."""
        found = list(found)
        if found:
            self.examples.append(f"{what}: {', '.join(str(one) for one in found[:5])}")
        return len(found)

    def judge(self):
        book = self.book
        written = collections.defaultdict(list)
        for job, run, what, at in self.entries:
            written[job].append((run, what, at))
        succeeded = collections.Counter(id for id, _, _, outcome, _ in self.history if outcome == 1)
        effects = {job for job, lines in written.items() if any(what == "effect" for _, what, _ in lines)}
        ids = collections.Counter(id for id, _, _ in book.jobs.values())
        takers = collections.defaultdict(set)
        for job, lines in written.items():
            for _, what, _ in lines:
                if what.startswith("took "):
                    takers[int(what[5:])].add(job)

        row = {
            "enqueues": len(book.jobs), "ends": len(book.ends), "signals": len(book.signals), "answers": len(book.answers),
            "mails": len(book.mails), "alarms": len(book.alarms), "unknown": book.unknown, "warned": book.warned,
            "enqueues_lost": self.find("enqueues lost", [(n, id) for n, (id, _, _) in book.jobs.items()
                                                         if not succeeded[id] or id not in effects or ids[id] > 1]),
            "ends_lost": self.find("ends lost", self.ends_lost(written, succeeded)),
            "signals_lost": self.find("signals lost", [n for n in book.signals if n not in takers]),
            "signals_twice": self.find("signals taken twice", [n for n, jobs in takers.items() if len(jobs) > 1]),
            "answers_lost": self.find("answers lost", [job for job, (is_yes, _) in book.answers.items() if not any(
                what == ("yes" if is_yes else "no") for _, what, _ in written[job])]),
            "mails_lost": self.find("mails lost", set(book.mails) - set(self.mailbox.subjects)),
            "mails_again": sum(len(times) - 1 for subject, times in self.mailbox.subjects.items() if subject in book.mails),
            "alarms_lost": self.find("alarms lost", set(book.alarms) - set(self.mailbox.recipients)),
            "two_ends": self.find("jobs with two ends", [id for id, count in succeeded.items() if count > 1]),
        }
        row["two_live"], row["beside"] = self.overlaps(written)
        self.times(row, written)
        return row

    def ends_lost(self, written, succeeded):
        """Told as ended, and then not so, or begun again."""
        for id, told in self.book.ends.items():
            if not succeeded[id]:
                yield f"{id} is not ended"
            elif any(what == "began" and at > told for _, what, at in written[id]):
                yield f"{id} ran again"

    def overlaps(self, written):
        """Two runs of one job at once. With two accepted ends both tokens were alive; otherwise one was refused, as it should be."""
        accepted = {(id, session, number) for id, session, number, outcome, _ in self.history if outcome in ACCEPTED}
        live, beside = [], 0
        for job, lines in written.items():
            spans = {}
            for run, _, at in lines:
                first, last = spans.get(run, (at, at))
                spans[run] = (min(first, at), max(last, at))
            runs = sorted(spans.items(), key=lambda one: one[1])
            for (one, a), (other, b) in zip(runs, runs[1:]):
                if b[0] < a[1]:
                    both = all((job, *token(text)) in accepted for text in (one, other))
                    live += [f"{job} as {one} and {other}"] * both
                    beside += not both
        return self.find("two live tokens", live), beside

    def times(self, row, written):
        """From promotion to the first end that a client was told of; only jobs whose work was done after it count."""
        worked = {job: max((at for _, what, at in lines if what == "effect"), default=0.0) for job, lines in written.items()}
        ends = sorted((told, id) for id, told in self.book.ends.items())
        row["failovers"] = len(self.strikes)
        firsts, outages, recorded = [], [], []
        finished = sorted(at for _, _, _, outcome, at in self.history if outcome == 1)
        acknowledged = sorted(at for _, at, _ in self.book.jobs.values())
        for strike in self.strikes:
            first = next((told for told, id in ends if told >= strike.promoted and worked.get(id, 0.0) >= strike.promoted), None)
            strike.first_end = None if first is None else first - strike.promoted
            if first is not None:
                firsts.append(strike.first_end)
            recorded += [next((at - strike.promoted for at in finished if at >= strike.promoted), None)]
            after = next((at for at in acknowledged if at >= strike.promoted), None)
            before = max((at for at in acknowledged if at < strike.promoted), default=strike.struck)
            strike.outage = None if after is None else after - before
            if after is not None:
                outages.append(strike.outage)
        row["without_end"] = len(self.strikes) - len(firsts)
        recorded = [one for one in recorded if one is not None]
        late = list(self.lateness())
        for name, values in (("first_end", firsts), ("first_recorded", recorded), ("outage", outages), ("alarm_late", late)):
            row[f"{name}_p50"], row[f"{name}_p99"] = share(values, 0.5), share(values, 0.99)
            row[f"{name}_max"] = max(values, default=None)

    def lateness(self):
        """Of alarms, from when they were due, or from the promotion that ended the outage in which they were due."""
        for address, due in self.book.alarms.items():
            arrived = min(self.mailbox.recipients.get(address, []), default=None)
            if arrived is not None:
                outages = [strike.promoted for strike in self.strikes if strike.began - 2 <= due <= strike.promoted]
                yield arrived - max([due, *outages])


LOST = ["enqueues_lost", "ends_lost", "signals_lost", "signals_twice", "answers_lost", "mails_lost", "alarms_lost", "two_ends", "two_live"]


def verdict(row, is_asynchronous):
    """The table: what, how many, the bar, and whether it is met. Losses are counted, and no failure, where they are what was asked for."""
    lines = []

    def line(what, value, bar=None, is_met=None):
        lines.append((what, value, bar or "-", "" if is_met is None else "met" if is_met else "MISSED"))

    def seconds(value):
        return "-" if value is None else f"{value:.2f} s"

    line("failovers", row["failovers"])
    for name in ("enqueues", "ends", "signals", "answers", "mails", "alarms"):
        lost = row[f"{name}_lost"]
        line(f"{name} acknowledged", row[name])
        line("  of these lost", lost, "counted" if is_asynchronous else "0", None if is_asynchronous else lost == 0)
    for what, name in (("signals taken twice", "signals_twice"), ("jobs with two ends", "two_ends"), ("two live tokens", "two_live")):
        line(what, row[name], "counted" if is_asynchronous else "0", None if is_asynchronous else row[name] == 0)
    line("runs beside another, refused", row["beside"])
    line("mails that came twice", row["mails_again"])
    line("enqueues without an answer", row["unknown"])
    line("promotion to first end, p50", seconds(row["first_end_p50"]))
    line("  the same as the database has it, p99", seconds(row["first_recorded_p99"]))
    line("promotion to first end, p99", seconds(row["first_end_p99"]), f"{BAR:.0f} s",
         row["first_end_p99"] is not None and row["first_end_p99"] <= BAR and row["without_end"] == 0)
    line("no enqueue acknowledged for, p50", seconds(row["outage_p50"]))
    line("no enqueue acknowledged for, max", seconds(row["outage_max"]))
    line("alarm after due or promotion, p99", seconds(row["alarm_late_p99"]))
    return lines
