/// Another tracing system, which keeps the spans of this process in place of a collector. It numbers them itself.
package protocol OutsideTracer: Sendable {
    /// Begins a span. Its name, kind and whether its parent is another process's count; its place is the other system's to give.
    func begin(_ span: TraceSpan, under parent: TraceContext?) -> any OutsideSpan
}

/// A span that another system keeps.
package protocol OutsideSpan: AnyObject, Sendable {
    /// Its place as W3C Trace Context writes it; nil: that system has no such form.
    var place: TraceContext? { get }
    /// Does work as a part of it.
    nonisolated(nonsending) func within(_ body: () async -> Void) async
    /// It is over, with the attributes, links and status of this one.
    func end(_ span: TraceSpan)
}

/// A span of another system, beside a place. It is equal to itself only.
package struct HeldOutside: Sendable, Equatable {
    package let span: any OutsideSpan

    package init(_ span: any OutsideSpan) {
        self.span = span
    }

    package static func == (one: HeldOutside, other: HeldOutside) -> Bool { one.span === other.span }
}
