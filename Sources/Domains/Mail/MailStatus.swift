import Postgres
package import RoomKit

extension Alarm {
    package static let mailSwitched = Alarm("mail goes through another service", look: "millrace providers list")
    package static let mailParked = Alarm("messages wait for a human", look: "millrace mail list --status parked")
}

extension RoomStatus {
    static let mail = RoomStatus(key: "mail", title: "mail", alarms: [.mailSwitched, .mailParked]) {
        (connection, patience) async throws(PostgresError) in
        try await MailAdmin.state(on: connection, deadline: patience)?.status ?? RoomState(json: .null)
    }
}

extension MailAdmin.State {
    fileprivate var status: RoomState {
        RoomState(
            json: [
                "chosen": JSONValue(chosen), "current": JSONValue(current), "since": JSONValue(since),
                "reason": JSONValue(reason), "parked": .int(parked), "unknown": .int(unknown),
            ], lines: current.map { [line($0)] } ?? [], findings: findings)
    }

    private func line(_ current: String) -> String {
        let doubt = unknown > 0 ? " · \(Humane.count(unknown)) in doubt" : ""
        let waiting = parked > 0 ? " · \(Humane.count(parked)) parked for a decision" : ""
        return "by \(current)\(isSwitched ? ", not through \(chosen ?? "?")" : "")\(doubt)\(waiting)"
    }

    private var findings: [Finding] {
        var found: [Finding] = []
        if isSwitched {
            found.append(
                Finding(
                    .mailSwitched, .degraded,
                    "mail goes through \(current ?? "?"), not through \(chosen ?? "?"): \(reason ?? "no reason given")")
            )
        }
        if parked > 0 {
            found.append(
                Finding(
                    .mailParked, .degraded,
                    "\(Humane.count(parked, "message")) \(parked == 1 ? "waits" : "wait") for a human: nobody knows whether \(parked == 1 ? "it was" : "they were") sent"
                ))
        }
        return found
    }
}
