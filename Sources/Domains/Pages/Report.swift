/// The contents of a report about a document.
package struct Report: Codable, Sendable, Equatable {
    package struct Fact: Codable, Sendable, Equatable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package struct Page: Codable, Sendable, Equatable {
        package var heading: String
        package var text: String

        package init(heading: String, text: String) {
            self.heading = heading
            self.text = text
        }
    }

    package var title: String
    package var facts: [Fact]
    package var pages: [Page]

    package init(title: String, facts: [Fact], pages: [Page]) {
        self.title = title
        self.facts = facts
        self.pages = pages
    }
}

package struct Reported: Codable, Sendable, Equatable {
    package var bytes: Int
    package var pages: Int

    package init(bytes: Int, pages: Int) {
        self.bytes = bytes
        self.pages = pages
    }
}
