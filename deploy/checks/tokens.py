"""Makes tokens with PyJWT and joserfc, sends them to a gateway, and compares. deploy/checks/tokens runs it."""

import argparse
import base64
import hashlib
import hmac
import http.client
import http.server
import json
import os
import sys
import time
import urllib.parse

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from joserfc import jwe as jose_jwe
from joserfc import jws as jose_jws
from joserfc import jwt as jose_jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

ISSUER = "https://issuer.example/"
AUDIENCE = "https://api.example"
UNKNOWN = "no key here"
SECRET = "a-shared-secret-of-more-than-thirty-two-bytes"


def b64(data):
    if isinstance(data, str):
        data = data.encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def public(key, encoding=serialization.Encoding.PEM):
    return key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)


def make(name):
    if name.startswith("rsa"):
        return rsa.generate_private_key(65537, 4096 if name == "rsa4096" else 2048)
    if name.startswith("p384"):
        return ec.generate_private_key(ec.SECP384R1())
    return ed25519.Ed25519PrivateKey.generate() if name.startswith("ed") else ec.generate_private_key(ec.SECP256R1())


NAMES = ["rsa", "rsa4096", "ec", "ed", "rsa-file", "rsa-new", "ec-new", "rsa-stranger", "ec-stranger", "ed-stranger", "p384"]
PUBLISHED = ["rsa", "rsa4096", "ec", "ed"]


class Keys:
    """The keys in a folder; the first call makes them."""

    def __init__(self, folder):
        self.folder = folder
        self.keys = {}
        os.makedirs(folder, exist_ok=True)
        for name in NAMES:
            path = os.path.join(folder, name + ".pem")
            if not os.path.exists(path):
                with open(path, "wb") as file:
                    file.write(pem(make(name)))
            with open(path, "rb") as file:
                self.keys[name] = serialization.load_pem_private_key(file.read(), None)

    def __getitem__(self, name):
        return self.keys[name]

    def jose(self, name):
        kind = {"r": RSAKey, "e": OKPKey if name.startswith("ed") else ECKey, "p": ECKey}[name[0]]
        return kind.import_key(pem(self[name]))

    def web_key(self, name):
        return dict(self.jose(name).as_dict(private=False), kid=name, use="sig")

    def publish(self, names, path=None):
        # Beside the usable keys one for encryption, and a secret that no key set should have.
        keys = [self.web_key(name) for name in names]
        keys.append(dict(self.web_key("rsa-stranger"), kid="for encryption", use="enc"))
        keys.append({"kty": "oct", "kid": "a secret", "k": b64(SECRET)})
        path = path or os.path.join(self.folder, "jwks.json")
        with open(path + ".new", "w") as file:
            json.dump({"keys": keys}, file)
        os.replace(path + ".new", path)

    def write_settings(self, url):
        """What the gateway is started with."""
        with open(os.path.join(self.folder, "public.pem"), "wb") as file:
            file.write(public(self["rsa-file"]))
        with open(os.path.join(self.folder, "settings"), "w") as file:
            file.write(
                f"MILLRACE_GATEWAY_JWKS_URLS={url}\n"
                f"MILLRACE_GATEWAY_JWT_ISSUERS={ISSUER}\n"
                f"MILLRACE_GATEWAY_JWT_AUDIENCES=https://other.example,{AUDIENCE}\n"
                f"MILLRACE_GATEWAY_JWT_KEYS_FILE={os.path.join(self.folder, 'public.pem')}\n"
                f"MILLRACE_GATEWAY_JWT_SECRET={SECRET}\n"
                f"MILLRACE_GATEWAY_TENANT_CLAIM=app_metadata.tenant\n")


def claims(**more):
    now = int(time.time())
    made = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 3600}
    made.update(more)
    return {name: value for name, value in made.items() if value is not None}


def crafted(head, payload, sign=lambda message: b""):
    """A token of texts that no library would write."""
    head = head if isinstance(head, (str, bytes)) else json.dumps(head)
    payload = payload if isinstance(payload, (str, bytes)) else json.dumps(payload)
    message = b64(head) + "." + b64(payload)
    return message + "." + b64(sign(message.encode()))


