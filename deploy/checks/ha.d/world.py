"""Three machines with Patroni and Postgres and three with etcd, in network namespaces of their own; before them haproxy and pgbouncer.

The configuration is that of deploy/ha. What differs here is where files lie, and each machine's name and address.
"""

import contextlib
import datetime
import glob
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
HA = ROOT / "deploy" / "ha"
HUB = "10.59.0.1"
PASSWORD = "change-me-millrace"


def say(*words):
    print("   ", *words, file=sys.stderr, flush=True)


def until(what, condition, seconds=60.0, pause=0.1):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(pause)
    raise RuntimeError(f"this did not come about in {seconds:.0f} s: {what}")


def run(*command, check=True):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done


class Machine:
    """Its network, and what runs in it."""

    def __init__(self, world, name, address, link):
        self.world, self.name, self.address, self.link = world, name, address, link
        self.place = world.place / self.name
        self.place.mkdir()
        shutil.chown(self.place, "postgres", "postgres")
        self.keeper = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
        # The process itself is there before its network is.
        until("a network of its own", lambda: self._network(self.keeper.pid) not in (None, self._network("self")), 10, 0.01)
        self.network = self._network(self.keeper.pid)
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", str(self.keeper.pid))
        run("ip", "link", "set", self.link, "master", "hub", "up")
        self.inside("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self.inside("ip", "link", "set", "eth0", "up")
        self.inside("ip", "link", "set", "lo", "up")

    @staticmethod
    def _network(pid):
        try:
            return os.readlink(f"/proc/{pid}/ns/net")
        except OSError:
            return None

    def _written(self, name):
        """A file of deploy/ha for this machine and this place."""
        lines = (HA / name).read_text().split("\n")
        text = "\n".join(
            line if re.match(r"\s*(hosts|initial-cluster): ", line) else re.sub(r"10\.59\.0\.[12]1\b", self.address, line) for line in lines)
        text = re.sub(r"(?m)^name: (db|etcd)1$", f"name: {self.name}", text)
        text = text.replace("/var/lib/etcd/millrace", f"{self.place}/etcd").replace("/var/lib/postgresql/15/millrace", f"{self.place}/data")
        text = text.replace("/var/lib/postgresql/millrace.pgpass", f"{self.place}/pgpass").replace("/var/run/postgresql", str(self.place))
        text = text.replace("/usr/lib/postgresql/15/bin", self.world.bin)
        # There is no watchdog here: what is frozen comes back to life, which is the worse case.
        text = text.replace("mode: automatic", "mode: 'off'")
        if self.world.is_asynchronous:
            text = text.replace("synchronous_mode: true", "synchronous_mode: false")
        path = self.place / name
        path.write_text(text)
        return path

    def inside(self, *command, check=True):
        return run("nsenter", "-t", str(self.keeper.pid), "-n", *command, check=check)

    def begin(self, name, *command, more=None):
        with open(self.place / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                ["nsenter", "-t", str(self.keeper.pid), "-n", "setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups",
                 *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place,
                # The kernel wakes what is frozen in a group whose last parent outside has gone, such as the caller's shell.
                start_new_session=True, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **(more or {})})

    def processes(self, *names):
        """Those of this machine, with etcd, patroni or postgres as their name; of these names, or all."""
        found = []
        for path in glob.glob("/proc/[0-9]*"):
            pid = int(path[6:])
            if self._network(pid) != self.network or pid == self.keeper.pid:
                continue
            with contextlib.suppress(OSError):
                words = pathlib.Path(path, "cmdline").read_bytes().split(b"\0")
                name = pathlib.Path(path, "comm").read_text().strip()
                name = "patroni" if any(b"patroni" in word for word in words[:3]) else name
                if words[0] and (not names or name in names):
                    found.append((pid, name))
        return found

    def send(self, what, *names):
        """A signal to these, twice, because one may just have started another."""
        for _ in range(2):
            for pid, _ in self.processes(*names):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, what)

    def cut(self):
        run("ip", "link", "set", self.link, "down")

    def slow(self):
        if self.world.has_netem:
            run("tc", "qdisc", "replace", "dev", self.link, "root", "netem", "delay", "150ms", "40ms")
            self.inside("tc", "qdisc", "replace", "dev", "eth0", "root", "netem", "delay", "150ms", "40ms")
        else:
            words = ["root", "tbf", "rate", "300kbit", "burst", "16kb", "latency", "3s"]
            run("tc", "qdisc", "replace", "dev", self.link, *words)
            self.inside("tc", "qdisc", "replace", "dev", "eth0", *words)

    def mend(self):
        """The link, and what was frozen; what does not run is started."""
        run("tc", "qdisc", "del", "dev", self.link, "root", check=False)
        self.inside("tc", "qdisc", "del", "dev", "eth0", "root", check=False)
        run("ip", "link", "set", self.link, "up")
        self.send(signal.SIGCONT)
        self.start()

    def start(self):
        """What does not run."""
        if self.program not in {name for _, name in self.processes()}:
            self.begin(self.program, *self.command)


