/// Whether a page's own text can be what the page shows. Some programs write text of which only the shapes are right: its characters are
/// numbers of glyphs, or another alphabet's. Such a page is read in its picture.
///
/// A text is believed unless much speaks against it: pages of formulas, numbers, code or a few words are, and so is every script.
package enum TextPlausibility {
    package enum Junk: String, Sendable, CaseIterable {
        case unprintable = "characters that nobody can read"
        case glyphNumbers = "numbers of glyphs"
        case misdecoded = "characters of a wrong encoding"
        case otherLetters = "letters that stand for others"
        case mixedScripts = "letters of several scripts in one word"
        case symbols = "symbols in place of letters"
    }

    /// Whether a text that is not believed counts all the same: it can be read, and of its picture less can, as of code in tiny letters.
    package static func counts(_ junk: Junk, before read: PageText) -> Bool {
        switch junk {
        case .unprintable, .glyphNumbers, .misdecoded: false
        case .otherLetters, .mixedScripts, .symbols: read.wordCount == 0 || read.confidence < 50
        }
    }

    /// nil: it is believed.
    package static func junk(_ text: PageText) -> Junk? { junk(text.words.map(\.text)) }

    package static func junk(_ words: [String]) -> Junk? {
        let counts = Counts(words)
        guard counts.total >= 8 else { return nil }
        if counts.unprintable >= 4, counts.unprintable * 4 >= counts.total { return .unprintable }
        if GlyphNumbers(words).areAll(of: counts.total) { return .glyphNumbers }
        if counts.pairs >= 5, counts.pairs * 50 >= counts.total { return .misdecoded }
        // No language has as many letters with accents: this is Cyrillic or Greek, taken for Latin.
        if counts.accented >= 40, counts.accented * 10 >= counts.letters * 7 { return .misdecoded }
        if counts.longWords >= 20, counts.mixedWords * 5 >= counts.longWords * 2 { return .mixedScripts }
        if counts.total >= 100, counts.symbols * 10 >= (counts.total - counts.leaders) * 7, counts.symbols >= 80 {
            return .symbols
        }
        if counts.latin * 10 >= counts.total * 4, LetterPairs.standForOthers(words) { return .otherLetters }
        return nil
    }

    /// A page whose text is believed but for lines below each other, as of one font whose characters are numbers: what is believed, in its
    /// places on the page as it is shown, and what speaks against the rest. nil: all is, or nothing.
    package static func parted(_ text: PageText) -> (kept: PageText, junk: Junk)? {
        var (kept, found) = (text.asShown, Junk?.none)
        for block in kept.blocks.indices {
            let lines = kept.blocks[block].lines
            var rest: [TextLine] = []
            var run: [TextLine] = []
            func end() {
                let words = run.flatMap(\.words).map(\.text)
                let wrong = words.reduce(0) { $0 + $1.count } >= 40 ? junk(words) : nil
                if let wrong, [.unprintable, .glyphNumbers, .misdecoded].contains(wrong) {
                    found = wrong
                } else {
                    rest += run
                }
                run = []
            }
            for line in lines {
                if isSuspect(line.words.map(\.text)) {
                    run.append(line)
                } else {
                    end()
                    rest.append(line)
                }
            }
            end()
            kept.blocks[block].lines = rest
        }
        kept.blocks.removeAll { $0.lines.isEmpty }
        guard let found, kept.wordCount > 0 else { return nil }
        // It has the words that are not believed, too.
        kept.flow = nil
        return (kept, found)
    }

    private static func isSuspect(_ words: [String]) -> Bool {
        let counts = Counts(words)
        guard counts.total >= 4 else { return false }
        return counts.unprintable * 4 >= counts.total || counts.pairs * 12 >= counts.total
            || GlyphNumbers(words).areAll(of: counts.total)
    }
}

/// What the characters of a text are, without spaces.
private struct Counts {
    private(set) var total = 0
    private(set) var unprintable = 0
    private(set) var letters = 0
    private(set) var latin = 0
    /// Letters of Latin-1 with an accent.
    private(set) var accented = 0
    /// Signs of ASCII that are no letters and no digits.
    private(set) var symbols = 0
    /// Signs that fill or draw lines: a table of contents has many.
    private(set) var leaders = 0
    /// What UTF-8 looks like if its bytes are taken for Latin letters.
    private(set) var pairs = 0
    private(set) var longWords = 0
    private(set) var mixedWords = 0

    init(_ words: [String]) {
        for word in words {
            var last: UInt32 = 0
            var (count, scripts) = (0, Set<Script>())
            for scalar in word.unicodeScalars {
                add(scalar, after: last)
                last = scalar.value
                guard let script = Script(scalar) else { continue }
                count += 1
                scripts.insert(script)
            }
            guard count >= 3, !scripts.contains(.other) else { continue }
            longWords += 1
            if scripts.count > 1 { mixedWords += 1 }
        }
    }

