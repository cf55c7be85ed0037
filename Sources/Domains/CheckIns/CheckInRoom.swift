package import PageKit
package import RoomKit
import RoomSchemas

extension Room {
    /// Who is watched over, and alarms.
    /// - Parameter host: who runs the service, as its pages say.
    package static func checkIns(host: @escaping @Sendable (RoomContext) -> PageHost) -> Room {
        Room(
            RoomSchemas.checkins, settings: Setting.checkIns,
            nouns: ["checkins": "Look at watches and alarms, and act for those who cannot"],
            verbs: [
                .checkinsList, .checkinsShow, .checkinsArm, .checkinsDisarm, .checkinsPause, .checkinsCheckIn,
                .checkinsInterval, .checkinsContacts, .checkinsAlarm, .checkinsAlarms, .checkinsAcknowledge,
                .checkinsResolve, .checkinsHistory, .checkinsDrill, .checkinsBlock,
            ], status: .checkIns
        ) { context in
            try await context.applyCheckInRules()
            let wiring = try context.checkIns(host: host(context))
            let runs = context.settings.runsCheckIns
            return RoomParts(
                routes: wiring.routes, run: { await wiring.run() }, gauges: { await wiring.gauges },
                serves: runs == false ? [:] : ["check-ins": runs == true ? "on" : "where wanted"])
        }
    }
}
