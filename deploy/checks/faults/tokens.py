"""Tokens that PyJWT signs, to a gateway that reads their keys from an issuer; the issuer changes its keys meanwhile."""

import concurrent.futures
import http.client
import json
import time

import jwt
import lib
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

PACKAGES = ["PyJWT[crypto]==2.10.1"]
CALLS = 600
ISSUER, AUDIENCE = "https://issuer.example/", "https://api.example"


def published(key, kid):
    algorithm = {"r": jwt.algorithms.RSAAlgorithm, "e": jwt.algorithms.ECAlgorithm, "o": jwt.algorithms.OKPAlgorithm}[kid[0]]
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig"}


def check(ground):
    make = {
        "r": lambda: rsa.generate_private_key(65537, 2048), "e": lambda: ec.generate_private_key(ec.SECP256R1()),
        "o": ed25519.Ed25519PrivateKey.generate,
    }
    names = {"r": "RS256", "e": "ES256", "o": "EdDSA"}
    keys = {kid: make[kid[0]]() for kid in ("rsa", "ec", "okp", "ec-new")}
    strangers = {kind: make[kind]() for kind in names}
    known = ["rsa", "ec", "okp"]
    issuer = lib.Counterpart(ground, lambda *_: (
        200, {"Content-Type": "application/json"}, json.dumps({"keys": [published(keys[kid], kid) for kid in known]}).encode()))
    ground.faults.share = 0.5  # a key set is read a few times only
    _, port = ground.gateway({
        "MILLRACE_GATEWAY_JWKS_URLS": f"{issuer.url}/jwks.json", "MILLRACE_GATEWAY_JWT_ISSUERS": ISSUER, "MILLRACE_GATEWAY_JWT_AUDIENCES": AUDIENCE,
    })

    def claims(**more):
        now = int(time.time())
        return {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600, **more}

    def token(n):
        """A token, and whether it is good."""
        kid = known[n % len(known)]
        sign = lambda key, body, kid=kid: jwt.encode(body, key, algorithm=names[kid[0]], headers={"kid": kid})
        if n % 2:
            return sign(keys[kid], claims()), True
        bad = [
            lambda: sign(strangers[kid[0]], claims()), lambda: sign(keys[kid], claims(exp=int(time.time()) - 600)),
            lambda: sign(keys[kid], claims(aud="https://other.example")), lambda: sign(keys[kid], claims(iss="https://other.example/")),
            lambda: sign(keys[kid], claims(sub=None)), lambda: jwt.encode(claims(), None, algorithm="none", headers={"kid": kid}),
            lambda: jwt.encode(claims(), "x" * 32, algorithm="HS256", headers={"kid": kid}), lambda: sign(keys[kid], claims())[:-3] + "AAA",
        ]
        return bad[n // 2 % len(bad)](), False

    def ask(token):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("POST", "/v1/rpc/feed_position", b"{}", {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()


    def judge(given):
        """As an app does: it comes again until it has a yes or a no."""
        text, is_good = given
        while (status := ask(text)) in (0, 429, 502, 503, 504) and not ground.is_over:
            time.sleep(0.5)
        return status, is_good

    outcome = lib.Outcome(work=CALLS)
    waiting = []
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        def hand_in(n):
            if n == CALLS // 2:
                known.append("ec-new")  # published, and used at once
            waiting.append(pool.submit(judge, token(n)))

        with ground.disturbed(issuer.away):
            lib.spread(CALLS, hand_in)
        ground.faults.end()
        for status, is_good in (one.result() for one in waiting):
            outcome.lost += is_good and status not in (200, 401, 403)
            is_wrong = status != 200 and status in (401, 403) if is_good else status != 401
            outcome.wrong += is_wrong
            if is_wrong and len(outcome.notes) < 3:
                outcome.notes.append(f"a token that is {'good' if is_good else 'bad'} was answered with {status}")
    outcome.notes.append(f"the key set was read {ground.faults.counts['requests']} times")
    return outcome


if __name__ == "__main__":
    lib.main(check)
