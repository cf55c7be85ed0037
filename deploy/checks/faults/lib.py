"""What the checks with faults share: a Postgres, programs that are killed, faults, and what came of it.

A check is a file beside this one with `PACKAGES`, from PyPI, and `check(ground) -> Outcome`. It hands in work for `SPAN` seconds. Meanwhile
one request in ten goes wrong, the other side is away once, and the programs are killed with -9 and started again. Then it waits until all has
settled, and compares what the other side took with what Postgres says.
"""

import argparse
import collections
import contextlib
import dataclasses
import glob
import html
import http.client
import http.server
import importlib.util
import json
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import traceback

CHECKS = pathlib.Path(__file__).resolve().parent.parent
ROOT = CHECKS.parent.parent
SPAN = 24  # how long work is handed in, and things go wrong
SHARE = 0.1  # of the requests something goes wrong with
AWAY = 4  # how long the other side is away
KILLS = 4
SETTLES = 45  # how long all may take afterwards
SECRET = "a shared secret of the checks, longer than thirty-two bytes"


@dataclasses.dataclass
class Outcome:
    work: int
    lost: int = 0
    twice: int = 0
    wrong: int = 0
    again: int = 0  # arrived more than once under one id, which at-least-once allows
    notes: list = dataclasses.field(default_factory=list)


def say(*words):
    print("   ", *words, file=sys.stderr, flush=True)


