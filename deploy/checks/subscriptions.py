"""Messages of stores about subscriptions, made and checked by packages from PyPI.

Usage: subscriptions.py make DIR             a chain of certificates with Apple's marks: DIR/root.der and others
       subscriptions.py send DIR URL SECRET  sends messages to a worker, and compares what it says with the packages

Ends with 1 and the difference if the worker and a package disagree.
"""

import base64
import datetime
import json
import pathlib
import random
import sys
import time
import urllib.error
import urllib.request
import uuid

import jwt
import stripe
from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.signed_data_verifier import SignedDataVerifier, VerificationException
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

BUNDLE = "com.example.app"


def certificate(name, key, issuer, issuer_key, authority, mark):
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if authority:
        usage = dict.fromkeys(
            ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "encipher_only", "decipher_only"], False)
        builder = builder.add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **usage), critical=True)
    if mark:
        builder = builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(mark), b"\x05\x00"), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def chain(leaf_mark="1.2.840.113635.100.6.11.1", middle_mark="1.2.840.113635.100.6.2.1"):
    root, middle, leaf = (ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1()))
    made = [
        certificate("leaf", leaf, "middle", middle, False, leaf_mark),
        certificate("middle", middle, "root", root, True, middle_mark),
        certificate("root", root, "root", root, True, None),
    ]
    return leaf, [one.public_bytes(serialization.Encoding.DER) for one in made]


