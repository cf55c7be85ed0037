"""What happens to the leader, and to others beside it."""

import collections
import json
import os
import signal
import threading
import time
import urllib.request

import judge
from world import say, until

# How often each is drawn. Those that end with the lead's time, twenty seconds, are dear.
KINDS = {"kill-postgres": 7, "switchover": 4, "slow-then-kill": 2, "lag-then-kill": 3, "kill-machine": 3, "freeze-machine": 3,
         "freeze-patroni": 2, "cut": 3, "cut-from-etcd": 2}
BESIDE = {"": 10, "kill-etcd": 2, "freeze-etcd": 2, "freeze-standby": 3, "slow-standby": 2, "cut-standby": 2}


class Chaos:
    def __init__(self, world, random, only):
        self.world, self.random, self.strikes, self.kinds = world, random, [], collections.Counter()
        self.weights = {name: weight for name, weight in KINDS.items() if not only or name in only}

    def pick(self, weights):
        return self.random.choices(list(weights), list(weights.values()))[0]

    def strike(self):
        """One failover, from a whole cluster to a whole cluster. None: nobody could take over, and rightly, until the leader was back."""
        world = self.world
        until("the cluster is whole", world.is_whole, 180, 0.2)
        time.sleep(self.random.uniform(0.3, 2))
        leader = until("there is a leader", world.leader)
        before = world.timeline()
        what, beside = self.pick(self.weights), self.pick(BESIDE)
        self.kinds[what] += 1
        began = time.time()
        mended = threading.Thread(target=self.beside, args=(beside, leader, self.random.uniform(1, 8), self.random.choice(world.stores)))
        mended.start()
        if beside:
            time.sleep(self.random.uniform(0, 4))
        struck = time.time()
        try:
            heal = getattr(self, what.replace("-", "_"))(leader)
            timeline = self.promotion(what, before)
            if not timeline:
                leader.mend()
                mended.join()
                until("the cluster is whole again", world.is_whole, 180, 0.2)
                self.kinds[what] -= 1
                return None
            # What was struck comes back while the new leader works, and not before.
            time.sleep(self.random.uniform(0.2, 3) if heal else 0)
        finally:
            leader.mend()
        mended.join()
        promoted = next(node.promotions()[timeline] for node in world.nodes if timeline in node.promotions())
        new = next(node.name for node in world.nodes if timeline in node.promotions())
        found = judge.Strike(what, beside and f"({beside})", began, struck, promoted, timeline, f"{leader.name} to {new}")
        self.strikes.append(found)
        until("the cluster is whole again", world.is_whole, 180, 0.2)
        found.whole = time.time()
        return found

    def promotion(self, what, before):
        """The new timeline. None: none of the standbys is synchronous, and one that is not might lack what was acknowledged."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if found := self.newer(before):
                return found
            time.sleep(0.1)
        said = [node.ask("/cluster") for node in self.world.nodes]
        roles = [{one["name"]: one["role"] for one in each["members"]} for each in said if each and each.get("members")]
        if roles and not any("sync_standby" in each.values() for each in roles):
            say(f"      {what}: no standby was synchronous, so none took over; the leader is brought back")
            return None
        raise RuntimeError(f"this did not come about in 120 s: a standby is promoted after {what}; who is what: {json.dumps(roles)}")

    def newer(self, before):
        found = self.world.timeline()
        return found if found > before else None

    # To the leader; true: it has to be brought back

    def kill_postgres(self, leader):
        leader.send(signal.SIGKILL, "postgres")
        return False

    def kill_machine(self, leader):
        leader.send(signal.SIGKILL)
        return True

    def freeze_machine(self, leader):
        leader.send(signal.SIGSTOP)
        return True

    def freeze_patroni(self, leader):
        """Postgres goes on, and nobody tells it that it has lost its lead."""
        leader.send(signal.SIGSTOP, "patroni")
        return True

    def cut(self, leader):
        leader.cut()
        return True

    def cut_from_etcd(self, leader):
        leader.cut_from_etcd()
        return True

    def slow_then_kill(self, leader):
        leader.slow()
        time.sleep(self.random.uniform(1, 5))
        leader.send(signal.SIGKILL, "postgres")
        return True

    def lag_then_kill(self, leader):
        """For a second nothing goes from the leader to the standbys, while clients reach it as ever."""
        for pid in leader.walsenders():
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1)
        leader.send(signal.SIGKILL, "postgres")
        return False

    def switchover(self, leader):
        body = json.dumps({"leader": leader.name}).encode()
        request = urllib.request.Request(f"http://{leader.address}:8008/switchover", body, {"Content-Type": "application/json"})
        try:
            urllib.request.urlopen(request, timeout=30).read()
        except OSError:
            # It found no standby that is ready for it; then the leader's Postgres is killed.
            leader.send(signal.SIGKILL, "postgres")
        return False

    def beside(self, what, leader, seconds, store):
        """To another machine, for some seconds."""
        if not what:
            return
        others = [node for node in self.world.nodes if node is not leader]
        said = self.world.cluster() or {"members": []}
        followers = {one["name"] for one in said["members"] if one["role"] == "sync_standby"}
        # The one whose answer commits wait for.
        node = next((node for node in others if node.name in followers), others[0])
        if what == "kill-etcd":
            node = store
            node.send(signal.SIGKILL)
        elif what == "freeze-etcd":
            # Past the lead's time: one that led takes back what it believes to be over.
            node, seconds = store, seconds + 22
            node.send(signal.SIGSTOP)
        elif what == "freeze-standby":
            node.send(signal.SIGSTOP, "postgres")
        elif what == "slow-standby":
            node.slow()
        elif what == "cut-standby":
            node.cut()
        time.sleep(seconds)
        node.mend()
