import CTesseract
import Glibc
import Pages

/// How a picture is prepared before it is read.
enum Preparation: String {
    case plain, smoothed, cleaned
}

/// A page to be read, as it came.
final class ScannedPage {
    private var picture: Picture?
    let width: Int
    let height: Int
    let dpi: Double
    /// Of its paper, as `Gate` measures it.
    let noise: Double
    let isSpeckled: Bool
    /// Which side is up is to be found, and what else there is to know before it is read.
    let looks: Bool

    init(_ picture: Picture, dpi: Double, noise: Double, isSpeckled: Bool, looks: Bool) {
        self.picture = picture
        (width, height, self.dpi, self.noise) = (picture.width, picture.height, dpi, noise)
        (self.isSpeckled, self.looks) = (isSpeckled, looks)
    }

    /// Its picture, which is not kept here: a large one must be gone when it is not needed any more.
    func take() throws(DocumentRefusal) -> Picture {
        defer { picture = nil }
        guard let picture else { throw DocumentRefusal(.internal, "the page's picture was taken before") }
        return picture
    }
}

/// A picture of leptonica's, freed with its last use.
final class Picture {
    let pix: UnsafeMutablePointer<Pix>

    init?(_ pix: UnsafeMutablePointer<Pix>?) {
        guard let pix else { return nil }
        self.pix = pix
    }

    deinit {
        var handle: UnsafeMutablePointer<Pix>? = pix
        pixDestroy(&handle)
    }

    var width: Int { Int(pixGetWidth(pix)) }
    var height: Int { Int(pixGetHeight(pix)) }

