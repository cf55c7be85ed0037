import FoundationEssentials
import Testing

@testable import Console

/// Numbers and times as people read them.
@Suite struct FigureTests {
    @Test func `a preview of a mail is light or dark as it says, whatever the visitor's device is`() {
        let mail = "<style>a { b: c } @media (prefers-color-scheme:  DARK) { a { b: d } }</style>"
        let (light, dark) = (
            TemplatePages.shown(mail, isDark: false), TemplatePages.shown(mail, isDark: true)
        )
        #expect(light.contains("@media (max-width: 0) {") && dark.contains("@media (min-width: 0) {"))
        #expect(light.contains("color-scheme: only light") && dark.contains("color-scheme: only dark"))
        #expect(TemplatePages.shown("(prefers-color-scheme: light)", isDark: true).hasPrefix("(max-width: 0)"))
    }

    @Test func `no figure has a zero behind its point`() {
        #expect(Figures.span(6) == "6 s" && Figures.span(6.25) == "6.3 s" && Figures.span(0.5) == "500 ms")
        #expect(Figures.percent(0.4) == "40 %" && Figures.percent(0.1234) == "12.3 %" && Figures.percent(0) == "0 %")
        #expect(Figures.bytes(655_360) == "640 KiB" && Figures.bytes(1_600_000) == "1.5 MiB")
        #expect(Scale.rate.spell(40) == "40/s" && Scale.rate.spell(0.25) == "0.25/s" && Scale.rate.spell(0) == "0")
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        #expect(Figures.relative(now.addingTimeInterval(-6), to: now) == "6 s ago")
    }

    @Test func `ids that begin with the same time are told apart`() {
        let (one, other) = ("0198c1f2-7a3e-7000-8000-000000000001", "0198c1f2-7a3f-7b11-8000-000000000001")
        #expect(Figures.brief(id: one) == "0198c1f2-7a3e-7000" && Figures.brief(id: one) != Figures.brief(id: other))
        #expect(Figures.brief(id: "be6597b8-bcec-40dd-9721-2be09deacece") == "be6597b8")
        #expect(Figures.brief(id: "") == "" && Figures.brief(id: "sub_1") == "sub_1")
    }
}
