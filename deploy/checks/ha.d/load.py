"""Clients that hand in work through haproxy and write down what they were told, and nothing else."""

import asyncio
import contextlib
import email
import email.policy
import json
import random
import threading
import time

import aiosmtpd.controller
import psycopg

# The server has committed, and nobody else has it: what is answered after this warning was not acknowledged.
CANCELLED_WAIT = "canceling wait for synchronous replication"


# What the caller of `wait_for` learns of a job; "gone" is one that a failover has lost.
STATE = """
    create function check_state(id bigint) returns text language plpgsql as $$
    begin
        return millrace.wait_for(id, '0');
    exception when no_data_found then
        return 'gone';
    end $$"""


class Book:
    """What clients were told. `unknown` is what nobody answered: it may be there or not."""

    def __init__(self):
        self.lock = threading.Lock()
        self.jobs = {}  # n: (id, when it was acknowledged, shape)
        self.ends = {}  # id: when its end was told
        self.signals = {}  # n: when
        self.answers = {}  # job: (yes or no, when)
        self.mails = {}  # subject: when
        self.alarms = {}  # address: when it is due
        self.unknown = 0
        self.warned = 0
        self.gone = set()  # ids of acknowledged jobs that the database does not know

    def open_jobs(self, older=0):
        before = time.time() - older
        with self.lock:
            return [id for id, at, _ in self.jobs.values() if at < before and id not in self.ends and id not in self.gone]


class Client(threading.Thread):
    """Calls `turn` again and again. What fails is unknown, and the next turn connects again."""

    def __init__(self, world, book, stop, seed, pause):
        super().__init__(daemon=True)
        self.world, self.book, self.stop, self.pause = world, book, stop, pause
        self.random = random.Random(f"{seed}-{type(self).__name__}")
        self.is_warned = False
        self.connection = None
        self.failure = None

    def connect(self):
        self.connection = psycopg.connect(self.world.url(), autocommit=True, prepare_threshold=None)
        self.connection.add_notice_handler(self.notice)

    def notice(self, diagnostic):
        self.is_warned = self.is_warned or CANCELLED_WAIT in (diagnostic.message_primary or "")

    def call(self, statement, values=()):
        """The first row; None: it was committed, but not acknowledged."""
        self.is_warned = False
        row = self.connection.execute(statement, values).fetchone()
        if self.is_warned:
            with self.book.lock:
                self.book.warned += 1
            return None
        return row

    def run(self):
        while not self.stop.is_set():
            began = time.monotonic()
            try:
                if self.connection is None or self.connection.closed:
                    self.connect()
                self.turn()
            except psycopg.Error as error:
                # An outage has no state, or one of its classes; anything else is a mistake of this check.
                state = getattr(error, "sqlstate", None)
                if state and state[:2] not in ("08", "25", "40", "53", "57", "58") and not isinstance(error, psycopg.OperationalError):
                    self.failure = str(error)
                self.is_unanswered()
                with contextlib.suppress(Exception):
                    self.connection.close()
                self.connection = None
                self.stop.wait(0.1)
            self.stop.wait(max(0.0, self.pause * self.random.uniform(0.5, 1.5) - (time.monotonic() - began)))
        with contextlib.suppress(Exception):
            self.connection.close()

    def is_unanswered(self):
        pass


class Producer(Client):
    """Enqueues: jobs that work for some milliseconds, jobs that wait for a signal, jobs that ask a person."""

    numbers = iter(range(1, 1 << 40))
    numbers_lock = threading.Lock()

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.shape = None
        self.signals = []  # (when, n): those to send

    def number(self):
        with Producer.numbers_lock:
            return next(Producer.numbers)

    def turn(self):
        self.shape = None
        if self.signals and self.signals[0][0] < time.monotonic():
            # Sent until it is acknowledged: its id tells apart what came already.
            n = self.signals[0][1]
            if self.call("select millrace.signal('ledger', %s, %s::jsonb, %s)", (f"s{n}", str(n), str(n))) is not None:
                self.signals.pop(0)
                with self.book.lock:
                    self.book.signals[n] = time.time()
            return
        n, draw = self.number(), self.random.random()
        self.shape = "signal" if draw < 0.08 else "asks" if draw < 0.1 else "steps" if draw < 0.2 else "plain"
        kind, args = {
            "plain": ("ledger.work", {"ms": self.random.choice([1, 5, 20, 100, 1500])}), "steps": ("ledger.work", {"ms": 5, "steps": 2}),
            "signal": ("ledger.wait", {"key": f"s{n}"}), "asks": ("ledger.wait", {"asks": True}),
        }[self.shape]
        statement, values = "select millrace.enqueue(%s, %s::jsonb, options => '{\"tell_end\": true}')", (kind, json.dumps({"n": n, **args}))
        if draw > 0.7:
            # In a transaction of the caller's: the answer to the commit is what counts.
            self.is_warned = False
            with self.connection.transaction():
                row = self.connection.execute(statement, values).fetchone()
            if self.is_warned:
                with self.book.lock:
                    self.book.warned += 1
                return
        else:
            row = self.call(statement, values)
        if row is None:
            return
        with self.book.lock:
            self.book.jobs[n] = (row[0], time.time(), self.shape)
        if self.shape == "signal":
            self.signals.append((time.monotonic() + self.random.uniform(0, 2), n))

    def is_unanswered(self):
        if self.shape:
            with self.book.lock:
                self.book.unknown += 1


