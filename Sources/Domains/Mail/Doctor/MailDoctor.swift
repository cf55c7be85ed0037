package import HostNames

/// Checks whether receivers can verify a domain's mail (SPF, DKIM and DMARC), and says what to do for each.
package struct MailDoctor: Sendable {
    package enum Weight: String, Sendable, Comparable {
        case fine, notice, warning, critical

        package static func < (one: Weight, other: Weight) -> Bool { one.rank < other.rank }

        private var rank: Int {
            switch self {
            case .fine: 0
            case .notice: 1
            case .warning: 2
            case .critical: 3
            }
        }
    }

    package struct Finding: Sendable, Equatable {
        package var check: String
        package var weight: Weight
        package var what: String
        /// Empty when there is nothing to do.
        package var advice: String
    }

    package struct Options: Sendable {
        /// The domain of the From address.
        package var domain: String
        /// The domain of the envelope's sender, where bounces go: Resend uses send.<domain>.
        package var bounceDomain: String?
        /// DKIM selectors; Resend's is resend.
        package var selectors = ["resend"]
        /// The domain that SPF must include for the provider, if it is known.
        package var include: String?

        package init(domain: String) { self.domain = domain }

        /// As Resend sets domains up.
        package static func resend(_ domain: String) -> Options {
            var options = Options(domain: domain)
            options.bounceDomain = "send.\(domain)"
            options.include = "amazonses.com"
            return options
        }
    }

    private let resolver: Resolver

    package init(resolver: Resolver = .system) { self.resolver = resolver }

    package func examine(_ options: Options) async throws(Complaint) -> [Finding] {
        var options = options
        options.domain = try HostName.ascii(options.domain)
        if let bounces = options.bounceDomain { options.bounceDomain = try HostName.ascii(bounces) }
        var findings = await spf(options)
        for selector in options.selectors { findings.append(await dkim(options.domain, selector)) }
        findings += await dmarc(options.domain)
        return findings
    }

    // SPF

    private func spf(_ options: Options) async -> [Finding] {
        let domain = options.bounceDomain ?? options.domain
        func finding(_ weight: Weight, _ what: String, _ advice: String = "") -> Finding {
            Finding(check: "SPF", weight: weight, what: what, advice: advice)
        }
        do throws(Resolver.Failure) {
            let records = try await resolver.texts(domain).filter(Self.isSPF)
            guard let record = records.first else {
                let include = options.include.map { "include:\($0) " } ?? ""
                return [
                    finding(
                        .critical, "\(domain) has no SPF record",
                        "add a TXT record at \(domain): \"v=spf1 \(include)~all\"")
                ]
            }
            guard records.count == 1 else {
                return [
                    finding(
                        .critical, "\(domain) has \(records.count) SPF records, which counts as none",
                        "merge them into one TXT record")
                ]
            }
            var findings: [Finding] = []
            let terms = Self.terms(record)
            if let include = options.include, !terms.contains("include:\(include)") {
                findings.append(
                    finding(
                        .critical, "the SPF record of \(domain) does not name the provider",
                        "add include:\(include) to it"))
            }
            let (lookups, problem) = try await lookups(of: domain, depth: 0)
            if let problem { findings.append(finding(.critical, problem, "repair or remove that part of the record")) }
            if lookups > 10 {
                findings.append(
                    finding(
                        .critical,
                        "the SPF record of \(domain) needs \(lookups) look-ups; more than 10 count as an error",
                        "remove includes that are not used any more"))
            }
            let all = terms.last { $0.hasSuffix("all") }
            switch all {
            case "+all", "all":
                findings.append(
                    finding(.critical, "the SPF record of \(domain) lets everybody send", "end it with ~all or -all"))
            case "?all":
                findings.append(
                    finding(.warning, "the SPF record of \(domain) ends undecided", "end it with ~all or -all"))
            case nil where !terms.contains(where: { $0.hasPrefix("redirect=") }):
                findings.append(
                    finding(
                        .warning, "the SPF record of \(domain) does not say what to do with all other senders",
                        "end it with ~all")
                )
            default: break
            }
            if findings.isEmpty {
                findings.append(finding(.fine, "\(domain) has an SPF record with \(lookups) look-ups"))
            }
            if options.bounceDomain != nil, try await resolver.count(domain, .mail) == 0 {
                findings.append(
                    finding(
                        .warning, "\(domain) has no MX record, so bounces are lost",
                        "add the MX record that the provider names"))
            }
            return findings
        } catch {
            return [finding(.warning, "the DNS does not answer for \(domain)", "try again later; nothing is known")]
        }
    }

    private static func isSPF(_ text: String) -> Bool {
        let folded = text.lowercased()
        return folded == "v=spf1" || folded.hasPrefix("v=spf1 ")
    }

    private static func terms(_ record: String) -> [String] {
        record.lowercased().split(separator: " ").dropFirst().map(String.init)
    }

    /// Counts the DNS look-ups of an SPF record with all its includes (RFC 7208, 4.6.4), and names an include that is broken.
    private func lookups(of domain: String, depth: Int) async throws(Resolver.Failure) -> (Int, String?) {
        guard depth < 12 else { return (11, "the SPF records include one another in a circle") }
        guard let record = try await resolver.texts(domain).first(where: Self.isSPF) else {
            return (0, depth > 0 ? "the SPF record includes \(domain), which has none" : nil)
        }
        var sum = 0
        var problem: String?
        for term in Self.terms(record) {
            let bare = term.drop { "+-~?".contains($0) }
            let name = bare.prefix { $0 != ":" && $0 != "=" && $0 != "/" }
            switch name {
            case "include", "redirect":
                sum += 1
                let (more, wrong) = try await lookups(
                    of: String(bare.dropFirst(name.count + 1)), depth: depth + 1)
                sum += more
                problem = problem ?? wrong
            case "a", "mx", "ptr", "exists": sum += 1
            case "ip4", "ip6", "all", "exp": break
            default: problem = problem ?? "the SPF record of \(domain) has an invalid part"
            }
            if sum > 40 { break }
        }
        return (sum, problem)
    }

    // DKIM

    private func dkim(_ domain: String, _ selector: String) async -> Finding {
        let name = "\(selector)._domainkey.\(domain)"
        func finding(_ weight: Weight, _ what: String, _ advice: String = "") -> Finding {
            Finding(check: "DKIM", weight: weight, what: what, advice: advice)
        }
        do throws(Resolver.Failure) {
            let records = try await resolver.texts(name).map(Self.tags)
            guard let record = records.first(where: { $0["p"] != nil }) else {
                return finding(
                    .critical, "\(name) has no key", "add the TXT record that the provider shows for this domain")
            }
            let key = (record["p"] ?? "").filter { $0 != " " }
            guard !key.isEmpty else {
                return finding(
                    .critical, "the key at \(name) has been withdrawn", "put the provider's present key there")
            }
            if (record["t"] ?? "").split(separator: ":").contains("y") {
                return finding(.warning, "the key at \(name) is marked as only being tested", "remove t=y")
            }
            // A SubjectPublicKeyInfo of 1024 bits has 162 bytes.
            if record["k", default: "rsa"] == "rsa", key.utf8.count < 216 {
                return finding(
                    .critical, "the key at \(name) is shorter than 1024 bits", "have the provider make a new one")
            }
            return finding(.fine, "\(name) has a key")
        } catch {
            return finding(.warning, "the DNS does not answer for \(name)", "try again later; nothing is known")
        }
    }

    // DMARC

    private func dmarc(_ domain: String) async -> [Finding] {
        func finding(_ weight: Weight, _ what: String, _ advice: String = "") -> Finding {
            Finding(check: "DMARC", weight: weight, what: what, advice: advice)
        }
        do throws(Resolver.Failure) {
            // The domain's own record, or its parent's; in the parent's record `sp` counts before `p`.
            var name = domain
            var found: [String] = []
            var isParent = false
            while found.isEmpty {
                found = try await resolver.texts("_dmarc.\(name)").filter { $0.lowercased().hasPrefix("v=dmarc1") }
                let labels = name.split(separator: ".")
                guard found.isEmpty, labels.count > 2 else { break }
                name = labels.dropFirst().joined(separator: ".")
                isParent = true
            }
            guard let record = found.first else {
                return [
                    finding(
                        .critical, "\(domain) has no DMARC record; large providers refuse bulk mail without one",
                        "add a TXT record at _dmarc.\(domain): \"v=DMARC1; p=none; rua=mailto:<an address of yours>\"")
                ]
            }
            guard found.count == 1 else {
                return [
                    finding(
                        .critical, "_dmarc.\(name) has \(found.count) records, which counts as none",
                        "keep one of them")
                ]
            }
            let tags = Self.tags(record)
            let policy = (isParent ? tags["sp"] : nil) ?? tags["p"] ?? ""
            var findings: [Finding] = []
            switch policy.lowercased() {
            case "reject", "quarantine": findings.append(finding(.fine, "_dmarc.\(name) says \(policy.lowercased())"))
            case "none":
                findings.append(
                    finding(
                        .notice, "_dmarc.\(name) asks for nothing (p=none)",
                        "once the reports show only your own mail, set p=quarantine"))
            default:
                findings.append(
                    finding(.critical, "_dmarc.\(name) has no valid policy", "set p=none, p=quarantine or p=reject"))
            }
            if tags["rua"] == nil {
                findings.append(
                    finding(.notice, "_dmarc.\(name) asks for no reports", "add rua=mailto:<an address of yours>"))
            }
            return findings
        } catch {
            return [
                finding(.warning, "the DNS does not answer for _dmarc.\(domain)", "try again later; nothing is known")
            ]
        }
    }

    /// `a=b; c=d`
    private static func tags(_ record: String) -> [String: String] {
        var tags: [String: String] = [:]
        for part in record.split(separator: ";") {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard sides.count == 2 else { continue }
            tags[trim(sides[0]).lowercased()] = String(trim(sides[1]))
        }
        return tags
    }
}