    convenience init?(_ raster: Raster) {
        guard let pix = pixCreateNoInit(Int32(raster.width), Int32(raster.height), 8), let data = pixGetData(pix) else {
            return nil
        }
        let rowBytes = Int(pixGetWpl(pix)) * 4
        raster.pixels.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            for row in 0..<raster.height {
                memcpy(
                    UnsafeMutableRawPointer(data) + row * rowBytes, start + row * raster.width, raster.width)
            }
        }
        pixEndianByteSwap(pix)
        self.init(pix)
    }

    func turned(clockwise degrees: Int) -> Picture? {
        degrees == 0 ? self : Picture(pixRotateOrth(pix, Int32(degrees / 90)))
    }

    /// Its middle, where the text is if there is any.
    func middle(_ share: Double) -> Picture? {
        let (w, h) = (Int32(Double(width) * share), Int32(Double(height) * share))
        guard w > 0, h > 0, let box = boxCreate((Int32(width) - w) / 2, (Int32(height) - h) / 2, w, h) else {
            return nil
        }
        var handle: UnsafeMutablePointer<CTesseract.Box>? = box
        defer { boxDestroy(&handle) }
        return Picture(pixClipRectangle(pix, box, nil))
    }

    /// A part of it, with some paper around.
    func part(_ box: Pages.Box) -> Picture? {
        let (left, top) = (max(0, Int32(box.left) - 12), max(0, Int32(box.top) - 12))
        let right = min(Int32(width), Int32(box.right) + 12)
        let bottom = min(Int32(height), Int32(box.bottom) + 12)
        guard right > left, bottom > top, let box = boxCreate(left, top, right - left, bottom - top) else { return nil }
        var handle: UnsafeMutablePointer<CTesseract.Box>? = box
        defer { boxDestroy(&handle) }
        return Picture(pixClipRectangle(pix, box, nil))
    }

    /// In black and white, judged by the surroundings of each pixel.
    private(set) lazy var binary: Picture? = {
        var result: UnsafeMutablePointer<Pix>?
        let size = max(64, Int32(min(width, height)))
        guard pixOtsuAdaptiveThreshold(pix, size, size, 0, 0, 0.1, nil, &result) == 0 else { return nil }
        return Picture(result)
    }()

    /// The height of a letter in pixels: the median height of connected shapes, without specks and pictures. nil when there are few.
    func letterHeight(dpi: Double) -> Double? {
        guard let binary, let boxes = pixConnCompBB(binary.pix, 8) else { return nil }
        var handle: UnsafeMutablePointer<Boxa>? = boxes
        defer { boxaDestroy(&handle) }
        var heights: [Int32] = []
        for index in 0..<boxaGetCount(boxes) {
            var height: Int32 = 0
            boxaGetBoxGeometry(boxes, index, nil, nil, nil, &height)
            if Double(height) > dpi / 50, Double(height) < dpi / 3 { heights.append(height) }
        }
        guard heights.count >= 40 else { return nil }
        heights.sort()
        return Double(heights[heights.count / 2])
    }

    /// What is as dark as print, and thicker than the strokes of letters; nil if there is nothing.
    func darkAreas(dpi: Double) -> Picture? {
        let size = Int32(max(4, dpi / 20))
        guard let binary, let areas = Picture(pixOpenCompBrick(nil, binary.pix, size, size)) else { return nil }
        var isEmpty: Int32 = 0
        return pixZero(areas.pix, &isEmpty) != 0 || isEmpty == 0 ? areas : nil
    }

    func scaled(by factor: Double) -> Picture? {
        factor == 1 ? self : Picture(pixScale(pix, Float(factor), Float(factor)))
    }

    /// Without the rules of a table or a form: grey and thin, they are read as letters. Nil if there are none.
    func withoutRules(dpi: Double) -> Picture? {
        guard let rules = rules(dpi: dpi), let copy = Picture(pixCopy(nil, pix)) else { return nil }
        let paper = UInt32(paperLevel)
        return pixPaintThroughMask(copy.pix, rules.pix, 0, 0, paper) == 0 ? copy : nil
    }

    private var paperLevel: Int {
        guard let counts = pixGetGrayHistogram(pix, 8) else { return 255 }
        var handle: UnsafeMutablePointer<Numa>? = counts
        defer { numaDestroy(&handle) }
        var (best, most): (Int, Float) = (255, 0)
        for level in 128..<256 {
            var count: Float = 0
            numaGetFValue(counts, Int32(level), &count)
            if count > most { (best, most) = (level, count) }
        }
        return best
    }

    private func rules(dpi: Double) -> Picture? {
        let length = Int32(max(24, dpi * 0.35))
        guard let dark = Picture(pixThresholdToBinary(pix, Int32(max(40, paperLevel - 35)))),
            let runs = Picture(pixOpenCompBrick(nil, dark.pix, length, 1)),  // in two steps, a fifth of the work
            // Longer than a word whose letters touch.
            let long = Picture(
                pixSelectBySize(
                    runs.pix, Int32(dpi * 1.5), 0, 8, Int32(L_SELECT_WIDTH), Int32(L_SELECT_IF_GTE), nil)),
            // Paper in a shadow, and fields that are dark, have thin strips between their lines of text, but are high as a whole.
            let low = Picture(
                pixSelectBySize(
                    long.pix, 0, Int32(max(12, dpi / 8)), 8, Int32(L_SELECT_HEIGHT), Int32(L_SELECT_IF_LTE), nil))
        else { return nil }
        // A thick shape is no ruled line but a picture, or a heading on a bar.
        let thick = Int32(max(6, dpi / 25))
        guard let bars = Picture(pixOpenCompBrick(nil, low.pix, length, thick)),
            let thin = Picture(pixSubtract(nil, low.pix, bars.pix))
        else { return nil }
        var count: Int32 = 0
        pixCountPixels(thin.pix, &count, nil)
        // A rule or two are no table, and do no harm.
        guard Double(count) > 8 * dpi else { return nil }
        return Picture(pixDilateBrick(nil, thin.pix, 3, 5))
    }

    /// How far it must be turned clockwise to level its lines, in degrees; 0 if that is unknown, or not worthwhile.
    var skew: Double {
        guard let binary else { return 0 }
        var (angle, confidence): (Float, Float) = (0, 0)
        let isNear = pixFindSkew(binary.pix, &angle, &confidence) == 0 && confidence >= 3 && abs(angle) <= 6
        // Near the end of what that looks at, or unsure of it, it may have missed the true angle.
        if !isNear || confidence < 8 || abs(angle) > 4 {
            var (wide, certainty): (Float, Float) = (0, 0)
            let isFound = pixFindSkewSweepAndSearch(binary.pix, &wide, &certainty, 4, 2, 18, 1, 0.01) == 0
            if isFound, certainty >= 3, abs(wide) <= 17, !isNear || certainty > confidence {
                (angle, confidence) = (wide, certainty)
            } else if !isNear {
                return 0
            }
        }
        return abs(angle) >= 0.2 ? Double(angle) : 0
    }

    /// Turned about its middle, and large enough to hold all of it.
    func straightened(by degrees: Double) -> Picture? {
        Picture(
            pixRotate(
                pix, Float(degrees * .pi / 180), Int32(L_ROTATE_AREA_MAP), Int32(L_BRING_IN_WHITE), Int32(width),
                Int32(height)))
    }

    /// The picture for the engine. Grain is best smoothed, which keeps more of small letters than removing specks does.
    func prepared(_ how: Preparation, dpi: Double) -> Picture? {
        switch how {
        case .plain: withoutRules(dpi: dpi) ?? self
        case .smoothed: smoothed()
        case .cleaned: Picture(pixMedianFilter(pix, 3, 3))
        }
    }

    /// Band by band: between its two steps the library takes four bytes a pixel.
    private func smoothed() -> Picture? {
        var (across, down): (UnsafeMutablePointer<L_Kernel>?, UnsafeMutablePointer<L_Kernel>?)
        guard makeGaussianKernelSep(2, 2, 0.6, 1, &across, &down) == 0 else { return nil }
        defer {
            kernelDestroy(&across)
            kernelDestroy(&down)
        }
        let (height, rows, reach) = (Int32(height), Int32(512), Int32(2))
        guard height > rows * 2 else { return Picture(pixConvolveSep(pix, across, down, 8, 1)) }
        guard let whole = Picture(pixCreateTemplate(pix)) else { return nil }
        for top in stride(from: 0, to: height, by: Int(rows)) {
            // With the rows around it, that its own become the same as in the whole.
            let (first, last) = (max(0, top - reach), min(height, top + rows + reach))
            guard let band = band(first..<last), let smooth = Picture(pixConvolveSep(band.pix, across, down, 8, 1))
            else { return nil }
            pixRasterop(
                whole.pix, 0, top, Int32(width), min(rows, height - top), Int32(PIX_SRC), smooth.pix, 0, top - first)
        }
        return whole
    }

    private func band(_ rows: Range<Int32>) -> Picture? {
        guard let box = boxCreate(0, rows.lowerBound, Int32(width), Int32(rows.count)) else { return nil }
        var handle: UnsafeMutablePointer<CTesseract.Box>? = box
        defer { boxDestroy(&handle) }
        return Picture(pixClipRectangle(pix, box, nil))
    }
}
