import Postgres

/// `status` over several databases: what each says, and the worst of it.
struct SeveralStatus {
    struct Part {
        let name: String
        let found: Result<StatusView, Unread>

        var exitCode: ExitCode {
            switch found {
            case .success(let view): view.exitCode
            case .failure(let unread): unread.exitCode
            }
        }

        /// What cannot be seen is worse than anything that can.
        fileprivate var rank: Int {
            switch exitCode {
            case .done: 0
            case .degraded: 1
            case .critical: 2
            case .failed, .misused, .notFound, .conflict, .timedOut, .jobDied: 3
            case .schemaMismatch: 4
            case .unreachable: 5
            }
        }
    }

    /// A database whose state nobody knows.
    struct Unread: Error {
        let exitCode: ExitCode
        let sentence: String
        let hint: String?
    }

    let parts: [Part]

    var exitCode: ExitCode { parts.max { $0.rank < $1.rank }?.exitCode ?? .done }

    private var word: String {
        switch exitCode {
        case .done: Severity.ok.word.lowercased()
        case .degraded: Severity.degraded.word.lowercased()
        default: Severity.critical.word.lowercased()
        }
    }

    var json: JSONValue {
        [
            "verdict": .string(word), "exit_code": .int(Int(exitCode.rawValue)),
            "reasons": JSONValue(parts.flatMap(\.reasons)), "databases": .array(parts.map(\.json)),
        ]
    }

    /// One line a database, and below them what each has to say.
    func lines(width: Int?, colors: Bool, isBrief: Bool) -> [String] {
        let heads = parts.map { $0.line(room: parts.map(\.name.count).max() ?? 0, colors: colors) }
        guard !isBrief else { return heads }
        return heads
            + parts.flatMap { part -> [String] in
                guard case .success(let view) = part.found else { return [] }
                return ["", Style.bold.paint("database \(part.name)", on: colors)]
                    + view.lines(width: width, colors: colors)
            }
    }
}

extension SeveralStatus.Part {
    var reasons: [String] {
        switch found {
        case .success(let view): view.findings.map { "\(name): \($0.sentence)" }
        case .failure(let unread): ["\(name): \(unread.sentence)"]
        }
    }

    var json: JSONValue {
        switch found {
        case .success(let view):
            [
                "database": .string(name), "exit_code": .int(Int(exitCode.rawValue)), "status": view.json,
                "error": .null,
            ]
        case .failure(let unread):
            [
                "database": .string(name), "exit_code": .int(Int(exitCode.rawValue)), "status": .null,
                "error": ["message": .string(unread.sentence), "hint": JSONValue(unread.hint)],
            ]
        }
    }

    func line(room: Int, colors: Bool) -> String {
        let label = name + String(repeating: " ", count: max(0, room - name.count) + 2)
        switch found {
        case .success(let view): return label + view.line(colors: colors)
        case .failure(let unread):
            let rest = [unread.sentence, unread.hint].compactMap(\.self).joined(separator: "; ")
            return label + Severity.critical.style.paint("UNKNOWN", on: colors) + "  " + DisplayWidth.harmless(rest)
        }
    }
}

extension Invocation {
    /// Of all databases, read at the same time; one that is away does not hold up the others for longer than a connection may take.
    func severalStatus(
        _ read: @escaping @Sendable (Connection) async throws -> StatusView
    ) async -> SeveralStatus {
        await withTaskGroup(of: (Int, SeveralStatus.Part).self) { group in
            for (place, database) in settings.databases.enumerated() {
                let options = options(at: database.url)
                group.addTask {
                    let found: Result<StatusView, SeveralStatus.Unread>
                    do {
                        found = .success(try await SchemaCheck.withSchema(options) { try await read($0) })
                    } catch let failure as any CommandFailure {
                        found = .failure(
                            .init(exitCode: failure.exitCode, sentence: failure.sentence, hint: failure.hint))
                    } catch {
                        found = .failure(.init(exitCode: .failed, sentence: "\(type(of: error))", hint: nil))
                    }
                    return (place, SeveralStatus.Part(name: database.name, found: found))
                }
            }
            var parts: [(Int, SeveralStatus.Part)] = []
            for await part in group { parts.append(part) }
            return SeveralStatus(parts: parts.sorted { $0.0 < $1.0 }.map(\.1))
        }
    }
}
