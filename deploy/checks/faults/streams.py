"""Streams of changes that httpx-sse follows through a proxy that cuts them."""

import asyncio
import contextlib
import threading
import time

import httpx
import jwt
import lib

PACKAGES = ["httpx==0.28.1", "httpx-sse==0.4.1", "PyJWT==2.10.1"]
PEOPLE = 40
CHANGES = 1200


class Way:
    """Carries bytes between clients and the gateway. One connection in ten goes wrong, and each is cut after some seconds at the latest."""

    def __init__(self, ground, port):
        self.ground, self.to, self.port = ground, port, lib.free_port()
        self.is_away = False
        self.open_ones = set()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(asyncio.start_server(self.carry, "127.0.0.1", self.port, backlog=512), self.loop).result()

    async def pump(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()

    async def carry(self, reader, writer):
        faults = self.ground.faults
        kind = "cut before" if self.is_away else faults.next()
        other = None
        task = asyncio.current_task()
        self.open_ones.add(task)
        try:
            if kind == "slow":
                await asyncio.sleep(2)
            if kind == "error":
                await reader.readuntil(b"\r\n\r\n")
                head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\nContent-Length: 13\r\nConnection: close\r\n\r\n"
                writer.write(head + b"<html></html>")
                await writer.drain()
            elif kind != "cut before":
                back, other = await asyncio.open_connection("127.0.0.1", self.to)
                lasts = 0.3 if kind == "cut after" else 3 + faults.random.random() * 12 if faults.are_on else None
                both = [asyncio.create_task(self.pump(reader, other)), asyncio.create_task(self.pump(back, writer))]
                try:
                    await asyncio.wait(both, timeout=lasts, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for one in both:
                        one.cancel()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_ones.discard(task)
            for one in (writer, other):
                if one is not None:
                    one.transport.abort()

    def away(self, seconds):
        self.is_away = True
        self.loop.call_soon_threadsafe(lambda: [task.cancel() for task in list(self.open_ones)])
        time.sleep(seconds)
        self.is_away = False


def check(ground):
    _, port = ground.gateway({"MILLRACE_GATEWAY_JWT_SECRET": lib.SECRET})
    way = Way(ground, port)
    follow = lib.load("streams").follow
    people = [f"p{n}" for n in range(PEOPLE)]
    seen = {person: {"seqs": []} for person in people}
    ended = threading.Event()
    trouble = []

    async def all_of_them():
        async with httpx.AsyncClient(timeout=httpx.Timeout(10, read=60), limits=httpx.Limits(max_connections=None)) as client:
            tasks = []
            for person in people:
                token = jwt.encode({"sub": person, "exp": int(time.time()) + 3600}, lib.SECRET, algorithm="HS256")
                tasks.append(asyncio.create_task(follow(client, f"http://127.0.0.1:{way.port}", person, token, seen)))
            while not ended.is_set():
                await asyncio.sleep(0.1)
                for task in tasks:
                    if task.done() and not task.cancelled():
                        trouble.append(repr(task.exception()))
                        ended.set()
            for task in tasks:
                task.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(all_of_them()), daemon=True)
    thread.start()
    lib.within(30, "everybody follows", lambda: all("start" in one for one in seen.values()))

    def change(n):
        person = people[n % PEOPLE]
        ground.sql(f"select millrace.mood_log('{person}', 'calm', actor => '{person}')")

    with ground.disturbed(way.away):
        lib.spread(CHANGES, change)

    def truth():
        found = {person: [] for person in people}
        for row in ground.rows("select person, seq from millrace.feed where seq is not null order by seq"):
            if row["person"] in found and row["seq"] > seen[row["person"]]["start"]:
                found[row["person"]].append(row["seq"])
        return found

    ground.settle("everybody has seen everything", lambda: ground.value("select count(*) from millrace.feed where seq is null") == 0 and all(
        set(seqs) <= set(seen[person]["seqs"]) for person, seqs in truth().items()))
    ended.set()
    thread.join(10)
    outcome = lib.Outcome(work=0)
    for person, seqs in truth().items():
        came = seen[person]["seqs"]
        outcome.work += len(seqs)
        outcome.lost += len(set(seqs) - set(came))
        outcome.twice += len(came) - len(set(came))
        outcome.wrong += len(set(came) - set(seqs)) + (sorted(came) != came)
    outcome.wrong += len(trouble)
    outcome.notes += trouble[:3]
    return outcome


if __name__ == "__main__":
    lib.main(check)
