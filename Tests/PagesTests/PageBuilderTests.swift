import Testing

@testable import Pages

/// What pages are made of, from the small HTML.
@Suite struct PageBuilderTests {
    private static func texts(_ blocks: [PageBlock]) -> [String] {
        blocks.flatMap { block -> [String] in
            switch block {
            case .text(let paragraph): [paragraph.runs.map(\.text).joined(separator: "|")]
            case .group(let inner, _, let marker, _, _): (marker.map { [$0.runs[0].text] } ?? []) + texts(inner)
            case .table(let table): table.rows.flatMap { $0.flatMap { texts($0.blocks) } }
            case .picture(let picture): ["[\(picture.name)]"]
            case .pageBreak: ["—"]
            case .rule, .space: []
            }
        }
    }

    private static func texts(_ html: String) throws -> [String] { texts(try PageBuilder.build(html).body) }

    @Test func `white space is what it is in HTML, and looks alike in one run`() throws {
        #expect(try Self.texts("<p>  a\n  b <b> c</b>d </p> e") == ["a b |c|d", "e"])
        #expect(try Self.texts("<p>one<br>two<br></p>") == ["one\ntwo"])
        #expect(try Self.texts("<pre>a  b\n c\n</pre>") == ["a  b\n c"])
        #expect(try Self.texts("<p>&lt;&amp;&eacute&euro;&#x41;&#66; A&B</p>") == ["<&&eacute€AB A&B"])
        #expect(try Self.texts("<p> </p><div>\n</div>").isEmpty)
    }

