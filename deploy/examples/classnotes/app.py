"""The app of a class, over plain HTTP: uploads a document in pieces, follows it to its text, edits lessons, has a model read it. The gateway and a worker
are killed in the middle, and then the phone is a new one. deploy/examples/classnotes/run runs it."""

import http.client
import http.server
import json
import pathlib
import sys
import threading
import urllib.parse
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from rig import Rig, expect, finish, free_port, say, token, until, until_heard

ANALYSIS = {"summary": "Cells divide.", "key_points": ["One cell becomes two."], "questions": [{"question": "What divides?", "answer": "Cells."}]}


def pdf(pages):
    """A PDF with a line of text on each page."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Count {len(pages)}/Kids[{' '.join(f'{4 + 2 * n} 0 R' for n in range(len(pages)))}]>>",
               "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    for n, line in enumerate(pages):
        drawn = f"BT /F1 14 Tf 72 720 Td ({line}) Tj ET"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents {5 + 2 * n} 0 R>>")
        objects.append(f"<</Length {len(drawn)}>>\nstream\n{drawn}\nendstream")
    out, places = b"%PDF-1.7\n", []
    for n, one in enumerate(objects):
        places.append(len(out))
        out += f"{n + 1} 0 obj\n{one}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    return out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF\n".encode()


class Model(http.server.BaseHTTPRequestHandler):
    """A language model of the format of chat completions, that always says the same."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        words = json.dumps(ANALYSIS)
        said = [{"choices": [{"delta": {"content": words}, "finish_reason": None}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]},
                {"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 30}}]
        body = "".join(f"data: {json.dumps(one)}\n\n" for one in said) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class Phone:
    """What the app keeps on a device: nothing but what it has heard."""

    def __init__(self, rig, person):
        self.rig, self.key, self.position, self.lessons, self.documents = rig, token(sub=person), None, {}, {}

    def call(self, door, **arguments):
        status, said = self.rig.http("POST", f"/v1/rpc/{door}", arguments, self.key)
        if status != 200:
            raise SystemExit(f"{door}: {status} {said}")
        return said

    def upload(self, name, content, breaks_off=False):
        """Sends a file in pieces. One that breaks off is sent again as a whole, to the same address; 409 says that the first attempt is still open."""
        link = self.call("document_upload", name=name, mime_type="application/pdf", size=len(content))
        url = urllib.parse.urlsplit(link["url"] if isinstance(link, dict) else link[0]["url"])

        def put(upto):
            connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
            connection.putrequest("PUT", url.path)
            connection.putheader("Content-Type", "application/pdf")
            connection.putheader("Content-Length", str(len(content)))
            connection.endheaders()
            for at in range(0, upto, 500):
                connection.send(content[at:min(upto, at + 500)])
            status = connection.getresponse().status if upto == len(content) else None
            connection.close()
            return status

        if breaks_off:
            put(len(content) // 2)
        statuses = []
        until("the upload", lambda: statuses.append(put(len(content))) or statuses[-1] != 409)
        expect("the upload is taken", statuses[-1], lambda status: status in (200, 201, 204))
        return (link if isinstance(link, dict) else link[0])["storage_url"]

    def load(self):
        """A new device, or one that has been away for long: the position first, then all there is."""
        self.position = self.call("feed_position")
        self.position = (self.position if isinstance(self.position, dict) else self.position[0])["newest"]
        self.lessons = {row["id"]: row["title"] for row in self.call("lesson_list")}
        self.documents = {row["id"]: row["status"] for row in self.call("document_list")}

    def catch_up(self):
        """What has changed since, each once and in order."""
        heard = []
        while page := self.call("feed_mine", since=self.position, topics=["documents", "lessons"]):
            for row in page:
                self.position = row["seq"]
                heard.append(f"{row['topic']} {row['change']}")
        return heard


def main():
    models = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Model)
    threading.Thread(target=models.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{models.server_address[1]}/v1"
    with Rig(MILLRACE_AI_OPENAI_URL=address, MILLRACE_AI_OPENAI_MODEL="fake") as rig:
        say("the database is there")
        rig.sql("select millrace.grant_enqueue('millrace_client', 'document.receive', 'documents'), "
                "millrace.ai_switch('tenant', 'person:anna', true)")
        for name in ("first", "second"):
            rig.start_worker(name)
        rig.start_gateway()
        until("the workers", lambda: rig.sql("select 1 from millrace.ai_provider") and rig.sql("select 1 from millrace.setting where name = 'link_key'"))
        say("two workers and a gateway run")

        phone = Phone(rig, "anna")
        phone.load()
        expect("a new class has nothing", [phone.lessons, phone.documents], [{}, {}])
        expect("a lesson is put", phone.call("lesson_put", id="cells", title="Cells"), "created")
        stored = phone.upload("cells.pdf", pdf(["Cells divide.", "Each of them again."] * 4), breaks_off=True)
        document = str(uuid.uuid4())
        register = {"id": document, "storage_url": stored, "title": "Cells", "lesson_id": "cells", "options": {"analyze": True}}
        expect("it is registered", phone.call("document_register", **register), document)

        # The stages, until something has begun; then the power fails.
        last, stages = None, []
        for last, event, data in rig.events(f"/v1/documents/{document}/events?since=0", phone.key):
            if event == "change":
                stages.append(data["change"])
                break
        for name in ("gateway", "first"):
            rig.kill(name)
        say(f"after “{stages[-1]}” the gateway and a worker are killed")
        expect("a call finds nobody", rig.answers("/readyz"), False)
        rig.start_worker("third")
        rig.start_gateway()
        expect("the same registration is the first answer", phone.call("document_register", **register), document)
        while stages[-1] != "processing_complete":
            for last, event, data in rig.events(f"/v1/documents/{document}/events", phone.key, last):
                if event == "change":
                    stages.append(data["change"])
                    if data["change"] == "processing_complete":
                        break
        expect("the stream went on behind the last event", [stages.count("created"), stages.count("processing_complete")], [1, 1])
        expect("the text is there", phone.call("document_text", id=document), lambda text: "Cells divide." in text and text.count("\f") == 7)
        expect("so is a copy", rig.http("GET", phone.call("document_link", id=document, kind="pdf"))[0], 200)
        expect("a lesson is edited", [phone.call("lesson_put", id="cells", title="Cells, week 2", data={"room": 3}), phone.call("lesson_put", id="more", title="More")],
               ["updated", "created"])
        analysis = until("the analysis", lambda: [row for row in phone.call("document_analysis", id=document) if row["status"] == "answered"])
        expect("a model has read it", analysis[0]["summary"], ANALYSIS["summary"])
        changes = {"lessons created", "lessons updated", "lessons processing_complete", "documents created", "documents processing_complete"}
        heard = until_heard("all changes", phone, changes.issubset)
        expect("the phone has heard it all", heard, changes.issubset)

        # The app is installed again: a new device, with an empty storage.
        phone.load()
        other = Phone(rig, "anna")
        other.load()
        expect("a new device has the same", [other.lessons, other.documents], [phone.lessons, phone.documents])
        expect("with its text and what a model said", [other.call("document_text", id=document)[:13], other.call("document_analysis", id=document)[0]["summary"]],
               ["Cells divide.", ANALYSIS["summary"]])
        expect("the old one deletes a lesson", phone.call("lesson_delete", ids=["more"]), lambda rows: rows[0]["deleted"])
        expect("the new one hears of it", until_heard("the deletion", other, bool), ["lessons deleted"])
        expect("a stranger has nothing", [Phone(rig, "eve").call("document_list"), Phone(rig, "eve").call("lesson_list")], [[], []])
        expect("everything happened once", rig.sql(
            "select (select count(*) from millrace.document), (select count(*) from millrace.event where type like '%document.processed'), (select count(*) from millrace.ai_question where status = 'answered')"),
            ["1|1|1"])
    finish()


if __name__ == "__main__":
    main()
