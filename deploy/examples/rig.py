"""What the apps of these examples share: a private Postgres, programs of Millrace that are killed and started again, tokens, HTTP and event streams.

Only Python's own library is used. MILLRACE names the program; else it is the newest that was built here.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "an-example-that-nobody-must-use-anywhere"
wrong = []
begun = time.monotonic()


def say(text):
    print(f"{time.monotonic() - begun:5.1f} s  {text}", flush=True)


def expect(what, found, wanted):
    """Compares, and goes on: the end says how many were wrong."""
    is_right = wanted(found) if callable(wanted) else found == wanted
    say(f"{'ok   ' if is_right else 'WRONG'} {what}: {json.dumps(found, default=str, ensure_ascii=False)[:150]}")
    if not is_right:
        wrong.append(what)
    return found


def until(what, look, seconds=60):
    """The first answer that is not false or empty."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise SystemExit(f"{what} did not come within {seconds} s")


def until_heard(what, phone, is_whole):
    """Catches up until all of it is there. A reader who comes while another numbers the changes has them a moment later."""
    heard = []
    until(what, lambda: is_whole(heard) or heard.extend(phone.catch_up()) or is_whole(heard))
    return heard


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(**claims):
    """As the app's sign-in makes it."""
    said = {"iat": int(time.time()), "exp": int(time.time()) + 3600, **claims}
    text = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, said))
    return f"{text}.{encoded(hmac.digest(SECRET.encode(), text.encode(), hashlib.sha256))}"


def millrace():
    given = os.environ.get("MILLRACE")
    built = [path for path in (ROOT / ".build/release/millrace", ROOT / ".build/debug/millrace") if path.exists()]
    if not given and not built:
        raise SystemExit("there is no millrace; build it, or name it in MILLRACE")
    return given or str(max(built, key=lambda path: path.stat().st_mtime))


class Rig:
    """A Postgres of its own, and the programs around it. All of it is gone at the end."""

    def __init__(self, **settings):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="millrace-example-"))
        self.place.chmod(0o755)
        self.program = millrace()
        self.running = {}
        self.settings = settings

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in list(self.running):
            self.kill(name)
        if (self.place / "data").exists():
            self.postgres("pg_ctl", "-D", str(self.place / "data"), "-m", "immediate", "stop")
        shutil.rmtree(self.place, ignore_errors=True)

    def postgres(self, name, *arguments):
        """Postgres does not run as root."""
        folder = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=None)
        program = str(folder / name) if folder else shutil.which(name)
        if not program:
            raise SystemExit("there is no Postgres server here: apt-get install postgresql")
        owner = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        subprocess.run([*owner, program, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def begin(self):
        if os.geteuid() == 0:
            os.chown(self.place, pwd.getpwnam("postgres").pw_uid, -1)
        port = free_port()
        self.postgres("initdb", "-D", str(self.place / "data"), "-A", "trust", "-U", "owner", "--no-sync")
        self.postgres("pg_ctl", "-D", str(self.place / "data"), "-l", str(self.place / "postgres.log"), "-w",
                      "-o", f"-p {port} -k {self.place} -c listen_addresses=127.0.0.1 -c fsync=off", "start")
        self.database = f"postgres://owner@127.0.0.1:{port}/postgres"
        self.url = f"http://127.0.0.1:{free_port()}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("MILLRACE_", "PG"))},
            "NO_COLOR": "1", "DATABASE_URL": self.database, "MILLRACE_BLOBS": "postgres", "MILLRACE_LISTEN": "off",
            "MILLRACE_SECRET": "another-example-for-links", "MILLRACE_PUBLIC_URL": self.url,
            "MILLRACE_GATEWAY_LISTEN": self.url.removeprefix("http://"), "MILLRACE_GATEWAY_JWT_SECRET": SECRET, **self.settings,
        }
        roles = subprocess.run([self.program, "migrate", "--print-roles"], check=True, capture_output=True, text=True, env=self.environment).stdout
        self.sql(roles)
        subprocess.run([self.program, "migrate", "--rooms", "all", "--quiet"], check=True, env=self.environment, stdout=subprocess.DEVNULL)
        self.sql("create role example_gateway login in role millrace_gateway")

    def sql(self, statement):
        """What a statement of the owner answers, as lines."""
        answer = subprocess.run(["psql", "--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", self.database], check=True, input=statement,
                                capture_output=True, text=True)
        return answer.stdout.strip().splitlines()

    # Programs

    def start(self, name, *arguments, **settings):
        log = open(self.place / f"{name}.log", "ab")
        self.running[name] = subprocess.Popen(list(arguments), env={**self.environment, **settings}, stdout=log, stderr=log)
        log.close()

    def start_worker(self, name="worker", *arguments):
        self.start(name, self.program, "worker", "--name", name, *arguments)

    def start_gateway(self):
        self.start("gateway", self.program, "gateway", DATABASE_URL=self.database.replace("//owner@", "//example_gateway@"))
        until("the gateway", lambda: self.running["gateway"].poll() is not None or self.answers("/readyz"))
        if self.running["gateway"].poll() is not None:
            raise SystemExit(f"the gateway has ended: {(self.place / 'gateway.log').read_text()[-2000:]}")

    def answers(self, path):
        try:
            return self.http("GET", path)[0] == 200
        except OSError:
            return False

    def kill(self, name):
        """As a power cut does: it has no time for anything."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    # HTTP

    def http(self, method, path, body=None, key=None, headers=None, timeout=30):
        """The status and the JSON of an answer."""
        url = urllib.parse.urlsplit(path if path.startswith("http") else self.url + path)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)
        try:
            given = dict(headers or {})
            if key:
                given["Authorization"] = f"Bearer {key}"
            if body is not None and not isinstance(body, bytes):
                body, given["Content-Type"] = json.dumps(body).encode(), "application/json"
            connection.request(method, url.path + ("?" + url.query if url.query else ""), body, given)
            answer = connection.getresponse()
            text = answer.read()
            is_json = "json" in (answer.getheader("Content-Type") or "")
            return answer.status, json.loads(text) if is_json and text else text.decode(errors="replace")
        finally:
            connection.close()

    def events(self, path, key, last=None):
        """What a stream brings, as (id, event, data); it ends when the connection does."""
        url = urllib.parse.urlsplit(self.url + path)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        headers = {"Authorization": f"Bearer {key}", **({"Last-Event-ID": last} if last else {})}
        try:
            connection.request("GET", url.path + ("?" + url.query if url.query else ""), headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise OSError(f"status {answer.status}")
            fields = {}
            for line in answer:
                line = line.decode().rstrip("\r\n")
                if not line:
                    if "data" in fields:
                        yield fields.get("id"), fields.get("event"), json.loads(fields["data"])
                    fields = {}
                elif not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    fields[name] = value
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()


def finish():
    say(f"{len(wrong)} wrong: {', '.join(wrong)}" if wrong else "all is well")
    sys.exit(1 if wrong else 0)
