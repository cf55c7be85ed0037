import Glibc

/// Why a listener does not start.
package enum ListenerError: Error, Sendable, Equatable, CustomStringConvertible {
    case taken(String)
    case cannotListen(at: String, number: Int32)
    case needsToken(String)
    case refusedByLibrary(String)

    package var description: String {
        switch self {
        case .taken(let address): "\(address) is taken by another process"
        case .cannotListen(let address, let number):
            "cannot listen on \(address): \(String(cString: strerror(number)).lowercased())"
        case .needsToken(let address):
            "\(address) can be reached from outside this machine, and there is no token"
        case .refusedByLibrary(let address): "the HTTP library cannot start on \(address)"
        }
    }

    package var hint: String? {
        switch self {
        case .taken: "give this one another port with --listen or MILLRACE_LISTEN, or none with off"
        case .cannotListen: "see millrace config for MILLRACE_LISTEN"
        case .needsToken: "set MILLRACE_TOKEN, or MILLRACE_TOKEN_FILE, or listen on 127.0.0.1"
        case .refusedByLibrary: nil
        }
    }
}
