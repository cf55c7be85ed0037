/// Why a document or a page cannot be read, in one word.
package enum Reason: String, Codable, Sendable, CaseIterable {
    case empty
    case unsupported
    case malformed
    case encrypted
    case wrongPassword = "wrong_password"
    case tooLarge = "too_large"
    case tooManyPages = "too_many_pages"
    case tooManyPixels = "too_many_pixels"
    case quota
    case timeout
    case memory
    case crash
    /// A program was killed from outside, or the machine was too busy for it, time after time.
    case killed
    /// The pages are read, but a program crashed over one of the outputs.
    case incomplete
    /// Its file says more than could be drawn, so its emptiness says nothing.
    case undrawable
    case engine
    case `internal`
}

/// A reason and a sentence for an operator.
package struct DocumentRefusal: Error, Codable, Sendable, Equatable {
    package var reason: Reason
    package var sentence: String

    package init(_ reason: Reason, _ sentence: String) {
        self.reason = reason
        self.sentence = sentence
    }
}
