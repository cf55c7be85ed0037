"""Follows streams of the gateway with httpx and httpx-sse until it is told to end.

Arguments: the gateway's address, and a directory. `clients` there has a person and a token on each line; `seen` gets a person, the position
of the first answer and the ids of all changes on each line.
"""

import asyncio
import json
import signal
import sys

import httpx
from httpx_sse import SSEError, aconnect_sse


async def follow(client, address, person, token, seen):
    last = None
    while True:
        headers = {"Authorization": f"Bearer {token}"}
        if last is not None:
            headers["Last-Event-ID"] = last
        try:
            async with aconnect_sse(client, "GET", f"{address}/v1/me/events", headers=headers) as source:
                async for event in source.aiter_sse():
                    if not event.data:
                        continue
                    data = json.loads(event.data)
                    last = event.id
                    if event.event == "ready":
                        seen[person].setdefault("start", data["position"])
                    elif event.event == "change":
                        assert str(data["seq"]) == event.id, event
                        seen[person]["seqs"].append(data["seq"])
                    elif event.event != "end":
                        raise SystemExit(f"{person} got {event}")
        except (httpx.HTTPError, SSEError):
            pass
        await asyncio.sleep(0.3)


async def main(address, directory):
    with open(f"{directory}/clients", encoding="utf-8") as file:
        people = [line.split() for line in file]
    seen = {person: {"seqs": []} for person, _ in people}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=httpx.Timeout(10, read=60), limits=limits) as client:
        tasks = [asyncio.create_task(follow(client, address, *one, seen)) for one in people]
        # Who started us may have blocked it.
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        end = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
        await end.wait()
        for task in tasks:
            task.cancel()
    with open(f"{directory}/seen", "w", encoding="utf-8") as file:
        for person, found in seen.items():
            print(person, found.get("start", "none"), *found["seqs"], file=file)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
