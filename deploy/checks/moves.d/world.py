"""The servers of the check, and callers that write down what they were told."""

import itertools
import os
import pathlib
import signal
import struct
import subprocess
import sys
import threading
import time


def say(sentence):
    print(f"==> {sentence}", file=sys.stderr, flush=True)


def children(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


class Server:
    def __init__(self, name, socket, url, start_again):
        self.name, self.url, self.start_again = name, url, start_again
        self.directory = pathlib.Path(socket)

    def ask(self, statement):
        done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url], input=statement, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{self.name}: {done.stderr.strip()}")
        return done.stdout.strip()

    def has_books(self):
        return self.ask("select to_regclass('millrace_move.departure') is not null") == "t"

    def is_open(self, tenant):
        return self.ask(f"select count(*) from millrace_move.departure where tenant = '{tenant}' and state in ('taking', 'finished', 'undoing')") != "0"

    def books(self):
        """What moves have left: taken jobs, jobs written down, moves that have not ended."""
        if not self.has_books():
            return 0, 0, 0
        return tuple(map(int, self.ask("""
            select concat_ws('|', (select count(*) from millrace_move.departed), (select count(*) from millrace_move.arrived),
                             (select count(*) from millrace_move.departure where state in ('taking', 'finished', 'undoing')))""").split("|")))

    def waiting(self, tenant=None):
        """Jobs that have not ended, wherever they are."""
        line = f"where queue in (select id from millrace.queue where tenant = '{tenant}')" if tenant else ""
        return int(self.ask(f"""
            select (select count(*) from millrace.ready {line}) + (select count(*) from millrace.timer {line})
                 + (select count(*) from millrace.parked {line})
                 + {"0" if tenant else "(select count(*) from millrace.jobs where state in ('running', 'blocked'))"}"""))

    def ends(self):
        rows = self.ask("select j.args ->> 'n' from millrace.history h left join millrace.job j on j.id = h.id where h.outcome = 1")
        return [int(n or -1) for n in rows.splitlines()]

    def runs(self, marks):
        return [(n, at / 1e9) for n, at in struct.iter_unpack("<qq", marks.read_bytes())]

    def kill(self):
        """With -9, all of its processes; starts it again. The clock is that of the marks."""
        postmaster = int((self.directory / "data/postmaster.pid").read_text().splitlines()[0])
        parts = children(postmaster)
        killed = time.monotonic()
        os.kill(postmaster, signal.SIGKILL)
        for part in parts + children(postmaster):
            try:
                os.kill(part, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while any(pathlib.Path(f"/proc/{pid}").exists() for pid in [postmaster, *parts]):
            time.sleep(0.02)
        for _ in range(50):
            if subprocess.run(["bash", "-c", self.start_again], capture_output=True).returncode == 0:
                return killed, time.monotonic()
            time.sleep(0.2)
        raise SystemExit(f"{self.name} does not start again: {(self.directory / 'log').read_text()[-500:]}")


class Session:
    """A psql that answers line by line; None: nobody knows whether it was done."""

    def __init__(self, server):
        self.server, self.process = server, None

    def call(self, statement):
        if self.process is None:
            self.process = subprocess.Popen(["psql", "-XAtq", "-d", self.server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True, bufsize=1)
        try:
            self.process.stdin.write(statement.replace("\n", " ") + ";\n\\echo done\n")
            self.process.stdin.flush()
            answer = None
            for line in self.process.stdout:
                if line == "done\n":
                    return answer
                answer = line.strip()
        except OSError:
            pass
        self.close()
        return None

    def close(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Callers:
    """Enqueue jobs: others' in both databases, and the tenant's own, most of them where it goes to."""

    def __init__(self, servers, seen, tenant, ms):
        self.servers, self.seen, self.tenant, self.ms = servers, seen, tenant, ms
        self.numbers, self.lock, self.ended = itertools.count(1), threading.Lock(), threading.Event()
        self.sessions = {name: Session(server) for name, server in servers.items()}
        self.threads = []

    def enqueue(self, server, count, tenant, more="priority => 4"):
        with self.lock:
            numbers = [next(self.numbers) for _ in range(count)]
        answer = self.sessions[server.name].call(f"""
            select count(millrace.enqueue('practice.mark', jsonb_build_object('n', n, 'ms', {self.ms}), tenant => '{tenant}', {more}))
              from generate_series({numbers[0]}, {numbers[-1]}) n""")
        (self.seen.sure if answer == str(count) else self.seen.doubtful).update(numbers)

    def play(self, server, own):
        """A hundred jobs a second, and some of the tenant's."""
        turn = 0
        while not self.ended.is_set():
            for tenant in ("beta", "gamma"):
                self.enqueue(server, 5, tenant)
            if turn % own == 0:
                self.enqueue(server, 3, self.tenant)
            turn += 1
            self.ended.wait(0.1)
        self.sessions[server.name].close()

    def start(self):
        for server, own in ((self.servers["eu"], 10), (self.servers["us"], 2)):
            self.threads.append(threading.Thread(target=self.play, args=(server, own), daemon=True))
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(30)