class Store(Machine):
    """One with etcd."""

    program = "etcd"

    def __init__(self, world, number):
        super().__init__(world, f"etcd{number}", f"10.59.0.2{number}", f"e{number}")
        self.command = ["etcd", "--config-file", str(self._written("etcd.yml"))]


class Node(Machine):
    """One with Patroni and Postgres."""

    program = "patroni"

    def __init__(self, world, number):
        super().__init__(world, f"db{number}", f"10.59.0.1{number}", f"v{number}")
        self.command = [world.patroni, str(self._written("patroni.yml"))]
        self.promoted, self.read_to = {}, 0

    def walsenders(self):
        """The processes that send to standbys; Postgres writes what it is into the command line."""
        found = []
        for pid, _ in self.processes("postgres"):
            with contextlib.suppress(OSError):
                if b"walsender" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def cut_from_etcd(self):
        for store in self.world.stores:
            self.inside("ip", "route", "add", "blackhole", f"{store.address}/32")

    def mend(self):
        for store in self.world.stores:
            self.inside("ip", "route", "del", "blackhole", f"{store.address}/32", check=False)
        super().mend()

    def ask(self, path, seconds=1.0):
        """Patroni's answer; None: none."""
        try:
            with urllib.request.urlopen(f"http://{self.address}:8008{path}", timeout=seconds) as answer:
                return json.loads(answer.read() or b"{}")
        except (OSError, ValueError):
            return None

    def promotions(self):
        """When this Postgres became a leader, and of which timeline: what its log says."""
        with contextlib.suppress(OSError), open(self.place / "patroni.log", "rb") as log:
            log.seek(self.read_to)
            for line in log:
                if not line.endswith(b"\n"):
                    break  # the rest of it is still to come
                self.read_to += len(line)
                said = re.match(rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC .*selected new timeline ID: (\d+)", line)
                if said:
                    at = datetime.datetime.fromisoformat(said[1].decode()).replace(tzinfo=datetime.timezone.utc)
                    self.promoted[int(said[2])] = at.timestamp()
        return self.promoted


class World:
    def __init__(self, place, patroni, is_asynchronous):
        self.place, self.patroni, self.is_asynchronous = pathlib.Path(place), patroni, is_asynchronous
        given = os.environ.get("MILLRACE_POSTGRES_BIN")
        self.bin = given or max(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
        self.place.chmod(0o755)
        self.logs = []
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "hub", "type", "bridge")
        run("ip", "addr", "add", f"{HUB}/24", "dev", "hub")
        run("ip", "link", "set", "hub", "up")
        self.has_netem = run("tc", "qdisc", "add", "dev", "hub", "root", "netem", "delay", "0ms", check=False).returncode == 0
        run("tc", "qdisc", "del", "dev", "hub", "root", check=False)
        self.stores = [Store(self, number) for number in (1, 2, 3)]
        self.nodes = [Node(self, number) for number in (1, 2, 3)]

    def open(self):
        for machine in self.stores + self.nodes:
            machine.start()
        until("there are a leader and two standbys", self.is_whole, 120, 0.3)
        self._outside()
        self._front()
        self.sql_on_leader(f"create role millrace login password '{PASSWORD}'", "create database millrace owner millrace")

    def _front(self):
        text = (HA / "haproxy.cfg").read_text()
        (self.place / "haproxy.cfg").write_text(text)
        self._begin("haproxy", ["haproxy", "-db", "-f", str(self.place / "haproxy.cfg")])
        shutil.copy(HA / "userlist.txt", self.place / "userlist.txt")
        text = (HA / "pgbouncer.ini").read_text().replace("/etc/pgbouncer/userlist.txt", f"{self.place}/userlist.txt")
        (self.place / "pgbouncer.ini").write_text(text)
        self._begin("pgbouncer", ["pgbouncer", str(self.place / "pgbouncer.ini")], user="postgres")

    def _begin(self, name, command, user=None, environment=None):
        more = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
        with open(self.place / f"{name}.log", "ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.place, **more)

    def _outside(self):
        """The ledger: a Postgres that has nothing to do with the others, in which runs write down what they do."""
        place = self.place / "outside"
        place.mkdir()
        shutil.chown(place, "postgres", "postgres")
        words = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        run(*words, f"{self.bin}/initdb", "-D", f"{place}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        self._begin("outside", [f"{self.bin}/postgres", "-D", f"{place}/data", "-k", str(place), "-c", "listen_addresses=", "-c",
                                "fsync=off", "-c", "synchronous_commit=off"], user="postgres")
        self.ledger = f"host={place} port=5432 user=postgres dbname=postgres"
        tables = """
            create schema ledger; create schema millrace;
            create table ledger.entry (job bigint not null, token text not null, what text not null, leased boolean not null,
                at timestamptz not null default clock_timestamp());
            create table millrace.lease (session bigint, number bigint, ids bigint[])"""
        until("the ledger is there", lambda: run("psql", "-Xqd", self.ledger, "-c", tables, check=False).returncode == 0, 30)

    def sql_on_leader(self, *statements):
        leader = self.leader()
        for one in statements:
            leader.inside("psql", "-Xqd", f"host={leader.place} user=postgres dbname=postgres", "-c", one)

    def leads(self):
        """Whether haproxy, which takes all servers for leaders until it has asked each, leads to the one that takes writes."""
        ask = ["psql", "-XAtqd", self.url(), "-c", "select pg_is_in_recovery()"]
        return all(run(*ask, check=False).stdout.strip() == "f" for _ in range(9))

    def sql(self, statement):
        """As the owner, through haproxy."""
        run("psql", "-Xqd", self.url(), "-v", "ON_ERROR_STOP=1", "-c", statement)

    @staticmethod
    def url(port=5000, **more):
        words = "&".join(f"{name}={value}" for name, value in {"connect_timeout": 3, **more}.items())
        return f"postgresql://millrace:{PASSWORD}@{HUB}:{port}/millrace?{words}"

    def environment(self, port=5000, more=None):
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("MILLRACE_", "PG", "DATABASE_", "EMAIL_", "RESEND_"))}
        return {**kept, "DATABASE_URL": self.url(port), "NO_COLOR": "1", "MILLRACE_LISTEN": "off", **(more or {})}

    def worker(self, name, program, port, more):
        command = [program, "worker", "--ledger", self.ledger, "--name", name, "--slots", "16", "--drain-timeout", "10s",
                   "--log-level", "warning"]
        if port == 6432:
            more = {**more, "MILLRACE_DIRECT_URL": self.url()}
        self.logs.append(self.place / f"{name}.log")
        return self._begin(name, command, environment=self.environment(port, more))

    # What Patroni says

    def cluster(self):
        """As the leader sees it."""
        leader = self.leader()
        said = leader and leader.ask("/cluster")
        return said if said and said.get("members") else None

    def leader(self):
        """The one that holds the lead, says so itself, and is on the newest timeline: one that was frozen says for a moment what it was."""
        newest = self.timeline()
        for node in self.nodes:
            said = node.ask("/primary")
            if said is not None and said.get("timeline") == newest:
                return node
        return None

    def is_whole(self):
        """A leader, and two standbys that follow it on its timeline, one of them synchronous unless that is off."""
        said = self.cluster()
        if not said:
            return False
        members = said["members"]
        leaders = [one for one in members if one["role"] == "leader" and one["state"] == "running"]
        others = [one for one in members if one["role"] != "leader" and one["state"] == "streaming"]
        if len(leaders) != 1 or len(others) != 2 or any(one.get("timeline") != leaders[0].get("timeline") for one in others):
            return False
        return self.is_asynchronous or any(one["role"] == "sync_standby" for one in others)

    def timeline(self):
        return max((max(node.promotions(), default=1) for node in self.nodes), default=1)
