import Postgres
package import RoomKit

extension Alarm {
    package static let lateAlarm = Alarm("alarms are late", look: "millrace why --queue check-ins")
    package static let noWatchman = Alarm(
        "nobody watches over the check-ins", look: "millrace why --queue check-ins")
    package static let unreachableAlarm = Alarm("an alarm reaches nobody", look: "millrace checkins alarms")
    package static let brokenWatch = Alarm("a watch cannot be dealt with", look: "millrace checkins alarms")
}

extension RoomStatus {
    static let checkIns = RoomStatus(
        key: "check_ins", title: "check-ins", alarms: [.lateAlarm, .noWatchman, .unreachableAlarm, .brokenWatch],
        // A life may hang on it: not to know is as bad as to be late.
        unreadable: { Finding(.noWatchman, .critical, "the state of check-ins cannot be read: \($0)") }
    ) { (connection, patience) async throws(PostgresError) in
        try await CheckInAdmin.state(on: connection, deadline: patience).status
    }
}

extension CheckInAdmin.State {
    fileprivate var status: RoomState {
        RoomState(
            json: [
                "watches": .int(watches), "overdue": .int(overdue), "oldest_seconds": .double(oldest),
                "beat_seconds": beat.map(JSONValue.double) ?? .null, "open": .int(open),
                "unreachable": .int(unreachable), "broken": .int(broken),
            ], lines: watches > 0 || open > 0 || beat != nil ? [line] : [], findings: findings)
    }

    private var line: String {
        let beat = beat.map { "watched over \(Humane.duration(.seconds($0))) ago" } ?? "watched over by nobody"
        return
            "\(Humane.count(watches)) watches · \(Humane.count(open)) open alarms · \(Humane.count(overdue)) overdue · \(beat)"
    }

    /// A living worker raises due alarms within a second, and reports every two seconds.
    package var findings: [Finding] {
        var found: [Finding] = []
        func say(_ alarm: Alarm, _ sentence: String) {
            found.append(Finding(alarm, .critical, sentence))
        }
        if overdue > 0, oldest > 30 {
            say(
                .lateAlarm,
                "\(Humane.count(overdue)) \(overdue == 1 ? "alarm is" : "alarms are") late, \(overdue == 1 ? "" : "the oldest ")by \(Humane.duration(.seconds(oldest)))"
            )
        }
        if watches > 0 || open > 0, beat.map({ $0 > 60 }) ?? true {
            say(
                .noWatchman,
                "nobody watches over the check-ins"
                    + (beat.map { " since \(Humane.duration(.seconds($0)))" } ?? ": no worker has ever looked"))
        }
        if unreachable > 0 {
            say(
                .unreachableAlarm,
                "\(Humane.count(unreachable)) \(unreachable == 1 ? "alarm reaches" : "alarms reach") nobody")
        }
        if broken > 0 {
            say(
                .brokenWatch,
                "\(Humane.count(broken)) \(broken == 1 ? "watch or alarm" : "watches or alarms") cannot be dealt with")
        }
        return found
    }
}
