/// A page's own text, as a child sends it. As JSON it would take several times as long as finding the text, on both sides.
extension OwnText {
    package func packed() -> [UInt8] {
        var out = Packer()
        out.add(page)
        out.add(text == nil ? 0 : 1)
        guard let text else { return out.bytes }
        out.add(text.width)
        out.add(text.height)
        out.add(text.dpi)
        out.add(text.rotation)
        out.add(text.flow == nil ? 0 : 1)
        out.add(text.flow ?? "")
        out.add(text.blocks.count)
        for block in text.blocks {
            out.add(block.lines.count)
            for line in block.lines {
                out.add(line.words.count)
                for word in line.words {
                    for edge in [word.box.left, word.box.top, word.box.right, word.box.bottom] { out.add(edge) }
                    out.add(word.text)
                }
            }
        }
        out.add(text.rulings == nil ? 0 : 1)
        if let rulings = text.rulings {
            for lines in [rulings.across, rulings.down] {
                out.add(lines.count)
                for box in lines { for edge in [box.left, box.top, box.right, box.bottom] { out.add(edge) } }
            }
        }
        return out.bytes
    }

    /// All of these bytes are checked: a count is at most what the remaining bytes can hold.
    package init(packed bytes: [UInt8]) throws(DocumentRefusal) {
        var rest = Unpacker(bytes)
        page = try rest.number()
        text = nil
        guard try rest.number() == 1 else { return }
        var text = PageText(
            origin: .own, width: try rest.double(), height: try rest.double(), dpi: try rest.double(), blocks: [])
        text.rotation = try rest.number()
        let flows = try rest.number() == 1
        let flow = try rest.string()
        if flows { text.flow = flow }
        for _ in 0..<(try rest.count(ofAtLeast: 4)) {
            var block = Block([])
            for _ in 0..<(try rest.count(ofAtLeast: 4)) {
                var line = TextLine([])
                let words = try rest.count(ofAtLeast: 36)
                line.words.reserveCapacity(words)
                for _ in 0..<words {
                    let box = Box(try rest.double(), try rest.double(), try rest.double(), try rest.double())
                    line.words.append(Word(try rest.string(), box))
                }
                block.lines.append(line)
            }
            text.blocks.append(block)
        }
        switch try rest.number() {
        case 0: break
        case 1: text.rulings = Rulings(across: try rest.boxes(), down: try rest.boxes())
        default: throw DocumentRefusal(.internal, "a page's text ends with something else than ruled lines")
        }
        guard rest.isEmpty else { throw DocumentRefusal(.internal, "a page's text has more to it than it says") }
        self.text = text
    }
}

private struct Packer {
    var bytes: [UInt8] = []

    mutating func add(_ number: Int) {
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: number)) { bytes.append(contentsOf: $0) }
    }

    mutating func add(_ number: Double) {
        withUnsafeBytes(of: number.bitPattern) { bytes.append(contentsOf: $0) }
    }

    mutating func add(_ text: String) {
        add(text.utf8.count)
        bytes.append(contentsOf: text.utf8)
    }
}

private struct Unpacker {
    private let bytes: [UInt8]
    private var at = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isEmpty: Bool { at == bytes.count }

    private mutating func take(_ count: Int) throws(DocumentRefusal) -> Range<Int> {
        guard count <= bytes.count - at else { throw DocumentRefusal(.internal, "a page's text ends too early") }
        defer { at += count }
        return at..<at + count
    }

    mutating func boxes() throws(DocumentRefusal) -> [Box] {
        var boxes: [Box] = []
        for _ in 0..<(try count(ofAtLeast: 32)) {
            boxes.append(Box(try double(), try double(), try double(), try double()))
        }
        return boxes
    }

    mutating func number() throws(DocumentRefusal) -> Int {
        let place = try take(4)
        return Int(bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: place.lowerBound, as: UInt32.self) })
    }

    /// Reads a count of items that take at least `size` bytes each.
    mutating func count(ofAtLeast size: Int) throws(DocumentRefusal) -> Int {
        let count = try number()
        guard count <= (bytes.count - at) / size else {
            throw DocumentRefusal(.internal, "a page's text ends too early")
        }
        return count
    }

    mutating func double() throws(DocumentRefusal) -> Double {
        let place = try take(8)
        return Double(
            bitPattern: bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: place.lowerBound, as: UInt64.self) })
    }

    mutating func string() throws(DocumentRefusal) -> String {
        String(decoding: bytes[try take(try number())], as: UTF8.self)
    }
}
