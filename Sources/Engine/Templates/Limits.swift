/// What a template may take, whoever wrote it and whatever it is rendered with.
package struct Limits: Sendable, Equatable {
    /// Bytes of source.
    package var source = 1 << 20
    /// Bytes rendered.
    package var output = 4 << 20
    /// Sections, partials and parents within each other.
    package var depth = 100
    package var time: Duration = .seconds(1)

    package init() {}
}
