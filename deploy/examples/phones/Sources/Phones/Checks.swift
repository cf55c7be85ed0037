import Foundation
import MillraceApp

/// Something is lost, there twice, or otherwise not as it should be.
package struct Wrong: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// Runs an app to its end. The program ends with 1 if something was wrong.
package func play(_ body: @Sendable () async throws -> Void) async -> Never {
    do {
        try await body()
        exit(0)
    } catch let error as AppError {
        say("WRONG \(error.userMessage) (\(error))")
    } catch {
        say("WRONG \(error)")
    }
    exit(1)
}

/// The driver reads lines as they come.
package func say(_ text: String) {
    print(text)
    fflush(nil)
}

package func expect<Value: Equatable>(_ what: String, _ found: Value, _ wanted: Value) throws {
    guard found == wanted else { throw Wrong("\(what): \(shown(found)) instead of \(shown(wanted))") }
    say("ok    \(what): \(shown(found))")
}

/// A value for people: without the names of modules, and without what an optional adds.
private func shown(_ value: Any) -> String {
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .optional { return mirror.children.first.map { shown($0.value) } ?? "none" }
    guard mirror.displayStyle == .collection || mirror.displayStyle == .set else { return String(describing: value) }
    return mirror.children.map { shown($0.value) }.joined(separator: ", ")
}

/// For states that are too long to be shown.
package func expectSame<Value: Equatable>(_ what: String, _ found: Value, _ wanted: Value) throws {
    guard found == wanted else { throw Wrong("\(what):\n\(found)\ninstead of\n\(wanted)") }
    say("ok    \(what)")
}

/// What a call returned that was not to wait.
package func done<Value>(_ what: String, _ submission: Submission<Value>) throws -> Value {
    guard let value = submission.value else { throw Wrong("\(what) is not done: \(submission)") }
    return value
}

/// A call that was to wait for the network.
package func queued<Value>(_ what: String, _ submission: Submission<Value>) throws {
    guard submission.isQueued else { throw Wrong("\(what) does not wait: \(submission)") }
}

/// A call that is not allowed.
package func refused(_ what: String, _ call: () async throws -> Void) async throws {
    do {
        try await call()
    } catch let error as AppError where error.kind == .permissionDenied || error.kind == .notFound {
        return say("ok    \(what): \(error.userMessage)")
    }
    throw Wrong("\(what) is allowed")
}

/// How long anything may take: it is only there for what never comes.
let patience = Duration.seconds(120)

/// The first answer that is not nil.
@discardableResult
package func until<Found>(_ what: String, _ look: () async throws -> Found?) async throws -> Found {
    let end = ContinuousClock.now.advanced(by: patience)
    while ContinuousClock.now < end {
        if let found = try await look() { return found }
        try await Task.sleep(for: .milliseconds(20))
    }
    throw Wrong("this has not come: \(what)")
}
