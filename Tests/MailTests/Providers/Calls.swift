import Fakes
import Faults
import Mail
import Supervision
import Telemetry
import Testing

/// One call of a provider, let through by a supervisor without a fleet.
func handOver(_ provider: some MailProvider, _ letters: [Letter], key: String = "key-1") async throws -> [SendOutcome] {
    let supervisor = Supervisor(Supervisor.Options(), log: Log(threshold: .error) { _ in })
    return try await supervisor.call(provider.name) { call in await provider.send(letters, key: key, call: call) }
}

func ask(_ provider: some MailProvider, about id: String) async throws -> String? {
    let supervisor = Supervisor(Supervisor.Options(), log: Log(threshold: .error) { _ in })
    return try await supervisor.call(provider.name) { call in try await provider.status(of: id, call: call) }
}

extension SendOutcome {
    var kind: ErrorClass? { fault?.kind }

    var verdict: String { word }
}
