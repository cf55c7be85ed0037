import CTesseract
import ChildProtocol
import Glibc
import Pages

/// Reads pages, and finds what each of them needs.
final class TesseractReader {
    private let engines: Engines
    private let orientation: Orientation
    private let finds: LanguageFinder?
    /// The languages of the next page, until it is known to be in others.
    private var languages: String

    /// - Parameter languages: names of models with + between them; or auto: they are found.
    init(models: String, languages: String) throws(DocumentRefusal) {
        engines = Engines(models: models)
        orientation = Orientation(models: models)
        finds = languages == "auto" ? LanguageFinder(engines) : nil
        self.languages = languages == "auto" ? LanguageFinder.first(engines) : languages
        _ = try engines.api(self.languages)
    }

    func read(_ page: ScannedPage) throws(DocumentRefusal) -> PageText {
        // The engine fails on a picture in which no letter has room.
        guard min(page.width, page.height) >= 8 else {
            return PageText(
                origin: .read, width: Double(page.width), height: Double(page.height), dpi: page.dpi, blocks: [])
        }
        var view = try PageView(page, orientation: orientation)
        let first: Preparation =
            page.isSpeckled ? .cleaned : Gate.isNoisy(page.noise) ? .smoothed : .plain
        var (best, found) = try read(view, first)
        if let degrees = try turn(best, view, in: found?.languages.last) {
            view = try view.turned(by: degrees)
            (best, found) = try read(view, first)
        } else if let guess = view.guess, best.reading.confidence < 50 {
            // In a script whose model is not yet known nothing is read better.
            let other = try view.turned(by: guess)
            let turned = try read(other, first)
            if turned.best.reading.merit > best.reading.merit {
                (view, best, found) = (other, turned.best, turned.found)
            }
        }
        if let next = found?.next { languages = next }
        var curves: Curves?
        if page.looks, best.reading.confidence < 96, LineShape(best.blocks.flatMap(\.lines)).isCurved,
            let found = Curves(best.picture), let flat = found.flattened(best.picture)
        {
            let other = try attempt(view, flat, scale: view.scale, first)
            if other.reading.merit > best.reading.merit { (best, curves) = (other, found) }
        }
        if page.looks, Gate.mayLackColumn(best.reading, inches: Double(best.picture.width) / best.dpi) {
            let other = try attempt(
                view, best.picture, scale: best.scale, best.preparation, isOneBlock: true)
            if other.reading.merit > best.reading.merit { best = other }
        }
        if Gate.wantsAnother(best.reading), first != .cleaned {
            let other = try attempt(view, view.picture(1), scale: 1, .cleaned)
            if other.reading.merit > best.reading.merit { (best, curves) = (other, nil) }
        }
        let models = found?.languages ?? languages.split(separator: "+").map(String.init)
        if models.count > 1, let model = models.first(where: LanguageEvidence.runsLeft) {
            best.doubtLatin(with: try engines.api(model))
        }
        engines.clear()
        var text = text(of: best, view, curves)
        text.languages = found?.languages
        text.missing = found.flatMap { $0.missing.isEmpty ? nil : $0.missing }
        return text
    }

    /// The first reading, in the languages of the page.
    private func read(
        _ view: PageView, _ preparation: Preparation
    ) throws(DocumentRefusal) -> (best: Attempt, found: LanguageFinder.Found?) {
        var best = try attempt(view, view.picture(view.scale), scale: view.scale, preparation)
        let picture = best.picture
        let found = try finds?.improve(&best, languages) { (languages) throws(DocumentRefusal) in
            try self.attempt(view, picture, scale: view.scale, preparation, in: languages)
        }
        return (best, found)
    }

    /// How far the page must be turned, where its words are no words or stand on their side, and a part of it is read better that way.
    private func turn(_ best: Attempt, _ view: PageView, in languages: String?) throws(DocumentRefusal) -> Int? {
        let words = best.blocks.flatMap(\.lines).flatMap(\.words)
        guard !view.turns.isEmpty, Gate.mayLieOtherwise(words, best.reading) else { return nil }
        let box = words.dropFirst().reduce(words[0].box) { $0.union($1.box) }
        let most = 0.3 * Double(best.picture.width * best.picture.height)
        let share = min(1, (most / max(1, box.width * box.height)).squareRoot())
        let (across, down) = (box.width * (1 - share) / 2, box.height * (1 - share) / 2)
        let middle = Pages.Box(box.left + across, box.top + down, box.right - across, box.bottom - down)
        guard let part = best.picture.part(middle) else { return nil }
        for degrees in view.turns {
            let other = try attempt(
                view, part.turned(clockwise: degrees), scale: best.scale, best.preparation, in: languages)
            let seen = other.blocks.flatMap(\.lines).flatMap(\.words)
            if Gate.lies(as: seen, other.reading, notAs: words, best.reading) { return degrees }
        }
        return nil
    }

    private func attempt(
        _ view: PageView, _ picture: Picture?, scale: Double, _ preparation: Preparation, in other: String? = nil,
        isOneBlock: Bool = false
    ) throws(DocumentRefusal) -> Attempt {
        // Lines that the engine is unsure of are read once more as light on dark, which nothing is where nothing is dark.
        try Attempt(
            picture, dpi: view.dpi * scale, scale: scale, preparation, api: try engines.api(other ?? languages),
            invertThreshold: view.hasDarkAreas ? "0.7" : "0", isOneBlock: isOneBlock)
    }

    /// The reading with its places on the page turned upright and level.
    private func text(of attempt: Attempt, _ view: PageView, _ curves: Curves?) -> PageText {
        var blocks = ReadingOrder.arranged(attempt.blocks, skew: attempt.slope)
        for block in blocks.indices {
            for line in blocks[block].lines.indices {
                let old = blocks[block].lines[line]
                for (word, box) in old.words.map(\.box).enumerated() {
                    let box = curves?.original(box) ?? box
                    blocks[block].lines[line].words[word].box = view.place(
                        box, in: attempt.picture, scale: attempt.scale)
                }
                // The words of a curved line do not lie on one straight line.
                blocks[block].lines[line].baseline =
                    curves != nil
                    ? []
                    : old.baseline.map {
                        view.place(Box(0, $0, 0, $0), in: attempt.picture, scale: attempt.scale).top
                    }
            }
        }
        var text = PageText(
            origin: .read, width: view.size.width, height: view.size.height, dpi: view.dpi, blocks: blocks)
        text.rotation = view.rotation
        text.skew = view.skew
        text.preparation = (curves == nil ? "" : "flattened ") + attempt.preparation.rawValue
        text.confidence = attempt.reading.confidence
        // Rules of a flattened picture lie where its words lay before, which is not known for lines.
        if curves == nil, TableFinder.mayHaveTables(text) {
            text.rulings = attempt.picture.rulings(dpi: attempt.dpi).map {
                Rulings(
                    across: $0.across.map { view.place($0, in: attempt.picture, scale: attempt.scale) },
                    down: $0.down.map { view.place($0, in: attempt.picture, scale: attempt.scale) })
            }
        }
        return text
    }
}
