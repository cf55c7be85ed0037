import CommandKit
import FoundationEssentials
import Postgres

/// Every kind of thing that apps ask a gateway for, as one person may ask for it too often. Each kind has a person of its own, whose bucket is
/// full when the flood begins.
struct GreedyFloods: Sendable {
    let ground: GatewayGround
    let port: UInt16

    static let operations = 500
    static let calls = 50

    private func token(_ kind: String) -> String { ground.token(Self.person(kind)) }

    static func person(_ kind: String) -> String { "greedy-" + kind }

    var all: [GreedyFlood] {
        [
            pushes, batches, reads, flood("calls", "/v1/rpc/check_in_show", #"{"person": "greedy-calls"}"#), streams,
            polls, uploads, devices, keys, descriptions,
        ]
    }

    private func flood(_ name: String, _ path: String, _ body: String) -> GreedyFlood {
        let token = token(name)
        return GreedyFlood(name: name) { client, _, _ in client.send("POST", path, token: token, body: body).status }
    }

    /// Pushes of 500 operations.
    private var pushes: GreedyFlood {
        let token = token("pushes")
        return GreedyFlood(name: "pushes") { client, _, _ in
            let operations = (0..<Self.operations).map { _ in
                #"{"id":"\#(UUID().uuidString)","op":"mood_log","args":{"person":"greedy-pushes","color":"calm"}}"#
            }
            let body = #"{"device":"phone","ops":[\#(operations.joined(separator: ","))]}"#
            return client.send("POST", "/v1/sync", token: token, body: body).status
        }
    }

    private var batches: GreedyFlood {
        let call = #"{"function":"mood_log","args":{"person":"greedy-batches","color":"calm"}}"#
        return flood(
            "batches", "/v1/batch", #"{"calls":[\#(Array(repeating: call, count: Self.calls).joined(separator: ","))]}"#
        )
    }

    /// A hundred megabytes of jobs.
    private var reads: GreedyFlood { flood("reads", "/v1/rpc/own_jobs", #"{"page":500}"#) }

    /// Streams from the beginning, which the database has to be asked for, given up as soon as they have begun.
    private var streams: GreedyFlood {
        let (token, port) = (token("streams"), port)
        return GreedyFlood(name: "streams") { _, _, _ in
            GatewayClient.stream(
                "/v1/me/events?since=0", token: token, headers: [("X-Forwarded-For", GreedyFlood.address)], port: port
            ) { !$0.isEmpty }.answer.status
        }
    }

    private var polls: GreedyFlood {
        let token = token("polls")
        return GreedyFlood(name: "long polls") { client, _, _ in
            client.send("GET", "/v1/me/events?since=0&wait=5", token: token).status
        }
    }

    /// A link, and as much as it takes; without a new one the last link again.
    private var uploads: GreedyFlood {
        let token = token("uploads")
        let size = 262_144
        let content = String(repeating: "x", count: size)
        return GreedyFlood(name: "uploads") { client, _, _ in
            let link = client.call(
                "document_upload", ["name": "scan", "mime_type": "application/pdf", "size": .int(size)], token: token)
            let url = link.json?["url"]?.text ?? link.json?.items?.first?["url"]?.text
            guard link.isGood, let path = url.flatMap({ URL(string: $0)?.path }) else { return link.status }
            return client.send("PUT", path, headers: [("Content-Type", "application/pdf")], body: content).status
        }
    }

    /// Tokens that are none, and new tokens for devices.
    private var devices: GreedyFlood {
        let token = token("devices")
        return GreedyFlood(name: "device tokens") { client, caller, number in
            if number % 2 == 0 {
                let unknown =
                    "Device " + String(repeating: "x", count: 30) + "\(1_000_000_000_000 + caller * 1_000_000 + number)"
                return client.send("GET", "/v1/sync", token: unknown).status
            }
            return client.send(
                "POST", "/v1/sync/devices", token: token, body: #"{"device":"phone-\#((caller + number) % 10)"}"#
            ).status
        }
    }

    private var keys: GreedyFlood {
        let token = token("keys")
        return GreedyFlood(name: "idempotency keys") { client, caller, number in
            // Most ask for the same at once, some for something new.
            let key = caller % 4 == 0 ? UUID().uuidString : "key-\(number / 10)"
            return client.call(
                "mood_log", ["person": "greedy-keys", "color": "calm"], token: token,
                headers: [("Idempotency-Key", key)]
            ).status
        }
    }

    /// The largest answer that needs no token.
    private var descriptions: GreedyFlood {
        GreedyFlood(name: "descriptions") { client, _, _ in
            client.send("GET", "/v1/openapi.json").status
        }
    }

    /// What they ask for.
    func fill(on connection: Connection) async throws(PostgresError) {
        try await connection.execute("select millrace.grant_enqueue($1)", [.text(ground.role)])
        try await connection.execute(
            """
            select count(millrace.enqueue('load.large', jsonb_build_object('text', repeat(md5(n::text), 30000)), tenant => 'person:greedy-reads', queue => 'load.large'))
              from generate_series(1, 100) n
            """, deadline: .seconds(120))
        try await connection.execute(
            "update millrace.job set owner = $1 where tenant = 'person:greedy-reads'", [.text(ground.role)],
            deadline: .seconds(60))
        try await connection.execute(
            """
            insert into millrace.feed (at, topic, person, ref, change, data)
            select now(), 'moods', 'greedy-' || k, n, 'logged', jsonb_build_object('color', 'calm', 'n', n) from unnest($1) k, generate_series(1, 10000) n
            """, [.texts(["streams", "polls"])], deadline: .seconds(60))
        try await connection.execute("vacuum analyze millrace.job", deadline: .seconds(60))
        try await connection.execute("vacuum analyze millrace.feed", deadline: .seconds(60))
    }
}
