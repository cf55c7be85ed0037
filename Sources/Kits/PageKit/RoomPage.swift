/// A page of the console that shows rows of a room of another package.
public struct RoomPage: Sendable {
    /// A table of the page.
    public struct Section: Sendable {
        package let heading: String
        package let statement: String
        package let columns: [(title: String, name: String)]
        package let empty: String

        /// - Parameters:
        ///   - rows: A `select`. It runs in the Postgres role of the visitor, so it reads through a door or a view that `viewer` may use, and it
        ///     has a `limit`.
        ///   - columns: The titles of the columns, and the columns of `rows` that they show.
        ///   - empty: What stands there when there are no rows.
        public init(
            _ heading: String, rows: StaticString, columns: KeyValuePairs<String, String>, empty: String
        ) {
            self.heading = heading
            statement = rows.description
            self.columns = columns.map { (title: $0.key, name: $0.value) }
            self.empty = empty
        }
    }

    /// Below /console.
    package let path: String
    package let label: String
    package let sections: [Section]

    /// - Parameters:
    ///   - path: Its address below `/console`, such as `/shelf`.
    ///   - label: Its name in the navigation, and its title.
    public init(_ path: String, label: String, sections: [Section]) {
        self.path = path
        self.label = label
        self.sections = sections
    }
}
