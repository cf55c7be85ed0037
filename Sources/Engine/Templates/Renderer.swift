/// Renders one program once.
struct Renderer {
    /// A child's replacement of a parent's block.
    private struct Override {
        var program: Program
        var block: Program.Block
    }

    private let root: Program
    private let partials: Partials
    private let mode: Template.Mode
    private let limits: Limits
    private let deadline: ContinuousClock.Instant
    private var out: [UInt8] = []
    private var contexts: [TemplateValue] = []
    private var overrides: [String: Override] = [:]
    /// Written before each line of the template, but not before the lines of a value.
    private var indent: [UInt8] = []
    /// How much white space is removed from the beginning of each line.
    private var dedent = 0
    /// The first output already stands where it should.
    private var isPlaced = false
    private var depth = 0
    private var taken = 0

    init(program: Program, partials: Partials, mode: Template.Mode, limits: Limits) {
        root = program
        self.partials = partials
        self.mode = mode
        self.limits = limits
        deadline = .now + limits.time
        out.reserveCapacity(program.source.count + program.source.count / 4 + 64)
    }

    mutating func render(_ data: TemplateValue) throws(TemplateError) -> [UInt8] {
        contexts = [data]
        try run(root, root.steps.indices)
        return out
    }

    private mutating func run(_ program: Program, _ range: Range<Int>) throws(TemplateError) {
        depth += 1
        defer { depth -= 1 }
        taken += 1
        try check()
        guard depth <= limits.depth else {
            throw TemplateError(
                .limit, "sections and partials are nested more than \(limits.depth) deep",
                hint: "does a partial call itself without end?")
        }
        var at = range.lowerBound
        while at < range.upperBound {
            taken += 1
            try check()
            switch program.steps[at] {
            case .text(let start, let end, let startsLine):
                appendText(program, start..<end, startsLine: startsLine)
            case .lineStart: startLine()
            case .value(let path, let escape): try value(program, path, escape)
            case .section(let path, let end, let raw, let delimiters):
                try section(program, path, (at + 1)..<end, raw: raw, delimiters: delimiters)
                at = end
                continue
            case .inverted(let path, let end):
                if find(program.paths[path])?.isFalse ?? true { try run(program, (at + 1)..<end) }
                at = end
                continue
            case .partial(let call): try partial(program, program.calls[call])
            case .parent(let call, let end):
                try parent(program, program.calls[call])
                at = end
                continue
            case .block(let block, let end):
                try self.block(program, program.blocks[block])
                at = end
                continue
            }
            at += 1
        }
    }

    private func check() throws(TemplateError) {
        guard out.count <= limits.output else {
            throw TemplateError(.limit, "more than \(limits.output) bytes would be rendered")
        }
        if taken & 1023 == 0, ContinuousClock.now > deadline {
            throw TemplateError(.limit, "rendering took longer than \(limits.time)")
        }
    }
}

extension Renderer {
    private mutating func value(_ program: Program, _ path: Int, _ escape: Escape) throws(TemplateError) {
        guard let value = find(program.paths[path]) else { return }
        switch value {
        case .string(let text), .number(let text): try append(text, escape, program.paths[path])
        case .bool(let bool): try append(bool ? "true" : "false", escape, program.paths[path])
        case .null, .list, .object: return
        case .lambda(let call):
            try refuseLambda(program.paths[path])
            let answer = call(nil)
            guard case .string(let source) = answer else {
                guard case .number(let digits) = answer else { return }
                return try append(digits, escape, program.paths[path])
            }
            let rendered = try apart { renderer throws(TemplateError) in
                let inner = try Program(Array(source.utf8), limits: renderer.limits)
                try renderer.run(inner, inner.steps.indices)
            }
            try append(String(decoding: rendered, as: UTF8.self), escape, program.paths[path])
        }
    }

    private mutating func append(_ text: String, _ escape: Escape, _ path: Program.Path) throws(TemplateError) {
        var text = text
        let isFit = text.withUTF8 { escape.append($0, to: &out) }
        guard isFit else { throw Self.unfit(path, escape) }
    }

    private static func unfit(_ path: Program.Path, _ escape: Escape) -> TemplateError {
        if case .style = escape {
            return TemplateError(
                .data, "the variable \(path.text) does not fit into a style",
                hint: "there it may hold letters, digits, spaces and # % . , + - only", variable: path.text)
        }
        return TemplateError(
            .data, "the variable \(path.text) is not an address that a mail may link to",
            hint: "give one that begins with https:, http:, mailto: or tel:", variable: path.text)
    }

    private func refuseLambda(_ path: Program.Path) throws(TemplateError) {
        guard mode == .plain else {
            throw TemplateError(
                .data, "the variable \(path.text) is a lambda, which is not allowed in a mail", variable: path.text)
        }
    }

