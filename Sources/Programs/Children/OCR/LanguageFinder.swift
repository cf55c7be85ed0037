import CTesseract
import Pages

/// Finds the languages of pages where none were given: by the short words of a first reading, and by the script of what that reading
/// did not understand. A page in the language that was tried first is not read again.
struct LanguageFinder {
    private let engines: Engines

    init(_ engines: Engines) {
        self.engines = engines
    }

    struct Found {
        /// The models the page was read with.
        var languages: [String]
        /// Models that it needs, and that are not here.
        var missing: [String] = []
        /// For the next page.
        var next: String?
    }

    /// What a page is tried with, until another one was found.
    static func first(_ engines: Engines) -> String {
        ["eng", "deu", "fra", "spa", "ita", "por", "nld", "rus"].first(where: engines.has) ?? "eng"
    }

    /// - Parameter read: reads the page in another language.
    func improve(
        _ best: inout Attempt, _ languages: String, read: (String) throws(DocumentRefusal) -> Attempt
    ) throws(DocumentRefusal) -> Found {
        var found = Found(languages: [languages])
        if let language = LanguageEvidence.language(of: best.text), language != languages {
            guard engines.has(language) else {
                // Better the letters of English than those of a third language.
                found.missing = [language]
                return found
            }
            let other = try read(language)
            if other.reading.merit > 0.97 * best.reading.merit {
                best = other
                found = Found(languages: [language], next: language)
            }
        }
        try addScript(to: &best, &found)
        return found
    }

    /// Lines that were not understood may be in another script than the others.
    private func addScript(to best: inout Attempt, _ found: inout Found) throws(DocumentRefusal) {
        var places: [(block: Int, lines: Range<Int>)] = []
        for (index, block) in best.blocks.enumerated() {
            places += LanguageEvidence.doubtful(block.lines).map { (index, $0) }
        }
        let letters = places.map { place in
            best.blocks[place.block].lines[place.lines].reduce(0) { $0 + $1.text.count }
        }
        guard let largest = letters.indices.max(by: { letters[$0] < letters[$1] }), letters.reduce(0, +) >= 60 else {
            return
        }
        let sample = Block(Array(best.blocks[places[largest].block].lines[places[largest].lines])).box
        guard let script = Script.find(in: best.prepared, sample, dpi: best.dpi, engines) else { return }
        let names = LanguageEvidence.models(forScript: script)
        guard let wanted = names.first else { return }
        guard var model = names.first(where: engines.has) else {
            found.missing.append(wanted)
            return
        }
        // The two models for Fraktur err in different words: of both the engine takes the reading that it is surer of.
        if script == "Fraktur" { model = names.filter(engines.has).prefix(2).joined(separator: "+") }
        // A page is set in it as a whole, also where its lines can be guessed.
        if script == "Fraktur" {
            places = best.blocks.enumerated().map { (block: $0, lines: $1.lines.startIndex..<$1.lines.endIndex) }
        }
        guard best.read(places, with: try engines.api(withLatin(model))) else { return }
        found.languages.append(model)
        try tell(names, model, in: &best, &found)
    }

    /// Lines of these scripts often have a Latin word among the others.
    private func withLatin(_ model: String) -> String {
        ["ara", "heb"].contains(model) && engines.has("eng") ? "\(model)+eng" : model
    }

    /// Languages of one script are told apart by their short words, and not by what an engine is certain of.
    private func tell(
        _ names: [String], _ model: String, in best: inout Attempt, _ found: inout Found
    ) throws(DocumentRefusal) {
        guard let other = LanguageEvidence.language(of: best.text), other != model, names.contains(other) else {
            return
        }
        guard engines.has(other) else {
            found.missing.append(other)
            return
        }
        let places = best.blocks.enumerated().flatMap { index, block in
            LanguageEvidence.runningLeft(block.lines).map { (block: index, lines: $0) }
        }
        if best.read(places, with: try engines.api(withLatin(other)), merit: 0.8) {
            found.languages[found.languages.count - 1] = other
        }
    }
}

/// The script of a part of a picture.
enum Script {
    static func find(in picture: Picture, _ box: Pages.Box, dpi: Double, _ engines: Engines) -> String? {
        guard engines.has("osd"), let part = picture.part(box), let api = TessBaseAPICreate() else { return nil }
        defer { TessBaseAPIDelete(api) }
        guard TessBaseAPIInit2(api, engines.models, "osd", OEM_TESSERACT_ONLY) == 0 else { return nil }
        TessBaseAPISetVariable(api, "debug_file", "/dev/null")
        TessBaseAPISetVariable(api, "min_characters_to_try", "20")
        TessBaseAPISetPageSegMode(api, PSM_OSD_ONLY)
        TessBaseAPISetImage2(api, part.pix)
        TessBaseAPISetSourceResolution(api, Int32(max(70, dpi)))
        var (degrees, sureness): (Int32, Float) = (0, 0)
        var (script, confidence): (UnsafePointer<CChar>?, Float) = (nil, 0)
        guard TessBaseAPIDetectOrientationScript(api, &degrees, &sureness, &script, &confidence) != 0,
            confidence > 0.5, let script
        else { return nil }
        return String(cString: script)
    }
}
