"""What the parts of deploy/checks/kubernetes share: the manifests, the database, and how they say what they find."""
import os
import pathlib
import subprocess
import sys
import time

import yaml

ROOT = pathlib.Path(os.environ["MILLRACE_ROOT"])
PROGRAM = pathlib.Path(os.environ["MILLRACE_PROGRAM"]).resolve()
SOCKET = os.environ["MILLRACE_SOCKET"]
WORK = pathlib.Path(os.environ["MILLRACE_WORK"])
FOLDER = ROOT / "deploy" / "kubernetes"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"


def say(*words):
    print("==>", *words, file=sys.stderr, flush=True)


def fail(*words):
    print("error:", *words, file=sys.stderr, flush=True)
    sys.exit(1)


def documents(path):
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def base():
    """The objects of the base, each from its file, and the Secrets of the example."""
    kustomization = documents(FOLDER / "kustomization.yaml")[0]
    found = [one for name in kustomization["resources"] for one in documents(FOLDER / name)]
    return found + documents(FOLDER / "secrets.example.yaml")


def kustomize():
    """The command that renders a kustomization; None if there is none here."""
    for command in (["kubectl", "kustomize"], ["kustomize", "build"]):
        try:
            subprocess.run([*command, "--help"], capture_output=True, check=True)
            return command
        except (OSError, subprocess.CalledProcessError):
            continue
    return None


def rendered(command, waker):
    """The base, with the sidecar or without, as kustomize renders it."""
    folder = WORK / ("with-waker" if waker else "plain")
    folder.mkdir(exist_ok=True)
    here = os.path.relpath(FOLDER, folder.resolve())
    lines = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [here]}
    if waker:
        lines["components"] = [here + "/waker"]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(lines))
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True)
    if done.returncode:
        fail("kustomize:", done.stderr.strip())
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def template(one):
    """The pod that an object makes; None if it makes none."""
    return one["spec"]["template"] if one["kind"] in ("Deployment", "Job", "DaemonSet") else None


def containers(pod):
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


def label(one):
    return f"{one['kind']}/{one['metadata']['name']}"


def url(database, login="postgres", place=SOCKET):
    return f"postgresql://{login}@/{database}?host={place}"


def sql(database, text, login="postgres"):
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url(database, login), "-c", text],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.strip()


def millrace(*words, database=None, text=None, env=None):
    where = {"DATABASE_URL": url(database)} if database else {}
    done = subprocess.run([str(PROGRAM), *words], input=text, capture_output=True, text=True, env={"PATH": os.environ["PATH"], **where, **(env or {})})
    if done.returncode:
        fail("millrace", *words, "ended with", done.returncode, done.stderr.strip())
    return done.stdout


def make_roles(database):
    """The roles of the schema, which all databases of a server share."""
    if not sql(database, "select to_regrole('millrace_viewer')"):
        sql(database, millrace("migrate", "--print-roles", database=database))


def within(seconds, what, look):
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            fail(f"within {seconds} s this did not come about: {what}")
        time.sleep(0.3)
