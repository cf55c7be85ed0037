import Postgres
package import RoomKit

extension Alarm {
    package static let alarmsWait = Alarm("alarms wait to be handed over", look: "millrace why --queue notices")
    package static let alarmsLost = Alarm(
        "nobody was told of an alarm", look: "millrace notices list --alarms --status failed")
    package static let noticesWait = Alarm("notices wait to be sent", look: "millrace why --queue notices")
}

extension RoomStatus {
    static let notices = RoomStatus(
        key: "notices", title: "notices", alarms: [.alarmsWait, .alarmsLost, .noticesWait]
    ) { (connection, patience) async throws(PostgresError) in
        try await NoticeAdmin.state(on: connection, deadline: patience).status
    }
}

extension NoticeAdmin.State {
    fileprivate var status: RoomState {
        let missed = lost > 0 ? " · \(Humane.count(lost)) alarms lost in the last hour" : ""
        let line = "\(Humane.count(alarms, "alarm")) and \(Humane.count(plain)) others are due" + missed
        return RoomState(
            json: [
                "alarms": .int(alarms), "oldest_alarm_seconds": .double(alarmAge), "plain": .int(plain),
                "oldest_plain_seconds": .double(plainAge), "alarms_lost": .int(lost),
            ], lines: alarms + plain + lost > 0 ? [line] : [], findings: findings)
    }

    private var findings: [Finding] {
        var found: [Finding] = []
        if alarms > 0, alarmAge > 10 {
            found.append(
                Finding(
                    .alarmsWait, .critical,
                    "\(Humane.count(alarms, "alarm")) \(alarms == 1 ? "waits" : "wait") to be handed over, for \(Humane.duration(.seconds(alarmAge)))"
                ))
        }
        if lost > 0 {
            found.append(
                Finding(
                    .alarmsLost, .critical,
                    "\(Humane.count(lost, "alarm")) of the last hour could not be handed over to anybody"))
        }
        if plain > 0, plainAge > 900 {
            found.append(
                Finding(
                    .noticesWait, .degraded,
                    "\(Humane.count(plain, "notice")) \(plain == 1 ? "waits" : "wait") to be sent, for \(Humane.duration(.seconds(plainAge)))"
                ))
        }
        return found
    }
}
