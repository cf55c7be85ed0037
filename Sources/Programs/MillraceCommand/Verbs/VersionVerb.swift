import Glibc
import Workers

/// The version of the build, its toolchain, and the machine it runs on.
enum Version {
    // The compiler tells its version to conditions only.
    #if compiler(>=6.4)
        static let swift = "6.4 or later"
    #elseif compiler(>=6.3)
        static let swift = "6.3"
    #else
        static let swift = "6.2"
    #endif

    static var platform: String {
        var system = utsname()
        guard uname(&system) == 0 else { return "linux" }
        let kernel = withUnsafeBytes(of: &system.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let machine = withUnsafeBytes(of: &system.machine) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return "linux \(kernel) \(machine)"
    }
}

extension Command {
    static let version = Command(
        ["version"],
        summary: "Print the version",
        examples: [Example("millrace version --json", "for a script")],
        settings: .unused
    ) { invocation in
        let console = invocation.console
        console.show([
            "millrace": .string(JobWorker.version), "swift": .string(Version.swift),
            "platform": .string(Version.platform),
        ]) {
            console.print("millrace \(JobWorker.version)")
            console.print("Swift \(Version.swift), \(Version.platform)")
        }
        return .done
    }
}
