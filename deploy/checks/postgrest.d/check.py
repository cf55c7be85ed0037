"""Calls Millrace through a stand-in for PostgREST as Supabase's clients do, and compares. deploy/checks/postgrest runs it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid

import postgrest
import psycopg

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import stand_in

ROOT = pathlib.Path(__file__).resolve().parents[3]
SECRET = "a-shared-secret-of-more-than-thirty-two-bytes"
NOW = int(time.time())
# As Supabase makes them, and by its guide.
ROLES = """
do $$
declare
    one text;
begin
    foreach one in array array['authenticator login noinherit', 'anon', 'authenticated', 'service_role bypassrls'] loop
        if to_regrole(split_part(one, ' ', 1)) is null then
            execute 'create role ' || one;
        end if;
    end loop;
    grant anon, authenticated, service_role to authenticator;
end $$;
"""
wrong = []


def guide_sql():
    """The statements that the guide has the owner run."""
    text = (ROOT / "deploy/guides/supabase.md").read_text(encoding="utf-8")
    return text.split("```text\n-- as the owner of the schema, ", 1)[1].split("\n", 1)[1].split("```", 1)[0]


def expect(what, found, wanted):
    is_right = wanted(found) if callable(wanted) else found == wanted
    print(f"{'ok   ' if is_right else 'WRONG'} {what}: {json.dumps(found, default=str)[:160]}")
    if not is_right:
        wrong.append(what)


def by_hand(url, door, arguments, key, profile="millrace", accept="application/json"):
    headers = {"Content-Type": "application/json", "Content-Profile": profile, "Accept": accept}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{url}/rpc/{door}", json.dumps(arguments).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def class_of(answer):
    return answer[0], json.loads(answer[1].get("details") or "{}").get("error")


def refused(call):
    try:
        return call()
    except postgrest.APIError as error:
        return [error.code, json.loads(error.details or "{}").get("error")]


def main():
    database = os.environ["DATABASE_URL"]
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(ROLES)
        owner.execute(guide_sql())
    login = psycopg.conninfo.make_conninfo(database, user="authenticator")
    served = stand_in.server(login, SECRET)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{served.server_address[1]}/rest/v1"

    def key(**claims):
        return stand_in.token({"iss": "supabase", "iat": NOW, "exp": NOW + 3600, **claims}, SECRET)

    service, ada, anon = key(role="service_role"), key(role="authenticated", sub="ada", aud="authenticated"), key(role="anon")

    def client(of):
        return postgrest.SyncPostgrestClient(url, schema="millrace", headers={"Authorization": f"Bearer {of}", "apikey": of})

    server = client(service)
    mail = str(uuid.uuid4())
    sent = {"recipients": ["ada@example.com"], "subject": "Hello", "body_text": "Hi", "id": mail, "sender": "joanie", "person": "ada"}
    expect("a mail is handed in", server.rpc("mail_send", sent).execute().data, mail)
    expect("the same again is no conflict", server.rpc("mail_send", sent).execute().data, mail)
    expect("other content is one", refused(lambda: server.rpc("mail_send", {**sent, "subject": "Other"}).execute().data), ["23505", "conflict"])
    expect("it is followed", server.rpc("mail_message", {"id": mail}).single().execute().data["status"], "queued")
    expect("the server's jobs", len(server.rpc("own_jobs", {}).execute().data), lambda n: n >= 1)
    expect("it is cancelled", server.rpc("mail_cancel", {"id": mail}).execute().data, True)
    expect("the error map", [row["authentication_error"] for row in server.rpc("error_map", {}).execute().data if row["error_class"] == "timeout"], ["networkTimeout"])
    expect("a mood of a person", server.rpc("mood_log", {"person": "ada", "color": "happy", "actor": "ada"}).execute().data, lambda id: len(id) == 36)
    expect("points", server.rpc("points_award", {"person": "ada", "delta": 5, "key": f"k{NOW}", "reason": "helped"}).execute().data, True)
    notice = {"person": "ada", "kind": "app.news", "data": {"title": "New", "body": "Look"}, "key": f"n{NOW}"}
    first = server.rpc("notice_send", notice).execute().data
    expect("a notice, twice", server.rpc("notice_send", notice).execute().data, first)
    expect("it is followed", [row["id"] for row in server.rpc("notice_sent", {"person": "ada", "key": f"n{NOW}"}).execute().data], [first])
    document = server.rpc("document_register", {"storage_url": "https://files.example.com/a.pdf", "title": "A", "actor": "ada"}).execute().data
    expect("a document of a person", server.rpc("document", {"id": document, "actor": "ada"}).single().execute().data["owner"], "ada")

    person = client(ada)
    own = person.rpc("document_register", {"storage_url": "https://files.example.com/b.pdf", "title": "B"}).execute().data
    expect("a person's own document", person.rpc("document", {"id": own}).single().execute().data["owner"], "ada")
    expect("what the server registers for a person is there for it", person.rpc("document", {"id": document}).single().execute().data["title"], "A")
    expect("and for nobody else", len(client(key(role="authenticated", sub="bob")).rpc("document", {"id": document}).execute().data), 0)
    expect("a person's own streak", person.rpc("streak", {"person": "ada"}).execute().data["person"], "ada")
    for name, call in {
        "another's streak": ("streak", {"person": "bob", "actor": "bob"}),
        "points": ("points_award", {"person": "ada", "delta": 5, "key": "x", "reason": "r"}),
        "notices": ("notice_send", {"person": "ada", "kind": "app.news"}),
        "a subscription": ("subscription_set", {"plan": "pro", "person": "ada"}),
    }.items():
        expect(f"a person is refused {name}", class_of(by_hand(url, *call, ada)), (403, "permission"))
        expect(f"anon is refused {name}", by_hand(url, *call, anon)[0], 401)
        expect(f"nobody is refused {name}", by_hand(url, *call, None)[0], 401)
    for name, claims in {"no sub": {"role": "authenticated"}, "an empty one": {"role": "authenticated", "sub": ""}, "none at all": {"role": "authenticated", "sub": None}}.items():
        expect(f"a person's token with {name}", class_of(by_hand(url, "streak", {"person": "bob", "actor": "bob"}, key(**claims))), (403, "permission"))
    expect("a server's token that names a person acts as that", class_of(by_hand(url, "streak", {"person": "bob", "actor": "bob"}, key(role="service_role", sub="ada"))), (403, "permission"))
    expect("another's signature", by_hand(url, "streak", {}, stand_in.token({"role": "service_role"}, "another-secret"))[0], 401)
    expect("a schema that is not exposed", by_hand(url, "streak", {}, service, profile="pg_catalog")[0], 406)
    expect("a class of errors", class_of(by_hand(url, "mail_cancel", {"id": "00000000-0000-4000-8000-0000000000bb"}, service)), (500, "not_found"))

    node = shutil.which("node")
    if node:
        edge_function(node, url, service)
    else:
        print("SKIPPED the Edge Function: there is no node")
    served.shutdown()
    print(f"{len(wrong)} wrong" if wrong else "all is well")
    return 1 if wrong else 0


def edge_function(node, url, service):
    """The example, in Node with what it needs of Deno."""
    folder = ROOT / "deploy/examples/joanie"
    environment = {**os.environ, "SUPABASE_URL": url.removesuffix("/rest/v1"), "SUPABASE_SERVICE_ROLE_KEY": service}
    with subprocess.Popen([node, str(ROOT / "deploy/checks/postgrest.d/deno.mjs"), str(folder / "welcome.js")], env=environment,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline())

            def ask(body):
                request = urllib.request.Request(f"http://127.0.0.1:{port}/", json.dumps(body).encode(), {"Content-Type": "application/json"})
                try:
                    with urllib.request.urlopen(request, timeout=30) as answer:
                        return answer.status, json.loads(answer.read())
                except urllib.error.HTTPError as error:
                    return error.code, json.loads(error.read())

            one = {"id": str(uuid.uuid4()), "email": "ada@example.com", "name": "Ada", "person": "ada"}
            expect("the Edge Function sends", ask(one), lambda a: a[0] == 200 and a[1]["status"] == "queued")
            expect("the same again", ask(one), lambda a: a[0] == 200 and a[1]["id"] == one["id"])
            expect("what is wrong is said", ask({**one, "email": "nobody"}), lambda a: a[0] == 422 and a[1]["error"] == "invalid")
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
