import Synchronization

/// The partials and parents of a template; each is compiled once.
package struct Partials: Sendable {
    private final class Compiled: Sendable {
        let programs = Mutex<[String: Program?]>([:])
    }

    private let find: @Sendable (String) -> [UInt8]?
    private let compiled = Compiled()

    package static let none = Partials { _ in nil }

    package init(_ find: @escaping @Sendable (String) -> [UInt8]?) {
        self.find = find
    }

    package init(_ sources: [String: String]) {
        self.init { sources[$0].map { Array($0.utf8) } }
    }

    func program(_ name: String, limits: Limits) throws(TemplateError) -> Program? {
        if let known = compiled.programs.withLock({ $0[name] }) { return known }
        var program: Program?
        if let source = find(name) {
            do throws(TemplateError) {
                program = try Program(source, limits: limits)
            } catch {
                throw error.inPart("partial \(name)")
            }
        }
        compiled.programs.withLock { [program] in $0[name] = .some(program) }
        return program
    }
}
