"""A pod as kubelet and a runtime would make it, in namespaces of this machine. Needs root."""
import os
import pathlib
import shutil
import signal
import subprocess
import time

from lib import PROGRAM, SOCKET, WORK, fail, label

ADDRESS = "10.77.0.2"
# $1 the root to be, $2 its volumes as lines of source, place and ro or rw, $3 user, $4 group, $5 group of files; then the variables and the command.
INSIDE = r"""
root=$1 volumes=$2 user=$3 group=$4 files=$5
shift 5
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$root"
for top in bin sbin lib lib32 lib64 libx32; do [ ! -L "/$top" ] || cp -a "/$top" "$root/$top"; done
for top in usr bin sbin lib lib64 opt; do
    if [ -d "/$top" ] && [ ! -e "$root/$top" ]; then
        mkdir "$root/$top"
        mount --bind "/$top" "$root/$top"
        mount -o remount,bind,ro "$root/$top"
    fi
done
mkdir -p "$root/etc" "$root/proc" "$root/dev" "$root/tmp" "$root/run" "$root/programs" "$root$PROGRAMS"
for file in passwd group hosts nsswitch.conf resolv.conf ld.so.cache localtime ssl alternatives; do [ ! -e "/etc/$file" ] || cp -a "/etc/$file" "$root/etc/"; done
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$PROGRAMS" "$root$PROGRAMS"
mount -o remount,bind,ro "$root$PROGRAMS"
ln -s "$PROGRAM" "$root/programs/millrace"
while read -r source place mode; do
    mkdir -p "$root$place"
    mount --bind "$source" "$root$place"
    [ "$mode" = rw ] || mount -o remount,bind,ro "$root$place"
done <"$volumes"
mount -o remount,ro "$root"
exec chroot "$root" setpriv --reuid "$user" --regid "$group" --groups "$files" --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all env -i "$@"
"""


