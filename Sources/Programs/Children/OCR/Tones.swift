import CTesseract
import Glibc
import Pages

/// How dark and light lie on a page, from a few numbers for each small square of it.
struct Tones {
    /// Most of its text is light on dark.
    var isInverted = false
    /// The paper is much darker in one place than in another.
    var isUneven = false

    init() {}

    init(_ picture: Picture, dpi: Double) {
        let side = Int32(max(8, dpi / 8))
        guard let darkest = Picture(pixScaleGrayMinMax(picture.pix, side, side, Int32(L_CHOOSE_MIN))),
            let lightest = Picture(pixScaleGrayMinMax(picture.pix, side, side, Int32(L_CHOOSE_MAX))),
            let mean = Picture(pixScaleAreaMap(picture.pix, 1 / Float(side), 1 / Float(side)))
        else { return }
        var (light, dark) = (0, 0)
        var papers: [UInt32] = []
        for y in 0..<min(darkest.height, mean.height) {
            for x in 0..<min(darkest.width, mean.width) {
                let (low, high, middle) = (darkest[x, y], lightest[x, y], mean[x, y])
                // Squares of bare paper, or of a bare table around it, say nothing of text.
                guard high > low + 50 else { continue }
                if 2 * middle < low + high { dark += 1 } else { light += 1 }
                papers.append(high)
            }
        }
        guard papers.count >= 60 else { return }
        papers.sort()
        isInverted = dark > 3 * light
        isUneven = papers[papers.count / 10] * 100 < papers[papers.count * 9 / 10] * 72
    }
}

extension Picture {
    subscript(_ x: Int, _ y: Int) -> UInt32 {
        var value: UInt32 = 0
        pixGetPixel(pix, Int32(x), Int32(y), &value)
        return value
    }

    var inverted: Picture? { Picture(pixInvert(nil, pix)) }

    /// With the same paper everywhere.
    var evenlyLit: Picture? { Picture(pixBackgroundNormSimple(pix, nil, nil)) }

    /// The dark fields that hold light text, as parts of the page's width and height. `seeds` lie inside of them.
    func darkFields(from seeds: Picture, dpi: Double) -> [Pages.Box] {
        guard let binary, let fields = Picture(pixSeedfillBinary(nil, seeds.pix, binary.pix, 8)),
            let boxes = pixConnCompBB(fields.pix, 8)
        else { return [] }
        var handle: UnsafeMutablePointer<Boxa>? = boxes
        defer { boxaDestroy(&handle) }
        var found: [Pages.Box] = []
        for index in 0..<boxaGetCount(boxes) {
            var (left, top, width, height): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
            boxaGetBoxGeometry(boxes, index, &left, &top, &width, &height)
            guard Double(height) > dpi / 8, Double(width) > dpi / 3,
                let box = boxCreate(left, top, width, height)
            else { continue }
            var used: UnsafeMutablePointer<CTesseract.Box>? = box
            defer { boxDestroy(&used) }
            var count: Int32 = 0
            guard pixCountPixelsInRect(fields.pix, box, &count, nil) == 0 else { continue }
            let share = Double(count) / (Double(width) * Double(height))
            guard share > 0.55, share < 0.995 else { continue }
            found.append(
                Pages.Box(
                    Double(left) / Double(self.width), Double(top) / Double(self.height),
                    Double(left + width) / Double(self.width), Double(top + height) / Double(self.height)))
        }
        return found
    }

    /// Light and dark exchanged in these parts of the page.
    func inverted(in fields: [Pages.Box]) -> Picture? {
        guard !fields.isEmpty else { return self }
        guard let copy = Picture(pixCopy(nil, pix)) else { return nil }
        for field in fields {
            let (left, top) = (Int32(field.left * Double(width)), Int32(field.top * Double(height)))
            let (right, bottom) = (Int32(field.right * Double(width)), Int32(field.bottom * Double(height)))
            let invert: Int32 = 0x0a  // PIX_NOT(PIX_DST), a macro that Swift does not see
            pixRasterop(copy.pix, left, top, right - left, bottom - top, invert, nil, 0, 0)
        }
        return copy
    }
}
