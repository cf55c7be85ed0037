import Fakes
import Faults
import Mail
import Supervision
import Telemetry
import Testing

/// One call of a carrier, let through by a supervisor that knows no fleet.
func handOver(_ carrier: some MailProvider, _ letters: [Letter], key: String = "key-1") async throws -> [SendOutcome] {
    let supervisor = Supervisor(Supervisor.Options(), log: Log(threshold: .error) { _ in })
    return try await supervisor.call(carrier.name) { call in await carrier.send(letters, key: key, call: call) }
}

func ask(_ carrier: some MailProvider, about id: String) async throws -> String? {
    let supervisor = Supervisor(Supervisor.Options(), log: Log(threshold: .error) { _ in })
    return try await supervisor.call(carrier.name) { call in try await carrier.status(of: id, call: call) }
}

extension SendOutcome {
    var kind: ErrorClass? { fault?.kind }

    var verdict: String { word }
}
