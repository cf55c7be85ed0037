import Blobs
import CommandKit
import FoundationEssentials
import Glibc
import Mail
import Supervision
import Telemetry

/// Many letters through one provider, with a fixed number at a time.
struct ProviderLoad: Sendable {
    static let flags: [CommandFlag] = [
        .single("sessions", "N", .integer(1...1000), environment: .none, fallback: "8", help: "Messages at a time."),
        .single(
            "messages", "N", .integer(1...10_000_000), environment: .none, fallback: "5000",
            help: "How many in each round."),
        .single(
            "bytes", "N", .integer(100...10_000_000), environment: .none, fallback: "10240",
            help: "Bytes of each message's text."),
        .single(
            "attachment", "N", .integer(1...28_000_000), environment: .none,
            help: "Bytes of an attachment to each message; the peak of memory must then stay below 300 MB."),
        .single("rounds", "N", .integer(1...25), environment: .none, fallback: "3", help: "How many rounds."),
        .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
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
        sessions = invocation.parsed.integer("sessions") ?? 8
        messages = invocation.parsed.integer("messages") ?? 5000
        bytes = invocation.parsed.integer("bytes") ?? 10_240
        rounds = invocation.parsed.integer("rounds") ?? 3
        attachment = invocation.parsed.integer("attachment")
        text = String(repeating: String(repeating: "x", count: 70) + "\n", count: max(1, bytes / 72))
    }

    /// - Parameter other: Another program's rate for the same; it goes first in one round and last in the next.
    func run(
        _ provider: some MailProvider, beside: (name: String, share: Double)? = nil,
        _ other: (@Sendable () async throws -> Double)? = nil
    ) async throws -> ExitCode {
        var ours: [Double] = []
        var others: [Double] = []
        for round in 1...rounds {
            for isOurs in round % 2 == 1 ? [false, true] : [true, false] {
                if isOurs {
                    ours.append(try await measure(provider, round))
                    note(round, provider.name, ours)
                } else if let other {
                    others.append(try await other())
                    note(round, beside?.name ?? "", others)
                }
            }
        }
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

    private func note(_ round: Int, _ name: String, _ rates: [Double]) {
        invocation.console.note("round \(round) of \(rounds), \(name): \(Humane.count(Int(rates[rates.count - 1])))/s")
    }

    private func measure(_ provider: some MailProvider, _ round: Int) async throws -> Double {
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
