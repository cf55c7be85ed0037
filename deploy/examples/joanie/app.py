"""The server of an app that sends mail, as Supabase's Edge Functions do it: through PostgREST, with the service key. PostgREST and a worker are killed in the
middle, and then the person's phone is a new one. deploy/examples/joanie/run runs it."""

import os
import pathlib
import shutil
import subprocess
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from rig import ROOT, SECRET, Rig, expect, finish, free_port, say, token, until

CHECKS = ROOT / "deploy/checks/postgrest.d"
# As Supabase makes them, and by its guide.
ROLES = """
create role authenticator login noinherit; create role anon; create role authenticated; create role service_role bypassrls;
grant anon, authenticated, service_role to authenticator;
"""
SERVE = "import sys; sys.path.insert(0, sys.argv[1]); import stand_in; stand_in.server(sys.argv[2], sys.argv[3], int(sys.argv[4])).serve_forever()"


def guide_sql():
    """The statements that the guide has the owner run."""
    text = (ROOT / "deploy/guides/supabase.md").read_text(encoding="utf-8")
    return text.split("```text\n-- as the owner of the schema, ", 1)[1].split("\n", 1)[1].split("```", 1)[0]


class Rest:
    """Calls through PostgREST with one key."""

    def __init__(self, rig, port, key):
        self.rig, self.url, self.key = rig, f"http://127.0.0.1:{port}/rest/v1", key

    def call(self, door, **arguments):
        """The status and what was said; none: nobody answered."""
        try:
            return self.rig.http("POST", f"{self.url}/rpc/{door}", arguments, self.key, {"Content-Profile": "millrace"})
        except OSError:
            return None, None

    def sure(self, door, **arguments):
        """Again, until there is an answer: each call of this server may be made twice."""
        return until(door, lambda: (lambda answer: answer if answer[0] == 200 else None)(self.call(door, **arguments)))[1]


class Phone:
    """The person's app: it keeps how each of its mails stands."""

    def __init__(self, rest):
        self.rest, self.mails = rest, {}
        self.position = 0

    def catch_up(self):
        while page := self.rest.sure("feed_mine", since=self.position, topics=["mail"]):
            for row in page:
                self.position, self.mails[row["ref"]] = row["seq"], row["change"]
        return self.mails


def main():
    with Rig(EMAIL_FROM_ADDRESS="hello@example.org", EMAIL_SERVICE_PROVIDER="outbox") as rig:
        outbox = rig.place / "outbox"
        outbox.mkdir()
        rig.environment["MILLRACE_MAIL_OUTBOX"] = str(outbox)
        say("the database is there")
        rig.sql(ROLES + guide_sql() + "; select millrace.app_name_set('Joanie')")
        rest_port = free_port()

        def start_rest():
            rig.start("postgrest", sys.executable, "-c", SERVE, str(CHECKS), rig.database.replace("//owner@", "//authenticator@"), SECRET, str(rest_port))

        start_rest()
        for name in ("first", "second"):
            rig.start_worker(name)
        server = Rest(rig, rest_port, token(iss="supabase", role="service_role"))
        ada = Rest(rig, rest_port, token(iss="supabase", role="authenticated", sub="ada"))
        server.sure("error_map")
        say("PostgREST's stand-in and two workers run")

        # Thirty mails, each with an id that the server keeps. After half of them the power fails.
        ids = [str(uuid.uuid4()) for _ in range(30)]

        def send(id):
            return server.call("mail_send", recipients=["ada@example.com"], subject=f"Mail {ids.index(id)}", body_text="Hello", id=id, sender="joanie", person="ada")

        expect("a mail is handed in", list(send(ids[0])), [200, ids[0]])
        for id in ids[1:15]:
            send(id)
        for name in ("postgrest", "first"):
            rig.kill(name)
        say("half of them are handed in: PostgREST and a worker are killed")
        expect("a call finds nobody", send(ids[15])[0], None)
        start_rest()
        rig.start_worker("third")
        until("PostgREST", lambda: server.call("error_map")[0] == 200)
        # It does not know what had been taken, and hands in all of them.
        expect("all are handed in again", {send(id)[0] for id in ids}, {200})
        expect("other content under the same id is refused", server.call("mail_send", recipients=["eve@example.com"], subject="x", body_text="y", id=ids[0], sender="joanie", person="ada")[0], 409)

        def states():
            return [server.sure("mail_message", id=id)[0]["status"] for id in ids]

        until("the mails", lambda: all(state in ("accepted", "sent", "delivered") for state in states()), seconds=90)
        expect("each was sent", sorted(set(states())), lambda found: set(found) <= {"accepted", "sent", "delivered"})
        subjects = [line for path in outbox.rglob("*.eml") for line in path.read_text(errors="replace").splitlines() if line.startswith("Subject: ")]
        expect("and once", sorted(subjects), sorted(f"Subject: Mail {n}" for n in range(len(ids))))
        expect("the person's key sends nothing", ada.call("points_award", person="ada", delta=5, key="k", reason="r")[0], 403)

        # The app is installed again: a new phone with an empty storage.
        phone = Phone(ada)
        until("all mails", lambda: len(phone.catch_up()) >= len(ids))
        expect("the phone knows of each", sorted(phone.mails), sorted(ids))
        other = Phone(ada)
        until("the same mails", lambda: other.catch_up() == phone.catch_up())
        expect("a new one knows the same", other.mails, phone.mails)
        more = str(uuid.uuid4())
        ids.append(more)
        send(more)
        until("the new mail", lambda: other.catch_up().get(more) not in (None, "created"))
        expect("and hears what comes", more in other.mails, True)
        expect("another person knows of none", Phone(Rest(rig, rest_port, token(iss="supabase", role="authenticated", sub="bob"))).catch_up(), {})
        edge_function(rig, rest_port)
    finish()


def edge_function(rig, rest_port):
    """The Edge Function beside this file, in Node with what it needs of Deno."""
    node = shutil.which("node")
    if not node:
        say("SKIPPED the Edge Function: there is no node")
        return
    environment = {**os.environ, "SUPABASE_URL": f"http://127.0.0.1:{rest_port}", "SUPABASE_SERVICE_ROLE_KEY": token(iss="supabase", role="service_role")}
    with subprocess.Popen([node, str(CHECKS / "deno.mjs"), str(pathlib.Path(__file__).with_name("welcome.js"))], env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = f"http://127.0.0.1:{int(process.stdout.readline())}/"
            one = {"id": str(uuid.uuid4()), "email": "ada@example.com", "name": "Ada", "person": "ada"}
            first = rig.http("POST", address, one)
            expect("the Edge Function sends", [first[0], first[1].get("id", first[1])], [200, one["id"]])
            expect("and the same again once", rig.http("POST", address, one)[0], 200)
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
