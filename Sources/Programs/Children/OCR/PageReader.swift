import CTesseract
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

/// The engine.
final class PageReader {
    private let api: OpaquePointer
    private let orientation: Orientation

    init(models: String, languages: String) throws(DocumentRefusal) {
        guard let api = TessBaseAPICreate() else { throw DocumentRefusal(.memory, "no memory for the engine") }
        guard TessBaseAPIInit2(api, models, languages, OEM_LSTM_ONLY) == 0 else {
            TessBaseAPIDelete(api)
            throw DocumentRefusal(.engine, "the engine has no models for \(languages) in \(models)")
        }
        self.api = api
        orientation = Orientation(models: models)
        TessBaseAPISetVariable(api, "debug_file", "/dev/null")
        // Paragraphs are ours to find: by their places alone, which costs the engine least.
        TessBaseAPISetVariable(api, "paragraph_text_based", "0")
    }

    deinit {
        TessBaseAPIDelete(api)
    }

    func read(_ raster: Raster, finds: Bool) throws(DocumentRefusal) -> PageText {
        guard let shown = Picture(raster) else { throw DocumentRefusal(.memory, "no memory for the page's picture") }
        let dpi = raster.head.dpi
        let finds = finds && min(shown.width, shown.height) >= 200
        // Which way it lies, and how its lines do, is seen in a smaller picture as well.
        let least = finds ? Gate.leastScale(dpi: dpi) : 1
        guard let small = shown.scaled(by: least) else {
            throw DocumentRefusal(.memory, "no memory for a smaller picture")
        }
        let rotation = finds ? orientation.find(small, dpi: dpi * least) : 0
        guard let upright = small.turned(clockwise: rotation) else {
            throw DocumentRefusal(.memory, "no memory to turn the page")
        }
        let skew = finds ? upright.skew : 0
        let scale = Gate.scale(dpi: dpi, letterHeight: upright.letterHeight(dpi: dpi * least).map { $0 / least })
        func picture(_ scale: Double) -> Picture? {
            let turned = scale == least ? upright : shown.turned(clockwise: rotation)?.scaled(by: scale)
            return skew == 0 ? turned : turned.flatMap { $0.straightened(by: skew) ?? $0 }
        }
        // Lines that the engine is unsure of are read once more as light on dark, which nothing is where nothing is dark.
        TessBaseAPISetVariable(api, "invert_threshold", upright.hasDarkAreas(dpi: dpi * least) ? "0.7" : "0")
        let noise = Gate.noise(raster.pixels, width: raster.width, height: raster.height)
        var best = try attempt(picture(scale), dpi, scale, Gate.isNoisy(noise) ? .smoothed : .plain)
        if Gate.wantsAnother(best.reading) {
            let other = try attempt(picture(1), dpi, 1, .cleaned)
            if other.reading.merit > best.reading.merit { best = other }
        }
        TessBaseAPIClear(api)
        best.text.rotation = rotation
        let lies = rotation % 180 != 0
        best.text.width = Double(lies ? shown.height : shown.width)
        best.text.height = Double(lies ? shown.width : shown.height)
        best.text.skew = skew
        return best.text
    }

    /// Reads a picture of `scale` times the page's own size; the places of words are in the pixels of that picture.
    private func attempt(
        _ picture: Picture?, _ ownDPI: Double, _ scale: Double, _ preparation: Preparation
    ) throws(DocumentRefusal) -> (text: PageText, reading: Gate.Reading) {
        let dpi = ownDPI * scale
        guard let picture, let prepared = picture.prepared(preparation, dpi: dpi) else {
            throw DocumentRefusal(.memory, "no memory to prepare the page")
        }
        TessBaseAPISetVariable(api, "thresholding_method", preparation == .plain ? "0" : "2")
        TessBaseAPISetPageSegMode(api, PSM_AUTO)
        TessBaseAPISetImage2(api, prepared.pix)
        TessBaseAPISetSourceResolution(api, Int32(max(70, dpi)))
        let monitor = TessMonitorCreate()
        defer { TessMonitorDelete(monitor) }
        TessMonitorSetProgressFunc(monitor) { monitor, _, _, _, _ in
            Progress.say(Int(TessMonitorGetProgress(monitor)))
            return false
        }
        guard TessBaseAPIRecognize(api, monitor) == 0 else {
            throw DocumentRefusal(.engine, "the engine could not read the page")
        }
        var (blocks, slopes) = words()
        // For the whole page: a cell that is read again is a separate picture.
        let outside = inkOutside(blocks.flatMap(\.lines).flatMap(\.words))
        again(&blocks, in: prepared, dpi: dpi)
        if scale != 1 { blocks = blocks.map { $0.scaled(by: 1 / scale) } }
        slopes.sort()
        let skew = slopes.isEmpty ? 0 : slopes[slopes.count / 2]
        blocks = ReadingOrder.arranged(blocks, skew: skew)
        var text = PageText(
            origin: .read, width: Double(picture.width), height: Double(picture.height), dpi: ownDPI,
            blocks: blocks)
        text.preparation = preparation.rawValue
        if TableFinder.mayHaveTables(text) { text.rulings = picture.rulings(dpi: dpi)?.scaled(by: 1 / scale) }
        let letters = text.words.reduce(0) { $0 + $1.text.count }
        let weighed = text.words.reduce(0) { $0 + $1.confidence * Double($1.text.count) }
        text.confidence = letters > 0 ? weighed / Double(letters) : 0
        let reading = Gate.Reading(
            words: text.wordCount, letters: letters, confidence: text.confidence, inkOutside: outside)
        return (text, reading)
    }

