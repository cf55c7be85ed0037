/// Some PDFs say the forms of Arabic letters, as they look at the beginning, in the middle and at the end of a word. They are searched by
/// their letters.
enum ArabicForms {
    /// The letters that a form stands for, in the order of reading; what is no form stays.
    static func letters(_ scalar: Unicode.Scalar) -> String {
        switch scalar.value {
        case 0xFB50...0xFBFF, 0xFE80...0xFEFC: table[scalar.value] ?? String(scalar)
        default: String(scalar)
        }
    }

    /// Where the forms of these letters begin, which follow each other, and how many each has.
    private static let runs: [(start: UInt32, letters: [(String, UInt32)])] = [
        (
            0xFB50,
            [
                ("\u{671}", 2), ("\u{67B}", 4), ("\u{67E}", 4), ("\u{680}", 4), ("\u{67A}", 4), ("\u{67F}", 4),
                ("\u{679}", 4), ("\u{6A4}", 4), ("\u{6A6}", 4), ("\u{684}", 4), ("\u{683}", 4), ("\u{686}", 4),
                ("\u{687}", 4), ("\u{68D}", 2), ("\u{68C}", 2), ("\u{68E}", 2), ("\u{688}", 2), ("\u{698}", 2),
                ("\u{691}", 2), ("\u{6A9}", 4), ("\u{6AF}", 4), ("\u{6B3}", 4), ("\u{6B1}", 4), ("\u{6BA}", 2),
                ("\u{6BB}", 4), ("\u{6C0}", 2), ("\u{6C1}", 4), ("\u{6BE}", 4), ("\u{6D2}", 2), ("\u{6D3}", 2),
            ]
        ),
        (0xFBFC, [("\u{6CC}", 4)]),
        (
            0xFE80,
            [
                ("\u{621}", 1), ("\u{622}", 2), ("\u{623}", 2), ("\u{624}", 2), ("\u{625}", 2), ("\u{626}", 4),
                ("\u{627}", 2), ("\u{628}", 4), ("\u{629}", 2), ("\u{62A}", 4), ("\u{62B}", 4), ("\u{62C}", 4),
                ("\u{62D}", 4), ("\u{62E}", 4), ("\u{62F}", 2), ("\u{630}", 2), ("\u{631}", 2), ("\u{632}", 2),
                ("\u{633}", 4), ("\u{634}", 4), ("\u{635}", 4), ("\u{636}", 4), ("\u{637}", 4), ("\u{638}", 4),
                ("\u{639}", 4), ("\u{63A}", 4), ("\u{641}", 4), ("\u{642}", 4), ("\u{643}", 4), ("\u{644}", 4),
                ("\u{645}", 4), ("\u{646}", 4), ("\u{647}", 4), ("\u{648}", 2), ("\u{649}", 2), ("\u{64A}", 4),
                ("\u{644}\u{622}", 2), ("\u{644}\u{623}", 2), ("\u{644}\u{625}", 2), ("\u{644}\u{627}", 2),
            ]
        ),
    ]

    private static let table: [UInt32: String] = {
        var table: [UInt32: String] = [:]
        for run in runs {
            var value = run.start
            for (letters, count) in run.letters {
                for _ in 0..<count {
                    table[value] = letters
                    value += 1
                }
            }
        }
        return table
    }()
}
