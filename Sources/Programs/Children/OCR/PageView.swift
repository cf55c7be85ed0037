import CTesseract
import Pages

/// A page as it is shown, and what must be done to it so that its lines are upright, level, and dark on light.
struct PageView {
    let dpi: Double
    let rotation: Int
    let skew: Double
    /// How it may have to be turned further, what is likely first; none if the page is known to lie as it does.
    let turns: [Int]
    /// The likely one of them, where the shapes of its letters say one.
    let guess: Int?
    /// A larger picture has pixels enough, whatever its resolution is said to be.
    private static let mostToEnlarge = 3_000_000

    /// The scale at which the page is read first.
    let scale: Double
    let hasDarkAreas: Bool
    let width: Int
    let height: Int
    /// nil: the smaller picture is as large.
    private let shown: Picture?
    private let tones: Tones
    private let fields: [Pages.Box]
    private let small: (scale: Double, picture: Picture)

    /// A page that is not looked at is as it should be.
    init(_ page: ScannedPage, orientation: Orientation) throws(DocumentRefusal) {
        let (shown, dpi) = (try page.take(), page.dpi)
        self.dpi = dpi
        (width, height) = (shown.width, shown.height)
        let finds = page.looks && min(shown.width, shown.height) >= 200
        // Which way it lies, and how its lines do, is seen in a smaller picture as well.
        let least = finds ? Gate.leastScale(dpi: dpi) : 1
        guard let seen = shown.scaled(by: least) else {
            throw DocumentRefusal(.memory, "no memory for a smaller picture")
        }
        tones = finds ? Tones(seen, dpi: dpi * least) : Tones()
        guard let small = Self.even(seen, tones) else {
            throw DocumentRefusal(.memory, "no memory for an evenly lit picture")
        }
        let lies = finds ? orientation.find(small, dpi: dpi * least) : Orientation.Found(isSure: true)
        rotation = lies.degrees
        guess = lies.guess
        let likely = lies.guess.map { [$0] } ?? []
        turns = lies.isSure ? [] : likely + [180, 90, 270].filter { !likely.contains($0) }
        guard let upright = small.turned(clockwise: rotation) else {
            throw DocumentRefusal(.memory, "no memory to turn the page")
        }
        let areas = upright.darkAreas(dpi: dpi * least)
        hasDarkAreas = areas != nil
        fields = finds ? areas.map { upright.darkFields(from: $0, dpi: dpi * least) } ?? [] : []
        guard let plain = upright.inverted(in: fields) else {
            throw DocumentRefusal(.memory, "no memory for the page's dark fields")
        }
        skew = finds ? plain.skew : 0
        let wanted = Gate.scale(dpi: dpi, letterHeight: plain.letterHeight(dpi: dpi * least).map { $0 / least })
        scale = wanted > 1 && (!finds || width * height > Self.mostToEnlarge) ? 1 : wanted
        self.shown = least == 1 && scale <= 1 ? nil : shown
        self.small = (least, plain)
    }

    /// The same page, turned further: it lies in another way than was found.
    func turned(by degrees: Int) throws(DocumentRefusal) -> PageView {
        guard let picture = small.picture.turned(clockwise: degrees) else {
            throw DocumentRefusal(.memory, "no memory to turn the page")
        }
        return PageView(self, by: degrees, picture)
    }

    private init(_ view: PageView, by degrees: Int, _ picture: Picture) {
        (dpi, width, height, scale) = (view.dpi, view.width, view.height, view.scale)
        (shown, tones, hasDarkAreas) = (view.shown, view.tones, view.hasDarkAreas)
        rotation = (view.rotation + degrees) % 360
        skew = picture.skew
        (turns, guess) = ([], nil)
        fields = view.fields.map { field in
            (0..<degrees / 90).reduce(field) { box, _ in
                Pages.Box(1 - box.bottom, box.left, 1 - box.top, box.right)
            }
        }
        small = (view.small.scale, picture)
    }

    private static func even(_ picture: Picture, _ tones: Tones) -> Picture? {
        let light = tones.isInverted ? picture.inverted : picture
        return tones.isUneven ? light.flatMap { $0.evenlyLit ?? $0 } : light
    }

    /// The page for the engine, level.
    func picture(_ scale: Double) -> Picture? {
        let plain =
            scale == small.scale
            ? small.picture
            : shown?.scaled(by: scale).flatMap { Self.even($0, tones) }?.turned(clockwise: rotation)?
                .inverted(in: fields)
        return skew == 0 ? plain : plain.flatMap { $0.straightened(by: skew) ?? $0 }
    }

    /// The size of the page turned upright.
    var size: (width: Double, height: Double) {
        rotation % 180 == 0 ? (Double(width), Double(height)) : (Double(height), Double(width))
    }

    /// Where a place of a picture is on the page: a turned picture has grown on all sides.
    func place(_ box: Pages.Box, in picture: Picture, scale: Double) -> Pages.Box {
        let right = skew == 0 ? 0 : ((Double(picture.width) / scale - size.width) / 2)
        let down = skew == 0 ? 0 : ((Double(picture.height) / scale - size.height) / 2)
        let box = box.scaled(by: 1 / scale)
        return Pages.Box(box.left - right, box.top - down, box.right - right, box.bottom - down)
    }
}
