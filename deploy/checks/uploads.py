"""Uploads that go on where they ended, by two phones and by tuspy. deploy/checks/uploads runs it: uploads.py <scans>."""

import hashlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
from rig import Rig, expect, finish, free_port, say, token, until

try:
    from tusclient.client import TusClient
except ImportError:
    TusClient = None

PEOPLE = ["ada", "ben"]
FILES = 2
SIZE = 8_000_000
PIECE = 1 << 20
# What a proxy and the system hold beside the piece that is on its way.
BUFFERS = 3 << 20


class Counting:
    """A proxy before the gateway, which counts what is sent to it. A gateway that is away ends the connection."""

    def __init__(self, port, to):
        self.to, self.sent = to, 0
        self.listener = socket.create_server(("127.0.0.1", port), backlog=100)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.pass_on, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(server, client, False), daemon=True).start()

    def pass_on(self, source, target, counts):
        try:
            while data := source.recv(65_536):
                target.sendall(data)
                if counts:
                    self.sent += len(data)
                    time.sleep(len(data) / 12e6)           # about as fast as a good network
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Phones:
    """Two phones, each a program that may be killed at any time."""

    def __init__(self, rig, program, files):
        self.program, self.files, self.running, self.place = program, files, {}, rig.place
        self.environment = {**rig.environment, "PHONES_URL": rig.url, "PHONES_PLACE": str(rig.place / "phones"),
                            "PHONES_TOKENS": json.dumps({person: token(sub=person) for person in PEOPLE})}
        (rig.place / "phones").mkdir()

    def start(self, person):
        with open(self.place / f"{person}.log", "ab") as log:
            self.running[person] = subprocess.Popen([self.program, person, *map(str, self.files[person])], env=self.environment,
                                                    stdout=log, stderr=log)

    def kill(self, person):
        """Whether it ran still."""
        process = self.running[person]
        runs = process.poll() is None
        process.kill()
        process.wait()
        return runs


def play(rig, phones, proxy):
    """Kills a phone or the gateway whenever some more has come, until all of it has. Returns how often."""
    choice, kills, at = random.Random(58), {"ada": 0, "ben": 0, "gateway": 0}, 3_000_000
    for person in PEOPLE:
        phones.start(person)
    end = time.monotonic() + 300
    while any(one.poll() != 0 for one in phones.running.values()):
        if time.monotonic() > end:
            for person in PEOPLE:
                say((phones.place / f"{person}.log").read_text()[-1500:])
            raise SystemExit("the files have not come in five minutes")
        if proxy.sent >= at:
            at += 4_000_000
            victim = choice.choice([*PEOPLE, "gateway"])
            if victim == "gateway":
                rig.kill("gateway")
                rig.start_gateway()
                kills[victim] += 1
            elif phones.kill(victim):
                kills[victim] += 1
        for person, one in phones.running.items():
            if one.poll() not in (None, 0):
                phones.start(person)
        time.sleep(0.02)
    return kills


def stored(rig, ids):
    return rig.sql("select encode(d.blob, 'hex') from millrace.document d where d.id = any ('{%s}') order by d.id" % ",".join(ids))


def two_phones(rig, program, proxy):
    folder = rig.place / "files"
    folder.mkdir()
    files = {person: [folder / str(uuid.uuid4()) for _ in range(FILES)] for person in PEOPLE}
    for path in (path for paths in files.values() for path in paths):
        path.write_bytes(b"%PDF-1.4\n" + os.urandom(SIZE - 9))
    phones = Phones(rig, program, files)
    kills = play(rig, phones, proxy)
    say(f"killed: {', '.join(f'{name} {count} times' for name, count in kills.items())}")
    expect("each of them was killed", min(kills.values()) > 0, True)
    wanted = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for paths in files.values() for path in paths}
    expect("files that are there, by their hashes", stored(rig, sorted(wanted)) == [wanted[name] for name in sorted(wanted)], True)
    expect("documents", rig.sql("select count(*) from millrace.document"), [str(len(wanted))])
    whole, most = SIZE * len(wanted), sum(kills.values()) * 2 * (PIECE + BUFFERS)
    say(f"{whole / 1e6:.0f} MB of files took {proxy.sent / 1e6:.1f} MB of requests; {sum(kills.values())} kills")
    expect("bytes beyond the files, for each kill less than what is on its way", proxy.sent - whole, lambda found: 0 < found < most)
    expect("parts that are left", rig.sql("select count(*) from millrace.upload_part"), ["0"])


def tuspy(rig):
    if TusClient is None:
        say("left out: tuspy is not here")
        return
    content = os.urandom(5_000_000)
    path = rig.place / "tus"
    path.write_bytes(content)
    link, upload = rig.sql(f"select unnest(array[url, id::text]) from millrace.upload_link({len(content)}, 'application/pdf')")
    first = TusClient(link).uploader(str(path), chunk_size=1_500_000, url=link)
    first.upload_chunk()
    rig.kill("gateway")
    rig.start_gateway()
    second = TusClient(link).uploader(str(path), chunk_size=1_500_000, url=link)
    expect("another tuspy goes on at", second.offset, 1_500_000)
    second.upload()
    expect("its file, by its hash", rig.sql(f"select encode(millrace.upload_blob('{upload}'), 'hex')"), [hashlib.sha256(content).hexdigest()])


def main():
    inner = free_port()
    # A fast machine makes more calls in a second than people do.
    with Rig(MILLRACE_GATEWAY_RATES="subject=10000:10000,operations=10000:10000,address=10000:10000",
             MILLRACE_GATEWAY_LISTEN=f"127.0.0.1:{inner}") as rig:
        proxy = Counting(int(rig.url.rsplit(":", 1)[1]), inner)
        rig.sql("select millrace.grant_enqueue('millrace_client', 'document.receive', 'documents')")
        rig.start_worker()
        rig.start_gateway()
        until("the worker", lambda: rig.sql("select 1 from millrace.setting where name = 'link_key'"))
        say("a gateway and a worker run")
        two_phones(rig, sys.argv[1], proxy)
        tuspy(rig)
    finish()


if __name__ == "__main__":
    main()
