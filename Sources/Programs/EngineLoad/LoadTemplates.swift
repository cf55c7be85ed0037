package import CommandKit
import FoundationEssentials
import LoadKit
import Templates

extension Command {
    package static let loadTemplates = scenario(
        "templates",
        summary: "Measure how often a template is rendered a second",
        discussion: """
            A template of 20 KB with 50 variables, on one core, compiled once: as plain Mustache, and as a mail's HTML with escaping by \
            context. --write puts the template and its data into a folder, for others to render the same; deploy/bench/templates \
            measures three Python libraries beside.
            """,
        flags: [
            .count("seconds", 1...60, 3, "How long each is measured."),
            .single(
                "write", "DIR", .path, environment: .none,
                help: "Only write template.mustache, data.json and expected.html to this folder."),
        ],
        examples: [Example("millrace load templates", "renders a second")],
        settings: .unused
    ) { invocation in
        let source = RenderLoad.source()
        let data = RenderLoad.data()
        let value = try TemplateValue(json: data)
        let plain = try Template(source)
        let mail = try Template(source, mode: .html)
        let expected = try plain.render(value)
        if let directory = invocation.parsed.string("write") {
            for (name, bytes) in [("template.mustache", source), ("data.json", data), ("expected.html", expected)] {
                try RenderLoad.write(bytes, to: "\(directory)/\(name)")
            }
            invocation.console.show(["written": .string(directory)]) { invocation.console.print(directory) }
            return .done
        }
        let seconds = invocation.count("seconds")
        let plainRate = try RenderLoad.rate(plain, value, seconds: seconds)
        let mailRate = try RenderLoad.rate(mail, value, seconds: seconds)
        let size = "\(Humane.bytes(source.count)), 50 variables"
        return invocation.report(
            "templates",
            [
                .atLeast("plain Mustache, \(size)", 20_000, measured: plainRate, unit: "renders/s"),
                .atLeast("a mail's HTML, \(size)", 20_000, measured: mailRate, unit: "renders/s"),
            ],
            figures: [
                ("bytes", .init(source.count)), ("rendered", .init(expected.count)), ("variables", 50),
                ("plain_per_second", .double(plainRate)), ("mail_per_second", .double(mailRate)),
            ])
    }
}

private enum RenderLoad {
    /// Rows of a mail: markup around values that have something to escape.
    static func source() -> [UInt8] {
        var text = "<!doctype html>\n<html><body><table role=\"presentation\">\n"
        for index in 0..<50 {
            text +=
                "<tr><td style=\"padding:12px 16px; font-family:Helvetica,Arial,sans-serif; color:#202428\" data-row=\"{{v\(index)}}\">Row \(index)</td>\n"
        }
        let filler =
            "<td style=\"padding:12px 16px; border-bottom:1px solid #d8dde3; line-height:24px\">and a sentence that is the same for everybody who reads this mail, again and again</td></tr>\n"
        var rows = ""
        for line in text.split(separator: "\n") { rows += line + "\n" + (line.hasPrefix("<tr>") ? filler : "") }
        while rows.utf8.count < 20_000 {
            rows += "<tr><td colspan=\"2\">\(filler.dropFirst(4).dropLast(11))</td></tr>\n"
        }
        return Array((rows + "</table></body></html>\n").utf8)
    }

    static func data() -> [UInt8] {
        let members = (0..<50).map { index in
            let value = index % 5 == 0 ? "Ada & Grace <\(index)>" : "value number \(index) of this mail"
            return "\"v\(index)\": \"\(value)\""
        }
        return Array("{\(members.joined(separator: ", "))}".utf8)
    }

    static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
        do {
            try Data(bytes).write(to: URL(filePath: path))
        } catch {
            throw Failure("\(Secrets.quoted(path)) cannot be written")
        }
    }

    static func rate(_ template: Template, _ data: TemplateValue, seconds: Int) throws -> Double {
        let clock = ContinuousClock()
        for _ in 0..<200 { _ = try template.render(data) }
        let began = clock.now
        var renders = 0
        var bytes = 0
        while clock.now - began < .seconds(seconds) {
            for _ in 0..<100 { bytes += try template.render(data).count }
            renders += 100
        }
        let taken = clock.now - began
        guard bytes > 0 else { throw Failure("nothing was rendered") }
        return Double(renders) / (taken / .seconds(1))
    }
}
