import Postgres
import TestSupport
import Testing

/// What the check-ins say is in the language of who reads it.
@Suite struct LanguageTests {
    private let last =
        "select concat_ws('|', data ->> 'title', data ->> 'body', data ->> 'locale') from millrace.notice order by created_at desc, key limit 1"

    private func profile(
        _ person: String, _ name: String, _ locale: String, on connection: Connection
    ) async throws {
        try await connection.run(
            "select millrace.person_profile('\(person)', '\(name)', '\(locale)', actor => '\(person)')")
    }

    @Test func `a person is warned in its own language`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.arm("anna", "every => '1 hour', warnings => '{20 min, 10 min}',")
            try await connection.advance(by: "41 min")
            try await connection.watch()
            let english = try await connection.value(last)
            #expect(english?.hasPrefix("Please check in|Please check in by ") == true, "\(english ?? "")")
            try await profile("anna", "Anna", "de-AT", on: connection)
            try await connection.advance(by: "10 min")
            try await connection.watch()
            let german = try await connection.value(last)
            #expect(german?.hasPrefix("Bitte melde dich|Bitte melde dich bis 20") == true, "\(german ?? "")")
            #expect(german?.hasSuffix("(UTC), sonst erfahren es deine Kontakte.|de-AT") == true, "\(german ?? "")")
        }
    }

    @Test func `a contact is asked in the asker's language, and by push in its own`() async throws {
        try await withConnection(.movableClock) { connection in
            try await profile("anna", "Anna", "de", on: connection)
            try await profile("ben", "Ben", "en-GB", on: connection)
            func ask(_ contact: String, _ channels: String) async throws -> String {
                try await connection.run(
                    "select millrace.check_in_contact('anna', '\(contact)', 1, '\(channels)', actor => 'anna')")
                return try await connection.value(
                    "select concat_ws('|', data ->> 'title', data ->> 'body', data ->> 'locale') from millrace.notice where person = '\(contact)'"
                ) ?? ""
            }
            let german =
                "Anna möchte dich als Notfallkontakt|Anna fragt, ob du es erfahren willst, "
                + "wenn Anna sich nicht meldet. Bitte antworte mit Ja, Nein oder „Nie wieder fragen“.|de"
            #expect(try await ask("mum", #"{"mail": "mum@example.com"}"#) == german)
            // Anybody may give an address of their own and another's id: the mail must not show the other's language.
            #expect(try await ask("ben", #"{"mail": "anna@example.com"}"#) == german)
            try await connection.run("delete from millrace.notice; delete from millrace.watch_contact")
            #expect(
                try await ask("ben", #"{"push": true}"#)
                    == "Anna wants you as an emergency contact|Anna asks whether you want to be told "
                    + "when they do not check in. Please say yes, no, or never ask me again.|en-GB")
            #expect(
                try await connection.value(
                    "select millrace.alarm_page(null, ref) ->> 'language' from millrace.watch_address") == "en")
            try await connection.run("select millrace.check_in_accept('anna', true, actor => 'ben')")
            try await connection.run("select millrace.check_in_alarm('anna', null, 'anna')")
            #expect(try await connection.value(last)?.hasPrefix("Anna asks for help|") == true)
            #expect(try await connection.value(last)?.hasSuffix("|en-GB") == true)
        }
    }

    @Test func `a contact reads an alarm in its own language by every channel, with a name and never an id`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await profile("u-1", "Anna", "en", on: connection)
            let said = [
                "de": ["Anna bittet um Hilfe", "Anna hat um ", "kümmert sich um Anna", "Der Alarm um Anna ist vorbei"],
                "ar": ["طلب مساعدة من Anna", "وصل طلب مساعدة من Anna", "رد من ", "انتهى الإنذار الخاص بـ Anna"],
                "fr": [
                    "Anna asks for help", "Anna asked for help at", " looks after Anna", "The alarm about Anna is over",
                ],
            ]
            for locale in said.keys {
                try await profile("c-\(locale)", "Name-\(locale)", locale, on: connection)
                try await connection.run(
                    """
                    select millrace.check_in_contact('u-1', 'c-\(locale)', 1, '{"push": true, "mail": "\(locale)@example.com", "sms": "+4912345\(locale.count)\(said[locale]?[0].count ?? 0)"}', actor => 'u-1'),
                           millrace.check_in_confirm('u-1', 'c-\(locale)'), millrace.check_in_accept('u-1', true, 'c-\(locale)')
                    """)
            }
            let alarm = try await connection.value("millrace.check_in_alarm('u-1', null, 'u-1')") ?? ""
            try await connection.run(
                "select millrace.check_in_respond('\(alarm)', 'c-de', 'acknowledged'), millrace.check_in_respond('\(alarm)', 'u-1', 'safe')"
            )
            for (locale, parts) in said {
                for channel in ["push", "mail", "sms"] {
                    let texts = try await connection.column(
                        "select concat_ws('|', data ->> 'title', data ->> 'body') from millrace.notice where person = 'c-\(locale)' and channel = '\(channel)' and kind <> 'alarm.consent' order by created_at, kind"
                    )
                    let all = texts.joined(separator: "\n")
                    for part in parts where locale != "de" || !part.contains("kümmert") {
                        #expect(all.contains(part), "\(locale) \(channel): \(all)")
                    }
                    #expect(!all.contains("u-1") && !all.contains("c-de"), "\(locale) \(channel): \(all)")
                }
            }
            let page =
                try await connection.value(
                    "millrace.alarm_page('\(alarm)', (select ref from millrace.watch_address where contact = 'c-ar' and channel = 'push'))"
                ) ?? ""
            let raised = try await connection.value(
                "select data ->> 'body' from millrace.notice where person = 'c-ar' and kind = 'alarm.raised' limit 1")
            let words = try #require(raised).split(separator: "\u{200e}", omittingEmptySubsequences: false)
            #expect(words.count == 3, "the time keeps its order among Arabic letters")
            #expect(words[1].wholeMatch(of: /\d{4}-\d\d-\d\d \d\d:\d\d \([A-Za-z\/]+\)/) != nil)
            #expect(page.contains(#""language": "ar""#) && page.contains("انتهى الإنذار الخاص بـ Anna"))
        }
    }

    @Test func `a profile has a picture and a map, and others see the name and the picture alone`() async throws {
        try await withConnection { (connection: Connection) async throws -> Void in
            try await connection.run(
                """
                select millrace.person_profile('anna', 'Anna', 'de', avatar => 'https://img.example.com/a.png', map => 'apple', actor => 'anna');
                select millrace.family_create('f', 'UTC'), millrace.family_join('f', 'anna', 'teen'), millrace.family_join('f', 'mum', 'parent')
                """)
            #expect(
                try await connection.value("millrace.person_show('anna', 'mum')")
                    == #"{"avatar": "https://img.example.com/a.png", "person": "anna", "display_name": "Anna"}"#)
            #expect(try await connection.value("millrace.person_show('anna', 'anna') ->> 'map'") == "apple")
            #expect(try await connection.refusal(of: "select millrace.person_show('anna', 'eve')")?.sqlState == "42501")
            for wrong in [
                "avatar => 'http://a.example/x'", "avatar => 'blob:12'", "avatar => 'https://a b'", "map => 'bing'",
            ] {
                #expect(
                    try await connection.refusal(
                        of: "select millrace.person_profile('anna', \(wrong), actor => 'anna')")?.sqlState == "22023",
                    "\(wrong)")
            }
            try await connection.run("select millrace.person_profile('anna', avatar => '', map => '', actor => 'anna')")
            #expect(try await connection.value("millrace.person_show('anna', 'anna') ->> 'map'") == nil)
        }
    }

    @Test func `a contact who is told no more hears of it in its language, and no name when the person is erased`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await profile("u-1", "Anna", "de", on: connection)
            try await connection.befriend("u-1", "mum")
            try await connection.befriend("u-1", "dad")
            try await connection.run("select millrace.check_in_alarm('u-1', null, 'u-1')")
            try await connection.run("select millrace.check_in_contact_remove('u-1', 'dad', 'u-1')")
            let told =
                "select concat_ws('|', data ->> 'title', data ->> 'body') from millrace.notice where key ~ ':left:' order by person"
            let left = try await connection.column(told)
            #expect(left.count == 1 && left.first?.hasPrefix("Der Alarm um Anna ist für dich vorbei|") == true)
            #expect(left.first?.contains("kein Kontakt von Anna mehr. Du musst nichts weiter tun.") == true, "\(left)")
            try await connection.run("select millrace.person_erase('u-1', 'u-1')")
            let over = try await connection.column(told)
            #expect(over.count == 2 && over.allSatisfy { $0.hasPrefix("Ein Alarm ist vorbei|") }, "\(over)")
            #expect(over.allSatisfy { $0.contains("Die Person nutzt diesen Dienst nicht mehr.") }, "\(over)")
            #expect(!over.contains { $0.contains("Anna") || $0.contains("u-1") })
        }
    }

    @Test func `an empty text clears a name, a locale or a zone, and null leaves it as it is`() async throws {
        try await withConnection { (connection: Connection) async throws -> Void in
            func after(_ arguments: String) async throws -> String? {
                let call = "select millrace.person_profile('anna', \(arguments), actor => 'anna')"
                if let error = try await connection.refusal(of: call) { return "\(error.sqlState) \(error.message)" }
                return try await connection.value(
                    "select concat_ws(' ', coalesce(display_name, '-'), coalesce(locale, '-'), coalesce(zone, '-')) from millrace.profile"
                )
            }
            #expect(try await after("'Anna', 'de', 'Europe/Vienna'") == "Anna de Europe/Vienna")
            #expect(try await after("zone => ''") == "Anna de -")
            #expect(try await connection.value("select millrace.zone_of('anna')") == nil)
            #expect(try await after("null, ''") == "Anna - -")
            #expect(try await after("''") == "- - -")
            #expect(try await connection.value("select millrace.display_name('anna')") == "anna")
            #expect(try await after("'Anna', '', 'UTC'") == "Anna - UTC")
            #expect(try await after("'  '")?.hasPrefix("22023 display_name is blank") == true)
            #expect(try await after("null, ' '") == "22023 the locale is malformed")
            #expect(try await after("zone => ' '") == "22023 the zone ' ' is unknown")
            #expect(try await after("null") == "Anna - UTC")
        }
    }
}
