/// Where a value comes from; a flag wins over the environment, which wins over the default.
package enum Origin: Sendable, Equatable {
    case flag(String)
    case environment(String)
    case file(path: String, variable: String)
    case fallback

    package var word: String {
        switch self {
        case .flag: "flag"
        case .environment: "environment"
        case .file: "file"
        case .fallback: "default"
        }
    }

    /// The flag, the variable or the file, for somebody who wants to change the value.
    package var source: String? {
        switch self {
        case .flag(let name): "--\(name)"
        case .environment(let name): name
        case .file(let path, let variable): "\(path) (\(variable))"
        case .fallback: nil
        }
    }
}

/// A value from a command line, and its place there.
package struct Given: Sendable, Equatable {
    package var values: [Value]
    package var origin: Origin

    package init(values: [Value], origin: Origin) {
        self.values = values
        self.origin = origin
    }
}
