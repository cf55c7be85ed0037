import Postgres
import RoomKit

extension RoomStatus {
    static let documents = RoomStatus(key: "documents", title: "documents") {
        (connection, patience) async throws(PostgresError) in
        try await DocumentAdmin.state(on: connection, deadline: patience)?.status ?? RoomState(json: .null)
    }
}

extension DocumentAdmin.State {
    fileprivate var status: RoomState {
        let line =
            "\(Humane.count(processing)) being read · \(Humane.count(waitingPages, "page")) to go · "
            + "\(Humane.count(failedToday)) failed in a day"
        return RoomState(
            json: [
                "processing": .int(processing), "waiting_pages": .int(waitingPages),
                "failed_last_day": .int(failedToday), "oldest": JSONValue(oldest),
            ], lines: processing + failedToday > 0 ? [line] : [])
    }
}
