"""Plays the manifests' pods beside a Postgres: probes, an outage of the database, the end of a pod. deploy/checks/kubernetes runs it."""
import base64
import hmac
import json
import os
import re
import subprocess
import time

from lib import ROOT, base, containers, fail, kustomize, label, make_roles, millrace, rendered, say, sql, template, url, within
from pod import ADDRESS, Pod

DATABASE = "pods"
LOGINS = {"millrace-worker": "worker", "millrace-gateway": "gateway", "millrace-console": "console", "millrace-owner": "postgres"}
# What these answer then is of use: pages that say it, and errors with a class.
READY_ANYWAY = {"Deployment/millrace-console", "Deployment/millrace-gateway"}


def logins():
    sql("postgres", f"create database {DATABASE}")
    make_roles(DATABASE)
    # As the guide says.
    guide = (ROOT / "deploy/guides/kubernetes.md").read_text(encoding="utf-8")
    statements = re.findall(r"^create role (?:worker|gateway|console) .*;", guide, re.M)
    if len(statements) != 3:
        fail("the guide does not have the three logins")
    for one in statements:
        sql(DATABASE, one)


def filled(objects):
    """The Secrets of the example, with logins of this Postgres, and a user of the console."""
    secrets = {one["metadata"]["name"]: dict(one["stringData"]) for one in objects if one["kind"] == "Secret"}
    for name, login in LOGINS.items():
        secrets[name]["database-url"] = url(DATABASE, login, "/postgres")
    secrets["millrace-worker"]["direct-url"] = secrets["millrace-worker"]["database-url"]
    secrets["millrace-console"]["users"] = millrace("console", "--make-user", "ada", "--role", "operator", text="a long password")
    return secrets


def known_settings(pod, container):
    """No variable that a pod gets is one that the program warns of."""
    process = pod.start(container, ["config"])
    code = process.wait(30)
    said = pod.log(container["name"])
    wrong = [line for line in said.splitlines() if re.search(r"warning|unknown|not known", line)]
    if code or wrong:
        fail(pod.name, container["name"], "has settings that are not right:", *(wrong or [said[-800:]]))
    pod.logs[container["name"]].unlink()


def start_all(pod):
    for container in containers({"spec": pod.spec}):
        known_settings(pod, container)
        pod.start(container)


def probes(pod, kind):
    return [(container, container[kind]) for container in containers({"spec": pod.spec}) if kind in container]


def all_well(pod, kind):
    return all(pod.probe(container, probe)[0] for container, probe in probes(pod, kind))


def answers(pod, kind):
    return [pod.probe(container, probe)[1] for container, probe in probes(pod, kind)]


def run(name):
    subprocess.run(os.environ[name], shell=True, check=True, stdout=subprocess.DEVNULL)


def played(pod, meanwhile=None):
    """From its start to its end, with an outage between. meanwhile: what else is looked at then, and said."""
    begin = time.monotonic()
    live = probes(pod, "livenessProbe")[0][1]
    start_all(pod)
    within(live["initialDelaySeconds"], f"{pod.name} is live before it is first asked", lambda: all_well(pod, "livenessProbe"))
    within(30, f"{pod.name} is ready; " + str(answers(pod, "readinessProbe")), lambda: all_well(pod, "readinessProbe"))
    took = time.monotonic() - begin
    run("MILLRACE_STOP")
    if pod.name in READY_ANYWAY:
        time.sleep(3)
        away = "is ready all the same"
        if not all_well(pod, "readinessProbe"):
            fail(pod.name, "is not ready while the database is away:", answers(pod, "readinessProbe"))
    else:
        within(30, f"{pod.name} is not ready while the database is away", lambda: not all_well(pod, "readinessProbe"))
        away = "is not ready: " + answers(pod, "readinessProbe")[0]
    if meanwhile:
        away += "; " + meanwhile()
    # As long as kubelet would have patience.
    for _ in range(5):
        if not all_well(pod, "livenessProbe"):
            fail(pod.name, "is not live while the database is away:", answers(pod, "livenessProbe"))
        time.sleep(0.5)
    run("MILLRACE_START")
    within(60, f"{pod.name} is ready again", lambda: all_well(pod, "readinessProbe"))
    say(f"pods: {pod.name}: ready after {took:.1f} s; while the database is away it is live, and {away}")


def ended(pod):
    """Its containers, sidecars last, as Kubernetes ends them."""
    grace = pod.spec["terminationGracePeriodSeconds"]
    for container in pod.spec["containers"] + pod.spec.get("initContainers", []):
        code, took = pod.end(container["name"], grace, container)
        if code != 0:
            fail(pod.name, container["name"], f"ended with {code} after a TERM:", pod.log(container["name"])[-800:])
        say(f"pods: {pod.name}: {container['name']} ended {took:.1f} s after its end was asked for, with 0")