    @Test func `elements become what they say`() throws {
        #expect(
            try Self.texts(
                "<html><head><title>t</title></head><body><h1>A</h1><ol start=\"3\"><li>x</li><li>y</li></ol><ul><li>z</li></ul><page-break><img src='cid:logo'></body></html>"
            ) == ["A", "3.", "x", "4.", "y", "•", "z", "—", "[logo]"])
        let sheet = try PageBuilder.build(
            "<page size='a5 landscape' margin='10mm' font='Lato' font-size='12pt' dir='rtl'><header>h<page-number></header><p style='color: #f00'>x</p></page>"
        )
        #expect(
            abs(sheet.width - 595.28) < 0.01 && abs(sheet.height - 419.53) < 0.01 && abs(sheet.margin - 28.35) < 0.01)
        guard case .text(let paragraph)? = sheet.body.first(where: { if case .text = $0 { true } else { false } }),
            case .text(let header)? = sheet.header.first
        else {
            Issue.record("there is no text")
            return
        }
        #expect(paragraph.runs[0].style.font == "Lato" && paragraph.runs[0].style.size == 12)
        #expect(paragraph.runs[0].style.color == PageColor(red: 1, green: 0, blue: 0) && paragraph.direction == .rtl)
        #expect(header.runs.map(\.counter) == [nil, .page])
    }

    @Test func `a table has its head, its spans, and what its rows say of cells`() throws {
        let sheet = try PageBuilder.build(
            """
            <table border="1"><thead><tr style="background: #eee"><th>a</th><th width="30%">b</th></tr></thead>
            <tr><td colspan="2" style="border: none; padding: 5pt">c</td></tr></table>
            """)
        guard case .table(let table)? = sheet.body.first(where: { if case .table = $0 { true } else { false } }) else {
            Issue.record("there is no table")
            return
        }
        #expect(table.headers == 1 && table.columns == 2 && table.rows.map(\.count) == [2, 1])
        #expect(table.rows[0][1].width == PageLength(share: 0.3) && table.rows[0][0].fill != nil)
        #expect(table.rows[0][0].borders.count == 4 && table.rows[1][0].borders.isEmpty)
        #expect(table.rows[1][0].span == 2 && table.rows[1][0].padding == 5 && table.rows[1][0].fill == nil)
    }

    @Test(arguments: [
        ("<p>a\n<b>c</p>", "line 2: </p> closes what is not open, within <b> of line 2"),
        ("<p>a", "line 1: <p> is not closed"),
        ("a</div>", "line 1: </div> closes what is not open, and nothing is open"),
        ("\n<form></form>", "line 2: there is no <form> on a page"), ("<script>x</script>", "there is no <script>"),
        ("<style>p {}</style>", "there is no <style>"),
        ("<head><style></style></head>", "<head> cannot contain <style>"),
        ("<p onclick='x'>a</p>", "<p> has no attribute onclick"),
        ("<p width='1'>a</p>", "<p> has no attribute width"),
        ("<p style='float: left'>a</p>", "the style float is not known; known are background"),
        ("<p style='color: blurple'>a</p>", "the style color has a value that is not known: blurple"),
        ("<p style='font-size: 900pt'>a</p>", "the style font-size has a value"),
        ("<p style='x'>a</p>", "is malformed"),
        ("<p style='background: red'>a</p>", "background and border are only for tables"),
        ("<img src='https://a.example/x.png'>", "addresses are not fetched"), ("<img>", "a picture is named by cid:"),
        ("<p><page-number></p>", "<page-number> is not allowed in <header> or <footer>"),
        ("<li>a</li>", "<li> stands outside <ul> and <ol>"), ("<ul>a</ul>", "<ul> has text outside <li>"),
        ("<ul><p>a</p></ul>", "<ul> cannot contain <p>"), ("<td>a</td>", "<td> is not allowed here"),
        ("<table>a</table>", "<table> has text outside its cells"), ("<table></table>", "the table has no rows"),
        ("<table><tr></tr></table>", "a row has no cells"),
        ("<table><tr><td rowspan='2'></td></tr></table>", "has no attribute rowspan"),
        ("<table><tr><td colspan='41'></td></tr></table>", "colspan is not a whole number"),
        ("<p>&nosuch;</p>", "&nosuch; is not known"), ("<p>&#xD800;</p>", "&#xD800; is not a character"),
        ("<p a=1 a=2>x</p>", "<p> has a twice"), ("<p", "<p> has no >"), ("<!-- a", "a comment is not closed"),
        ("<page size='b9'></page>", "the size is not known"), ("<page margin='20cm'></page>", "leaves no room"),
        ("<page></page><p>x</p>", "there is something outside"), ("<p dir='up'>x</p>", "dir is ltr, rtl or auto"),
        (String(repeating: "<div>", count: 50), "elements are nested deeper than 40"),
    ])
    func `what a page does not know is refused with its line`(html: String, sentence: String) throws {
        do {
            _ = try PageBuilder.build(html)
            Issue.record("it was taken: \(html)")
        } catch {
            #expect(error.sentence.contains(sentence), "\(error.sentence)")
            #expect(error.reason == .unsupported)
        }
    }

    @Test func `a very long paragraph is cut at a blank, and no letter is lost`() throws {
        let words = String(repeating: "héron ", count: 9000)
        let paragraph = PageParagraph(
            runs: [TextRun(text: words, style: TextStyle()), TextRun(text: "end", style: TextStyle())],
            alignment: .start, direction: .auto, lineHeight: 1)
        let parts = paragraph.parts()
        #expect(parts.count == 4 && parts.allSatisfy { $0.runs.reduce(0) { $0 + $1.text.utf8.count } <= 20_000 })
        #expect(parts.flatMap(\.runs).map(\.text).joined() == words + "end")
        #expect(parts.dropLast().allSatisfy { $0.runs.last?.text.hasSuffix(" ") == true })
    }

    @Test func `no HTML makes it crash`() {
        let parts = [
            "<", ">", "</", "p", "<p>", "</p>", "<table>", "<tr>", "<td>", "</td>", "</tr>", "</table>", "&", "&#", ";",
            "\"", "'", "=", " style=", "width: ", "9%", "<!--", "-->", "<page", "<img src=cid:a>", "é", "\u{0}", "a",
            "<li>",
        ]
        for seed in 0..<3000 {
            var state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1
            var html = ""
            for _ in 0..<(seed % 40) {
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                html += parts[Int(state % UInt64(parts.count))]
            }
            _ = try? PageBuilder.build(html)
        }
    }
}
