"""Calls of a client that openapi-python-client generates from the gateway's description, which openapi-spec-validator reads first."""

import concurrent.futures
import importlib
import json
import subprocess
import sys
import time
import urllib.request
import uuid

import jwt
import lib
import openapi_spec_validator

PACKAGES = ["openapi-python-client==0.26.2", "openapi-spec-validator==0.7.2", "PyJWT==2.10.1"]
CALLS = 600
PEOPLE = 20
COLORS = ["calm", "happy", "sad"]


def generate(ground, document):
    path = ground.place / "openapi.json"
    path.write_text(json.dumps(document))
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(path), "--output-path", str(ground.place / "generated" / "client"),
         "--meta", "none", "--overwrite"], capture_output=True, cwd=ground.place)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).decode(errors="replace")[-2000:])
    sys.path.insert(0, str(ground.place / "generated"))
    said = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    return [line for line in said.splitlines() if "WARNING" in line]


def check(ground):
    _, port = ground.gateway({"MILLRACE_GATEWAY_JWT_SECRET": lib.SECRET})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/openapi.json", timeout=30) as answer:
        document = json.load(answer)
    openapi_spec_validator.validate(document)
    (ground.place / "generated").mkdir()
    warnings = generate(ground, document)
    client = importlib.import_module("client")
    mood_log = importlib.import_module("client.api.functions.rpc_mood_log")
    body_of = importlib.import_module("client.models").RpcMoodLogBody
    way = lib.proxy(ground, port)
    tokens = [jwt.encode({"sub": f"p{n}", "exp": int(time.time()) + 3600}, lib.SECRET, algorithm="HS256") for n in range(PEOPLE)]

    def call(n):
        """As an app does: the same key until there is an answer."""
        person, color = f"p{n % PEOPLE}", COLORS[n % len(COLORS)]
        key = str(uuid.uuid4())
        one = client.AuthenticatedClient(way.url, tokens[n % PEOPLE], headers={"Idempotency-Key": key}, timeout=20, verify_ssl=False)
        while not ground.is_over:
            try:
                answer = mood_log.sync_detailed(client=one, body=body_of.from_dict({"person": person, "color": color}))
            except Exception as error:
                if type(error).__module__.split(".")[0] not in ("httpx", "httpcore", "json"):
                    return repr(error), None, person, color
            else:
                if answer.status_code == 200:
                    return None, answer.parsed, person, color
                if answer.status_code not in (429, 502, 503, 504):
                    return f"{answer.status_code} {answer.content[:200]}", None, person, color
            time.sleep(0.4)
        return "no answer in time", None, person, color

    outcome = lib.Outcome(work=CALLS)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        waiting = []
        with ground.disturbed(way.away):
            lib.spread(CALLS, lambda n: waiting.append(pool.submit(call, n)))
        ground.faults.end()
        answers = [one.result() for one in waiting]
    stored = {row["id"]: (row["person"], row["color"]) for row in ground.rows("select id, person, color from millrace.mood")}
    for problem, id, person, color in answers:
        if problem:
            outcome.lost += problem == "no answer in time"
            outcome.wrong += problem != "no answer in time"
            outcome.notes.append(problem)
        elif str(id) not in stored:
            outcome.lost += 1
        elif stored[str(id)] != (person, color):
            outcome.wrong += 1
            outcome.notes.append(f"{id} is {stored[str(id)]} and should be {(person, color)}")
    outcome.twice = max(0, len(stored) - len({str(id) for problem, id, _, _ in answers if not problem}))
    outcome.notes = outcome.notes[:3] + [f"the generator had {len(warnings)} warnings"] + warnings[:2]
    return outcome


if __name__ == "__main__":
    lib.main(check)