def metrics(pod, secrets):
    token = secrets["millrace-worker"]["token"]
    address = f"http://{ADDRESS}:8470/metrics"
    without, _ = pod.ask(address)
    given, page = pod.ask(address, headers=[f"Authorization: Bearer {token}"])
    if without != 401 or given != 200 or "millrace_worker_ready 1" not in page:
        fail(pod.name, f"answers {without} without the token for /metrics, and {given} with it")


def call(pod, secrets):
    """An app's call with a token of the Secret: the status, and the class of an error."""
    def part(data):
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    said = part(b'{"alg":"HS256","typ":"JWT"}') + "." + part(json.dumps({"sub": "ada", "exp": int(time.time()) + 600}).encode())
    key = secrets["millrace-gateway"]["jwt-secret"].encode()
    token = said + "." + part(hmac.new(key, said.encode(), "sha256").digest())
    status, text = pod.ask(f"http://{ADDRESS}:8490/v1/rpc/own_jobs", 20, [f"Authorization: Bearer {token}", "Content-Type: application/json"], "{}")
    return status, json.loads(text).get("class") if status != 200 else None


def calls_meanwhile(pod, secrets):
    status, kind = call(pod, secrets)
    if status != 503 or kind not in ("unavailable", "transient"):
        fail(pod.name, f"answers a call with {status} {kind} while the database is away")
    return f"a call is answered with 503 {kind}"


def works(pod):
    """A job runs while the pod is ended, and ends once."""
    job = sql(DATABASE, "select millrace.enqueue('practice.sleep', '{\"ms\": 4000}', max_attempts => 1)")
    within(30, "the job runs", lambda: sql(DATABASE, "select count(*) from millrace.lease") != "0")
    ended(pod)
    runs = sql(DATABASE, f"select count(*) filter (where outcome = 1) || ' of ' || count(*) from millrace.history where id = {job}")
    if runs != "1 of 1":
        fail(f"of the job that ran while {pod.name} was ended {runs} runs ended well")


def play(objects, secrets, wanted):
    maps = {one["metadata"]["name"]: one["data"] for one in objects if one["kind"] == "ConfigMap"}
    services = {one["metadata"]["name"]: one["spec"]["ports"][0]["port"] for one in objects if one["kind"] == "Service"}
    text = (ROOT / "deploy/Containerfile").read_text(encoding="utf-8")
    entrypoint = json.loads(re.search(r"^ENTRYPOINT (\[.*\])$", text, re.M)[1])
    for one in sorted((one for one in objects if label(one) in wanted), key=lambda one: wanted.index(label(one))):
        # Your own kinds of jobs come with your own image; here those for practice stand in for them.
        pod = Pod(one, template(one)["spec"], secrets, maps, services, entrypoint, {"MILLRACE_PRACTICE": "on"})
        try:
            if one["kind"] == "Job":
                container = pod.spec["containers"][0]
                known_settings(pod, container)
                if pod.start(container).wait(300):
                    fail(label(one), "failed:", pod.log(container["name"])[-800:])
                say(f"pods: {label(one)}: {pod.log(container['name']).strip().splitlines()[-1]}")
                continue
            gateway = label(one) == "Deployment/millrace-gateway"
            played(pod, (lambda: calls_meanwhile(pod, secrets)) if gateway else None)
            if gateway and call(pod, secrets)[0] != 200:
                fail(pod.name, "answers a call with", call(pod, secrets))
            if label(one) == "Deployment/millrace-worker":
                metrics(pod, secrets)
                if "waker" in pod.volumes and not (pod.volumes["waker"] / "waker.sock").is_socket():
                    fail(pod.name, "has a waker, and its socket is not where the worker looks:", pod.log("waker")[-500:])
                works(pod)
            else:
                ended(pod)
        except SystemExit:
            for name in pod.logs:
                print(f"--- {name}\n{pod.log(name)[-1500:]}")
            raise
        finally:
            pod.close()


def main():
    objects = base()
    secrets = filled(objects)
    logins()
    play(objects, secrets, ["Job/millrace-migrate", "Deployment/millrace-worker", "Deployment/millrace-gateway", "Deployment/millrace-console"])
    command = kustomize()
    if command:
        play(rendered(command, True), secrets, ["Deployment/millrace-worker"])
        say("pods: the worker with its waker beside it, too")
    else:
        say("pods: the waker is NOT PLAYED, because there is no kustomize")


main()
