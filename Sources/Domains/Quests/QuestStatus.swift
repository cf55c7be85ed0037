import Postgres
package import RoomKit

extension Alarm {
    package static let lateMidnight = Alarm(
        "families wait for their midnight", look: "millrace quests rollover")
    package static let brokenFamily = Alarm(
        "a family cannot be rolled over midnight", look: "millrace quests verify")
}

extension RoomStatus {
    static let quests = RoomStatus(key: "quests", title: "quests", alarms: [.lateMidnight, .brokenFamily]) {
        (connection, patience) async throws(PostgresError) in
        let state = try await QuestAdmin.state(on: connection, deadline: patience)
        return RoomState(
            json: ["due": .int(state.due), "oldest_seconds": .double(state.lag), "broken": .int(state.broken)],
            findings: state.findings)
    }
}

extension QuestAdmin.State {
    fileprivate var findings: [Finding] {
        var found: [Finding] = []
        // A wave of a hundred thousand takes a minute; a worker that is there begins within seconds.
        if due > 0, lag > 300 {
            found.append(
                Finding(
                    .lateMidnight, .degraded,
                    "\(Humane.count(due)) families wait for their midnight, for \(Humane.duration(.seconds(lag)))"))
        }
        if broken > 0 {
            found.append(
                Finding(
                    .brokenFamily, .degraded, "\(Humane.count(broken)) families cannot be rolled over midnight"))
        }
        return found
    }
}
