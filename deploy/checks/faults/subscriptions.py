"""Messages that Stripe's and Apple's own libraries sign and believe, to a worker, sent again as the stores do until it has taken them."""

import base64
import concurrent.futures
import http.client
import json
import time
import uuid

import jwt
import lib
import stripe
from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.signed_data_verifier import SignedDataVerifier

PACKAGES = ["stripe==16.1.0", "app-store-server-library==3.1.2"]
SECRET = "whsec_0123456789abcdefghijklmnop"
SUBSCRIPTIONS = 40  # at each store; six messages about each


def check(ground):
    made = lib.load("subscriptions")
    made.make(ground.place)
    leaf, root = (ground.place / "leaf.pem").read_bytes(), (ground.place / "root.der").read_bytes()
    certificates = json.loads((ground.place / "chain.json").read_text())
    verifier = SignedDataVerifier([root], False, Environment.PRODUCTION, made.BUNDLE, 41)
    port = lib.free_port()
    ground.worker({
        "STRIPE_WEBHOOK_SECRET": SECRET, "MILLRACE_APP_STORE_BUNDLE": made.BUNDLE, "MILLRACE_APP_STORE_APP_ID": "41",
        "MILLRACE_APP_STORE_ROOT_FILES": str(ground.place / "root.der"),
    }, ["--listen", f"127.0.0.1:{port}"])
    lib.within(30, "the worker listens", lambda: lib.answers(port, "/livez"))
    way = lib.proxy(ground, port)
    ground.sql("select millrace.subscription_plan_set('pro', '{\"pages\": 1000}', products => '{stripe:price_pro,apple:com.example.pro}')")

    sign = lambda document: jwt.encode({k: v for k, v in document.items() if v is not None}, leaf, algorithm="ES256", headers={"x5c": certificates})

    def of_stripe(n):
        for number, body in enumerate(made.stripe_events()):
            event = json.loads(body)
            event["id"] = f"evt_{n}_{number}"
            event["data"]["object"].update(id=f"sub_{n}", metadata={"millrace_person": f"p{n}"})
            yield "stripe", f"sub_{n}", event["id"], json.dumps(event)

    def of_apple(n):
        person = str(uuid.UUID(int=n + 1))
        for one in made.notifications():
            data = one["data"]
            for part in ("transaction", "renewal"):
                data[part]["originalTransactionId"] = f"a{n}"
            data["transaction"].update(appAccountToken=person, transactionId=f"a{n}-{data['transaction']['transactionId']}")
            data["signedTransactionInfo"], data["signedRenewalInfo"] = sign(data.pop("transaction")), sign(data.pop("renewal"))
            signed = sign(one)
            verifier.verify_and_decode_notification(signed)
            yield "apple", f"a{n}", one["notificationUUID"], json.dumps({"signedPayload": signed})

    messages = [one for n in range(SUBSCRIPTIONS) for one in (*of_stripe(n), *of_apple(n))]
    ground.random.shuffle(messages)

    def post(store, body, is_forged):
        headers = {"Content-Type": "application/json"}
        if store == "stripe":
            at = int(time.time())
            mark = stripe.WebhookSignature._compute_signature(f"{at}.{body}", "another secret" if is_forged else SECRET)
            headers["Stripe-Signature"] = f"t={at},v1={mark}"
        elif is_forged:
            head, payload, mark = json.loads(body)["signedPayload"].split(".")
            body = json.dumps({"signedPayload": f"{head}.{payload}.{mark[:-6]}AAAAAA"})
        connection = http.client.HTTPConnection("127.0.0.1", way.port, timeout=20)
        try:
            connection.request("POST", f"/v1/webhooks/{'stripe' if store == 'stripe' else 'app-store'}", body.encode(), headers)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def deliver(store, body, is_forged=False):
        while (status := post(store, body, is_forged)) not in (200, 400, 401) and not ground.is_over:
            time.sleep(0.7)
        return status

    outcome = lib.Outcome(work=len(messages))
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        waiting, forged = [], []

        def hand_in(n):
            store, _, _, body = messages[n]
            waiting.append(pool.submit(deliver, store, body))
            if n % 10 == 0:
                forged.append(pool.submit(deliver, store, body.replace("evt_", "evil_"), True))

        with ground.disturbed(way.away):
            lib.spread(len(messages), hand_in)
        ground.faults.end()
        answers = [one.result() for one in waiting]
        outcome.wrong += sum(one.result() != 401 for one in forged)
    counts = ground.rows("select store, id, count(*) as n from millrace.subscription_event group by 1, 2")
    stored = {(row["store"], row["id"]): row["n"] for row in counts}
    for (store, _, id, _), answer in zip(messages, answers):
        outcome.lost += answer != 200 or (store, id) not in stored
        outcome.twice += stored.get((store, id), 0) > 1
    outcome.wrong += len(set(stored) - {(store, id) for store, _, id, _ in messages})
    rows = ground.rows("select store, ref, state, plan from millrace.subscription")
    states = {(row["store"], row["ref"]): f"{row['state']} {row['plan']}" for row in rows}
    for key in {(store, ref) for store, ref, _, _ in messages}:
        if states.get(key) != "cancelled pro":
            outcome.wrong += 1
            outcome.notes.append(f"{key} is {states.get(key)} and should be cancelled pro")
    outcome.notes = outcome.notes[:3] + [f"{len(forged)} forged messages beside them"]
    return outcome


if __name__ == "__main__":
    lib.main(check)