    private mutating func section(
        _ program: Program, _ path: Int, _ body: Range<Int>, raw: Range<Int>, delimiters: Int
    ) throws(TemplateError) {
        guard let value = find(program.paths[path]), !value.isFalse else { return }
        switch value {
        case .list(let values):
            for value in values { try run(program, body, with: value) }
        case .lambda(let call):
            try refuseLambda(program.paths[path])
            let answer = call(String(decoding: program.source[raw], as: UTF8.self))
            switch answer {
            case .string(let source):
                let inner = try Program(
                    Array(source.utf8), delimiters: program.delimiters[delimiters], limits: limits)
                try run(inner, inner.steps.indices)
            case .null, .bool(false): return
            case .list(let values): for value in values { try run(program, body, with: value) }
            case .bool, .number, .object, .lambda: try run(program, body, with: answer)
            }
        case .null, .bool, .number, .string, .object: try run(program, body, with: value)
        }
    }

    private mutating func run(
        _ program: Program, _ body: Range<Int>, with context: TemplateValue
    ) throws(TemplateError) {
        contexts.append(context)
        defer { contexts.removeLast() }
        try run(program, body)
    }

    private func find(_ path: Program.Path) -> TemplateValue? {
        guard let first = path.parts.first else { return contexts.last }
        for index in contexts.indices.reversed() {
            guard case .object(let members) = contexts[index], var value = members[first] else { continue }
            for part in path.parts.dropFirst() {
                guard let next = value[part] else { return nil }
                value = next
            }
            return value
        }
        return nil
    }

    /// Renders into a separate output.
    private mutating func apart(
        _ body: (inout Renderer) throws(TemplateError) -> Void
    ) throws(TemplateError) -> [UInt8] {
        let (held, heldIndent, heldDedent) = (out, indent, dedent)
        out = []
        indent = []
        dedent = 0
        try body(&self)
        let rendered = out
        (out, indent, dedent) = (held, heldIndent, heldDedent)
        return rendered
    }
}

extension Renderer {
    private func program(_ caller: Program, _ call: Program.Call) throws(TemplateError) -> Program? {
        var name = call.name
        if let path = call.path {
            guard case .string(let found) = find(caller.paths[path]) else { return nil }
            name = found
        }
        return try partials.program(name, limits: limits)
    }

    private mutating func partial(_ caller: Program, _ call: Program.Call) throws(TemplateError) {
        guard let program = try program(caller, call) else { return }
        let held = overrides
        overrides = [:]
        defer { overrides = held }
        try run(program, program.steps.indices, adding: caller.source[call.indent])
    }

    private mutating func parent(_ caller: Program, _ call: Program.Call) throws(TemplateError) {
        guard let program = try program(caller, call) else { return }
        let held = overrides
        for index in call.blocks {
            let block = caller.blocks[index]
            // The template furthest from the parent decides.
            if overrides[block.name] == nil { overrides[block.name] = Override(program: caller, block: block) }
        }
        defer { overrides = held }
        try run(program, program.steps.indices, adding: caller.source[call.indent])
    }

    private mutating func run(
        _ program: Program, _ range: Range<Int>, adding more: ArraySlice<UInt8>
    ) throws(TemplateError) {
        let (heldIndent, heldDedent, heldPlaced) = (indent, dedent, isPlaced)
        indent += more.dropFirst(min(dedent, more.count))
        dedent = 0
        defer { (indent, dedent, isPlaced) = (heldIndent, heldDedent, heldPlaced) }
        try run(program, range)
    }

    private mutating func block(_ program: Program, _ block: Program.Block) throws(TemplateError) {
        guard let override = overrides[block.name] else { return try run(program, block.body) }
        let (heldIndent, heldDedent) = (indent, dedent)
        // The override gets the indentation of the block that it replaces.
        let space = program.source[block.indent.flatMap { block.standsAlone ? $0 : nil } ?? block.lead]
        indent += space.dropFirst(min(dedent, space.count))
        dedent = override.block.indent?.count ?? 0
        if block.standsAlone, !override.block.standsAlone { out += indent }
        isPlaced = !block.standsAlone
        defer { (indent, dedent, isPlaced) = (heldIndent, heldDedent, false) }
        try run(override.program, override.block.body)
    }

    private mutating func startLine() {
        if isPlaced { isPlaced = false } else { out += indent }
    }

    private mutating func appendText(_ program: Program, _ range: Range<Int>, startsLine: Bool) {
        guard !indent.isEmpty || dedent > 0 || isPlaced else {
            program.source.withUnsafeBufferPointer { source in
                out.append(contentsOf: UnsafeBufferPointer(rebasing: source[range]))
            }
            return
        }
        var at = range.lowerBound
        var isAtStart = startsLine
        if !startsLine { isPlaced = false }
        while at < range.upperBound {
            let newline = program.source[at..<range.upperBound].firstIndex(of: 0x0A)
            let end = newline.map { $0 + 1 } ?? range.upperBound
            if isAtStart {
                startLine()
                var left = dedent
                while left > 0, at < end, program.source[at] == 0x20 || program.source[at] == 0x09 {
                    at += 1
                    left -= 1
                }
            }
            out += program.source[at..<end]
            at = end
            isAtStart = true
        }
    }
}
