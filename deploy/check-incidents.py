"""Plays ten faults, and asks status, why and the console for each; see check-incidents."""

import argparse
import contextlib
import glob
import html
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

BAR = 10.0
TOKEN = "incidents-0123456789abcdef"
CONNECTIONS = 100


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(what, condition, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise RuntimeError(f"this did not come about: {what}")


class Server:
    """A Postgres of its own: a database for each fault, copied from one that is migrated."""

    def __init__(self, binary):
        self.binary = os.path.abspath(binary)
        self.place = tempfile.mkdtemp(prefix="millrace-incidents-")
        self.user = "postgres" if os.geteuid() == 0 and self._has("postgres") else None
        if os.geteuid() == 0:
            self.user = self.user or "nobody"
            shutil.chown(self.place, self.user)
        os.chmod(self.place, 0o755)
        given = os.environ.get("MILLRACE_POSTGRES_BIN")
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
        self.programs = given or (found[-1] if found else os.path.dirname(shutil.which("postgres")))
        self.port = free_port()
        try:
            self._begin()
        except BaseException:
            self.stop()
            raise

    def _begin(self):
        self._run("initdb", "-D", f"{self.place}/data", "-A", "trust", "-U", "postgres", "--no-sync")
        options = f"-p {self.port} -k {self.place} -c fsync=off -c max_connections={CONNECTIONS}"
        self._run("pg_ctl", "-D", f"{self.place}/data", "-l", f"{self.place}/log", "-w", "-o",
                  options + " -c listen_addresses=127.0.0.1", "start")
        self.sql("create role shop login; create role hog login; create database base owner shop", "postgres")
        self.millrace("base", "migrate", "--rooms", "all", check=True)

    @staticmethod
    def _has(name):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            return None

    def _run(self, program, *words):
        more = {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid} if self.user else {}
        done = subprocess.run([f"{self.programs}/{program}", *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", **more)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode()}")

    def stop(self):
        with contextlib.suppress(RuntimeError):
            self._run("pg_ctl", "-D", f"{self.place}/data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.place, ignore_errors=True)

    def environment(self, database):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MILLRACE_", "PG", "DATABASE_"))}
        return {**kept, "DATABASE_URL": f"postgresql://shop@127.0.0.1:{self.port}/{database}", "NO_COLOR": "1"}

    def superuser(self, database):
        """What a shell of the server's administrator has."""
        return {**self.environment(database), "PGHOST": self.place, "PGPORT": str(self.port),
                "PGUSER": "postgres", "PGDATABASE": database}

    def sql(self, text, database):
        """As a superuser, for whom connections are reserved: each answer is a line."""
        words = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(words + [w for t in text.split("; ") for w in ("-c", t)], text=True,
                              env=self.superuser(database), capture_output=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def millrace(self, database, *words, check=False):
        done = subprocess.run([self.binary, *words], env=self.environment(database), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, cwd=self.place)
        if check and done.returncode:
            raise RuntimeError(f"millrace {' '.join(words)}: {done.stdout}{done.stderr}")
        return done


class World:
    """A fault's database, its workers and its console."""

    def __init__(self, server, name):
        self.server = server
        self.database = f"fault_{name}"
        server.sql(f"create database {self.database} template base owner shop", "postgres")
        self.place = f"{server.place}/{name}"
        os.mkdir(self.place)
        self.workers = {}
        self.stopping = False
        self.threads = []
        self.console_port = free_port()
        self.console = self._start(["console", "--listen", f"127.0.0.1:{self.console_port}", "--token", TOKEN], {})
        until("the console answers", lambda: self.page("/console")[0] == 200)

    def _start(self, words, more):
        with open(f"{self.place}/{words[0]}.log", "ab") as log:
            return subprocess.Popen([self.server.binary, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env={**self.server.environment(self.database), **more}, cwd=self.place)

    def worker(self, *words, name="worker", **more):
        """A worker that is started again whenever it ends, as a service manager does."""
        line = ["worker", "--practice", "--listen", "off", "--log-level", "warning", "--drain-timeout", "1s",
                "--name", name, *words]

        def keep():
            while not self.stopping:
                self.workers[name] = self._start(line, more)
                self.workers[name].wait()
                for _ in range(20):
                    if not self.stopping:
                        time.sleep(0.1)

        before = self.sql(f"select count(*) from millrace.session where name = '{name}'")
        self.threads.append(threading.Thread(target=keep, daemon=True))
        self.threads[-1].start()
        until(f"{name} works", lambda: self.sql(f"select count(*) from millrace.session where name = '{name}'") > before)

    def end(self):
        self.stopping = True
        for one in [self.console, *self.workers.values()]:
            if one.poll() is None:
                one.kill()
        for one in [self.console, *self.workers.values()]:
            one.wait()

    def sql(self, text):
        return self.server.sql(text, self.database)

    def millrace(self, *words, check=True):
        return self.server.millrace(self.database, *words, check=check)

    def enqueue(self, kind, arguments="{}", *words):
        return self.millrace("enqueue", kind, arguments, *words).stdout.strip()

    def state(self, job):
        return json.loads(self.millrace("jobs", "show", job, "--json").stdout)["state"]

    def status(self):
        return self.millrace("status", "--json", check=False)

    def alarms(self):
        done = self.status()
        return [f["alarm"] for f in json.loads(done.stdout)["findings"]] if done.stdout else ["unreachable"]

    def page(self, path):
        status, source = self.source(path)
        return status, self.text(source)

    def source(self, path):
        asked = urllib.request.Request(f"http://127.0.0.1:{self.console_port}{path}",
                                       headers={"Authorization": f"Bearer {TOKEN}", "Accept": "text/html"})
        try:
            with urllib.request.urlopen(asked, timeout=15) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    @staticmethod
    def text(page):
        page = re.sub(r"(?s)<(script|style|head).*?</\1>", " ", page)
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))

    def run(self, command):
        """The named command, typed into a shell of the operator's, or of the server's administrator for psql."""
        words = shlex.split(command)
        if words[0] == "systemctl":
            return self.worker() or "started"
        if words[0] == "kill":
            os.kill(int(words[1]), signal.SIGTERM)
            return "killed"
        if words[0] == "psql":
            words[1:1] = ["-X"]
            done = subprocess.run(words, env=self.server.superuser(self.database), text=True, capture_output=True)
        else:
            done = self.millrace(*words[1:], "--yes", check=False)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout


class Fault:
    """What is done, how its cause is told, the command that helps, and how that shows."""

    name = title = cause = command = ""
    #: What `why` is asked about: a job's id, or --queue and a name.
    about = []

    def make(self, world): raise NotImplementedError

    def mend(self, world, command):
        """Runs the command and does what it tells; returns what is true then."""
        raise NotImplementedError


class NoWorker(Fault):
    name, title = "worker", "no worker"
    cause, command = r"no worker is running", r"systemctl start millrace"

    def make(self, world):
        self.job = world.enqueue("practice.nothing")
        self.about = [self.job]

    def mend(self, world, command):
        world.run(command)
        until("the job succeeds", lambda: world.state(self.job) == "succeeded")
        until("status is well", lambda: world.status().returncode == 0)
        return "the job succeeded, status is OK"


class Stuck(Fault):
    name, title = "stuck", "stuck handler"
    cause, command = r"stuck handler|ignores? (its|their) cancellation", r"kill \d+"

    def make(self, world):
        world.worker("--slots", "4")
        self.job = world.enqueue("practice.spin", '{"ms": 3600000}', "--option", "timeout=1", "--max-attempts", "1")
        self.other = world.enqueue("practice.sleep", '{"ms": 3600000}')
        self.about = [self.job]
        until("the worker tells of it", lambda: world.sql("select count(*) from millrace.beat where stuck > 0") == "1")

    def mend(self, world, command):
        world.run(command)
        until("the job has used its attempt", lambda: world.state(self.job) == "dead")
        until("no handler is stuck", lambda: "stuck handlers" not in world.alarms())
        until("the other goes on", lambda: world.state(self.other) == "running")
        return "the slot is free, the job used its attempt, the other runs again"


class Poison(Fault):
    name, title = "poison", "job that kills its worker"
    cause = r"ended while (it|they) held (it|this job)|crashed its worker|workers died"

    def make(self, world):
        world.worker()
        self.job = world.enqueue("practice.crash")
        self.about = [self.job]
        self.command = rf"millrace jobs (show|cancel) {self.job}\b"
        # A job that was there at one worker's end and runs again may be a bystander, and is not blamed.
        until("it is known to have ended two workers", lambda: world.sql(
            "select count(*) from millrace.run_troubles() where crashes > 1") != "0"
            or world.state(self.job) == "dead", 180)

    def mend(self, world, command):
        shown = world.run(command)
        if " show " in command and not re.search(r"crash|ended|died", shown):
            raise RuntimeError(f"{command} shows no crash: {shown}")
        world.millrace("jobs", "cancel", self.job, "--yes", check=False)
        until("it runs no more", lambda: world.state(self.job) in ("cancelled", "dead"))
        other = world.enqueue("practice.nothing")
        until("others run", lambda: world.state(other) == "succeeded")
        return "taken out, it ends no more workers, and others run"


class Backlog(Fault):
    name, title = "backlog", "backlog"
    cause, command = r"oldest job waits for|is full: 1 of 1 slots are taken", r"millrace workers list"

    def make(self, world):
        world.worker("--slots", "1")
        world.enqueue("practice.sleep", '{"ms": 3600000}')
        until("the worker is full", lambda: world.sql("select coalesce(max(running), 0) from millrace.beat") == "1")
        self.jobs = [world.enqueue("practice.nothing") for _ in range(3)]
        world.sql("update millrace.job set enqueued_at = enqueued_at - interval '20 min'")
        self.about = [self.jobs[0]]

    def mend(self, world, command):
        if "1" not in world.run(command):
            raise RuntimeError("the slots in use are not shown")
        world.worker("--slots", "10", name="second")
        until("the jobs succeed", lambda: all(world.state(job) == "succeeded" for job in self.jobs))
        return "the full worker is shown; with a second one the jobs ran"


class Paused(Fault):
    name, title = "paused", "paused queue"
    cause, command = r"paused", r"millrace queues resume default"

    def make(self, world):
        world.worker()
        world.millrace("queues", "pause", "default", "--create")
        self.job = world.enqueue("practice.nothing")
        self.about = [self.job]

    def mend(self, world, command):
        world.run(command)
        until("the job succeeds", lambda: world.state(self.job) == "succeeded")
        until("status is well", lambda: world.status().returncode == 0)
        return "the job succeeded, status is OK"


class MailServer(socketserver.ThreadingTCPServer):
    """Takes every message."""

    allow_reuse_address = True
    daemon_threads = True

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            def say(text):
                self.wfile.write(text.encode() + b"\r\n")

            say("220 incidents ESMTP")
            while line := self.rfile.readline():
                word = line.split()[0].upper() if line.split() else b""
                if word == b"DATA":
                    say("354 go on")
                    while self.rfile.readline() not in (b".\r\n", b""):
                        pass
                    say("250 taken")
                elif word == b"QUIT":
                    return say("221 bye")
                else:
                    say("250 incidents")


class Provider(Fault):
    name, title = "provider", "provider down"
    cause, command = r"smtp is not called", r"millrace providers show smtp"

    def make(self, world):
        self.port = free_port()
        world.worker(MILLRACE_MAIL_SMTP_URL=f"smtp://127.0.0.1:{self.port}?tls=none", MILLRACE_BREAKER_OPEN="5s",
                     EMAIL_SERVICE_PROVIDER="smtp", EMAIL_FROM_ADDRESS="shop@example.net")
        text = f"{world.place}/text"
        with open(text, "w") as file:
            file.write("Hello")
        for n in range(5):
            world.millrace("mail", "send", f"p{n}@example.org", "--subject", "Hello", "--text", text)
        until("the provider is not called", lambda: world.sql(
            "select count(*) from millrace.provider_circuit where state in ('open', 'probing')") != "0")
        # The state of the breaker comes before the jobs that it sends back.
        self.about = [until("a mail waits", lambda: world.sql(
            "select min(t.job) from millrace.timer t join millrace.job j on j.id = t.job"
            " join millrace.kind k on k.id = j.kind where k.name like 'mail.%'"))]

    def mend(self, world, command):
        shown = world.run(command)
        if "open" not in shown and "probing" not in shown:
            raise RuntimeError(f"{command} does not show that it is not called: {shown}")
        with MailServer(("127.0.0.1", self.port), MailServer.Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            until("all mails are sent", lambda: world.sql(
                "select count(*) from millrace.mail where status <> 'accepted'") == "0", 90)
            server.shutdown()
        return "its state is shown; once it was back, all mails were sent"


class Build(Fault):
    name, title = "build", "bad build"
    cause, command = r"newest build, [^ ]*bad\b", r"millrace versions rollback"

    def make(self, world):
        world.worker("--build", "good", "--only-build", name="good")
        world.millrace("versions", "promote", "good")
        for _ in range(12):
            last = world.enqueue("practice.fail", '{"times": 0}')
        until("the good build has run them", lambda: world.state(last) == "succeeded")
        time.sleep(2.5)  # its counts come with its next beat
        world.worker("--build", "bad", "--only-build", name="bad")
        world.millrace("versions", "promote", "bad")
        jobs = [world.enqueue("practice.fail", '{"times": 99}') for _ in range(12)]
        self.about = [jobs[0]]
        until("the counts are there", lambda: int(world.sql(
            "select coalesce(sum(failed), 0) from millrace.tally")) >= 10)

    def mend(self, world, command):
        world.run(command)
        job = world.enqueue("practice.fail", '{"times": 0}')
        until("a new job succeeds", lambda: world.state(job) == "succeeded")
        worker = json.loads(world.millrace("jobs", "show", job, "--json").stdout).get("worker")
        if worker != "good":
            raise RuntimeError(f"the job ran on {worker}")
        return "new jobs run on the good build"


class Template(Fault):
    name, title = "template", "bad mail template"
    cause, command = r"template promo: the variable city is missing", r"millrace templates use promo 1\b"

    @staticmethod
    def send(world):
        return world.millrace("mail", "send", "ada@example.org", "--template", "promo", "--data",
                              '{"name": "Ada"}').stdout.strip()

    def publish(self, world, subject, variables):
        folder = f"{world.place}/templates/promo/en"
        os.makedirs(folder, exist_ok=True)
        for file, text in (("subject.txt", subject), ("body.txt", "Hello {{name}}"),
                           ("body.html", "<p>Hello {{name}}</p>"), ("variables.json", json.dumps(variables))):
            with open(f"{folder}/{file}", "w") as to:
                to.write(text)
        world.millrace("templates", "publish", f"{world.place}/templates")

    def make(self, world):
        need = {"type": "text", "required": True, "max": 20}
        self.publish(world, "Hello {{name}}", {"name": need})
        self.mail = self.send(world)
        self.publish(world, "Hello {{name}} in {{city}}", {"name": need, "city": need})
        world.worker(EMAIL_SERVICE_PROVIDER="outbox", EMAIL_FROM_ADDRESS="shop@example.net")
        self.about = [world.sql(f"select job from millrace.mail where id = '{self.mail}'")]
        until("the mail has failed", lambda: world.state(self.about[0]) == "dead")

    def mend(self, world, command):
        world.run(command)
        self.mail = self.send(world)
        until("the message is sent", lambda: world.sql(
            f"select status from millrace.mail where id = '{self.mail}'") == "accepted")
        return "with the version before, the message that was handed in again was sent"


class Connections(Fault):
    name, title = "connections", "no connection left"
    cause = r"no connection left|has \d+ connections? left"
    command = r"psql -c '[^']*pg_stat_activity[^']*'"

    def make(self, world):
        world.worker()
        world.page("/console")  # as somebody does who looks at it now and then
        world.enqueue("practice.nothing", "{}", "--wait")
        self.about = ["--queue", "default"]
        self.held = []
        refused = 0
        while refused < 3:  # connections that end meanwhile are taken too
            one = self.connect(world)
            if one:
                self.held.append(one)
            else:
                refused += 1
                time.sleep(0.3)

    @staticmethod
    def connect(world):
        one = socket.create_connection(("127.0.0.1", world.server.port))
        words = f"user\0hog\0database\0{world.database}\0application_name\0nightly-report\0\0".encode()
        one.sendall(struct.pack("!ii", len(words) + 8, 196608) + words)
        # The slots that are reserved are refused only after the password.
        answer = one.makefile("rb")
        while head := answer.read(5):
            if head[:1] == b"Z":
                return one
            if head[:1] == b"E":
                break
            answer.read(struct.unpack("!i", head[1:])[0] - 4)
        one.close()
        return None

    def mend(self, world, command):
        if "nightly-report" not in world.run(command):
            raise RuntimeError("whose the connections are is not shown")
        for one in self.held:
            one.close()
        until("status is well", lambda: world.status().returncode == 0)
        return "whose they are is shown; once that program ended, status is OK"


class Schedule(Fault):
    name, title = "schedule", "missed schedule"
    cause, command = r"schedule nightly missed (some of its )?times", r"millrace schedules run nightly"
    about = ["--queue", "nightly"]

    def make(self, world):
        world.millrace("schedules", "add", "nightly", "0 * * * *", "practice.nothing", "--catch-up", "none")
        world.worker(name="first")
        until("it is planned", lambda: world.sql("select count(*) from millrace.schedule where next_at is not null") == "1")
        # As if no worker had been there for an hour.
        world.sql("update millrace.schedule set next_at = next_at - interval '1 hour'")
        until("a time is missed", lambda: world.sql("select missed from millrace.schedule") != "0")

    def mend(self, world, command):
        world.run(command)
        until("its job succeeds", lambda: world.sql(
            "select count(*) from millrace.history where outcome = 1") != "0")
        return "its job ran"


FAULTS = [NoWorker, Stuck, Poison, Backlog, Paused, Provider, Build, Template, Connections, Schedule]


def told(fault, sentences, commands):
    """The command, where a sentence names the cause."""
    if any(re.search(fault.cause, s) for s in sentences):
        for command in commands:
            found = re.search(fault.command, command or "")
            if found:
                return found.group(0)
    return None


def ask_status(world, fault):
    done = world.status()
    if not done.stdout.strip():
        return told(fault, [done.stderr], [json.loads(done.stderr).get("hint", done.stderr)
                                           if done.stderr.startswith("{") else done.stderr])
    answer = json.loads(done.stdout)
    if "findings" not in answer:
        return told(fault, [done.stdout], strings(answer))
    for finding in answer["findings"]:
        command = told(fault, [finding["sentence"]], [finding["command"]])
        if command:
            return command
    return None


def strings(value):
    if isinstance(value, dict):
        return [s for one in value.values() for s in strings(one)]
    if isinstance(value, list):
        return [s for one in value for s in strings(one)]
    return [value] if isinstance(value, str) else []


def ask_why(world, fault):
    done = world.millrace("why", *fault.about, "--json", check=False)
    if not done.stdout.strip():
        return told(fault, [done.stderr], [done.stderr])
    answer = json.loads(done.stdout)
    why = answer.get("why", answer) or {}
    return told(fault, [why.get("sentence") or "", *why.get("chain", []), *strings(answer.get("error", {}))],
                [why.get("command"), *strings(answer.get("error", {}))])


def ask_console(world, fault):
    """The overview names the cause; the command stands there, or on the page of findings that it leads to."""
    _, source = world.source("/console")
    text = world.text(source)
    command = told(fault, [text], [text])
    if command or not re.search(fault.cause, text) or 'href="/console/findings"' not in source:
        return command
    _, text = world.page("/console/findings")
    return told(fault, [text], [text])


def play(server, fault):
    """Seconds until each face named it, the commands, and what came of the command."""
    world = World(server, fault.name)
    row = {"fault": fault.title, "seconds": {}, "commands": {}, "helped": None}
    try:
        fault.make(world)
        began = time.monotonic()

        def ask(face, question):
            while time.monotonic() - began < BAR:
                with contextlib.suppress(ValueError):
                    command = question(world, fault)
                    if command:
                        row["seconds"][face] = time.monotonic() - began
                        row["commands"][face] = command
                        return
                time.sleep(0.2)

        faces = {"status": ask_status, "why": ask_why, "console": ask_console}
        threads = [threading.Thread(target=ask, args=one) for one in faces.items()]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        if not row["commands"]:
            row["helped"] = "no command is named"
            return row
        try:
            row["helped"] = fault.mend(world, next(iter(row["commands"].values())))
            row["mended"] = True
        except RuntimeError as error:
            row["helped"] = str(error)
        if len(row["commands"]) < 3 or not row.get("mended"):
            row["shown"] = {"status": world.status().stdout[:1500], "why": world.millrace(
                "why", *fault.about, "--json", check=False).stdout[:1500], "console": world.page("/console")[1][:800]}
        return row
    finally:
        world.end()


def main():
    parser = argparse.ArgumentParser(prog="deploy/check-incidents")
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    parser.add_argument("--strict", action="store_true")
    given = parser.parse_args()
    only = [name for name in given.only.split(",") if name]
    unknown = set(only) - {one.name for one in FAULTS}
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    server = Server(given.binary)
    missed = 0
    try:
        print(f"{'fault':<27}{'status':>8}{'why':>8}{'console':>9}  bar     what the command did")
        for kind in FAULTS:
            if only and kind.name not in only:
                continue
            try:
                row = play(server, kind())
            except (RuntimeError, ValueError, KeyError) as error:
                row = {"fault": kind.title, "seconds": {}, "commands": {}, "helped": f"could not be played: {error}"}
            is_met = len(row["seconds"]) == 3 and row.get("mended", False)
            missed += not is_met
            times = [f"{row['seconds'][f]:.1f} s" if f in row["seconds"] else "-" for f in ("status", "why", "console")]
            print(f"{row['fault']:<27}{times[0]:>8}{times[1]:>8}{times[2]:>9}  {'met' if is_met else 'missed':<8}"
                  f"{next(iter(row['commands'].values()), '')[:60]}: {row['helped']}", flush=True)
            for face, text in row.get("shown", {}).items():
                print(f"  {face}: {text}", file=sys.stderr)
    finally:
        server.stop()
    return 1 if missed and given.strict else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
