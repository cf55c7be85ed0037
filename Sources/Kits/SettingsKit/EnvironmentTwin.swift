/// The environment variable of a flag.
package enum EnvironmentTwin: Sendable {
    /// `--max-attempts` is `MILLRACE_MAX_ATTEMPTS`.
    case usual
    case named(String)
    case none

    package func name(for flag: String) -> String? {
        switch self {
        case .usual: "MILLRACE_" + flag.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
        case .named(let name): name
        case .none: nil
        }
    }
}