def mac(secret):
    return lambda message: hmac.new(secret, message, hashlib.sha256).digest()


def cases(keys):
    """(name, token or headers, what is expected: None if taken, else a part of the reason)."""
    now = int(time.time())
    one = claims()
    py = lambda key, alg, body=one, kid=None, **head: jwt.encode(
        body, key, algorithm=alg, headers={**({"kid": kid} if kid else {}), **head})
    jose = lambda key, alg, body=one, kid=None, **head: jose_jwt.encode(
        {"alg": alg, **({"kid": kid} if kid else {}), **head}, body, key, algorithms=[alg])
    rs = lambda body, **head: py(keys["rsa"], "RS256", body, "rsa", **head)
    es = lambda body, **head: py(keys["ec"], "ES256", body, "ec", **head)
    ecdsa = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256)
    signed = lambda head, payload: crafted(head, payload, lambda message: ecdsa.sign(message, keys["ec"]))
    head = {"alg": "ES256", "kid": "ec"}
    secret = OctKey.import_key(SECRET)

    yield "HS256, PyJWT", py(SECRET, "HS256"), None
    yield "HS256, joserfc", jose(secret, "HS256"), None
    yield "HS256 with an id that is not published", py(SECRET, "HS256", kid="legacy"), None
    yield "RS256, PyJWT", rs(one), None
    yield "RS256, joserfc", jose(keys.jose("rsa"), "RS256", kid="rsa"), None
    yield "RS256 without an id", py(keys["rsa"], "RS256"), None
    yield "RS256, 4096 bits", py(keys["rsa4096"], "RS256", kid="rsa4096"), None
    yield "ES256, PyJWT", es(one), None
    yield "ES256, joserfc", jose(keys.jose("ec"), "ES256", kid="ec"), None
    yield "EdDSA, PyJWT", py(keys["ed"], "EdDSA", kid="ed"), None
    yield "EdDSA, joserfc", jose(keys.jose("ed"), "EdDSA", kid="ed"), None
    yield "Ed25519 by its newer name", crafted(
        {"alg": "Ed25519", "kid": "ed"}, one, keys["ed"].sign), None
    yield "RS256 with the key of the settings", py(keys["rsa-file"], "RS256"), None
    yield "the same with an id of its own", py(keys["rsa-file"], "RS256", kid="of the file"), None
    yield "several audiences", rs(claims(aud=["https://x.example", AUDIENCE])), None
    yield "a tenant", rs(claims(app_metadata={"tenant": "acme"})), None
    yield "typ at+jwt", es(one, typ="at+jwt"), None
    yield "expired within the leeway", es(claims(exp=now - 20)), None
    yield "early within the leeway", es(claims(nbf=now + 20)), None
    yield "a jku that nobody reads", es(one, jku="https://evil.example/keys"), None

    yield "expired an hour ago", rs(claims(exp=now - 3600)), "expired"
    yield "expired just beyond the leeway", es(claims(exp=now - 32)), "expired"
    yield "not valid yet", rs(claims(nbf=now + 3600)), "not valid yet"
    yield "issued tomorrow", es(claims(iat=now + 86400)), "future"
    yield "without exp", es(claims(exp=None)), "when it expires"
    yield "exp is a text", signed(head, claims(exp=str(now + 3600))), "well-formed"
    yield "exp is not finite", signed(head, json.dumps(claims(exp=1)).replace('"exp": 1', '"exp": 1e999')), "well-formed"
    yield "another audience", rs(claims(aud="https://evil.example")), "audience"
    yield "several others", es(claims(aud=["a", "b"])), "audience"
    yield "no audience", es(claims(aud=None)), "audience"
    yield "another issuer", rs(claims(iss="https://evil.example/")), "issuer"
    yield "an issuer that begins like ours", es(claims(iss=ISSUER + "x")), "issuer"
    yield "no issuer", es(claims(iss=None)), "issuer"
    yield "no sub", es(claims(sub=None)), "no person"
    yield "an empty sub", es(claims(sub="")), "no person"
    yield "a sub that is a number", signed(head, claims(sub=7)), "no person"
    yield "a sub that is too long", es(claims(sub="x" * 129)), "sub"
    yield "a tenant that is a list", es(claims(app_metadata={"tenant": ["acme"]})), "app_metadata.tenant"

    yield "none, PyJWT", jwt.encode(one, None, algorithm="none"), "algorithm"
    yield "none, without the last dot", jwt.encode(one, None, algorithm="none").rstrip("."), "well-formed"
    yield "nOnE", crafted({"alg": "nOnE"}, one), "algorithm"
    yield "none, with the id of a key", crafted({"alg": "none", "kid": "rsa"}, one), "algorithm"
    yield "no alg", crafted({"kid": "rsa"}, one, mac(SECRET.encode())), "well-formed"
    for name, data in [
        ("PEM", public(keys["rsa"])), ("PEM without the line's end", public(keys["rsa"]).rstrip()),
        ("DER", public(keys["rsa"], serialization.Encoding.DER)), ("JWK", json.dumps(keys.web_key("rsa")).encode()),
        ("the key of the settings", public(keys["rsa-file"])), ("nothing", b""),
    ]:
        yield f"HS256 with the public key as secret: {name}", crafted({"alg": "HS256"}, one, mac(data)), "signature"
    yield "HS256 with the public key, and its id", crafted(
        {"alg": "HS256", "kid": "rsa"}, one, mac(public(keys["rsa"]))), "signature"
    yield "RS256 in the header, HS256 in truth", crafted(
        {"alg": "RS256", "kid": "rsa"}, one, mac(public(keys["rsa"]))), "signature"
    yield "HS256 with the secret of a key set", crafted(
        {"alg": "HS256", "kid": "a secret"}, one, mac(b64(SECRET).encode())), "signature"
    for alg, key in [("RS384", "rsa"), ("RS512", "rsa"), ("PS256", "rsa"), ("ES384", "p384")]:
        yield f"{alg}", py(keys[key], alg, kid="rsa"), "algorithm"
    yield "HS512", py(SECRET, "HS512"), "algorithm"
    yield "ES256 with the id of an RSA key", py(keys["ec"], "ES256", kid="rsa"), "algorithm"
    yield "the id of another key of the same kind", py(keys["rsa"], "RS256", kid="rsa4096"), "signature"
    yield "a stranger's RSA key with our id", py(keys["rsa-stranger"], "RS256", kid="rsa"), "signature"
    yield "a stranger's EC key with our id", py(keys["ec-stranger"], "ES256", kid="ec"), "signature"
    yield "a stranger's Ed25519 key with our id", py(keys["ed-stranger"], "EdDSA", kid="ed"), "signature"
    yield "a stranger's key without an id", py(keys["rsa-stranger"], "RS256"), "signature"
    yield "a key for encryption", py(keys["rsa-stranger"], "RS256", kid="for encryption"), UNKNOWN
    yield "an unknown id", py(keys["ec-stranger"], "ES256", kid="unknown"), UNKNOWN
    yield "an id that is a path", py(keys["ec-stranger"], "ES256", kid="../../dev/null"), UNKNOWN
    yield "an id that is a number", signed({"alg": "ES256", "kid": 7}, one), "well-formed"
    yield "a key in the header", py(
        keys["ec-stranger"], "ES256", kid="ec", jwk=keys.jose("ec-stranger").as_dict(private=False)), "signature"

    yield "crit, joserfc", jose_jws.serialize_compact(
        {"alg": "HS256", "crit": ["b64"], "b64": True}, json.dumps(one), secret), "extension"
    yield "an unencoded payload, joserfc", jose_jws.serialize_compact(
        {"alg": "HS256", "crit": ["b64"], "b64": False}, json.dumps(one).replace(".", ""), secret), "extension"
    yield "crit of what we check anyhow", signed(dict(head, crit=["exp"], exp=1), one), "extension"
    yield "an empty crit", signed(dict(head, crit=[]), one), "extension"
    yield "b64 is false", signed(dict(head, b64=False), one), "extension"
    yield "typ logout+jwt", es(one, typ="logout+jwt"), "another purpose"
    yield "alg twice", signed('{"alg":"none","alg":"ES256","kid":"ec"}', one), "twice"
    yield "sub twice", signed(head, json.dumps(one)[:-1] + ',"sub":"eve"}'), "twice"
    yield "sub twice, once escaped", signed(head, json.dumps(one)[:-1] + ',"s\\u0075b":"eve"}'), "twice"
    yield "tenant twice, inside", signed(
        head, json.dumps(one)[:-1] + ',"app_metadata":{"tenant":"a","tenant":"b"}}'), "twice"
    yield "a payload that is not JSON", signed(head, "sub=ada"), "well-formed"
    yield "a payload that is a list", signed(head, "[]"), "well-formed"
    yield "more behind the payload", signed(head, json.dumps(one) + "{}"), "well-formed"
    yield "a NUL in the payload", signed(head, json.dumps(claims(x="\0"))), "well-formed"
    yield "a payload that is not UTF-8", signed(head, b'{"sub":"\xff"}'), "well-formed"
    yield "a payload that is deep", signed(head, json.dumps(one)[:-1] + ',"x":' + "[" * 40 + "]" * 40 + "}"), "well-formed"

    good = es(one)
    first, second, third = good.split(".")
    yield "a changed payload", f"{first}.{b64(json.dumps(claims(sub='eve')))}.{third}", "signature"
    yield "a changed signature", f"{first}.{second}.{'A' if third[0] != 'A' else 'B'}{third[1:]}", "signature"
    yield "a signature of zeros", f"{first}.{second}.{b64(bytes(64))}", "signature"
    yield "a signature in DER", f"{first}.{second}." + b64(encode_dss_signature(
        int.from_bytes(base64.urlsafe_b64decode(third + "==")[:32], "big"),
        int.from_bytes(base64.urlsafe_b64decode(third + "==")[32:], "big"))), "signature"
    yield "a short signature", f"{first}.{second}.{third[:80]}", "signature"
    yield "an empty signature", f"{first}.{second}.", "signature"
    yield "a signature with padding", good + "==", "well-formed"
    yield "two parts", f"{first}.{second}", "well-formed"
    yield "four parts", good + ".x", "well-formed"
    yield "encrypted (JWE), joserfc", jose_jwe.encrypt_compact(
        {"alg": "dir", "enc": "A128GCM"}, json.dumps(one).encode(), OctKey.generate_key(128)), "well-formed"
    yield "no token at all", "x", "well-formed"
    yield "spaces inside", f"{first}. {second}.{third}", "well-formed"
    yield "huge", rs(claims(x="x" * 14000)), ""

    yield "no Authorization", [], "no Authorization"
    yield "the token in the query", {"query": f"?access_token={good}"}, "no Authorization"
    yield "two Authorizations", [("Authorization", f"Bearer {good}")] * 2, ""
    yield "a scheme that is not ours", [("Authorization", f"Basic {good}")], "scheme"
    yield "the token without a scheme", [("Authorization", good)], "scheme"
    yield "a device's scheme for a web token", [("Authorization", f"Device {good}")], "device token"