class Settler(Producer):
    """Sends what signals are left, and enqueues nothing."""

    def __init__(self, world, book, stop, signals):
        super().__init__(world, book, stop, 0, 0.01)
        self.signals = sorted((0.0, n) for _, n in signals)

    def turn(self):
        if self.signals:
            super().turn()
        else:
            self.stop.set()


class Watcher(Client):
    """Is told of ends, asks for those that it may have missed, and answers what jobs ask."""

    turns = 0

    def connect(self):
        super().connect()
        self.connection.execute("listen millrace_ends")

    def told(self, ids):
        now = time.time()
        with self.book.lock:
            for id in ids:
                self.book.ends.setdefault(id, now)

    def turn(self):
        self.turns += 1
        self.told([int(one.payload) for one in self.connection.notifies(timeout=0.1)])
        if self.turns % 5 == 0:
            # Notifications are not kept for those who are away. Each look costs milliseconds, so a few at a time.
            for id in self.book.open_jobs(older=2)[:20]:
                state = self.call("select check_state(%s)", (id,))
                if state == ("succeeded",):
                    self.told([id])
                elif state == ("gone",):
                    with self.book.lock:
                        self.book.gone.add(id)
        if self.turns % 8 == 0:
            for id, job in self.connection.execute("select id, job from millrace.approval_list(page => 500)").fetchall():
                is_yes = job % 3 != 0
                if self.call("select millrace.approval_answer(%s, %s, by => 'check')", (id, is_yes)) is not None:
                    with self.book.lock:
                        self.book.answers[job] = (is_yes, time.time())


class Sender(Client):
    """Mails, and people who do not check in."""

    count = 0

    def turn(self):
        self.count += 1
        n = self.count
        subject = f"Order {n}"
        if n % 3:
            row = self.call(
                "select millrace.mail_send(array[%s], %s, 'A body.', on_unknown => 'again')", (f"p{n}@d{n % 40}.example", subject))
            if row is not None:
                with self.book.lock:
                    self.book.mails[subject] = time.time()
            return
        person, address = f"person-{n}", f"contact-{n}@alarms.example"
        row = self.call(
            """
            with watches as (
                insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
                values (%(person)s, '1 hour', '5 min', '{}', 'UTC', 'armed', now(), now() + interval '4 s', now() + interval '4 s', now())
                returning expires_at
            ), contacts as (
                insert into millrace.watch_contact (person, contact, step, wait, created_at)
                values (%(person)s, %(person)s || '-one', 1, '1 hour', now())
            ), addresses as (
                insert into millrace.watch_address (ref, person, contact, channel, address, verified_at)
                values (gen_random_uuid(), %(person)s, %(person)s || '-one', 'mail', %(address)s, now())
            )
            select extract(epoch from expires_at)::float8 from watches
            """, {"person": person, "address": address})
        if row is not None:
            with self.book.lock:
                self.book.alarms[address] = row[0]


class Mailbox:
    """A mail server: what came, and when."""

    def __init__(self, port):
        self.subjects, self.recipients, self.lock = {}, {}, threading.Lock()
        self.controller = aiosmtpd.controller.Controller(self, hostname="127.0.0.1", port=port)
        self.controller.start()

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        with self.lock:
            self.subjects.setdefault(str(message["Subject"]), []).append(time.time())
            for one in envelope.rcpt_tos:
                self.recipients.setdefault(one, []).append(time.time())
        await asyncio.sleep(0)
        return "250 OK"

    def stop(self):
        self.controller.stop(no_assert=True)


class Load:
    def __init__(self, world, seed):
        self.world, self.book, self.stop, self.done = world, Book(), threading.Event(), threading.Event()
        self.producers = [Producer(world, self.book, self.stop, f"{seed}-{n}", 0.08) for n in range(3)]
        self.sender = Sender(world, self.book, self.stop, seed, 0.7)
        # Two, in case one has just begun to connect to a server that is gone.
        self.watchers = [Watcher(world, self.book, self.done, f"{seed}-{n}", 0.01) for n in range(2)]
        for one in self.clients:
            one.start()

    @property
    def clients(self):
        return [*self.producers, self.sender, *self.watchers]

    def failure(self):
        return next((one.failure for one in self.clients if one.failure), None)

    def end(self, mailbox, seconds):
        """Nothing new; waits until all that was acknowledged has come to its end, or the time is over."""
        self.stop.set()
        for one in [*self.producers, self.sender]:
            one.join(30)
        settler = Settler(self.world, self.book, threading.Event(), [one for p in self.producers for one in p.signals])
        settler.start()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if settler.stop.is_set() and not self.book.open_jobs() and not set(self.book.mails) - set(mailbox.subjects) \
                    and not set(self.book.alarms) - set(mailbox.recipients):
                break
            time.sleep(0.2)
        settler.stop.set()
        self.done.set()
        for one in self.watchers:
            one.join(10)
