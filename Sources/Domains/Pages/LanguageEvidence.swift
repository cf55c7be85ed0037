/// Which language a text is in, by the short words that every text is full of, and which models read it.
package enum LanguageEvidence {
    /// Words without letters that an engine for another language would mistake, and that no other of these languages has, or few.
    private static let words: [String: Set<String>] = [
        "eng": [
            "the", "of", "and", "to", "that", "it", "with", "are", "this", "have", "from", "which", "be", "was", "were",
            "has", "his", "her", "they", "will", "been", "would",
        ],
        "deu": [
            "der", "und", "das", "ist", "nicht", "mit", "von", "zu", "den", "ein", "eine", "auf", "dem", "im", "sich",
            "wir", "sie", "werden", "bei", "aus", "einen", "einem", "einer", "wird", "dass", "nach", "zum", "zur",
            "vor", "wie", "oder", "aber", "alle", "bis", "haben", "durch", "bitte", "ihnen", "ihre", "ich", "er",
        ],
        "fra": [
            "le", "les", "des", "et", "est", "une", "du", "dans", "pour", "qui", "sur", "par", "pas", "plus", "ont",
            "sont", "au", "aux", "avec", "nous", "vous", "il", "elle", "ses", "cette", "ce", "leur", "mais", "ou",
            "dont", "sans", "ne", "sa", "son", "la",
        ],
        "spa": [
            "el", "los", "las", "y", "que", "por", "con", "para", "del", "se", "su", "al", "lo", "como", "pero", "sus",
            "este", "esta", "son", "muy", "sin", "sobre", "hay", "ha", "la",
        ],
        "ita": [
            "il", "di", "che", "per", "non", "una", "del", "della", "sono", "gli", "con", "alla", "nel", "dei", "delle",
            "anche", "lo", "si", "ha", "da", "al", "questo", "questa", "la",
        ],
        "por": [
            "os", "do", "da", "em", "um", "uma", "para", "com", "dos", "das", "se", "mais", "por", "que", "foi", "ao",
            "na", "sua", "seu", "ou", "pela", "pelo",
        ],
        "nld": [
            "het", "een", "van", "dat", "op", "te", "voor", "niet", "zijn", "aan", "met", "ook", "maar", "bij", "naar",
            "uit", "wordt", "werd", "deze", "hij", "wij", "heeft", "worden", "de",
        ],
        "pol": [
            "nie", "na", "do", "jest", "oraz", "od", "po", "za", "przez", "dla", "jak", "ale", "tym", "ich", "tego",
            "przy", "jego",
        ],
        "swe": [
            "och", "att", "det", "som", "en", "av", "med", "till", "den", "inte", "ett", "om", "har", "jag", "kan",
        ],
        // Also as a model for Arabic writes those of Persian and Urdu.
        "ara": [
            "في", "فى", "على", "إلى", "الى", "أن", "التي", "الذي", "هذا", "هذه", "عن", "مع", "كان", "ذلك", "بين", "كل",
            "قد", "هي", "لم", "بعد", "عند", "أو", "ثم",
        ],
        "fas": [
            "از", "به", "که", "كه", "را", "این", "اين", "است", "با", "برای", "براى", "می", "مى", "آن", "بود", "شد",
            "یک", "يك", "هم", "تا", "شده", "شود", "خود", "باید", "بايد",
        ],
        "urd": [
            "کے", "كے", "کی", "كى", "میں", "ميں", "ہے", "هے", "اور", "سے", "کو", "كو", "نے", "پر", "ہیں", "یہ", "کا",
            "كا", "اس", "ایک",
        ],
    ]

    /// How many of the words speak for a language.
    private static func votes(_ text: String) -> (votes: [String: Int], words: Int) {
        var (votes, count): ([String: Int], Int) = ([:], 0)
        for word in text.split(whereSeparator: { !$0.isLetter }) {
            count += 1
            guard word.utf8.count <= 8 else { continue }
            let lower = word.lowercased()
            for (language, known) in words where known.contains(lower) { votes[language, default: 0] += 1 }
        }
        return (votes, count)
    }

    /// The language of a text in Latin or Arabic letters; nil when too few words say so.
    package static func language(of text: String) -> String? {
        let (votes, count) = votes(text)
        let ranked = votes.sorted { $0.value != $1.value ? $0.value > $1.value : $0.key < $1.key }
        guard let first = ranked.first, first.value >= 4, first.value * 14 >= count else { return nil }
        // English is what a page is read in first, so another language must be clearly ahead of it.
        if first.key != "eng", first.value < 2 * (votes["eng"] ?? 0) { return nil }
        if ranked.count > 1, first.value * 4 < ranked[1].value * 5 { return nil }
        return first.key
    }

    /// The models for a script that the engine names, the best first.
    package static func models(forScript script: String) -> [String] {
        switch script {
        case "Fraktur": ["frk", "Fraktur", "script/Fraktur"]
        case "Cyrillic": ["rus", "ukr", "bul", "bel", "srp", "script/Cyrillic"]
        case "Greek": ["ell", "script/Greek"]
        case "Arabic": ["ara", "fas", "urd", "script/Arabic"]
        case "Hebrew": ["heb", "script/Hebrew"]
        case "Han": ["chi_sim", "chi_tra", "script/HanS", "script/HanT"]
        case "Japanese", "Hiragana", "Katakana": ["jpn", "script/Japanese"]
        case "Korean", "Hangul": ["kor", "script/Hangul"]
        case "Thai": ["tha", "script/Thai"]
        case "Devanagari": ["hin", "mar", "nep", "script/Devanagari"]
        case "Bengali": ["ben", "script/Bengali"]
        case "Tamil": ["tam", "script/Tamil"]
        case "Telugu": ["tel", "script/Telugu"]
        case "Georgian": ["kat", "script/Georgian"]
        case "Armenian": ["hye", "script/Armenian"]
        default: []
        }
    }

    /// Whether a model reads a script that is written to the left.
    package static func runsLeft(_ model: String) -> Bool {
        ["Arabic", "Hebrew"].contains { models(forScript: $0).contains(model) }
    }

    /// Lines one below the other that the engine could not read, as the places of a block's lines: another script may stand there.
    package static func doubtful(_ lines: [TextLine]) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        for (index, line) in lines.enumerated() where isDoubtful(line) {
            if let last = runs.last, index - last.upperBound <= 1 {
                runs[runs.count - 1] = last.lowerBound..<index + 1
            } else {
                runs.append(index..<index + 1)
            }
        }
        return runs.filter { run in lines[run].reduce(0) { $0 + letters($1) } >= 20 }
    }

    /// Lines one below the other with words that run to the left.
    package static func runningLeft(_ lines: [TextLine]) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        for index in lines.indices where TextDirections.mayRunLeft(lines[index].text) {
            if let last = runs.last, last.upperBound == index {
                runs[runs.count - 1] = last.lowerBound..<index + 1
            } else {
                runs.append(index..<index + 1)
            }
        }
        return runs
    }

    private static func letters(_ line: TextLine) -> Int { line.words.reduce(0) { $0 + $1.text.count } }

    private static func isDoubtful(_ line: TextLine) -> Bool {
        let letters = letters(line)
        guard letters > 0 else { return false }
        return line.words.reduce(0) { $0 + $1.confidence * Double($1.text.count) } < 68 * Double(letters)
    }
}