class Gateway:
    def __init__(self, url, path):
        self.url = urllib.parse.urlsplit(url)
        self.path = path

    def ask(self, given):
        """Status and reason."""
        query, headers = "", []
        if isinstance(given, str):
            headers = [("Authorization", f"Bearer {given}")]
        elif isinstance(given, dict):
            query = given["query"]
        else:
            headers = given
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=30)
        try:
            connection.putrequest("POST", self.path + query)
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", "2")
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(b"{}")
            answer = connection.getresponse()
            body = answer.read().decode(errors="replace")
            challenge = answer.getheader("WWW-Authenticate") or ""
        finally:
            connection.close()
        try:
            found = json.loads(body)
            reason = (found.get("detail") or found.get("message") or "") if isinstance(found, dict) else ""
        except ValueError:
            reason = body[:60]
        return answer.status, reason, challenge

    def judge(self, name, given, expected):
        """What is wrong with the answer; None if nothing is."""
        status, reason, challenge = self.ask(given)
        got = f"{status} {reason}".strip()
        if expected is None:
            fine = status in (200, 403, 404, 409)
        elif expected == UNKNOWN:
            # 503 while the keys were read just now: it may be the key of tomorrow.
            fine = status == 401 and UNKNOWN in reason or status == 503 and "not known yet" in reason
        else:
            fine = status in (400, 401, 413, 431) if expected == "" else status == 401 and expected in reason
            fine = fine and (status != 401 or challenge.startswith("Bearer"))
            if isinstance(given, str) and len(given) > 20 and given in reason:
                fine, got = False, "the answer repeats the token"
        word = "ok  " if fine else "FAIL"
        shown = "taken" if expected is None else f"refused: {expected or 'in any way'}"
        print(f"{word} {name:52} expected {shown:34} got {got}", flush=True)
        return fine