    /// The engine fits a row of a table as one line, and in a cell far from the others it reads text that is not there, with low
    /// confidence. Alone, with some paper around it, such a cell is read well. Words of prose stand close together and are left alone: if
    /// many of them have low confidence the page is poor, and reading all of them again would take too long.
    private func again(_ blocks: inout [Block], in picture: Picture, dpi: Double) {
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
            let left = max(0, old.box.left - dpi / 20), top = max(0, old.box.top - dpi / 30)
            let right = min(Double(picture.width), old.box.right + dpi / 20)
            let bottom = min(Double(picture.height), old.box.bottom + dpi / 30)
            guard right - left >= 8, bottom - top >= 8 else { continue }
            TessBaseAPISetRectangle(api, Int32(left), Int32(top), Int32(right - left), Int32(bottom - top))
            guard TessBaseAPIRecognize(api, nil) == 0 else { continue }
            let found = words().blocks.flatMap(\.lines).flatMap(\.words)
            if found.count == 1, found[0].confidence > old.confidence + 10 {
                blocks[cell.block].lines[cell.line].words[cell.word] = found[0]
            }
        }
    }

    /// Further from its neighbours than words of a sentence are.
    private static func isAlone(_ index: Int, in words: [Word]) -> Bool {
        let box = words[index].box
        let far = 1.5 * box.height
        return (index == 0 || box.left - words[index - 1].box.right > far)
            && (index == words.count - 1 || words[index + 1].box.left - box.right > far)
    }

    /// The area that the engine took for ink, and the share of it that is in no word.
    private func inkOutside(_ words: [Word]) -> Double {
        guard let binary = Picture(TessBaseAPIGetThresholdedImage(api)), pixGetDepth(binary.pix) == 1 else { return 0 }
        var (all, outside): (Int32, Int32) = (0, 0)
        pixCountPixels(binary.pix, &all, nil)
        for word in words {
            pixRasterop(
                binary.pix, Int32(word.box.left), Int32(word.box.top), Int32(word.box.width) + 1,
                Int32(word.box.height) + 1, 0, nil, 0, 0)
        }
        pixCountPixels(binary.pix, &outside, nil)
        return all > 0 ? Double(outside) / Double(all) : 0
    }

    private func words() -> (blocks: [Block], slopes: [Double]) {
        guard let results = TessBaseAPIGetIterator(api) else { return ([], []) }
        defer { TessResultIteratorDelete(results) }
        let place = TessResultIteratorGetPageIteratorConst(results)
        var (blocks, slopes): ([Block], [Double]) = ([], [])
        // A new line shows by its box: if it were queried directly, the engine would copy its iterator and walk the line.
        var around: (block: Pages.Box?, line: Pages.Box?) = (nil, nil)
        repeat {
            let here = (block: Self.box(place, RIL_BLOCK), line: Self.box(place, RIL_TEXTLINE))
            let isNewBlock = here.block != around.block || blocks.isEmpty
            if isNewBlock { blocks.append(Block([])) }
            if isNewBlock || here.line != around.line {
                around = here
                var (left, leftBase, right, rightBase): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
                var line = TextLine([])
                if TessPageIteratorBaseline(place, RIL_TEXTLINE, &left, &leftBase, &right, &rightBase) != 0 {
                    line.baseline = [Double(leftBase), Double(rightBase)]
                    if right - left > 200 {
                        slopes.append(atan(Double(rightBase - leftBase) / Double(right - left)) * 180 / .pi)
                    }
                }
                blocks[blocks.count - 1].lines.append(line)
            }
            guard let bytes = TessResultIteratorGetUTF8Text(results, RIL_WORD) else { continue }
            defer { TessDeleteText(bytes) }
            let text = String(cString: bytes)
            guard let box = Self.box(place, RIL_WORD), !text.allSatisfy(\.isWhitespace) else { continue }
            let confidence = min(100, max(0, Double(TessResultIteratorConfidence(results, RIL_WORD))))
            let last = blocks.count - 1
            blocks[last].lines[blocks[last].lines.count - 1].words.append(Word(text, box, confidence: confidence))
        } while TessResultIteratorNext(results, RIL_WORD) != 0
        for block in blocks.indices { blocks[block].lines.removeAll { $0.words.isEmpty } }
        return (blocks.filter { !$0.lines.isEmpty }, slopes)
    }

    private static func box(_ place: OpaquePointer?, _ level: TessPageIteratorLevel) -> Pages.Box? {
        var (left, top, right, bottom): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
        guard TessPageIteratorBoundingBox(place, level, &left, &top, &right, &bottom) != 0 else { return nil }
        return Pages.Box(Double(left), Double(top), Double(max(left, right)), Double(max(top, bottom)))
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
