import CommandKit

extension Command {
    static let mailDoctor = Command(
        ["mail", "doctor"],
        summary: "Check whether receivers can verify a domain's mail",
        discussion: """
            Checks SPF, DKIM and DMARC in the DNS, as the configured service needs them. Exit 10 with warnings, 11 \
            when mail is likely to be refused. Needs no database.
            """,
        arguments: [
            Argument("domain", .optional, help: "the domain of the From address; EMAIL_FROM_ADDRESS's if not given")
        ],
        flags: [
            .repeated("selector", "NAME", environment: .none, help: "A DKIM selector; resend if not given.")
        ],
        examples: [Example("millrace mail doctor example.com", "what is there, what is missing, what to do")]
    ) { invocation in
        let settings = invocation.settings
        let own = settings.text(.emailFrom)?.split(separator: "@").last.map(String.init)
        guard let domain = invocation.parsed.string("domain") ?? own else {
            throw Failure(.misused, "no domain is given", hint: "name one, or set EMAIL_FROM_ADDRESS")
        }
        var options =
            settings.mailChoice.provider == "resend" ? MailDoctor.Options.resend(domain) : .init(domain: domain)
        let selectors = invocation.parsed.list("selector")
        if !selectors.isEmpty { options.selectors = selectors }
        let findings: [MailDoctor.Finding]
        do throws(Complaint) {
            findings = try await MailDoctor().examine(options)
        } catch {
            throw Failure(.misused, error.description)
        }
        var table = Table([
            Table.Column("check"), Table.Column("is"), Table.Column("what was found", shrinks: true),
            Table.Column("what to do", shrinks: true),
        ])
        for finding in findings {
            table.add([
                Table.Cell(finding.check, .bold), Table.Cell(finding.weight.rawValue), Table.Cell(finding.what),
                Table.Cell(finding.advice),
            ])
        }
        let items = findings.map { finding -> JSONValue in
            [
                "check": .string(finding.check), "weight": .string(finding.weight.rawValue),
                "what": .string(finding.what), "advice": .string(finding.advice),
            ]
        }
        invocation.console.list("findings", items, table: table)
        switch findings.map(\.weight).max() {
        case .critical?: return .critical
        case .warning?: return .degraded
        case .fine?, .notice?, nil: return .done
        }
    }
}
