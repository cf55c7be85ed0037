import Faults

/// The page about the classes of errors, to which the `type` of each problem leads.
enum ErrorPage {
    static let text: String = {
        var lines = [
            "<!doctype html>", "<html lang=\"en\">", "<meta charset=\"utf-8\">", "<title>Classes of errors</title>",
            "<h1>Classes of errors</h1>",
            "<p>An error is <code>application/problem+json</code>. Its member <code>class</code> says what an app can do about it.</p>",
        ]
        for one in ErrorClass.allCases {
            lines += [
                "<h2 id=\"\(one.rawValue)\">\(one.rawValue)</h2>",
                "<p>\(one.title): status \(one.httpStatus). \(one.advice)</p>",
                "<p>For the app's user: \(one.sentence)</p>",
            ]
        }
        return lines.joined(separator: "\n") + "\n"
    }()
}

extension ErrorClass {
    /// Whether an app tries again, as the table of the guide has it.
    var advice: String {
        switch self {
        case .invalid, .permission, .notFound, .tooLarge, .unsupported: "The same request will be refused again."
        case .authentication: "Try again with a new token."
        case .conflict, .cancelled: "Read how it is now."
        case .throttled: "Try again after Retry-After seconds."
        case .quota: "Try again after reset_date."
        case .internal: "The server\u{2019}s log says why. Trying again does not help."
        case .transient, .unavailable: "Try again after Retry-After seconds."
        case .unknown: "It may have worked: try again with the same Idempotency-Key."
        case .timeout: "Try again with the same Idempotency-Key."
        }
    }
}