def load(name):
    """A file of deploy/checks as a module."""
    spec = importlib.util.spec_from_file_location("check_" + name, CHECKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def newest(name):
    """MILLRACE, or the newest build."""
    if name == "millrace" and os.environ.get("MILLRACE"):
        return os.environ["MILLRACE"]
    found = [ROOT / ".build" / kind / name for kind in ("release", "debug")]
    found = [path for path in found if os.access(path, os.X_OK)]
    if not found:
        sys.exit(f"error: there is no {name}; build it, or set MILLRACE")
    return str(max(found, key=lambda path: path.stat().st_mtime))


def quoted(value):
    """As a literal of SQL."""
    if value is None:
        return "null"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "'" + text.replace("'", "''") + "'"


class Program:
    """A program of ours, which can be killed and started again."""

    def __init__(self, ground, name, arguments, environment, ready=None):
        self.ground, self.name, self.arguments, self.ready = ground, name, arguments, ready
        self.environment = environment
        self.log = ground.place / f"{name}.log"
        self.process = None
        self.kills = 0
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.ground.program, *self.arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_until_ready(self):
        within(60, f"{self.name} is ready", lambda: self.ready is None or self.ready())

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


class Ground:
    """A Postgres of this check alone, with our schema; all of it is gone at the end."""

    def __init__(self, seed):
        self.seed = seed
        self.random = random.Random(seed)
        self.faults = Faults(seed)
        self.program = newest("millrace")
        memory = pathlib.Path("/dev/shm")
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="millrace-check-", dir=memory if os.access(memory, os.W_OK) else None))
        self.ends = contextlib.ExitStack()
        self.ends.callback(shutil.rmtree, self.place, ignore_errors=True)
        self.programs = []
        try:
            self._start_postgres()
        except BaseException:
            self.close()
            raise

    def _start_postgres(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
        self.bin = os.environ.get("MILLRACE_POSTGRES_BIN") or (found[-1] if found else None)
        if self.bin is None:
            sys.exit("error: no Postgres server is installed")
        self.data = self.place / "pg"
        self.data.mkdir()
        self.place.chmod(0o755)
        self.as_postgres = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            self.as_postgres = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.data, user.pw_uid, user.pw_gid)
        self._run([f"{self.bin}/initdb", "-D", f"{self.data}/d", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"])
        self.start_postgres()
        self.ends.callback(self.stop_postgres)
        self.url = self.url_of("postgres")
        self.sql(self.millrace("migrate", "--print-roles"))
        self.sql("create role gateway login in role millrace_gateway")
        self.millrace("migrate", "--rooms", "all", "--quiet")

    def url_of(self, user):
        return f"postgresql://{user}@/postgres?host={self.data}"

    def start_postgres(self):
        options = f"-k {self.data} -c listen_addresses='' -c fsync=off -c max_connections=120"
        self._run([f"{self.bin}/pg_ctl", "-D", f"{self.data}/d", "-l", f"{self.data}/log", "-w", "-o", options, "start"])

    def stop_postgres(self, how="fast"):
        """immediate: as when it crashes."""
        self._run([f"{self.bin}/pg_ctl", "-D", f"{self.data}/d", "-m", how, "-w", "stop"], check=False)

    def _run(self, command, check=True):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/", **self.as_postgres)
        if check and done.returncode:
            sys.exit(f"error: {command[0]}: {done.stdout.decode(errors='replace')[-2000:]}")

    def sql(self, text):
        done = subprocess.run(
            [f"{self.bin}/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-f", "-"],
            input=text.encode(), capture_output=True)
        if done.returncode:
            raise RuntimeError(f"psql: {done.stderr.decode(errors='replace')[-1000:]}")
        return done.stdout.decode()

    def rows(self, query):
        """What it answers: an object for each row."""
        return json.loads(self.sql(f"select coalesce(json_agg(q), '[]') from ({query}) q"))

    def value(self, query):
        return next(iter(self.rows(query)[0].values()))

    def millrace(self, *arguments):
        done = subprocess.run([self.program, *arguments], env=self.environment(), capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise RuntimeError(f"millrace {' '.join(arguments)}: {done.stderr.decode(errors='replace')[-1000:]}")
        return done.stdout.decode()

    def environment(self, more=None, user="postgres"):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MILLRACE_", "PG", "RESEND_", "EMAIL_"))}
        return {**kept, "DATABASE_URL": self.url_of(user), "MILLRACE_BREAKER_OPEN": "1s", "NO_COLOR": "1", **(more or {})}

    def worker(self, more=None, arguments=()):
        one = Program(
            self, f"worker{len(self.programs)}", ["worker", "--listen", "off", *arguments], self.environment(more),
            ready=lambda: self.value("select count(*) from millrace.session") > 0)
        return self._keeps(one)

    def gateway(self, more=None):
        """A gateway, and its port."""
        port = free_port()
        environment = self.environment(
            {"MILLRACE_GATEWAY_RATES": "subject=100000:100000,operations=100000:100000,address=100000:100000", **(more or {})},
            user="gateway")
        one = Program(
            self, "gateway", ["gateway", "--listen", f"127.0.0.1:{port}", "--log-level", "warning"], environment,
            ready=lambda: answers(port, "/readyz"))
        return self._keeps(one), port

    def _keeps(self, program):
        self.programs.append(program)
        self.ends.callback(program.stop)
        program.wait_until_ready()
        return program

    @contextlib.contextmanager
    def disturbed(self, away):
        """Kills the programs in turn, KILLS times in SPAN seconds, and calls `away(seconds)` once."""
        moments = [(SPAN * (n + self.random.uniform(0.2, 0.8)) / KILLS, "kill") for n in range(KILLS)]
        moments.append((SPAN * 0.4, "away"))
        over = threading.Event()
        failed = []

        def act():
            began = time.monotonic()
            try:
                for n, (moment, what) in enumerate(sorted(moments)):
                    if over.wait(max(0, began + moment - time.monotonic())):
                        return
                    if what == "away":
                        say(f"the other side is away for {AWAY} s")
                        away(AWAY)
                    else:
                        program = self.programs[n % len(self.programs)]
                        say(f"kill -9 {program.name}")
                        program.kill()
                        program.start()
            except BaseException:
                failed.append(traceback.format_exc())

        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        try:
            yield
            thread.join()
        finally:
            over.set()
        if failed:
            raise RuntimeError(failed[0])
        for program in self.programs:
            if program.process.poll() is not None:
                raise RuntimeError(f"{program.name} has ended by itself: {program.log.read_text(errors='replace')[-2000:]}")

    @property
    def is_over(self):
        """Whether all has had its time, once nothing goes wrong any more."""
        return self.faults.ended_at is not None and time.monotonic() > self.faults.ended_at + SETTLES

    def settle(self, what, condition):
        """Nothing goes wrong any more; waits until the condition holds, or time is over."""
        self.faults.end()
        return within(SETTLES, what, condition, is_needed=False)

    def close(self):
        self.ends.close()


def within(seconds, what, condition, is_needed=True):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            if is_needed:
                raise RuntimeError(f"this did not come about in {seconds} s: {what}")
            say(f"this did not come about in {seconds} s: {what}")
            return False
        time.sleep(0.1)
    return True


def spread(count, act):
    """Calls act(n) for each n, evenly over SPAN seconds."""
    began = time.monotonic()
    for n in range(count):
        time.sleep(max(0, began + SPAN * n / count - time.monotonic()))
        act(n)


def answers(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class Faults:
    """What goes wrong with a request. Its kinds: an error is answered; the connection ends before or after the request was taken; it is slow."""

    KINDS = ["error", "cut before", "cut after", "slow"]

    def __init__(self, seed):
        self.random = random.Random(seed + 1)
        self.share = SHARE
        self.lock = threading.Lock()
        self.ended_at = None
        self.counts = collections.Counter()

    def next(self):
        with self.lock:
            self.counts["requests"] += 1
            if not self.are_on or self.random.random() >= self.share:
                return None
            kind = self.random.choice(self.KINDS)
            self.counts[kind] += 1
            return kind

    @property
    def are_on(self):
        return self.ended_at is None

    def end(self):
        self.ended_at = time.monotonic()

    @property
    def total(self):
        return sum(self.counts[kind] for kind in self.KINDS)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a caller that was killed


class Counterpart:
    """An HTTP server of the other side. `answer(method, path, headers, body)` gives status, headers and body; faults come before and after it."""

    def __init__(self, ground, answer):
        self.ground, self.answer, self.port = ground, answer, free_port()
        self.server = None
        self.is_away = True
        self.open()
        ground.ends.callback(self.close)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def open(self):
        self.server = Server(("127.0.0.1", self.port), self._handler())
        self.is_away = False
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.is_away = True
        self.server.shutdown()
        self.server.server_close()

    def away(self, seconds):
        self.close()
        time.sleep(seconds)
        self.open()

    def _handler(counterpart):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def cut(self):
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)

            def reply(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if counterpart.is_away:
                    return self.cut()
                kind = counterpart.ground.faults.next()
                if kind == "error":
                    return self.reply(503, {"Content-Type": "text/html"}, b"<html>Service Unavailable</html>")
                if kind == "cut before":
                    return self.cut()
                if kind == "slow":
                    time.sleep(2)
                answer = counterpart.answer(self.command, self.path, self.headers, body)
                if kind == "cut after" or counterpart.is_away:
                    return self.cut()
                return self.reply(*answer)

            do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = handle_any

        return Handler


HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server", "host"}


def proxy(ground, port):
    """A proxy on the way to this port, with faults of its own. What it cannot reach it answers with 502."""

    def answer(method, path, headers, body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path, body or None, {k: v for k, v in headers.items() if k.lower() not in HOP})
            response = connection.getresponse()
            return response.status, {k: v for k, v in response.getheaders() if k.lower() not in HOP}, response.read()
        except (OSError, http.client.HTTPException):
            return 502, {"Content-Type": "text/html"}, b"<html>Bad Gateway</html>"
        finally:
            connection.close()

    return Counterpart(ground, answer)


def main(check):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--seed", type=int, default=0, help="repeats the choices of faults, not how they interleave")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    seed = arguments.seed or random.SystemRandom().randrange(1, 1 << 31)
    began = time.monotonic()
    ground = Ground(seed)
    try:
        outcome = check(ground)
        if outcome.lost or outcome.twice or outcome.wrong:
            for program in ground.programs:
                say(f"the end of {program.name}.log:\n" + program.log.read_text(errors="replace")[-3000:])
    finally:
        ground.close()
    print(json.dumps({
        **dataclasses.asdict(outcome), "faults": ground.faults.total, "requests": ground.faults.counts["requests"],
        "kills": sum(program.kills for program in ground.programs), "seconds": round(time.monotonic() - began, 1), "seed": seed,
    }))
    sys.exit(1 if outcome.lost or outcome.twice or outcome.wrong else 0)
