"""Events to receivers that read them with standardwebhooks and cloudevents, in each of the three modes."""

import json

import cloudevents.http
import lib
import standardwebhooks

PACKAGES = ["standardwebhooks==1.0.0", "cloudevents==1.11.0"]
EVENTS = 600
MODES = ["binary", "structured", "batch"]


def read(mode, headers, body):
    """The events as the package reads them."""
    if mode == "batch" and headers.get("content-type", "").startswith("application/cloudevents-batch"):
        return [cloudevents.http.from_json(json.dumps(one)) for one in json.loads(body)]
    return [cloudevents.http.from_http(headers, body)]


def check(ground):
    secrets, taken, wrong = {}, {}, []

    def answer(method, path, headers, body):
        headers = {name.lower(): value for name, value in headers.items()}
        if method == "OPTIONS":
            return 200, {"WebHook-Allowed-Origin": headers.get("webhook-request-origin", "-"), "WebHook-Allowed-Rate": "*"}, b""
        mode = path.strip("/")
        try:
            standardwebhooks.Webhook(secrets[mode]).verify(body, headers)
            for event in read(mode, headers, body):
                data = event.data if isinstance(event.data, dict) else json.loads(event.data)
                taken.setdefault((mode, event["id"]), []).append((headers["webhook-id"], data))
        except Exception as error:  # whatever it is, a package does not believe it
            wrong.append(f"{mode}: {error!r}")
        return 204, {}, b""

    receiver = lib.Counterpart(ground, answer)
    ground.worker({
        "MILLRACE_WEBHOOK_ALLOW": receiver.url, "MILLRACE_EVENT_SOURCE": "https://events.example/",
        "MILLRACE_PROVIDER_WEBHOOK_TIMEOUT": "5s",
    })
    for mode in MODES:
        row = ground.rows(f"select * from millrace.webhook_add('{receiver.url}/{mode}', '{{com.example.*}}', '{mode}')")[0]
        secrets[mode] = row["secret"]
    sent = {}

    def publish(n):
        data = {"n": n, "text": "Grüße, 日本 & <b>", "list": [n, None, 1.5]}
        id = ground.value(f"select millrace.event_publish('com.example.{n % 3}', '/shop', {lib.quoted(data)}, 'order/{n}') as id")
        sent[id] = data

    with ground.disturbed(receiver.away):
        lib.spread(EVENTS, publish)

    def is_done():
        # The schedule's second try is minutes away.
        ground.sql(
            "update millrace.webhook_delivery set due_at = millrace.now() where state = 'pending' and token is null and due_at > millrace.now()")
        return ground.value("select count(*) from millrace.webhook_delivery where state = 'delivered'") == EVENTS * len(MODES)

    ground.settle("every event is delivered", is_done)
    outcome = lib.Outcome(work=EVENTS * len(MODES))
    for mode in MODES:
        for id, data in sent.items():
            arrived = taken.get((mode, id), [])
            outcome.lost += not arrived
            outcome.wrong += any(one != data for _, one in arrived)
            outcome.again += max(0, len(arrived) - 1)
            # A list has an id of its own, and what was in it may come again in another one.
            outcome.twice += mode != "batch" and len({name for name, _ in arrived}) > 1
    outcome.wrong += len(wrong) + len({id for _, id in taken} - set(sent))
    outcome.notes += wrong[:3]
    told = ground.value("select count(*) from millrace.webhook_delivery where state <> 'delivered'")
    if told:
        outcome.notes.append(f"{told} deliveries are not delivered, as Postgres says")
        outcome.notes.append(json.dumps(ground.rows(
            "select state, code, error, count(*) from millrace.webhook_delivery where state <> 'delivered' group by 1, 2, 3")))
    return outcome


if __name__ == "__main__":
    lib.main(check)
