import Postgres
package import RoomKit

extension Alarm {
    package static let gatewaySilent = Alarm("a gateway is silent", look: "millrace doctor")
}

extension RoomStatus {
    package static let gateways = RoomStatus(key: "gateways", title: "gateway", alarms: [.gatewaySilent]) {
        (connection, patience) async throws(PostgresError) in
        let rows = try await GatewayAdmin.list(on: connection, deadline: patience)
        return RoomState(json: .array(rows.map(\.json)), lines: line(rows), findings: findings(rows))
    }

    private static func line(_ rows: [GatewayAdmin.Row]) -> [String] {
        guard !rows.isEmpty else { return [] }
        let alive = rows.filter { !$0.isSilent }
        let streams = Humane.count(alive.reduce(0) { $0 + $1.streams }, "stream")
        let requests = Humane.count(alive.reduce(0) { $0 + $1.requests }, "request")
        return ["\(Humane.count(alive.count, "gateway")) · \(streams) · \(requests) since they started"]
    }

    private static func findings(_ rows: [GatewayAdmin.Row]) -> [Finding] {
        let silent = rows.filter(\.isSilent)
        // One that was killed and replaced is forgotten soon; that none is left stays said.
        guard let last = silent.min(by: { $0.silence < $1.silence }), silent.count == rows.count || last.silence < 600
        else { return [] }
        return [
            Finding(
                .gatewaySilent, .degraded,
                "the gateway \(last.name) has said nothing for \(Humane.duration(.seconds(last.silence)))"
                    + (silent.count == rows.count ? ", and no other serves apps" : ""))
        ]
    }
}

extension GatewayAdmin.Row {
    fileprivate var json: JSONValue {
        [
            "name": .string(name), "address": JSONValue(address), "version": JSONValue(version),
            "streams": .int(streams), "requests": .int(requests), "silent": .bool(isSilent),
            "started_at": JSONValue(startedAt), "beat_at": JSONValue(beatAt),
        ]
    }
}
