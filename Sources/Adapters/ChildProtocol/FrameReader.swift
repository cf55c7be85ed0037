/// Makes frames of bytes as they come.
package struct FrameReader: Sendable {
    package enum Complaint: Error, Equatable, Sendable {
        case unknownKind(UInt32)
        case tooLong(Frame.Kind, Int)
    }

    /// The longest payload of each kind; one without an entry is not expected at all.
    private let longest: [Frame.Kind: Int]
    private var held: [UInt8] = []
    private var begin = 0

    package init(longest: [Frame.Kind: Int]) {
        self.longest = longest
    }

    /// Nothing of a frame is outstanding.
    package var isAtBoundary: Bool { begin == held.count }

    package mutating func take(_ bytes: some Collection<UInt8>) {
        if begin > 65_536 || begin == held.count {
            held.removeFirst(begin)
            begin = 0
        }
        held.append(contentsOf: bytes)
    }

    /// The next whole frame; nil when more is needed. The length is judged as soon as it is known.
    package mutating func next() throws(Complaint) -> Frame? {
        guard held.count - begin >= Frame.headerSize else { return nil }
        let (code, length) = (number(at: begin), Int(number(at: begin + 4)))
        guard let kind = Frame.Kind(rawValue: code), let most = longest[kind] else { throw .unknownKind(code) }
        guard length <= most else { throw .tooLong(kind, length) }
        let start = begin + Frame.headerSize
        guard held.count - start >= length else {
            held.reserveCapacity(start + length)
            return nil
        }
        begin = start + length
        return Frame(kind, Array(held[start..<begin]))
    }

    private func number(at index: Int) -> UInt32 {
        held[index..<index + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
}
