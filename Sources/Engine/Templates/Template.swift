/// A Mustache text, compiled once and rendered any number of times.
package struct Template: Sendable {
    package enum Mode: Sendable {
        /// Mustache as it is specified.
        case plain
        /// A mail's text or subject: values are not escaped.
        case text
        /// A mail's HTML: values are escaped for their place.
        case html
    }

    package let mode: Mode
    package let limits: Limits
    let program: Program

    /// In the two mail modes every name must be one of `variables`, if these are given.
    package init(
        _ source: [UInt8], mode: Mode = .plain, variables: Variables? = nil, limits: Limits = Limits()
    ) throws(TemplateError) {
        self.mode = mode
        self.limits = limits
        var program = try Program(source, limits: limits)
        switch mode {
        case .plain: break
        case .text:
            try program.forMail(variables)
            program.unescape()
        case .html:
            try program.forMail(variables)
            try program.escapeByContext(variables)
        }
        self.program = program
    }

    package init(
        _ source: String, mode: Mode = .plain, variables: Variables? = nil, limits: Limits = Limits()
    ) throws(TemplateError) {
        try self.init(Array(source.utf8), mode: mode, variables: variables, limits: limits)
    }

    package func render(_ data: TemplateValue, partials: Partials = .none) throws(TemplateError) -> [UInt8] {
        var renderer = Renderer(program: program, partials: partials, mode: mode, limits: limits)
        return try renderer.render(data)
    }
}
