"""Schemas of Kubernetes, KEDA and Prometheus, and rules that no schema has. deploy/checks/kubernetes runs it: rules.py [<checkout of KEDA>]."""
import copy
import pathlib
import re
import shutil
import subprocess
import sys

import jsonschema
import kubernetes_validate
import yaml
from lib import COMPONENT, FOLDER, PROGRAM, ROOT, WORK, base, containers, documents, fail, kustomize, label, millrace, rendered, say, template

OLDEST = "1.29"
# Pod Security's "restricted" lets a pod have these.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
OUTSIDE = {"hostNetwork", "hostPID", "hostIPC", "hostUsers"}


def schemas(objects):
    newest = kubernetes_validate.latest_version()
    for version in (OLDEST, newest):
        for one in objects:
            try:
                kubernetes_validate.validate(one, version, strict=True)
            except kubernetes_validate.ValidationError as problem:
                fail(f"Kubernetes {version}: {label(one)}: {'.'.join(map(str, problem.path))}: {problem.message}")
    return newest


def strict(schema):
    """A definition's schema in which what it does not name is refused."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    out = {key: strict(value) for key, value in schema.items()}
    if isinstance(out.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        out.setdefault("additionalProperties", False)
    return out


def keda(checkout, objects):
    if not checkout:
        say("schema: KEDA's definitions are NOT THERE (see KEDA in --help); its resources are held against our rules only")
        return
    folder = pathlib.Path(checkout)
    definitions = {}
    for path in (folder / "config/crd/bases").glob("*.yaml"):
        one = yaml.safe_load(path.read_text(encoding="utf-8"))
        for version in one["spec"]["versions"]:
            definitions[(f"{one['spec']['group']}/{version['name']}", one["spec"]["names"]["kind"])] = version["schema"]["openAPIV3Schema"]
    for one in objects:
        schema = strict(copy.deepcopy(definitions[(one["apiVersion"], one["kind"])]))
        # The definition has no fields of metadata, because every object has the same.
        schema["properties"]["metadata"] = {"type": "object"}
        for problem in jsonschema.Draft4Validator(schema).iter_errors(one):
            fail(f"KEDA: {label(one)}: {'.'.join(map(str, problem.path))}: {problem.message}")
    scaler = (folder / "pkg/scalers/postgresql_scaler.go").read_text(encoding="utf-8")
    known = set(re.findall(r"`keda:\"name=(\w+)", scaler))
    trigger = next(one for one in objects if one["kind"] == "ScaledObject")["spec"]["triggers"][0]
    if trigger["type"] != "postgresql" or not set(trigger["metadata"]) <= known:
        fail("KEDA's scaler does not know", sorted(set(trigger["metadata"]) - known))
    for reference in next(one for one in objects if one["kind"] == "TriggerAuthentication")["spec"]["secretTargetRef"]:
        if reference["parameter"] not in known:
            fail("KEDA's scaler does not know the parameter", reference["parameter"])
    say(f"schema: {len(objects)} objects fit KEDA's definitions, and its scaler knows each parameter")


def prometheus():
    text = (FOLDER / "prometheus.yml").read_text(encoding="utf-8")
    job = yaml.safe_load(text)["scrape_configs"][0]
    if not re.fullmatch(r"millrace(-.*)?", job["job_name"]):
        fail("the rules of deploy/observability do not know the job", job["job_name"])
    if not shutil.which("promtool"):
        say("schema: promtool is NOT THERE; prometheus.yml goes unchecked")
        return
    # Debian's is built without Kubernetes; what finds the pods is left out for it.
    path = WORK / "prometheus.yml"
    path.write_text(yaml.safe_dump({"scrape_configs": [{key: value for key, value in job.items() if key not in ("kubernetes_sd_configs", "authorization")}]}))
    done = subprocess.run(["promtool", "check", "config", str(path)], capture_output=True, text=True)
    if done.returncode:
        fail("promtool:", done.stdout, done.stderr)
    say("schema: promtool takes prometheus.yml, but for what finds the pods")


def references(objects, scalers):
    """Names and keys that are referred to."""
    maps = {one["metadata"]["name"]: one["data"] for one in objects if one["kind"] == "ConfigMap"}
    secrets = {one["metadata"]["name"]: one["stringData"] for one in objects if one["kind"] == "Secret"}
    accounts = {one["metadata"]["name"] for one in objects if one["kind"] == "ServiceAccount"}
    for one in objects:
        pod = template(one)
        if not pod:
            continue
        spec = pod["spec"]
        if spec["serviceAccountName"] not in accounts:
            fail(label(one), "has the account", spec["serviceAccountName"], "that is not there")
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for container in containers(pod):
            for source in container.get("envFrom", []):
                if source["configMapRef"]["name"] not in maps:
                    fail(label(one), "reads a ConfigMap that is not there:", source)
            mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
            for variable in container["env"]:
                if not variable["name"].endswith("_FILE"):
                    continue
                folder, key = variable["value"].rsplit("/", 1)
                name = mounts[folder]["secret"]["secretName"]
                if key == "direct-url":
                    continue  # the waker's guide says to add it
                if key not in secrets[name]:
                    fail(label(one), variable["name"], "names the key", key, "that the Secret", name, "does not have")
            for need in ("requests", "limits"):
                if "memory" not in container["resources"][need]:
                    fail(label(one), container["name"], "has no memory among its", need)
    for one in scalers:
        for reference in one["spec"].get("secretTargetRef", []):
            if reference["key"] not in secrets[reference["name"]]:
                fail(label(one), "names a key that is not there:", reference)
    scaled = next(one for one in scalers if one["kind"] == "ScaledObject")
    if scaled["spec"]["scaleTargetRef"]["name"] not in {one["metadata"]["name"] for one in objects if one["kind"] == "Deployment"}:
        fail("the ScaledObject scales what is not there")
    if scaled["spec"]["minReplicaCount"] < 1:
        fail("the ScaledObject scales to 0: no schedule would fire, and no alarm would be raised")
    if scaled["spec"]["triggers"][0]["authenticationRef"]["name"] not in {one["metadata"]["name"] for one in scalers if one["kind"] == "TriggerAuthentication"}:
        fail("the ScaledObject refers to an authentication that is not there")


def selectors(objects):
    pods = [template(one) for one in objects if template(one)]
    for one in objects:
        spec = one.get("spec", {})
        if one["kind"] == "Service":
            wanted, ports = spec["selector"], {port["targetPort"] for port in spec["ports"]}
        elif one["kind"] == "NetworkPolicy":
            wanted = spec["podSelector"]["matchLabels"]
            ports = {port["port"] for rule in spec.get("ingress", []) for port in rule["ports"]}
        elif one["kind"] in ("PodDisruptionBudget", "Deployment"):
            wanted, ports = spec["selector"]["matchLabels"], set()
        else:
            continue
        met = [pod for pod in pods if wanted.items() <= pod["metadata"]["labels"].items()]
        if not met or (one["kind"] != "NetworkPolicy" and len(met) != 1):
            fail(label(one), "selects", len(met), "kinds of pods")
        for pod in met:
            there = {port["name"] for container in containers(pod) for port in container.get("ports", [])}
            if not ports <= there:
                fail(label(one), "names a port that its pods do not have:", sorted(ports - there))
        if one["kind"] == "Deployment" and not wanted.items() <= one["spec"]["template"]["metadata"]["labels"].items():
            fail(label(one), "does not select its own pods")
    covered = {one["spec"]["podSelector"]["matchLabels"].get(COMPONENT) for one in objects if one["kind"] == "NetworkPolicy"}
    if None not in covered:
        fail("no NetworkPolicy holds for all pods")


def restricted(objects):
    """Pod Security's restricted profile, and the number of the image's user."""
    user = int(re.search(r"^USER (\d+):\d+$", (ROOT / "deploy/Containerfile").read_text(encoding="utf-8"), re.M)[1])
    for one in objects:
        pod = template(one)
        if not pod:
            continue
        spec, security = pod["spec"], pod["spec"]["securityContext"]
        if security["runAsNonRoot"] is not True or security["seccompProfile"]["type"] not in ("RuntimeDefault", "Localhost"):
            fail(label(one), "is not restricted:", security)
        if security["runAsUser"] != user:
            fail(label(one), "runs as", security["runAsUser"], "and the image as", user)
        if OUTSIDE & set(spec) or spec.get("automountServiceAccountToken") is not False:
            fail(label(one), "shares the machine's namespaces, or has a token")
        for volume in spec["volumes"]:
            if not (set(volume) - {"name"}) <= VOLUMES:
                fail(label(one), "has a volume that is not restricted:", volume)
        for container in containers(pod):
            inner = container["securityContext"]
            if inner["allowPrivilegeEscalation"] is not False or inner["capabilities"]["drop"] != ["ALL"] or "add" in inner["capabilities"]:
                fail(label(one), container["name"], "is not restricted:", inner)
            if inner["readOnlyRootFilesystem"] is not True:
                fail(label(one), container["name"], "may write to its root")


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", text).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def graces(objects):
    settings = {key: value for one in objects if one["kind"] == "ConfigMap" for key, value in one["data"].items()}
    for one in objects:
        if one["kind"] != "Deployment":
            continue
        for container in containers(template(one)):
            own = {variable["name"]: variable.get("value") for variable in container["env"]}
            drain = seconds(own.get("MILLRACE_DRAIN_TIMEOUT") or settings.get("MILLRACE_DRAIN_TIMEOUT") or "30s")
            grace = template(one)["spec"].get("terminationGracePeriodSeconds", 30)
            if grace < drain + 25:
                fail(label(one), f"gives {grace} s; the drain takes {drain:g} s and up to 25 more")


def commands(objects):
    known = set(re.findall(r"^  ([a-z]+)  ", millrace("--help"), re.M))
    for one in objects:
        for container in containers(template(one)) if template(one) else []:
            if "command" in container or container["args"][0] not in known:
                fail(label(one), "runs what the program does not know:", container.get("command"), container["args"])
    version = millrace("version").split()[1]
    tag = documents(FOLDER / "kustomization.yaml")[0]["images"][0]["newTag"]
    if tag != version:
        fail(f"kustomization.yaml has the image {tag}, and {PROGRAM.name} is {version}")


def main():
    objects, scalers = base(), documents(FOLDER / "keda.yaml")
    everything = [objects]
    command = kustomize()
    if command:
        plain = rendered(command, False)
        files = sorted(label(one) for one in objects if one["kind"] != "Secret")
        if sorted(map(label, plain)) != files:
            fail("kustomize renders", sorted(map(label, plain)), "and the files have", files)
        secrets = [one for one in objects if one["kind"] == "Secret"]
        everything += [plain + secrets, rendered(command, True) + secrets]
        sidecar = next(template(one) for one in everything[2] if label(one) == "Deployment/millrace-worker")["spec"]
        if [one["name"] for one in sidecar.get("initContainers", [])] != ["waker"] or sidecar["initContainers"][0]["restartPolicy"] != "Always":
            fail("the waker is no sidecar:", sidecar.get("initContainers"))
    else:
        say("kustomize is NOT THERE, and kubectl neither: the sidecar goes unchecked")
    newest = [schemas(one) for one in everything][0]
    say(f"schema: {len(objects)} objects fit Kubernetes {OLDEST} and {newest}" + (", and so they do with the sidecar" if command else ""))
    keda(sys.argv[1] if len(sys.argv) > 1 else "", scalers)
    prometheus()
    for one in everything:
        references(one, scalers)
        selectors(one)
        restricted(one)
        graces(one)
        commands(one)
    say("rules: references, selectors, restricted pods, the image's user and version, graces, commands")


main()
