import CTesseract
import Glibc
import Pages

/// What an engine has read.
enum Recognized {
    /// The area that the engine took for ink, and the share of it that is in no word.
    static func inkOutside(_ api: OpaquePointer, _ words: [Word]) -> Double {
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

    static func words(_ api: OpaquePointer) -> (blocks: [Block], slopes: [Double]) {
        guard let results = TessBaseAPIGetIterator(api) else { return ([], []) }
        defer { TessResultIteratorDelete(results) }
        let place = TessResultIteratorGetPageIteratorConst(results)
        var (blocks, slopes): ([Block], [Double]) = ([], [])
        // A new line shows by its box: if it were queried directly, the engine would copy its iterator and walk the line.
        var around: (block: Pages.Box?, line: Pages.Box?) = (nil, nil)
        repeat {
            let here = (block: box(place, RIL_BLOCK), line: box(place, RIL_TEXTLINE))
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
            // An engine of two scripts puts marks of direction around the words of one.
            let scalars = String(cString: bytes).unicodeScalars.filter { !TextDirections.isMark($0) }
            let text = String(String.UnicodeScalarView(scalars))
            guard let box = box(place, RIL_WORD), !text.allSatisfy(\.isWhitespace) else { continue }
            let confidence = min(100, max(0, Double(TessResultIteratorConfidence(results, RIL_WORD))))
            let last = blocks.count - 1
            blocks[last].lines[blocks[last].lines.count - 1].words.append(Word(text, box, confidence: confidence))
        } while TessResultIteratorNext(results, RIL_WORD) != 0
        for block in blocks.indices {
            blocks[block].lines.removeAll { $0.words.isEmpty }
            blocks[block].lines = blocks[block].lines.map(\.parted)
        }
        return (blocks.filter { !$0.lines.isEmpty }, slopes)
    }

    private static func box(_ place: OpaquePointer?, _ level: TessPageIteratorLevel) -> Pages.Box? {
        var (left, top, right, bottom): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
        guard TessPageIteratorBoundingBox(place, level, &left, &top, &right, &bottom) != 0 else { return nil }
        return Pages.Box(Double(left), Double(top), Double(max(left, right)), Double(max(top, bottom)))
    }
}
