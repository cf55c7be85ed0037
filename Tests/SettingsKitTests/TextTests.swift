import SettingsKit
import Testing

@Suite struct DisplayWidthTests {
    @Test(arguments: [
        ("abc", 3), ("é", 1), ("e\u{301}", 1), ("日本", 4), ("😀", 2), ("👩‍👩‍👧", 2), ("🇩🇪", 2), ("❤️", 2), ("ｱ", 1), ("", 0),
    ])
    func `columns are counted as a terminal does`(text: String, columns: Int) {
        #expect(DisplayWidth.of(text) == columns)
    }

    @Test func `a cut text is never too wide`() {
        #expect(DisplayWidth.cut("日本語", to: 4) == "日…")
        #expect(DisplayWidth.cut("日本語", to: 6) == "日本語")
        #expect(DisplayWidth.cut("abc", to: 2) == "a…")
        #expect(DisplayWidth.cut("abc", to: 0) == "")
    }

    @Test func `what moves a cursor or turns text around is made visible`() {
        #expect(DisplayWidth.harmless("a\u{1b}[2Jb\nc\t\u{9b}\u{202e}") == "a␛[2Jb⏎c \u{fffd}\u{fffd}")
        #expect(DisplayWidth.harmless("👩‍👩‍👧 日本") == "👩‍👩‍👧 日本")
    }
}

@Suite struct HumaneTests {
    @Test func `numbers are grouped`() {
        #expect(
            [0, 12, 123, 1234, 1_234_567, -1000].map(Humane.count) == [
                "0", "12", "123", "1,234", "1,234,567", "-1,000",
            ])
        #expect(Humane.count(.min) == "-9,223,372,036,854,775,808")
    }

    @Test(arguments: [
        (Duration.zero, "0 s"), (.microseconds(50), "50 µs"), (.microseconds(1500), "1.5 ms"),
        (.milliseconds(412), "412 ms"),
        (.milliseconds(1240), "1.24 s"), (.seconds(42), "42 s"), (.seconds(192), "3m 12s"), (.seconds(3600), "1h"),
        (.seconds(90_061), "1d 1h"), (.seconds(-192), "-3m 12s"),
    ])
    func `durations have two units at most`(duration: Duration, text: String) {
        #expect(Humane.duration(duration) == text)
    }

    @Test func `times are told from now`() {
        #expect(Humane.relative(.seconds(-192)) == "3m 12s ago")
        #expect(Humane.relative(.seconds(300)) == "in 5m")
        #expect(Humane.relative(.milliseconds(-7500)) == "7s ago")
        #expect(Humane.relative(.milliseconds(300)) == "now")
    }

    @Test func `sizes and shares`() {
        #expect(
            [0, 1023, 1536, 10 << 20, 3 << 40].map(Humane.bytes) == ["0 B", "1023 B", "1.5 KiB", "10 MiB", "3 TiB"])
        #expect(Humane.bytes((1 << 20) - 1) == "1 MiB")
        #expect(Humane.percent(0.125) == "12.5 %")
        #expect(Humane.decimal(-0.5, places: 2) == "-0.5")
    }
}
