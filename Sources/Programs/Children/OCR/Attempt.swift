import CTesseract
import ChildProtocol
import ChildSandbox
import Pages

/// One reading of a page's picture. Its places are in the pixels of that picture.
struct Attempt {
    let api: OpaquePointer
    let picture: Picture
    let prepared: Picture
    let scale: Double
    let dpi: Double
    let preparation: Preparation
    var blocks: [Block] = []
    private(set) var reading = Gate.Reading(words: 0, letters: 0, confidence: 0, inkOutside: 0)
    private(set) var slope = 0.0

    /// - Parameters:
    ///   - dpi: of the picture.
    ///   - isOneBlock: its lines go all the way across.
    init(
        _ picture: Picture?, dpi: Double, scale: Double, _ preparation: Preparation, api: OpaquePointer,
        invertThreshold: String, isOneBlock: Bool = false
    ) throws(DocumentRefusal) {
        guard let picture, let prepared = picture.prepared(preparation, dpi: dpi) else {
            throw DocumentRefusal(.memory, "no memory to prepare the page")
        }
        self.api = api
        (self.dpi, self.scale, self.preparation) = (dpi, scale, preparation)
        TessBaseAPISetVariable(api, "invert_threshold", invertThreshold)
        TessBaseAPISetVariable(api, "thresholding_method", preparation == .plain ? "0" : "2")
        TessBaseAPISetPageSegMode(api, isOneBlock ? PSM_SINGLE_BLOCK : PSM_AUTO)
        TessBaseAPIClear(api)  // what is left of the reading before
        TessBaseAPISetImage2(api, prepared.pix)
        TessBaseAPISetSourceResolution(api, Int32(max(70, dpi)))
        // The engine has made a copy, which serves us, too.
        let copy = Picture(pixClone(TessBaseAPIGetInputImage(api))) ?? prepared
        (self.picture, self.prepared) = (prepared === picture ? copy : picture, copy)
        let monitor = TessMonitorCreate()
        defer { TessMonitorDelete(monitor) }
        TessMonitorSetProgressFunc(monitor) { monitor, _, _, _, _ in
            Progress.say(Int(TessMonitorGetProgress(monitor)))
            return false
        }
        guard TessBaseAPIRecognize(api, monitor) == 0 else {
            throw DocumentRefusal(.engine, "the engine could not read the page")
        }
        var found = Recognized.words(api)
        // For the whole page: a cell that is read again is a separate picture.
        let outside = Recognized.inkOutside(api, found.blocks.flatMap(\.lines).flatMap(\.words))
        again(&found.blocks)
        blocks = found.blocks
        found.slopes.sort()
        slope = found.slopes.isEmpty ? 0 : found.slopes[found.slopes.count / 2]
        weigh(inkOutside: outside)
    }

    mutating func weigh(inkOutside: Double? = nil) {
        let words = blocks.flatMap(\.lines).flatMap(\.words)
        let letters = words.reduce(0) { $0 + $1.text.count }
        let weighed = words.reduce(0) { $0 + $1.confidence * Double($1.text.count) }
        reading = Gate.Reading(
            words: words.count, letters: letters, confidence: letters > 0 ? weighed / Double(letters) : 0,
            inkOutside: inkOutside ?? reading.inkOutside)
    }

    var text: String { blocks.map(\.text).joined(separator: "\n") }

    /// The engine fits a row of a table as one line, and in a cell far from the others it reads text that is not there, with low
    /// confidence. Alone, with some paper around it, such a cell is read well. Words of prose stand close together and are left alone: if
    /// many of them have low confidence the page is poor, and reading all of them again would take too long.
    private func again(_ blocks: inout [Block]) {
        let all = blocks.reduce(0) { $0 + $1.lines.reduce(0) { $0 + $1.words.count } }
        var cells: [(block: Int, line: Int, word: Int)] = []
        for (block, content) in blocks.enumerated() {
            for (line, words) in content.lines.map(\.words).enumerated() {
                for word in words.indices where words[word].confidence < 65 && Self.isAlone(word, in: words) {
                    cells.append((block, line, word))
                }
            }
        }
        guard !cells.isEmpty, cells.count <= min(60, max(4, all / 5)) else { return }
        TessBaseAPISetPageSegMode(api, PSM_SINGLE_LINE)
        for cell in cells {
            let old = blocks[cell.block].lines[cell.line].words[cell.word]
            guard read(old.box, on: api) else { continue }
            let found = Recognized.words(api).blocks.flatMap(\.lines).flatMap(\.words)
            if found.count == 1, found[0].confidence > old.confidence + 10 {
                blocks[cell.block].lines[cell.line].words[cell.word] = found[0]
            }
        }
    }

