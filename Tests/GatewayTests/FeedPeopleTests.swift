import MillraceQueues
import Postgres
import TestSupport
import Testing

/// What an app needs that begins again on a new phone: the family, who is in it, how everybody is called, and pictures that load.
@Suite struct FeedPeopleTests {
    @Test func `after a reinstall the family is there: members, names, roles and open invitations`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily("f", [("mum", "parent"), ("kid", "teen")])
            try await connection.run(
                """
                select millrace.person_profile('mum', 'Mum', avatar => 'https://img.example.com/m.png', actor => 'mum');
                select millrace.family_invite('f', 'eve', 'teen', 'mum')
                """)
            func mine(_ person: String, _ path: String) async throws -> String? {
                try await connection.value("select millrace.family_mine('\(person)') #>> '{\(path)}'")
            }
            #expect(
                try await [mine("kid", "family"), mine("kid", "role"), mine("kid", "zone")] == ["f", "teen", "UTC"])
            #expect(try await mine("kid", "members,0,display_name") == "Mum")
            #expect(try await mine("kid", "members,0,avatar") == "https://img.example.com/m.png")
            #expect(try await [mine("kid", "members,1,person"), mine("kid", "members,2")] == ["kid", nil])
            #expect(try await mine("kid", "invited") == "[]", "whom the family invites its parents see")
            #expect(try await mine("mum", "invited,0,person") == "eve")
            #expect(try await [mine("eve", "family"), mine("eve", "members")] == [nil, "[]"])
            #expect(try await mine("eve", "invited_to,0,family") == "f")
            #expect(try await mine("eve", "invited_to,0,invited_by_name") == "Mum")
            let shown = try await connection.records(
                "select s ->> 'family', s ->> 'role' from millrace.person_show('kid', 'kid') s")
            #expect(shown == ["(f,teen)"])
            try await connection.run("select millrace.family_leave('f', 'kid')")
            #expect(try await [mine("kid", "family"), mine("kid", "members")] == [nil, "[]"])
        }
    }

    @Test func `a changed name or picture is told to those who may see it, and the rest to the person alone`()
        async throws
    {
        try await withConnection { connection in
            try await connection.makeFamily("f", [("mum", "parent"), ("kid", "teen")])
            try await connection.befriend("kid", "bob")
            try await connection.run(
                #"select millrace.check_in_contact('kid', 'cyd', 1, '{"push": true}', actor => 'kid')"#)
            try await connection.run(
                """
                select millrace.person_profile('kid', 'Kid', 'de', 'Europe/Berlin', actor => 'kid');
                select millrace.person_profile('kid', locale => 'ar', actor => 'kid');
                select millrace.notice_preferences('kid', 'UTC', '22:00', '07:00', '{"mail": "kid@example.com"}', 'de', 'kid')
                """)
            let own = try await connection.feed(of: "kid", topics: "'{people}'")
            #expect(own.changes == ["people profile", "people profile", "people preferences"])
            #expect(own.data[1].contains(#""locale": "ar""#) && !own.data[2].contains("@"))
            for other in ["mum", "bob"] {
                let heard = try await connection.feed(of: other, topics: "'{people}'")
                #expect(heard.refs == ["kid"], "\(other)")
                #expect(heard.data.first?.contains("Kid") == true && heard.data.first?.contains("locale") == false)
            }
            // She was asked, and has not agreed.
            for other in ["cyd", "eve"] {
                #expect(try await connection.feed(of: other, topics: "'{people}'").changes.isEmpty)
            }
            // The name goes with the person.
            try await connection.run("select millrace.person_erase('kid', 'kid')")
            #expect(try await connection.feed(of: "mum", topics: "'{people}'").changes.isEmpty)
        }
    }

    @Test func `an invitation is told to the one who is invited and to the parents, and so is its end`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily("f", [("mum", "parent"), ("kid", "teen")])
            try await connection.run(
                "select millrace.family_invite('f', 'eve', 'teen', 'mum'), millrace.family_uninvite('f', 'eve', 'eve')")
            for person in ["eve", "mum"] {
                let heard = try await connection.feed(of: person, topics: "'{people}'")
                #expect(heard.changes == ["people invited", "people invitation_declined"])
                #expect(heard.refs == ["f", "f"])
            }
            #expect(try await connection.feed(of: "kid", topics: "'{people}'").changes.isEmpty)
            try await connection.run("select millrace.family_join('f', 'eve', 'teen')")
            #expect(
                try await connection.feed(of: "mum", topics: "'{people}'").changes.last == "people invitation_ended")
            // Of the inviter nothing stays when it is erased.
            try await connection.run("select millrace.person_erase('mum', 'mum')")
            #expect(try await connection.int("select count(*) from millrace.feed f where f::text ~ 'mum'") == 0)
        }
    }

    @Test
    func `a picture that is kept here loads for the family and contacts who agreed, for as long as it is the picture`()
        async throws
    {
        try await withConnection { connection in
            try await connection.makeFamily("f", [("mum", "parent"), ("kid", "teen")])
            try await connection.befriend("kid", "bob")
            try await connection.run(
                #"""
                select millrace.link_key_set(sha256('k'), 'https://a.example', null, true);
                select millrace.blob_put(sha256('\xffd8ff01'), '\xffd8ff01'), millrace.blob_put(sha256('\x89504e470d0a1a0a02'), '\x89504e470d0a1a0a02');
                select millrace.person_profile('kid', avatar => 'blob:' || encode(sha256('\xffd8ff01'), 'hex'), actor => 'kid')
                """#)
            func link(_ reader: String) async throws -> String? {
                try await connection.value("select millrace.person_avatar_link('kid', actor => '\(reader)')")
            }
            for reader in ["kid", "mum", "bob"] {
                let link = try await link(reader) ?? ""
                #expect(link.hasPrefix("https://a.example/v1/blobs/g."), "\(reader)")
                #expect(link.contains("696d6167652f6a706567"), "it says image/jpeg")
            }
            #expect(
                try await connection.refusal(of: "select millrace.person_avatar_link('kid', actor => 'eve')")?.sqlState
                    == "42501")
            let kept = "select count(*) from millrace.blob_reference where owner = 'avatar:kid'"
            #expect(try await connection.int(kept) == 1)
            // Another picture takes its place; links to the former one end with its reference.
            try await connection.run(
                #"select millrace.person_profile('kid', avatar => 'blob:' || encode(sha256('\x89504e470d0a1a0a02'), 'hex'), actor => 'kid')"#
            )
            #expect(try await connection.int(kept) == 1)
            #expect(
                try await connection.value(#"select millrace.blob_link_holds(sha256('\xffd8ff01'), 'avatar:kid')"#)
                    == "false")
            try await connection.run(
                "select millrace.person_profile('kid', avatar => 'https://img.example.com/k.png', actor => 'kid')")
            #expect(try await connection.int(kept) == 0)
            #expect(try await link("mum") == "https://img.example.com/k.png")
            try await connection.run(
                #"select millrace.person_profile('kid', avatar => 'blob:' || encode(sha256('\xffd8ff01'), 'hex'), actor => 'kid')"#
            )
            try await connection.run("select millrace.person_erase('kid', 'kid')")
            #expect(try await connection.int(kept) == 0)
        }
    }

    @Test func `a hash alone makes nothing a picture: it must have been given to whom names it`() async throws {
        let office = try await TestCluster.office()
        let (login, role) = (TestCluster.name("gateway"), TestCluster.name("client"))
        try await office.run("create role \(login) login noinherit; create role \(role); grant \(role) to \(login)")
        try await withDatabase(.empty) { database in
            let owner = try await database.connect()
            _ = try await Migrator.ofAllRooms(roles: [("client", role)]).migrate(on: owner)
            try await owner.run(
                "select millrace.trust_claims('\(login)'), millrace.blob_put(sha256('x'), 'x'), millrace.blob_put(sha256('y'), 'y'), millrace.blob_allow(sha256('y'), '\(role)', 'person:ada')"
            )
            let phone = try await database.connect(as: login)
            try await phone.run(#"set role \#(role); select set_config('request.jwt.claims', '{"sub": "ada"}', false)"#)
            func set(_ content: String) -> String {
                "select millrace.person_profile('ada', avatar => 'blob:' || encode(sha256('\(content)'), 'hex'))"
            }
            // Another's file, and none at all, are answered alike.
            for content in ["x", "z"] {
                let refusal = try await phone.refusal(of: set(content))
                #expect(refusal?.sqlState == "P0002" && refusal?.detail?.contains("avatar") == true)
            }
            #expect(try await phone.refusal(of: set("y")) == nil)
            await phone.close()
            await owner.close()
        }
        try await office.run("drop owned by \(role); drop role \(role); drop role \(login)")
        await office.close()
    }
}
