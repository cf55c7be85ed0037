"""Templates that a worker renders, compared with what chevron makes of them; what is away is Postgres."""

import html
import json
import re
import time

import chevron
import lib

PACKAGES = ["chevron==0.14.0"]
JOBS = 400
SUBJECT = "Order {{number}} for {{name}}{{#urgent}} (urgent: {{urgent}}){{/urgent}}"
TEXT = """Dear {{name}},{{! a comment }}

{{#note}}
Your note was: {{note}}
{{/note}}
{{^note}}
You left no note.
{{/note}}
{{=<% %>=}}
Number <% number %>, as {{ typed }}.
<%={{ }}=%>
{{&name}} {{{name}}}
"""
HTML = """<p>Dear {{name}},</p>{{#note}}<blockquote>{{note}}</blockquote>{{/note}}{{^note}}<i>none</i>{{/note}}<p title="{{name}}">{{number}}</p>"""
PARTS = ["Ada", "<b>", "&", "&amp;", "{{x}}", "日本", "ü", "'", '"', "}}", " ", "=", "`", "1 < 2"]


def check(ground):
    ground.worker({
        "EMAIL_SERVICE_PROVIDER": "outbox", "MILLRACE_MAIL_OUTBOX": str(ground.place / "outbox"), "EMAIL_FROM_ADDRESS": "check@example.net",
        "MILLRACE_APP_NAME": "Check",
    })
    variables = {name: {"type": "text", "max": 500} for name in ("name", "note", "urgent")} | {"number": {"type": "number"}}
    arguments = ", ".join(lib.quoted(one) for one in ("order", SUBJECT, HTML, TEXT, variables))
    ground.sql(f"select millrace.template_publish({arguments})")
    asked = {}

    def ask(n):
        word = lambda: "".join(ground.random.choice(PARTS) for _ in range(ground.random.randrange(1, 6)))
        data = {"name": word(), "note": ground.random.choice(["", word()]), "urgent": ground.random.choice(["", word()]), "number": n}
        while True:
            try:
                asked[int(ground.value(f"select millrace.template_render('order', {lib.quoted(data)}) as job"))] = data
                return
            except RuntimeError:
                time.sleep(0.2)  # Postgres is away, and says so: nothing was handed in

    def away(seconds):
        ground.stop_postgres("immediate")
        time.sleep(seconds)
        ground.start_postgres()

    with ground.disturbed(away):
        lib.spread(JOBS, ask)
    of_kind = "from millrace.history h join millrace.kind k on k.id = h.kind where k.name = 'template.render' and h.outcome = 1"  # succeeded
    ended = f"select count(*) {of_kind}"
    ground.settle("every job has ended", lambda: ground.value(ended) >= JOBS)
    # A text has nothing to be escaped for, which chevron does not know.
    plain = lambda template: re.sub(r"(?<!\{)\{\{(\w+)\}\}(?!\})", r"{{&\1}}", template)
    outcome = lib.Outcome(work=len(asked))
    ends = {row["id"]: row["n"] for row in ground.rows(f"select h.id, count(*) as n {of_kind} group by 1")}
    for job, given in asked.items():
        data = {name: "" if str(value).isspace() else value for name, value in given.items()}  # nothing but blanks is nothing
        outcome.twice += ends.get(job, 0) > 1
        state = ground.rows(f"select state, result from millrace.job({job})")
        if not state or state[0]["state"] != "succeeded":
            outcome.lost += 1
            continue
        got = state[0]["result"]
        shown = {
            "subject": (chevron.render(plain(SUBJECT), data), got["subject"]),
            "text": (chevron.render(plain(TEXT), data).strip(), got["text"].strip()),
            "html": (html.unescape(chevron.render(HTML, data)), html.unescape(got["html"])),
        }
        for part, (theirs, ours) in shown.items():
            if theirs != ours:
                outcome.wrong += 1
                if len(outcome.notes) < 3:
                    outcome.notes.append(f"{part} of {json.dumps(data, ensure_ascii=False)}: chevron {theirs!r}, the worker {ours!r}")
                break
    return outcome


if __name__ == "__main__":
    lib.main(check)
