/// The end of a child's stderr: bounded, and safe to show.
struct Messages: Sendable {
    let most: Int
    private(set) var seen = 0
    private var tail: [UInt8] = []

    init(most: Int) {
        self.most = most
    }

    mutating func take(_ bytes: some Collection<UInt8>) {
        seen += bytes.count
        tail.append(contentsOf: bytes.suffix(most))
        if tail.count > 2 * most { tail.removeFirst(tail.count - most) }
    }

    /// A hostile document may have words put into a library's mouth: no control character of them reaches a terminal or a log.
    var text: String {
        String(
            String.UnicodeScalarView(
                String(decoding: tail.suffix(most), as: UTF8.self).unicodeScalars.map { scalar in
                    scalar == "\n" || scalar.properties.generalCategory.isShown ? scalar : "\u{FFFD}"
                }))
    }
}

extension Unicode.GeneralCategory {
    fileprivate var isShown: Bool {
        switch self {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}
