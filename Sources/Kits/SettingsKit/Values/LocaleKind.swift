import Templates

extension ValueKind {
    package static let locale = ValueKind.custom(expects: "a locale such as en or pt-BR") { text in
        LocaleChain.isLocale(text) ? nil : "takes a locale such as en, pt-BR or zh-Hant-TW, not \(Secrets.quoted(text))"
    }
}
