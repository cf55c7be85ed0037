import Fakes
import Faults
import Mail
import Supervision
import Telemetry
import Testing

/// One call of a carrier, let through by a supervisor that knows no fleet.
func handOver(_ carrier: some Carrier, _ letters: [Letter], key: String = "key-1") async throws -> [Handover] {
    let supervisor = Supervisor(Supervisor.Options(), log: Log(threshold: .error) { _ in })
    return try await supervisor.call(carrier.name) { call in await carrier.send(letters, key: key, call: call) }
}

func ask(_ carrier: some Carrier, about id: String) async throws -> String? {
    let supervisor = Supervisor(Supervisor.Options(), log: Log(threshold: .error) { _ in })
    return try await supervisor.call(carrier.name) { call in try await carrier.status(of: id, call: call) }
}

extension Handover {
    var kind: ErrorClass? { fault?.kind }

    var verdict: String { word }
}
