package import Schema

/// The rooms of this program, each with its tables and functions. A room stands behind those that it needs.
package enum RoomSchemas {
    package static let all: [RoomSchema] = [
        blobs,
        events,
        people,
        quotas,
        feed,
        templates,
        webhooks,
        mail,
        notices,
        ai,
        documents,
        media,
        lessons,
        subscriptions,
        quests,
        checkins,
        chat,
        gateway,
        console,
    ]

    package static let names = all.map(\.name)

    package static let blobs = RoomSchema(
        name: "blobs", needs: [],
        purpose: "contents by their hash, links to upload and download them",
        migrations: [
            Script("001_blobs", Embedded._001_blobs),
            Script("002_upload_parts", Embedded._002_upload_parts),
        ],
        functions: [
            Script("blobs", Embedded.blobs),
            Script("uploads", Embedded.uploads),
            Script("blobs_hooks", Embedded.blobs_hooks),
        ])

    package static let events = RoomSchema(
        name: "events", needs: [],
        purpose: "what has happened, for others to read",
        migrations: [
            Script("001_events", Embedded._001_events),
            Script("002_traces_of_events", Embedded._002_traces_of_events),
        ],
        functions: [
            Script("events", Embedded.events),
            Script("events_hooks", Embedded.events_hooks),
        ])

    package static let people = RoomSchema(
        name: "people", needs: [],
        purpose: "profiles, families, who acts for whom",
        migrations: [
            Script("001_people", Embedded._001_people)
        ],
        functions: [
            Script("list_pages", Embedded.list_pages),
            Script("client_time", Embedded.client_time),
            Script("local_days", Embedded.local_days),
            Script("day_counts", Embedded.day_counts),
            Script("acting", Embedded.acting),
            Script("families", Embedded.families),
            Script("family_joining", Embedded.family_joining),
            Script("erasure", Embedded.erasure),
            Script("profiles", Embedded.profiles),
            Script("people_hooks", Embedded.people_hooks),
        ])

    package static let quotas = RoomSchema(
        name: "quotas", needs: ["events"],
        purpose: "how much a tenant may use",
        migrations: [
            Script("001_quotas", Embedded._001_quotas)
        ],
        functions: [
            Script("quotas", Embedded.quotas),
            Script("quotas_hooks", Embedded.quotas_hooks),
        ])

    package static let feed = RoomSchema(
        name: "feed", needs: ["people"],
        purpose: "what an app on a phone is told",
        migrations: [
            Script("001_feed", Embedded._001_feed),
            Script("002_unread_rows_of_a_person", Embedded._002_unread_rows_of_a_person),
        ],
        functions: [
            Script("feed", Embedded.feed),
            Script("feed_hooks", Embedded.feed_hooks),
        ])

    package static let templates = RoomSchema(
        name: "templates", needs: [],
        purpose: "templates of mails and their versions",
        migrations: [
            Script("001_templates", Embedded._001_templates)
        ],
        functions: [
            Script("templates", Embedded.templates)
        ])

    package static let webhooks = RoomSchema(
        name: "webhooks", needs: ["events"],
        purpose: "who is told of events by HTTP",
        migrations: [
            Script("001_webhooks", Embedded._001_webhooks)
        ],
        functions: [
            Script("webhooks", Embedded.webhooks),
            Script("webhooks_send", Embedded.webhooks_send),
            Script("webhooks_lanes", Embedded.webhooks_lanes),
            Script("webhooks_hooks", Embedded.webhooks_hooks),
        ])

    package static let mail = RoomSchema(
        name: "mail", needs: ["blobs", "events", "people", "templates"],
        purpose: "mails and what became of them",
        kinds: [
            "mail.send", "mail.password_reset", "mail.account_verification", "mail.welcome",
            "mail.account_notification",
        ],
        migrations: [
            Script("001_mail", Embedded._001_mail)
        ],
        functions: [
            Script("mail_track", Embedded.mail_track),
            Script("mail_pipe", Embedded.mail_pipe),
            Script("mail_attachment_check", Embedded.mail_attachment_check),
            Script("mail_send", Embedded.mail_send),
            Script("mail_house", Embedded.mail_house),
            Script("mail_events", Embedded.mail_events),
            Script("mail_why", Embedded.mail_why),
            Script("mail_hooks", Embedded.mail_hooks),
        ])

    package static let notices = RoomSchema(
        name: "notices", needs: ["events", "people", "mail"],
        purpose: "pushes and reminders",
        migrations: [
            Script("001_notices", Embedded._001_notices)
        ],
        functions: [
            Script("notices", Embedded.notices),
            Script("notices_people", Embedded.notices_people),
            Script("notices_own", Embedded.notices_own),
            Script("notices_backend", Embedded.notices_backend),
            Script("notices_take", Embedded.notices_take),
            Script("notices_record", Embedded.notices_record),
            Script("notices_lanes", Embedded.notices_lanes),
            Script("notices_approvals", Embedded.notices_approvals),
            Script("notices_hooks", Embedded.notices_hooks),
        ])

    package static let ai = RoomSchema(
        name: "ai", needs: ["events", "feed", "people", "quotas", "templates"],
        purpose: "questions to language models",
        kinds: ["ai.ask", "ai.sentiment", "ai.batch", "ai.forget"],
        migrations: [
            Script("001_ai", Embedded._001_ai)
        ],
        functions: [
            Script("ai_schemas", Embedded.ai_schemas),
            Script("ai_purposes", Embedded.ai_purposes),
            Script("ai_ask", Embedded.ai_ask),
            Script("ai_run", Embedded.ai_run),
            Script("ai_batches", Embedded.ai_batches),
            Script("ai_leftovers", Embedded.ai_leftovers),
            Script("ai_read", Embedded.ai_read),
            Script("ai_uses", Embedded.ai_uses),
            Script("ai_troubles", Embedded.ai_troubles),
            Script("ai_hooks", Embedded.ai_hooks),
        ])

    package static let documents = RoomSchema(
        name: "documents", needs: ["blobs", "events", "people", "quotas", "ai"],
        purpose: "files, their pages, what was read on them",
        kinds: ["document.receive", "document.page", "document.finish"],
        migrations: [
            Script("001_documents", Embedded._001_documents)
        ],
        functions: [
            Script("documents_pipe", Embedded.documents_pipe),
            Script("documents", Embedded.documents),
            Script("documents_parts", Embedded.documents_parts),
            Script("document_modes", Embedded.document_modes),
            Script("documents_read", Embedded.documents_read),
            Script("documents_why", Embedded.documents_why),
            Script("documents_analysis", Embedded.documents_analysis),
            Script("documents_hooks", Embedded.documents_hooks),
        ])

    package static let media = RoomSchema(
        name: "media", needs: ["blobs", "feed", "people", "quotas", "templates", "documents"],
        purpose: "files that jobs make",
        kinds: ["media.process", "template.render"],
        migrations: [
            Script("001_media", Embedded._001_media),
            Script("002_files_of_ones_own", Embedded._002_files_of_ones_own),
        ],
        functions: [
            Script("template_render", Embedded.template_render),
            Script("media", Embedded.media),
            Script("media_keep", Embedded.media_keep),
            Script("media_run", Embedded.media_run),
            Script("avatars", Embedded.avatars),
            Script("media_hooks", Embedded.media_hooks),
        ])

    package static let lessons = RoomSchema(
        name: "lessons", needs: ["feed", "people", "events", "quotas", "documents"],
        purpose: "what documents belong to",
        migrations: [
            Script("001_lessons", Embedded._001_lessons)
        ],
        functions: [
            Script("lessons", Embedded.lessons),
            Script("lessons_hooks", Embedded.lessons_hooks),
        ])

    package static let subscriptions = RoomSchema(
        name: "subscriptions", needs: ["events", "feed", "people", "quotas", "notices"],
        purpose: "what customers have bought",
        kinds: ["subscriptions.due"],
        migrations: [
            Script("001_subscriptions", Embedded._001_subscriptions)
        ],
        functions: [
            Script("subscriptions_rules", Embedded.subscriptions_rules),
            Script("subscriptions_stores", Embedded.subscriptions_stores),
            Script("subscriptions", Embedded.subscriptions),
            Script("subscriptions_hooks", Embedded.subscriptions_hooks),
        ])

    package static let quests = RoomSchema(
        name: "quests", needs: ["events", "people", "notices", "ai"],
        purpose: "daily quests, moods, hobbies, points",
        kinds: ["quests.rollover"],
        migrations: [
            Script("001_quests", Embedded._001_quests),
            Script("002_awards_of_back_ends", Embedded._002_awards_of_back_ends),
        ],
        functions: [
            Script("quests_rules", Embedded.quests_rules),
            Script("quests_families", Embedded.quests_families),
            Script("quests_days", Embedded.quests_days),
            Script("quests_moods", Embedded.quests_moods),
            Script("quests_tips", Embedded.quests_tips),
            Script("quests_hobbies", Embedded.quests_hobbies),
            Script("quests_rollover", Embedded.quests_rollover),
            Script("quests_people", Embedded.quests_people),
            Script("quests_audit", Embedded.quests_audit),
            Script("quests_cards", Embedded.quests_cards),
            Script("quests_hooks", Embedded.quests_hooks),
        ])

    package static let checkins = RoomSchema(
        name: "checkins", needs: ["events", "people", "mail", "notices"],
        purpose: "who is watched, and alarms",
        migrations: [
            Script("001_checkins", Embedded._001_checkins),
            Script("002_contacts_of_a_person", Embedded._002_contacts_of_a_person),
        ],
        functions: [
            Script("checkins_rules", Embedded.checkins_rules),
            Script("checkins_readers", Embedded.checkins_readers),
            Script("checkins_places", Embedded.checkins_places),
            Script("checkins_alarms", Embedded.checkins_alarms),
            Script("checkins_contacts", Embedded.checkins_contacts),
            Script("checkins_consent", Embedded.checkins_consent),
            Script("checkins_watched", Embedded.checkins_watched),
            Script("checkins_timer", Embedded.checkins_timer),
            Script("checkins_watches", Embedded.checkins_watches),
            Script("checkins_views", Embedded.checkins_views),
            Script("checkins_leaving", Embedded.checkins_leaving),
            Script("checkins_lanes", Embedded.checkins_lanes),
            Script("checkins_hooks", Embedded.checkins_hooks),
        ])

    package static let chat = RoomSchema(
        name: "chat", needs: ["blobs", "events", "people", "quotas", "notices", "ai", "quests", "checkins"],
        purpose: "threads between people",
        migrations: [
            Script("001_chat", Embedded._001_chat)
        ],
        functions: [
            Script("chat_rules", Embedded.chat_rules),
            Script("chat_threads", Embedded.chat_threads),
            Script("chat_messages", Embedded.chat_messages),
            Script("chat_tone", Embedded.chat_tone),
            Script("chat_keeping", Embedded.chat_keeping),
            Script("chat_hooks", Embedded.chat_hooks),
        ])

    package static let gateway = RoomSchema(
        name: "gateway",
        needs: ["blobs", "feed", "people", "documents", "mail", "notices", "quests", "checkins", "chat"],
        purpose: "calls from apps, devices that work offline",
        migrations: [
            Script("001_gateway", Embedded._001_gateway)
        ],
        functions: [
            Script("feed_read", Embedded.feed_read),
            Script("feed_rows", Embedded.feed_rows),
            Script("feed_family", Embedded.feed_family),
            Script("feed_people", Embedded.feed_people),
            Script("feed_chat", Embedded.feed_chat),
            Script("export_link", Embedded.export_link),
            Script("sync_operations", Embedded.sync_operations),
            Script("sync", Embedded.sync),
            Script("sync_devices", Embedded.sync_devices),
            Script("gateway", Embedded.gateway),
            Script("gateway_hooks", Embedded.gateway_hooks),
        ])

    package static let console = RoomSchema(
        name: "console", needs: ["people", "mail", "ai", "documents", "subscriptions", "quests", "checkins"],
        purpose: "pages for operators",
        migrations: [
            Script("001_console", Embedded._001_console),
            Script("002_saved_searches", Embedded._002_saved_searches),
        ],
        functions: [
            Script("console", Embedded.console)
        ])
}