def reads(folder):
    try:
        with open(os.path.join(folder, "reads")) as file:
            return len(file.read())
    except FileNotFoundError:
        return None


def rotate(gateway, keys, wait):
    """A new key is found once it is published, and a withdrawn one is good for nothing; what is garbage asks for little."""
    encode = lambda name, kid: jwt.encode(claims(), keys[name], algorithm="RS256" if name[0] == "r" else "ES256",
                                          headers={"kid": kid})
    fine = True
    keys.publish(["ec", "ed", "rsa-new", "ec-new"])
    withdrawn = encode("rsa", "rsa")
    wait()
    for name in ["rsa-new", "ec-new"]:
        fine &= gateway.judge(f"rotated: {name}", encode(name, name), None)
    fine &= gateway.judge("rotated: a key that stayed", encode("ec", "ec"), None)
    fine &= gateway.judge("rotated: a withdrawn key", withdrawn, UNKNOWN)
    before = reads(keys.folder)
    for number in range(30):
        status, _, _ = gateway.ask(encode("ec-stranger", f"unknown {number}"))
        fine &= status in (401, 503)
    if before is not None:
        asked = reads(keys.folder) - before
        print(f"{'ok  ' if asked <= 1 else 'FAIL'} 30 tokens with unknown ids asked for the key set {asked} times")
        fine &= asked <= 1
    return fine


