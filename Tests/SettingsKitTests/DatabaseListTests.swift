import SettingsKit
import Testing

@Suite struct DatabaseListTests {
    private static func read(_ text: String) -> [NamedDatabase]? { try? DatabaseList.read(text) }

    @Test func `names and URLs are parted by commas or lines`() {
        let both = [
            NamedDatabase("eu", url: "postgres://u:p@h1/a"),
            NamedDatabase("us-2", url: "postgresql://h2/b?sslmode=require"),
        ]
        #expect(Self.read("eu=postgres://u:p@h1/a,us-2=postgresql://h2/b?sslmode=require") == both)
        #expect(Self.read(" eu = postgres://u:p@h1/a ,  us-2=postgresql://h2/b?sslmode=require,") == both)
        #expect(Self.read("eu=postgres://u:p@h1/a\n\nus-2=postgresql://h2/b?sslmode=require\n") == both)
    }

    @Test func `a URL may name several hosts`() {
        #expect(
            Self.read("eu=postgres://h1:5432,h2:5433,h3/a?target_session_attrs=read-write,us=postgres://h4/b") == [
                NamedDatabase("eu", url: "postgres://h1:5432,h2:5433,h3/a?target_session_attrs=read-write"),
                NamedDatabase("us", url: "postgres://h4/b"),
            ])
    }

    @Test func `a way around a pooler stands beside its database`() {
        #expect(
            Self.read("eu=postgres://pool/a, eu.direct=postgres://h1/a, us=postgres://h2/b") == [
                NamedDatabase("eu", url: "postgres://pool/a", direct: "postgres://h1/a"),
                NamedDatabase("us", url: "postgres://h2/b"),
            ])
    }

    @Test(arguments: [
        ("", "takes names with URLs"), (",", "takes names with URLs"),
        ("postgres://u:hunter2@h/a", "number 1, that does not begin with a name"),
        ("eu=postgres://h/a\npostgres://u:hunter2@h/b", "number 2, that does not begin with a name"),
        ("EU=postgres://u:hunter2@h/a", "number 1, without a proper name"),
        ("eu=postgres://h/a, 2=postgres://u:hunter2@h/a", "number 2, without a proper name"),
        ("eu=host=h password=hunter2", "names eu, whose address must be a postgres:// URL"),
        ("eu=postgres://u:hunter2@h:port/a", "names eu, whose address has a port"),
        ("eu=postgres://h/a,eu=postgres://h/b", "names eu twice"),
        ("eu=postgres://u:hunter2@h/a,us=postgres://u:hunter2@h/a", "one address twice, as eu and us"),
        ("eu=postgres://h/a,us.direct=postgres://h/b", "us.direct without us"),
        ("eu=postgres://h/a,eu.direct=postgres://h/b,eu.direct=postgres://h/c", "eu.direct twice"),
    ])
    func `what cannot be used is refused by a sentence that holds no secret`(text: String, says: String) throws {
        let complaint = try #require(DatabaseList.complaint(text))
        #expect(complaint.contains(says), "\(complaint)")
        #expect(!complaint.contains("hunter2"))
    }

    @Test func `secrets are masked, and names stay`() {
        #expect(
            DatabaseList.masked("eu=postgres://u:hunter2@h/a, us=postgres://h/b?password=hunter2")
                == "eu=postgres://u:***@h/a, us=postgres://h/b?password=***")
        #expect(DatabaseList.masked("eu=hunter2") == "***")
    }
}