class Pod:
    """The containers of one object's template, in one network."""

    def __init__(self, one, spec, secrets, maps, services, entrypoint, extra=None):
        self.name, self.spec, self.entrypoint, self.extra = label(one), spec, entrypoint, extra or {}
        self.secrets, self.maps, self.services = secrets, maps, services
        self.place = WORK / f"pod-{one['metadata']['name']}-{time.monotonic_ns()}"
        self.place.mkdir()
        self.processes, self.logs = {}, {}
        self.network = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        for command in ("link set lo up", f"address add {ADDRESS}/32 dev lo"):
            self._in_network(["ip", *command.split()])
        self.volumes = {volume["name"]: self._volume(volume) for volume in spec["volumes"]}

    def _in_network(self, command, **more):
        # Until unshare has made it, its network is ours.
        while os.readlink(f"/proc/{self.network.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.02)
        return subprocess.run(["nsenter", f"--net=/proc/{self.network.pid}/ns/net", *command], check=True, **more)

    def _volume(self, volume):
        folder = self.place / volume["name"]
        folder.mkdir()
        group = self.spec["securityContext"]["fsGroup"]
        if "secret" in volume:
            for key, value in self.secrets[volume["secret"]["secretName"]].items():
                (folder / key).write_text(value)
                os.chown(folder / key, 0, group)
                os.chmod(folder / key, volume["secret"]["defaultMode"])
            os.chmod(folder, 0o755)
        else:
            os.chown(folder, 0, group)
            os.chmod(folder, 0o2777)
        return folder

    def variables(self, container):
        found = {"PATH": "/programs:/usr/bin:/bin", "HOSTNAME": self.name.split("/")[1] + "-x", "KUBERNETES_SERVICE_HOST": "10.96.0.1",
                 "KUBERNETES_SERVICE_PORT": "443", "KUBERNETES_PORT": "tcp://10.96.0.1:443"}
        if self.spec.get("enableServiceLinks", True):
            for service, port in self.services.items():
                name = service.upper().replace("-", "_")
                found |= {f"{name}_SERVICE_HOST": "10.96.0.9", f"{name}_SERVICE_PORT": str(port), f"{name}_PORT": f"tcp://10.96.0.9:{port}"}
        for source in container.get("envFrom", []):
            found |= self.maps[source["configMapRef"]["name"]]
        found |= {variable["name"]: variable["value"] for variable in container["env"]}
        return found | self.extra

    def start(self, container, arguments=None):
        """Its process, in mounts and a process tree of its own."""
        name, security = container["name"], self.spec["securityContext"]
        folder = self.place / f"root-{name}-{time.monotonic_ns()}"
        folder.mkdir()
        lines = [f"{SOCKET} /postgres ro"]
        for mount in container["volumeMounts"]:
            lines.append(f"{self.volumes[mount['name']]} {mount['mountPath']} {'ro' if mount.get('readOnly') else 'rw'}")
        (folder.parent / (folder.name + ".volumes")).write_text("\n".join(lines) + "\n")
        self.logs[name] = self.place / f"{name}.log"
        command = container.get("command", self.entrypoint) + (arguments or container["args"])
        with open(self.logs[name], "ab") as log:
            self.processes[name] = subprocess.Popen(
                ["nsenter", f"--net=/proc/{self.network.pid}/ns/net", "unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child",
                 "sh", "-euc", INSIDE, "sh", str(folder), str(folder) + ".volumes", str(security["runAsUser"]), str(security["runAsGroup"]),
                 str(security["fsGroup"]), *(f"{key}={value}" for key, value in self.variables(container).items()), *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": os.environ["PATH"], "PROGRAMS": str(PROGRAM.parent), "PROGRAM": str(PROGRAM)})
        return self.processes[name]

    def log(self, name):
        return self.logs[name].read_text(errors="replace")

    def main_process(self, name):
        """The number of the container's first process, as this machine counts."""
        pid = self.processes[name].pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0])

    def probe(self, container, probe):
        """As kubelet: 200 to 399 in time is well. What was answered, for whom it fails."""
        if set(probe) & {"tcpSocket", "grpc", "exec"}:
            fail(self.name, "has a probe that is not played here:", probe)
        get = probe["httpGet"]
        port = next(one["containerPort"] for one in container["ports"] if get["port"] in (one["name"], one["containerPort"]))
        status, text = self.ask(f"{get.get('scheme', 'HTTP').lower()}://{ADDRESS}:{port}{get['path']}", probe.get("timeoutSeconds", 1),
                                [f"{one['name']}: {one['value']}" for one in get.get("httpHeaders", [])])
        return 200 <= status < 400, f"{status} {text.strip()}"

    def ask(self, address, limit=5, headers=(), body=None):
        done = subprocess.run(["nsenter", f"--net=/proc/{self.network.pid}/ns/net", "curl", "-s", "--noproxy", "*", "-A", "kube-probe/1.37", "-m", str(limit),
                               "-w", "\n%{http_code}", *(word for one in headers for word in ("-H", one)),
                               *(["-d", body] if body else []), address], capture_output=True, text=True)
        text, status = done.stdout.rsplit("\n", 1)
        return int(status), text

    def end(self, name, grace, container):
        """As kubelet ends it: the hook, TERM, and KILL when the grace is over. Its exit code and how long it took."""
        begin = time.monotonic()
        hook = container.get("lifecycle", {}).get("preStop", {}).get("exec")
        if hook:
            subprocess.run(hook["command"], check=True)
        os.kill(self.main_process(name), signal.SIGTERM)
        try:
            code = self.processes[name].wait(max(1, grace - (time.monotonic() - begin)))
        except subprocess.TimeoutExpired:
            fail(self.name, name, f"has not ended {grace} s after its TERM:", self.log(name)[-500:])
        return code, time.monotonic() - begin

    def close(self):
        for process in [*self.processes.values(), self.network]:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.place, ignore_errors=True)