def check(arguments):
    keys = Keys(arguments.folder)
    gateway = Gateway(arguments.url, arguments.path)
    began = time.time()
    outcomes = [gateway.judge(*case) for case in cases(keys)]

    def wait():
        if arguments.tick:
            open(arguments.tick, "w").close()
            return
        rest = 62 - (time.time() - began)
        print(f"     waiting {max(0, rest):.0f} s: a key set is asked for once a minute", flush=True)
        time.sleep(max(0, rest))

    outcomes.append(arguments.no_rotation or rotate(gateway, keys, wait))
    if not arguments.no_rotation:
        keys.publish(PUBLISHED)
    print(f"{len(outcomes)} cases, {outcomes.count(False)} wrong")
    return 1 if outcomes.count(False) else 0


def prepare(arguments):
    """The keys, and the settings of a gateway that trusts them."""
    keys = Keys(arguments.folder)
    keys.publish(PUBLISHED)
    keys.write_settings(arguments.keys)


def serve(arguments):
    """The key set, as an issuer publishes it; each read is counted in the folder."""
    folder = arguments.folder

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with open(os.path.join(folder, "reads"), "a") as file:
                file.write("r")
            with open(os.path.join(folder, "jwks.json"), "rb") as file:
                body = file.read()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    arguments.keys = f"http://127.0.0.1:{server.server_port}/jwks.json"
    prepare(arguments)
    print("ready", flush=True)
    server.serve_forever()


def main():
    parser = argparse.ArgumentParser()
    parts = parser.add_subparsers(required=True)
    part = parts.add_parser("prepare")
    part.add_argument("folder")
    part.add_argument("keys", help="the address of jwks.json")
    part.set_defaults(run=prepare)
    part = parts.add_parser("serve")
    part.add_argument("folder")
    part.set_defaults(run=serve)
    part = parts.add_parser("check")
    part.add_argument("url")
    part.add_argument("folder")
    part.add_argument("--path", default="/v1/rpc/feed_position")
    part.add_argument("--tick", help="instead of waiting for a minute, makes this file")
    part.add_argument("--no-rotation", action="store_true")
    part.set_defaults(run=check)
    arguments = parser.parse_args()
    sys.exit(arguments.run(arguments) or 0)


main()
