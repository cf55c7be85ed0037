"""Mails to an SMTP server of aiosmtpd, read by Python's own email package."""

import asyncio
import email
import email.policy
import json
import time

import aiosmtpd.controller
import lib

PACKAGES = ["aiosmtpd==1.4.6"]
MAILS = 400


class Receiver:
    def __init__(self, ground):
        self.ground, self.port, self.taken, self.is_away = ground, lib.free_port(), {}, True
        self.open()
        ground.ends.callback(self.close)

    async def handle_DATA(self, server, session, envelope):
        kind = "cut before" if self.is_away else self.ground.faults.next()
        if kind == "error":
            return "451 4.3.0 Try again later"
        if kind == "slow":
            await asyncio.sleep(2)
        if kind != "cut before":
            message = email.message_from_bytes(envelope.content, policy=email.policy.default)
            text = message.get_body(("plain",)).get_content().replace("\r\n", "\n").strip()
            self.taken.setdefault(str(message["Subject"]), []).append((str(message["Message-ID"]), envelope.rcpt_tos, text))
        if kind in ("cut before", "cut after") or self.is_away:
            server.transport.abort()
        return "250 OK"

    def open(self):
        self.controller = aiosmtpd.controller.Controller(self, hostname="127.0.0.1", port=self.port)
        self.controller.start()
        self.is_away = False

    def close(self):
        self.is_away = True
        self.controller.stop(no_assert=True)

    def away(self, seconds):
        self.close()
        time.sleep(seconds)
        self.open()


def check(ground):
    receiver = Receiver(ground)
    ground.worker({
        "EMAIL_SERVICE_PROVIDER": "smtp", "MILLRACE_MAIL_SMTP_URL": f"smtp://127.0.0.1:{receiver.port}?tls=none",
        "EMAIL_FROM_ADDRESS": "check@example.net", "MILLRACE_APP_NAME": "Check",
        # Of those that a killed worker leaves in doubt one a second is sent again: the budget for second attempts.
        "MILLRACE_SLOTS": "16",
    })
    sent = {}

    def send(n):
        subject, to = f"Order {n}: Grüße & 日本", f"p{n}@d{n % 40}.example"
        text = f"Line one of {n}\n.\n..two dots, then <html> & ümläute\n\nend {n}"
        # Of half of them a second copy does less harm than none.
        mode = "again" if n % 2 else "park"
        ground.sql(f"select millrace.mail_send(array[{lib.quoted(to)}], {lib.quoted(subject)}, {lib.quoted(text)}, on_unknown => '{mode}')")
        sent[subject] = (to, text, mode)

    with ground.disturbed(receiver.away):
        lib.spread(MAILS, send)
    open_ones = "select count(*) from millrace.mail where status in ('scheduled', 'queued', 'sending', 'unknown')"
    ground.settle("every mail is settled", lambda: ground.value(open_ones) == 0)
    status = {row["subject"]: row["status"] for row in ground.rows(
        "select c.subject, m.status from millrace.mail m join millrace.mail_content c on c.message = m.id")}
    outcome = lib.Outcome(work=MAILS)
    in_doubt = 0
    for subject, (to, text, mode) in sent.items():
        arrived = receiver.taken.get(subject, [])
        told = status[subject]
        is_parked = told == "parked" and mode == "park"
        in_doubt += is_parked
        outcome.lost += not is_parked and (told != "accepted" or not arrived)
        if mode == "park":
            outcome.twice += len(arrived) > 1
        else:
            outcome.twice += len({name for name, _, _ in arrived}) > 1
            outcome.again += max(0, len(arrived) - 1)
        for _, recipients, body in arrived:
            if recipients != [to] or body != text:
                outcome.wrong += 1
                if outcome.wrong == 1:
                    outcome.notes.append(f"to {recipients} came {body!r}, and to {to} was sent {text!r}")
    outcome.wrong += len(set(receiver.taken) - set(sent))
    if ground.value(open_ones):
        outcome.notes.append("not settled: " + json.dumps(ground.rows(
            "select status, on_unknown, attempts, left(error, 80) as error, count(*) from millrace.mail"
            " where status not in ('accepted', 'parked') group by 1, 2, 3, 4")))
    outcome.notes.append(f"{in_doubt} mails are parked for an operator, because nobody knows whether the server took them")
    return outcome


if __name__ == "__main__":
    lib.main(check)