    private mutating func add(_ scalar: Unicode.Scalar, after last: UInt32) {
        total += 1
        switch scalar.value {
        case 0x41...0x5a, 0x61...0x7a:
            letters += 1
            latin += 1
        case 0x2a, 0x2b, 0x2d, 0x2e, 0x3d, 0x5f, 0x7c: leaders += 1
        case 0x21...0x2f, 0x3a...0x40, 0x5b...0x60, 0x7b...0x7e: symbols += 1
        case 0..<0x20, 0x7f...0x9f, 0xfffd, 0xe000...0xf8ff, 0xf0000...0x10ffff:
            // The second byte of a pair may also be a control character.
            if scalar.value >= 0x80, scalar.value <= 0x9f, Self.leads.contains(last) { pairs += 1 }
            unprintable += 1
        case 0xa0...0xbf: if Self.leads.contains(last) { pairs += 1 }
        case 0xc0...0xff:
            letters += 1
            latin += 1
            if scalar.value != 0xd7, scalar.value != 0xf7 { accented += 1 }
        case 0x192, 0x2c6, 0x2dc, 0x152, 0x153, 0x160, 0x161, 0x178, 0x17d, 0x17e, 0x2013...0x203a, 0x20ac, 0x2122:
            // What Windows has in place of control characters.
            if Self.leads.contains(last) { pairs += 1 }
            if scalar.properties.isAlphabetic { letters += 1 }
        case 0x80...:
            switch scalar.properties.generalCategory {
            case .unassigned, .surrogate: unprintable += 1
            case .uppercaseLetter, .lowercaseLetter, .otherLetter, .titlecaseLetter, .modifierLetter: letters += 1
            default: break
            }
        default: break
        }
    }

    /// Ã Â â Ð Ñ Å Ä Î Ï: the first bytes of most letters.
    private static let leads: Set<UInt32> = [0xc3, 0xc2, 0xe2, 0xd0, 0xd1, 0xc5, 0xc4, 0xce, 0xcf]
}

/// Alphabets that no word mixes. Formulas mix Latin and Greek letters, and scripts of Asia stand beside all others.
private enum Script: Hashable {
    case latinOrGreek, cyrillic, hebrew, arabic, other

    init?(_ scalar: Unicode.Scalar) {
        switch scalar.value {
        case 0x41...0x5a, 0x61...0x7a, 0xc0...0x24f, 0x370...0x3ff, 0x1e00...0x1fff: self = .latinOrGreek
        case 0x400...0x52f: self = .cyrillic
        case 0x591...0x5f4: self = .hebrew
        case 0x600...0x6ff, 0x750...0x77f, 0xfb50...0xfdff, 0xfe70...0xfeff: self = .arabic
        case 0x700...: self = .other
        default: return nil
        }
    }
}

/// Names of glyphs in place of characters: /g12/g13, (cid:12), g12 g13.
private struct GlyphNumbers {
    private var named = (count: 0, characters: 0)
    private var plain = (count: 0, characters: 0)

    init(_ words: [String]) {
        for word in words {
            let bytes = Array(word.utf8)
            var at = 0
            while at < bytes.count {
                let isNamed = bytes[at] == UInt8(ascii: "/") || bytes[at] == UInt8(ascii: "(")
                let start = at
                if isNamed { at += 1 }
                guard let end = Self.name(bytes, at, isNamed: isNamed) else {
                    at = start + 1
                    continue
                }
                at = end
                if bytes[start] == UInt8(ascii: "("), at < bytes.count, bytes[at] == UInt8(ascii: ")") { at += 1 }
                if isNamed {
                    named = (named.count + 1, named.characters + at - start)
                } else {
                    plain = (plain.count + 1, plain.characters + at - start)
                }
            }
        }
    }

    /// The end of a name and its number. After a sign many names are known; without one only the most usual.
    private static func name(_ bytes: [UInt8], _ start: Int, isNamed: Bool) -> Int? {
        let known =
            isNamed
            ? ["cid:", "gid", "glyph", "cid", "uni", "g", "G", "c", "C", "a", "i", "f"] : ["gid", "glyph", "cid", "g"]
        for name in known where bytes[start...].starts(with: name.utf8) {
            let first = start + name.utf8.count
            let digits = bytes[first...].prefix { (0x30...0x39).contains($0) }.count
            guard (1...5).contains(digits) else { continue }
            return first + digits
        }
        return nil
    }

    func areAll(of total: Int) -> Bool {
        named.count >= 5 && named.characters * 2 >= total || plain.count >= 20 && plain.characters * 10 >= total * 9
    }
}