    /// Reads one place of the picture, with some paper around it.
    private func read(_ box: Pages.Box, on api: OpaquePointer) -> Bool {
        let left = max(0, box.left - dpi / 20), top = max(0, box.top - dpi / 30)
        let right = min(Double(prepared.width), box.right + dpi / 20)
        let bottom = min(Double(prepared.height), box.bottom + dpi / 30)
        guard right - left >= 8, bottom - top >= 8 else { return false }
        TessBaseAPISetRectangle(api, Int32(left), Int32(top), Int32(right - left), Int32(bottom - top))
        return TessBaseAPIRecognize(api, nil) == 0
    }

    /// Reads lines with another engine, and takes what has this much more merit, as of lines that were not understood. True if it took any.
    mutating func read(
        _ places: [(block: Int, lines: Range<Int>)], with other: OpaquePointer, merit least: Double = 1.15
    ) -> Bool {
        TessBaseAPISetVariable(other, "thresholding_method", preparation == .plain ? "0" : "2")
        TessBaseAPISetVariable(other, "invert_threshold", "0")
        TessBaseAPISetImage2(other, prepared.pix)
        TessBaseAPISetSourceResolution(other, Int32(max(70, dpi)))
        var isBetter = false
        // From the last one, so that the places before it stay valid.
        for place in places.reversed() {
            let lines = blocks[place.block].lines
            TessBaseAPISetPageSegMode(other, place.lines.count == 1 ? PSM_SINGLE_LINE : PSM_SINGLE_BLOCK)
            guard read(Block(Array(lines[place.lines])).box, on: other) else { continue }
            let found = Recognized.words(other).blocks.flatMap(\.lines)
            guard Self.merit(found) > least * Self.merit(lines[place.lines]) else { continue }
            blocks[place.block].lines.replaceSubrange(place.lines, with: found)
            isBetter = true
        }
        if isBetter { weigh() }
        return isBetter
    }

    /// Reads words again that may be none of Latin letters, with the model of the other script alone.
    mutating func doubtLatin(with other: OpaquePointer) {
        var places: [(block: Int, line: Int)] = []
        for (block, content) in blocks.enumerated() {
            for (line, words) in content.lines.enumerated() where TextDirections.mayRunLeft(words.text) {
                if words.words.contains(where: MixedLine.mayBeOther) { places.append((block, line)) }
            }
        }
        // Of a page full of Latin words few are wrong, and reading them all takes too long.
        guard !places.isEmpty, places.count <= 100 else { return }
        TessBaseAPISetVariable(other, "thresholding_method", preparation == .plain ? "0" : "2")
        TessBaseAPISetVariable(other, "invert_threshold", "0")
        TessBaseAPISetImage2(other, prepared.pix)
        TessBaseAPISetSourceResolution(other, Int32(max(70, dpi)))
        TessBaseAPISetPageSegMode(other, PSM_SINGLE_LINE)
        for place in places {
            let words = blocks[place.block].lines[place.line].words
            var others: [Int: Word] = [:]
            for (index, word) in words.enumerated() where MixedLine.mayBeOther(word) && read(word.box, on: other) {
                let found = Recognized.words(other).blocks.flatMap(\.lines).flatMap(\.words)
                if found.count == 1, MixedLine.isBetter(found[0], than: word) { others[index] = found[0] }
            }
            if !others.isEmpty {
                blocks[place.block].lines[place.line].words = MixedLine.replaced(words, by: others)
            }
        }
        weigh()
    }

    private static func merit(_ lines: some Sequence<TextLine>) -> Double {
        lines.reduce(0) { $0 + $1.words.reduce(0) { $0 + $1.confidence * Double($1.text.count) } }
    }

    /// Further from its neighbours than words of a sentence are.
    private static func isAlone(_ index: Int, in words: [Word]) -> Bool {
        let box = words[index].box
        let far = 1.5 * box.height
        return (index == 0 || box.left - words[index - 1].box.right > far)
            && (index == words.count - 1 || words[index + 1].box.left - box.right > far)
    }
}

/// Reports progress in tenths.
enum Progress {
    nonisolated(unsafe) private static var last = 0  // a child has one thread

    static func say(_ percent: Int) {
        guard percent / 10 != last else { return }
        last = percent / 10
        ChildSandbox.answer(.note, Array("\(min(100, max(0, percent)))".utf8))
    }
}
