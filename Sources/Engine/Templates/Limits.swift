/// What a template may use, for every author and all data.
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
