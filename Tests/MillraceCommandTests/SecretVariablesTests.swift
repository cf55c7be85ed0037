import Testing

@testable import MillraceCommand

@Suite struct SecretVariablesTests {
    @Test func `what is secret goes from the environment, and what is needed later stays`() {
        let secret = [
            "DATABASE_URL": "host=/tmp", "MILLRACE_DIRECT_URL": "postgresql://h/d", "PGPASSWORD": "p",
            "MILLRACE_SECRET": "s", "MILLRACE_SECRET_PREVIOUS": "s", "MILLRACE_TOKEN": "t",
            "MILLRACE_ENCRYPTION_KEY": "k", "RESEND_API_KEY": "k", "RESEND_WEBHOOK_SECRET": "s",
            "MILLRACE_MAIL_SMTP_URL": "smtp://h",
            "AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "k", "AWS_SESSION_TOKEN": "t",
            "SUPABASE_SERVICE_ROLE_KEY": "k", "STRIPE_SECRET": "s", "GITHUB_TOKEN": "t", "SIGNING_KEY": "k",
            "OTHER_URL": "https://user:p@h/", "REDIS": "redis://:p@h",
        ]
        let open = [
            "PATH": "/bin", "HOME": "/root", "TZ": "UTC", "TMPDIR": "/tmp", "PGHOST": "h", "PGUSER": "u",
            "PGSSLKEY": "/etc/key", "PGPASSFILE": "/etc/pass", "DATABASE_URL_FILE": "/etc/url",
            "MILLRACE_SECRET_FILE": "/etc/secret", "MILLRACE_LISTEN": "off", "PROXY": "http://h/a@b", "LANG": "C",
        ]
        let names = SecretVariables.names(in: secret.merging(open) { $1 }, settings: Setting.all)
        #expect(names.sorted() == secret.keys.sorted())
    }

    @Test func `every secret setting is forgotten, however it is named`() {
        let secret = Setting.all.filter { $0.secrecy != .open }
        #expect(secret.count > 10)
        let environment = Dictionary(secret.map { ($0.environment, "x") }) { $1 }
        #expect(Set(SecretVariables.names(in: environment, settings: Setting.all)) == Set(environment.keys))
    }
}
