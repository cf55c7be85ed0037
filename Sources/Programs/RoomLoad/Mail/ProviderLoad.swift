import Blobs
import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import Mail
import Supervision
import Telemetry

/// Many letters through one provider, with a fixed number at a time.
struct ProviderLoad: Sendable {
    static let flags: [CommandFlag] = [
        .count("sessions", 1...1000, 8, "Messages at a time."),
        .count("messages", 1...10_000_000, 5000, "How many in each round."),
        .count("bytes", 100...10_000_000, 10_240, "Bytes of each message's text."),
        .count(
            "attachment", 1...28_000_000,
            "Bytes of an attachment to each message; the peak of memory must then stay below 300 MB."),
        .count("rounds", 1...25, 3, "How many rounds."),
    ]

    /// Made up while it is read, in the pieces a store would hand on.
    static let blobs = BlobSource { id, take in
        var left = id.bytes.suffix(8).reduce(0) { $0 << 8 | Int($1) }
        while left > 0 {
            try await take([UInt8](repeating: 0x5a, count: min(262_144, left)))
            left -= 262_144
        }
    }

    let sessions, messages, bytes, rounds: Int
    private let attachment: Int?
    private let invocation: Invocation
    private let text: String

    init(_ invocation: Invocation) {
        self.invocation = invocation
        sessions = invocation.count("sessions")
        messages = invocation.count("messages")
        bytes = invocation.count("bytes")
        rounds = invocation.count("rounds")
        attachment = invocation.parsed.integer("attachment")
        text = String(repeating: String(repeating: "x", count: 70) + "\n", count: max(1, bytes / 72))
    }

    /// - Parameter other: Another program's rate for the same; it goes first in one round and last in the next.
    func run(
        _ provider: any MailProvider, beside: (name: String, share: Double)? = nil,
        _ other: (@Sendable () async throws -> Double)? = nil
    ) async throws -> ExitCode {
        var ways: [(name: String, turn: (String) async throws -> Double)] = []
        if let beside, let other { ways.append((beside.name, { _ in try await other() })) }
        ways.append((provider.name, { _ in try await measure(provider) }))
        let rates = try await WaysInTurn(invocation).take(ways)
        let (ours, others) = (rates[rates.count - 1], rates.count > 1 ? rates[0] : [])
        var bars: [Bar] = []
        if let beside {
            let shares = zip(ours, others).map { $0 / $1 }.sorted()
            bars.append(
                .atLeast(
                    "\(sessions) sessions: \(spell(ours))/s, share of \(beside.name)'s \(spell(others))/s",
                    beside.share,
                    measured: percentile(shares, 0.5), unit: "×"))
        }
        let peak = Self.peak
        if let attachment {
            bars.append(
                .atMost(
                    "\(sessions) at a time, each with \(Humane.count(attachment)) bytes attached: memory at its most",
                    300,
                    measured: Double(peak) / 1e6, unit: "MB"))
        }
        return invocation.report(
            provider.name, bars,
            figures: [
                ("sessions", .init(sessions)), ("messages", .init(messages)), ("bytes", .init(bytes)),
                ("attachment", attachment.map { .init($0) } ?? .null), ("rounds", .init(rounds)),
                ("per_second", .array(ours.map { .double($0) })),
                ("beside_per_second", .array(others.map { .double($0) })), ("peak_resident", .init(peak)),
            ])
    }

    private func spell(_ rates: [Double]) -> String { Humane.count(Int(percentile(rates.sorted(), 0.5))) }

    private func measure(_ provider: any MailProvider) async throws -> Double {
        let supervisor = Supervisor(Supervisor.Options(), log: Log(threshold: .error) { _ in })
        let began = ContinuousClock.now
        try await supervisor.call(provider.name) { call in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<sessions {
                    let share = messages / sessions + (worker < messages % sessions ? 1 : 0)
                    group.addTask {
                        for _ in 0..<share {
                            let letter = letter()
                            let key = letter.id.uuidString
                            guard case .accepted = await provider.send([letter], key: key, call: call)[0] else {
                                throw Failure("the server did not take a message")
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        return Double(messages) / ((ContinuousClock.now - began) / .seconds(1))
    }

    private func letter() -> Letter {
        var letter = Letter(
            id: UUID(), date: Date(), from: Mailbox(address: "load@millrace.invalid"),
            to: [Mailbox(address: "sink@millrace.invalid")], subject: "load")
        letter.text = text
        if let attachment, let blob = BlobID(Self.hex(attachment)) {
            letter.attachments = [
                .init(filename: "load.pdf", contentType: "application/pdf", blob: blob, size: attachment)
            ]
        }
        return letter
    }

    /// The size stands where a hash would.
    private static func hex(_ size: Int) -> String {
        let digits = String(size, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    private static var peak: Int {
        var usage = rusage()
        return getrusage(RUSAGE_SELF.rawValue, &usage) == 0 ? usage.ru_maxrss * 1024 : 0
    }
}
