/// How serious it is; the worst of all findings is the verdict.
public enum Severity: Int, Sendable, Comparable {
    /// All is well.
    case ok
    /// Somebody should look at it.
    case degraded
    /// Something does not work.
    case critical

    /// The worse one is greater.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    package var word: String {
        switch self {
        case .ok: "OK"
        case .degraded: "DEGRADED"
        case .critical: "CRITICAL"
        }
    }

    package var exitCode: ExitCode {
        switch self {
        case .ok: .done
        case .degraded: .degraded
        case .critical: .critical
        }
    }
}

/// Something that may be wrong. deploy/guides/operating.md has a heading for each of Millrace's own, with what to do.
public struct Alarm: Sendable, Hashable {
    package let name: String
    /// A command that looks at all that it may be about: an alarm never leaves its reader without one.
    package let look: String

    /// - Parameters:
    ///   - name: What is wrong, in a few words.
    ///   - look: A command that shows all that it may be about.
    public init(_ name: String, look: String) {
        self.name = name
        self.look = look
    }
}

/// Something that is wrong now.
public struct Finding: Sendable, Equatable {
    package let alarm: Alarm
    package let severity: Severity
    package let sentence: String
    /// One to run, which remedies it or shows the next thing.
    package let command: String
    package let subject: FindingSubject?
    /// For how many seconds it has been so, where that is known.
    package let age: Double?

    /// - Parameter command: if not given, what looks at all that this alarm may be about.
    package init(
        alarm: Alarm, severity: Severity, sentence: String, command: String? = nil,
        about subject: FindingSubject? = nil,
        age: Double? = nil
    ) {
        self.subject = subject
        self.age = age
        self.alarm = alarm
        self.severity = severity
        self.sentence = sentence
        self.command = command ?? alarm.look
    }

    /// - Parameters:
    ///   - alarm: What may be wrong.
    ///   - severity: How serious it is.
    ///   - sentence: What is wrong now.
    ///   - command: A command that remedies it or shows the next thing; without one, that of the alarm.
    public init(_ alarm: Alarm, _ severity: Severity, _ sentence: String, command: String? = nil) {
        self.init(alarm: alarm, severity: severity, sentence: sentence, command: command)
    }
}
