/// Where the pages of a console stand. One of several databases has a path of its own, below the start page of all.
package struct ConsolePlace: Sendable {
    /// nil: it is the only one, or the start page of several.
    package var database: String?

    package init(database: String? = nil) { self.database = database }

    /// Of the request that is being answered: all addresses of pages begin with it.
    @TaskLocal static var current = ConsolePlace()

    /// What is the same for all databases stands here: signing in and out, how a reader wants the pages, styles and scripts.
    static let home = "/console"

    var base: String { database.map { "\(Self.home)/\($0)" } ?? Self.home }

    /// Names of databases that are addresses of the start page's own.
    package static let taken: Set<String> = ["signin", "signout", "look"]
}
