"""Answers as PostgREST does, as far as Millrace's doors need it: POST /rpc/<function> of the schemas that are exposed.

It keeps PostgREST's published rules: a token's claim `role` is the role of the transaction, or `anon` without one; the claims, the method,
the path and the headers are settings of the transaction, and the exposed schema is its search path; Content-Profile names the schema; a
function is found by the names of its arguments, each taken from the JSON of the body as its type; an object is one row where the client
asks for application/vnd.pgrst.object+json; errors are {code, message, details, hint} with the status of their SQLSTATE. It has no tables,
filters, embedding, counts or media types beside these.
"""

import base64
import hashlib
import hmac
import http.server
import json
import re
import time

import psycopg
from psycopg import sql

STATUS = [
    ("23503", 409), ("23505", 409), ("25006", 405), ("53400", 500), ("P0001", 400), ("42883", 404), ("42P01", 404), ("42P17", 500),
    ("08", 503), ("09", 500), ("0L", 403), ("0P", 403), ("25", 500), ("28", 403), ("2D", 500), ("38", 500), ("39", 500), ("3B", 500),
    ("40", 500), ("53", 503), ("54", 500), ("55", 500), ("57", 500), ("58", 500), ("F0", 500), ("HV", 500), ("P0", 500), ("XX", 500),
]
FUNCTIONS = """
    select p.oid::regproc::text, p.proretset, t.typtype, t.typname, p.provolatile::text,
           coalesce(p.proargmodes::text[] && array['o', 'b', 't'], false),
           (select array_agg(a.name order by a.n) from unnest(p.proargnames) with ordinality a(name, n) where a.n <= p.pronargs),
           (select array_agg(format_type(a.type, null) order by a.n) from unnest(p.proargtypes::oid[]) with ordinality a(type, n)),
           p.pronargdefaults
      from pg_proc p join pg_type t on t.oid = p.prorettype
     where p.pronamespace = to_regnamespace(%s) and p.proname = %s
"""


class Refusal(Exception):
    def __init__(self, status, code, message, details=None, hint=None):
        super().__init__(message)
        self.status = status
        self.said = {"code": code, "message": message, "details": details, "hint": hint}


def token(claims, secret):
    """A token as an issuer signs it, with HS256."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    parts.append(base64.urlsafe_b64encode(hmac.digest(secret.encode(), b".".join(parts), hashlib.sha256)).rstrip(b"="))
    return b".".join(parts).decode()


def claims_of(given, secret):
    try:
        head, body, signature = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in given.split("."))
        said = json.loads(body)
        is_ours = json.loads(head)["alg"] == "HS256" and hmac.compare_digest(
            hmac.digest(secret.encode(), given.rsplit(".", 1)[0].encode(), hashlib.sha256), signature)
    except (ValueError, KeyError, TypeError):
        is_ours, said = False, {}
    if not is_ours:
        raise Refusal(401, "PGRST301", "JWSError JWSInvalidSignature")
    if said.get("exp", time.time() + 60) < time.time() - 30:
        raise Refusal(401, "PGRST303", "JWT expired")
    return said


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    database = secret = None
    schemas = ["public", "millrace"]

    def log_message(self, *_):
        pass

    def answer(self, status, body=None):
        text = b"" if body is None else body.encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer(405, json.dumps({"code": "PGRST117", "message": "this stand-in calls functions by POST", "details": None, "hint": None}))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        role = "anon"
        try:
            claims = {}
            bearer = re.match(r"Bearer (.+)$", self.headers.get("Authorization", ""))
            if bearer:
                claims = claims_of(bearer[1], self.secret)
            role = claims.get("role", "anon")
            schema = self.headers.get("Content-Profile", self.schemas[0])
            if schema not in self.schemas:
                raise Refusal(406, "PGRST106", f"Invalid schema: {schema}", None, f"Only the following schemas are exposed: {', '.join(self.schemas)}")
            path = re.match(r"(?:/rest/v1)?/rpc/([^/?]+)$", self.path)
            if not path:
                raise Refusal(404, "PGRST125", "Invalid path specified in request URL")
            try:
                arguments = json.loads(body or b"{}")
                if not isinstance(arguments, dict):
                    raise ValueError
            except ValueError:
                raise Refusal(400, "PGRST102", "Empty or invalid json") from None
            self.answer(*self.call(role, {"role": role, **claims}, schema, path[1], arguments))
        except Refusal as refusal:
            self.answer(refusal.status, json.dumps(refusal.said))
        except psycopg.Error as error:
            code = error.sqlstate or "08006"
            status = next((status for start, status in STATUS if code.startswith(start)), 400)
            if code == "42501":
                status = 401 if role == "anon" else 403
            said = {"code": code, "message": error.diag.message_primary, "details": error.diag.message_detail, "hint": error.diag.message_hint}
            self.answer(status, json.dumps(said))

    def call(self, role, claims, schema, function, arguments):
        with psycopg.connect(self.database) as connection:
            found = [row for row in connection.execute(FUNCTIONS, (schema, function))
                     if set(arguments) <= set(row[6] or []) and set((row[6] or [])[:len(row[6] or []) - row[8]]) <= set(arguments)]
            connection.rollback()
            if len(found) != 1:
                code, status = ("PGRST203", 300) if found else ("PGRST202", 404)
                raise Refusal(status, code, f"Could not find the function {schema}.{function}({', '.join(sorted(arguments))}) in the schema cache"
                              if not found else "Could not choose the best candidate function")
            _, is_set, kind, result, _, has_columns, names, types, _ = found[0]
            for setting, value in (("role", role), ("request.jwt.claims", json.dumps(claims)), ("request.method", "POST"), ("request.path", self.path),
                                   ("request.headers", json.dumps({k.lower(): v for k, v in self.headers.items()})),
                                   ("search_path", f'"{schema}", "public"')):
                connection.execute("select set_config(%s, %s, true)", (setting, value))
            call = sql.SQL("{}.{}({})").format(sql.Identifier(schema), sql.Identifier(function), sql.SQL(", ").join(
                sql.SQL("{0} := a.{0}").format(sql.Identifier(name)) for name in arguments))
            source = sql.SQL("")
            parameters = []
            if arguments:
                columns = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(types[names.index(name)])) for name in arguments)
                source = sql.SQL("json_to_record(%s::json) a({}), ").format(columns)
                parameters.append(json.dumps(arguments))
            rows = [row[0] for row in connection.execute(
                sql.SQL("select to_json(t) from {} lateral {} t").format(source, call), parameters)]
            connection.commit()
        if result == "void":
            return 204, None
        if not (is_set or has_columns or kind == "c"):
            return 200, json.dumps(rows[0])
        if "application/vnd.pgrst.object+json" in self.headers.get("Accept", ""):
            if len(rows) != 1:
                raise Refusal(406, "PGRST116", "Cannot coerce the result to a single JSON object", f"The result contains {len(rows)} rows")
            return 200, json.dumps(rows[0])
        return 200, json.dumps(rows if is_set else rows[0])


def server(database, secret, port=0):
    class Here(Handler):
        pass

    Here.database, Here.secret = database, secret
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), Here)
