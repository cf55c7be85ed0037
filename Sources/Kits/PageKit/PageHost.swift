/// Who runs the service, as the people behind a link read it.
package struct PageHost: Sendable {
    /// The name that they know the service by; nil: it has told nobody.
    package var name: String?
    /// Where to write to those who run it: a mail address.
    package var contact: String?
    /// The number to call where somebody is in danger.
    package var emergency: String?

    package init(name: String? = nil, contact: String? = nil, emergency: String? = nil) {
        self.name = name
        self.contact = contact
        self.emergency = emergency
    }
}

/// What stands around a page: its language, who runs the service, and where the page is.
package struct PageFrame: Sendable {
    package var words: PageWords
    package var host: PageHost
    /// Its path. The page offers other languages there; nil: it has one.
    package var path: String?

    package init(_ words: PageWords, host: PageHost = PageHost(), path: String? = nil) {
        self.words = words
        self.host = host
        self.path = path
    }
}
