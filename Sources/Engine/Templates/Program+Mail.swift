extension Program {
    /// Checks the rules for mails: a mail calls no other template, and uses only the variables that it declares.
    func forMail(_ variables: Variables?) throws(TemplateError) {
        if let problem = mailProblems(variables).first { throw problem }
    }

    func mailProblems(_ variables: Variables?) -> [TemplateError] {
        var problems = calls.map {
            problem("a mail template cannot include another one", at: $0.place, hint: "put the text of \($0.name) here")
        }
        var open: [(path: Int, end: Int)] = []
        var seen: Set<String> = []
        for (index, step) in steps.enumerated() {
            open.removeAll { $0.end <= index }
            let (path, isShown): (Int, Bool)
            switch step {
            case .value(let used, _): (path, isShown) = (used, true)
            case .section(let used, _, _, _): (path, isShown) = (used, false)
            case .inverted(let used, _): (path, isShown) = (used, false)
            case .text, .lineStart, .partial, .parent, .block: continue
            }
            let sections = open.map(\.path)
            if case .section(_, let end, _, _) = step { open.append((path, end)) }
            let place = places[index]
            guard seen.insert("\(path) \(isShown) \(list(sections, variables) ?? -1)").inserted else { continue }
            if let found = problem(paths[path], isShown, sections, variables, at: place) { problems.append(found) }
        }
        return problems
    }

    /// The innermost list that is open.
    private func list(_ sections: [Int], _ variables: Variables?) -> Int? {
        sections.last { variables?[paths[$0].text]?.kind == .list }
    }

    /// A variable by its name where some sections are open: a field of their lists, else one of the template's.
    private func variable(_ name: String, _ sections: [Int], _ variables: Variables?) -> Variables.Variable? {
        if let list = list(sections, variables), let field = variables?[paths[list].text]?.fields[name] { return field }
        return variables?[name]
    }

    private func problem(
        _ path: Path, _ isShown: Bool, _ sections: [Int], _ variables: Variables?, at place: Int
    ) -> TemplateError? {
        if path.parts.contains("") { return problem("the name \(path.text) is malformed", at: place) }
        guard let variables else { return nil }
        guard let first = path.parts.first else {
            guard isShown, let last = sections.last, variables[paths[last].text]?.kind == .list else { return nil }
            return problem(
                "a dot stands for an entry of the list \(paths[last].text)", at: place, hint: "name one of its fields")
        }
        guard path.parts.count == 1, let found = variable(first, sections, variables) else {
            return problem(
                "the variable \(path.text) is not declared", at: place,
                hint: "declare it in the variables, or correct its name", variable: path.text)
        }
        guard isShown, found.kind == .list else { return nil }
        return problem(
            "the variable \(path.text) is a list", at: place, hint: "write {{#\(path.text)}}, and its fields within",
            variable: path.text)
    }

    mutating func unescape() {
        for index in steps.indices {
            if case .value(let path, _) = steps[index] { steps[index] = .value(path, .none) }
        }
    }

    /// Gives each value the escape for its place.
    mutating func escapeByContext(_ variables: Variables?) throws(TemplateError) {
        if let problem = walk(variables).problems.first { throw problem }
    }

    /// The same walk for a review: all mistakes, and all notices.
    func review(_ variables: Variables?) -> (notices: [(Markup.Notice, at: Int)], problems: [TemplateError]) {
        var copy = self
        let (markup, problems) = copy.walk(variables)
        return (markup.notices, problems)
    }

    private struct OpenSection {
        var end: Int
        var before: Markup
        var path: Int
        var place: Int
        /// A dot inside it means its variable.
        var isFor: Bool
    }

    private mutating func walk(_ variables: Variables?) -> (Markup, problems: [TemplateError]) {
        var markup = Markup()
        var open: [OpenSection] = []
        var problems: [TemplateError] = []
        for (index, step) in steps.enumerated() {
            while let last = open.last, last.end == index { leave(&open, &markup, &problems) }
            switch step {
            case .text(let start, let end, _): markup.take(source[start..<end], at: start)
            case .value(let path, let escape):
                let within = open.filter(\.isFor).map(\.path)
                do throws(TemplateError) {
                    let found = try self.escape(
                        path, raw: escape == .none, &markup, variables, within: within, at: places[index])
                    steps[index] = .value(path, found)
                } catch {
                    problems.append(error)
                }
            case .section(let path, let end, _, _):
                open.append(OpenSection(end: end, before: markup, path: path, place: places[index], isFor: true))
            case .inverted(let path, let end):
                open.append(OpenSection(end: end, before: markup, path: path, place: places[index], isFor: false))
            case .lineStart, .partial, .parent, .block: break
            }
        }
        while !open.isEmpty { leave(&open, &markup, &problems) }
        if markup.state != .text {
            problems.append(
                problem(
                    "the HTML ends inside a tag or a comment", at: source.count, hint: "is a > or a quote missing?"))
        }
        return (markup, problems)
    }

    private func leave(_ open: inout [OpenSection], _ markup: inout Markup, _ problems: inout [TemplateError]) {
        let section = open.removeLast()
        if let joined = markup.joined(with: section.before) {
            markup = joined
            return
        }
        problems.append(
            problem(
                "the section \(paths[section.path].text) does not end where it began: in the text, a tag or an attribute",
                at: section.place, hint: "a section holds whole tags, or a part of one attribute", context: true))
    }

    private func escape(
        _ path: Int, raw: Bool, _ markup: inout Markup, _ variables: Variables?, within sections: [Int], at place: Int
    ) throws(TemplateError) -> Escape {
        let path = paths[path]
        let name = path.parts.isEmpty ? sections.last.map { paths[$0].text } : path.text
        let outer = path.parts.isEmpty ? sections.dropLast() : sections
        let isHTML = name.flatMap { variable($0, Array(outer), variables)?.kind } == .html
        let (found, why) = markup.escape(at: place)
        guard let found else {
            throw problem(
                "the variable \(path.text) stands \(why), where no value is safe", at: place,
                hint: why.hasPrefix("in an address")
                    ? "write https://, the host and a slash before it, or give the whole address as one variable"
                    : "put it into the text, or into a quoted attribute such as title, alt or href", context: true,
                variable: path.text)
        }
        guard raw else { return found }
        guard isHTML, markup.state == .text else {
            throw problem(
                "the variable \(path.text) stands unescaped", at: place,
                hint: isHTML
                    ? "markup can stand in the text only"
                    : "write {{\(path.text)}}, or declare it as html if the sender of the mail vouches for it",
                context: true, variable: path.text)
        }
        return .none
    }

    private func problem(
        _ sentence: String, at offset: Int, hint: String? = nil, context: Bool = false, variable: String? = nil
    ) -> TemplateError {
        let place = SourcePosition(source, offset)
        return TemplateError(
            context ? .context : .syntax, sentence, hint: hint, line: place.line, column: place.column,
            variable: variable)
    }
}