/// Which letters follow each other. In every language of Latin letters a few pairs make up much of a text; where letters stand for others,
/// as when each is the one some places further on, the pairs are others.
private enum LetterPairs {
    /// Pairs that are frequent in one or more languages, written down by hand.
    private static let usual: Set<UInt16> = {
        let pairs = """
            th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch \
            ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po \
            we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke fr oo av ag \
            if ap gr od bo sp rd do uc bu ei ov by rm ep tt oc fa ef cu rn sc gi da yo cr cl du ga qu ue ff ba ey ls va um pp ua up lu go ht ru \
            ug ds lt pi rc rr eg au ck ew mu br bi pt ak pu ui rg ib tl ny ki rk ys ob mm fu ph og ms ye ud mb ip ub oi rl gu dr hr cc tw ft wn \
            nu af hu nn eo vo rv nf xp gn sm fl iz ok nl my gl aw ju oa eq sy sl ps jo lf nv je nk kn gs dy hy ze ks xt bs ik dd pm zu ka sk zi \
            zo ko kt jä aj ij ja uj az oz ez uz iz sz cz rz dz sz zy wy ym ow ów ię ię ą kk aa ii uu nh lh ão ça hn ah eh oh uh
            """
        return Set(
            pairs.split(separator: " ").compactMap { pair in
                let bytes = Array(pair.utf8)
                return bytes.count == 2 ? UInt16(bytes[0]) << 8 | UInt16(bytes[1]) : nil
            })
    }()

    /// Letters stand for others if the text makes words when all are moved by as many places and makes none as it stands; or if it has the
    /// letters of a language, each about as often as others in a language, and nothing else of one. In 180 languages, in code and in lists of
    /// names, at least 0.69 of the pairs are among the usual ones. Keys and sequences of proteins have fewer, and are not like that.
    static func standForOthers(_ words: [String]) -> Bool {
        let texts = sample(words)
        let own = share(texts, movedBy: 0)
        guard own.pairs >= 80, own.share < 0.58, own.distinct >= 40 else { return false }
        if own.pairs >= 400, own.share < 0.52, isUneven(texts) { return true }
        return (-70...70).contains { places in
            guard places != 0 else { return false }
            let moved = share(texts, movedBy: places)
            return moved.pairs * 10 >= own.pairs * 7 && moved.share >= 0.75
        }
    }

    /// Whether words are of different lengths, and some letters are much more frequent than others.
    private static func isUneven(_ words: [[UInt8]]) -> Bool {
        var lengths = [Int](repeating: 0, count: 256)
        var letters = [Double](repeating: 0, count: 256)
        for word in words {
            lengths[min(255, word.count)] += 1
            for byte in word { letters[Int(letter(byte, movedBy: 0))] += 1 }
        }
        letters[0] = 0
        let all = letters.reduce(0, +)
        let sameTwice = letters.reduce(0) { $0 + $1 * $1 } / (all * all)
        return (lengths.max() ?? 0) * 5 < words.count * 2 && sameTwice >= 0.055
    }

    /// Enough of them to judge, each at most five times: the number of a part says no more of a list's language the more often it stands
    /// there.
    private static func sample(_ words: [String]) -> [[UInt8]] {
        var counts: [String: Int] = [:]
        var sample: [[UInt8]] = []
        for word in words where word.utf8.count >= 3 && sample.count < 1500 {
            counts[word, default: 0] += 1
            if counts[word, default: 0] <= 5 { sample.append(Array(word.utf8)) }
        }
        return sample
    }

    private static func share(_ words: [[UInt8]], movedBy places: Int) -> (pairs: Int, distinct: Int, share: Double) {
        var (pairs, found) = (0, 0)
        var seen: Set<UInt16> = []
        for word in words {
            var last: UInt8 = 0
            for byte in word {
                let letter = letter(byte, movedBy: places)
                if last != 0, letter != 0 {
                    let pair = UInt16(last) << 8 | UInt16(letter)
                    pairs += 1
                    if usual.contains(pair) { found += 1 }
                    if seen.count < 40 { seen.insert(pair) }
                }
                last = letter
            }
        }
        return (pairs, seen.count, pairs > 0 ? Double(found) / Double(pairs) : 0)
    }

    /// In lower case; 0: no letter.
    private static func letter(_ byte: UInt8, movedBy places: Int) -> UInt8 {
        guard byte > 0x20, byte < 0x7f else { return 0 }
        let code = Int(byte) + places
        switch code {
        case 0x41...0x5a: return UInt8(code + 32)
        case 0x61...0x7a: return UInt8(code)
        default: return 0
        }
    }
}