def make(place):
    leaf, ders = chain()
    (place / "root.der").write_bytes(ders[2])
    (place / "chain.json").write_text(json.dumps([base64.b64encode(der).decode() for der in ders]))
    (place / "leaf.pem").write_bytes(
        leaf.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


def post(url, body, headers):
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def agree(what, theirs, answer):
    ours = answer[0] == 200
    print(f"{what}: the package says {'yes' if theirs else 'no'}, the worker {answer[0]} {answer[1].strip()}")
    if ours != theirs:
        sys.exit(f"{what}: the package and the worker disagree")


def stripe_events():
    now = int(time.time())
    steps = [
        ("created", "incomplete", 0, 30, False), ("updated", "trialing", 0, 7, False), ("updated", "active", 100, 30, False),
        ("updated", "past_due", 200, 60, False), ("updated", "past_due", 250, 60, False), ("updated", "active", 300, 60, True),
    ]
    for n, (kind, status, at, days, ends) in enumerate(steps):
        subscription = {
            "id": "sub_1", "object": "subscription", "status": status, "cancel_at_period_end": ends, "metadata": {"millrace_person": "ada"},
            "items": {"object": "list", "data": [{"id": "si_1", "object": "subscription_item", "current_period_end": now + days * 86400,
                                                  "price": {"id": "price_pro", "object": "price"}}]},
        }
        yield json.dumps({"id": f"evt_{n}", "object": "event", "api_version": "2025-03-31.basil", "created": now + at,
                          "type": f"customer.subscription.{kind}", "data": {"object": subscription}})


def send_stripe(url, secret):
    def believes(body, header):
        try:
            stripe.Webhook.construct_event(body, header, secret)
            return True
        except (stripe.SignatureVerificationError, ValueError):
            return False

    def header(body, at, key):
        return f"t={at},v1={stripe.WebhookSignature._compute_signature(f'{at}.{body}', key)}"

    events = list(stripe_events())
    now = int(time.time())
    first = events[0]
    wrong = [
        ("Stripe, another secret", first, header(first, now, "whsec_another0123456789abcdefgh")),
        ("Stripe, too old", first, header(first, now - 400, secret)),
        ("Stripe, another body", first + " ", header(first, now, secret)),
        ("Stripe, another scheme", first, header(first, now, secret).replace("v1=", "v0=")),
        ("Stripe, no signature", first, f"t={now}"),
    ]
    for what, body, mark in wrong:
        agree(what, believes(body, mark), post(url, body.encode(), {"Stripe-Signature": mark}))
    random.shuffle(events)
    for n, body in enumerate(events + events[:2]):
        mark = header(body, int(time.time()), secret)
        if n % 2:
            mark = mark.replace(",v1=", ",v1=" + "0" * 64 + ",v1=")
        agree(f"Stripe, event {n}", believes(body, mark), post(url, body.encode(), {"Stripe-Signature": mark}))


def notifications():
    now = int(time.time()) * 1000
    day = 86_400_000
    steps = [
        ("SUBSCRIBED", "INITIAL_BUY", 1, 0, "t1", 7, 1, {"offerDiscountType": "FREE_TRIAL"}, {}),
        ("DID_RENEW", None, 1, 1000, "t2", 37, 1, {}, {}),
        ("REFUND", None, 1, 2000, "t1", 7, 1, {"revocationDate": now, "revocationReason": 0}, {}),
        ("DID_FAIL_TO_RENEW", "GRACE_PERIOD", 4, 3000, "t2", 37, 1, {}, {"gracePeriodExpiresDate": now + 50 * day}),
        ("DID_RENEW", "BILLING_RECOVERY", 1, 4000, "t3", 67, 1, {}, {}),
        ("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", 1, 5000, "t3", 67, 0, {}, {}),
    ]
    for kind, subtype, status, at, transaction, days, renews, more, renewal in steps:
        both = {"originalTransactionId": "t1", "productId": "com.example.pro", "environment": "Production", "signedDate": now}
        yield {
            "notificationType": kind, "subtype": subtype, "notificationUUID": str(uuid.uuid4()), "version": "2.0", "signedDate": now + at,
            "data": {
                "appAppleId": 41, "bundleId": BUNDLE, "environment": "Production", "status": status,
                "transaction": {**both, "transactionId": transaction, "bundleId": BUNDLE, "expiresDate": now + days * day,
                                "appAccountToken": "7e3fb20b-4cdb-47cc-936d-99d65f608138", **more},
                "renewal": {**both, "autoRenewStatus": renews, **renewal},
            },
        }


def send_apple(place, url):
    root = (place / "root.der").read_bytes()
    leaf = (place / "leaf.pem").read_bytes()
    certificates = json.loads((place / "chain.json").read_text())
    verifier = SignedDataVerifier([root], False, Environment.PRODUCTION, BUNDLE, 41)

    def sign(document, key=leaf, x5c=None, algorithm="ES256"):
        return jwt.encode({k: v for k, v in document.items() if v is not None}, key, algorithm=algorithm, headers={"x5c": x5c or certificates})

    def whole(notification, **signing):
        data = dict(notification["data"])
        data["signedTransactionInfo"] = sign(data.pop("transaction"), **signing)
        data["signedRenewalInfo"] = sign(data.pop("renewal"), **signing)
        return sign({**notification, "data": data}, **signing)

    def believes(signed):
        try:
            verifier.verify_and_decode_notification(signed)
            return True
        except VerificationException:
            return False

    def say(what, signed):
        agree(what, believes(signed), post(url, json.dumps({"signedPayload": signed}).encode(), {}))

    made = list(notifications())
    first = made[0]
    say("Apple, another app", whole({**first, "data": {**first["data"], "bundleId": "com.example.other"}}))
    say("Apple, another app of the store", whole({**first, "data": {**first["data"], "appAppleId": 42}}))
    say("Apple, no app of the store", whole({**first, "data": {k: v for k, v in first["data"].items() if k != "appAppleId"}}))
    say("Apple, another environment", whole({**first, "data": {**first["data"], "environment": "Sandbox"}}))
    for what, marks in [("another root", {}), ("no mark of the leaf", {"leaf_mark": None}), ("no mark of the intermediate", {"middle_mark": None})]:
        key, ders = chain(**marks)
        say(f"Apple, {what}", whole(first, key=key, x5c=[base64.b64encode(der).decode() for der in ders]))
    stranger = ec.generate_private_key(ec.SECP256R1())
    say("Apple, another key", whole(first, key=stranger))
    say("Apple, only an HMAC", whole(first, key="x" * 32, algorithm="HS256"))
    good = whole(first)
    head, body, mark = good.split(".")
    say("Apple, another payload", f"{head}.{jwt.utils.base64url_encode(json.dumps(first).encode()).decode()}.{mark}")
    signed = [whole(one) for one in made]
    random.shuffle(signed)
    for n, one in enumerate(signed + signed[:2]):
        say(f"Apple, notification {n}", one)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "make":
        make(folder)
    else:
        send_stripe(f"{sys.argv[3]}/v1/webhooks/stripe", sys.argv[4])
        send_apple(folder, f"{sys.argv[3]}/v1/webhooks/app-store")
