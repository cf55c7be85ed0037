import CCurl

/// A configuration after its checks.
struct MailPlan: Sendable {
    let configuration: MailTransport.Configuration
    private let url: String

    init(_ configuration: MailTransport.Configuration) throws(TransferError) {
        func bad(_ why: String) -> TransferError { TransferError(.invalid, .unsent, why) }
        let isName: (String) -> Bool = { text in
            !text.isEmpty && text.utf8.count <= 255
                && text.utf8.allSatisfy { isTokenByte($0) && $0 != UInt8(ascii: "%") || $0 == UInt8(ascii: ":") }
        }
        guard isName(configuration.host) else {
            throw bad("the host of the SMTP server is neither a name nor an address")
        }
        guard (1...65_535).contains(configuration.port) else {
            throw bad("the port of the SMTP server is not between 1 and 65535")
        }
        if let name = configuration.name, !isName(name) { throw bad("the name for EHLO is not a host name") }
        if configuration.password != nil || configuration.user != nil {
            guard let user = configuration.user, let password = configuration.password else {
                throw bad("a user needs a password, and a password a user")
            }
            guard !user.utf8.contains(where: { $0 < 0x20 }), !password.utf8.contains(where: { $0 < 0x20 }) else {
                throw bad("user and password must not hold control characters")
            }
            switch configuration.security {
            case .required, .implicit: break
            case .opportunistic, .none:
                throw TransferError(
                    .authentication, .unsent, "a password is only sent over TLS: choose required or implicit")
            }
        }
        self.configuration = configuration
        let host = configuration.host.contains(":") ? "[\(configuration.host)]" : configuration.host
        var scheme = "smtp"
        if case .implicit = configuration.security { scheme = "smtps" }
        url = "\(scheme)://\(host):\(configuration.port)/\(configuration.name ?? "")"
    }

    func set(on easy: CurlHandle, _ envelope: SMTPEnvelope, recipients: TextList, remaining: Duration) {
        easy.setCommon(configuration.trust)
        easy.set(CURLOPT_PROTOCOLS_STR, "smtp,smtps")
        easy.set(CURLOPT_URL, url)
        switch configuration.security {
        case .required, .implicit: easy.set(CURLOPT_USE_SSL, Int(CURLUSESSL_ALL.rawValue))
        case .opportunistic: easy.set(CURLOPT_USE_SSL, Int(CURLUSESSL_TRY.rawValue))
        case .none: easy.set(CURLOPT_USE_SSL, Int(CURLUSESSL_NONE.rawValue))
        }
        if let user = configuration.user, let password = configuration.password {
            easy.set(CURLOPT_USERNAME, user)
            easy.set(CURLOPT_PASSWORD, password)
        }
        easy.set(CURLOPT_MAIL_FROM, envelope.from)
        easy.set(CURLOPT_MAIL_RCPT, recipients)
        precondition(millrace_go_on_without_refused_recipients(easy.raw) == CURLE_OK)
        easy.set(CURLOPT_UPLOAD, true)
        easy.set(CURLOPT_INFILESIZE_LARGE, offset: envelope.length)
        easy.set(CURLOPT_TIMEOUT_MS, max(1, remaining.milliseconds))
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, max(1, configuration.limits.connect.milliseconds))
        easy.set(CURLOPT_SERVER_RESPONSE_TIMEOUT, max(1, (remaining.milliseconds + 999) / 1000))
        easy.set(CURLOPT_MAXLIFETIME_CONN, max(1, configuration.connectionLife.milliseconds / 1000))
        easy.set(CURLOPT_MAXAGE_CONN, max(1, configuration.idleLife.milliseconds / 1000))
    }
}
