import Postgres
import Queues
import Telemetry

extension Settings {
    /// Nobody has said by which service mail goes.
    package var lacksMailService: Bool { mailChoice.provider == "outbox" && text(.emailProvider) == nil }
}

extension Composer {
    /// How this worker serves mail: `status` names rooms that nobody serves.
    var servedMail: [String: String] {
        guard serves("mail") else { return [:] }
        return ["mail": settings.lacksMailService ? RoomRow.filesByDefault : settings.mailChoice.provider]
    }

    /// Logs at the start where mail goes when no service takes it: as a warning, unless that was configured.
    func tellOfMailFiles() {
        guard serves("mail"), settings.mailChoice.provider == "outbox" else { return }
        let place = ("mail.outbox", settings.outboxDirectory)
        if settings.lacksMailService {
            log.warning(
                "no mail service is configured: messages are written to files and reach nobody",
                [
                    place,
                    (
                        "hint",
                        "set RESEND_API_KEY, MILLRACE_MAIL_SMTP_URL or EMAIL_SERVICE_PROVIDER; outbox if you want files"
                    ),
                ])
        } else {
            log.info("messages are written to files, as EMAIL_SERVICE_PROVIDER says", [place])
        }
    }

    /// The database's counts of jobs and of everything else, for metrics; nil when it does not answer soon.
    func measures(_ pool: Pool) async -> Measures? {
        do {
            return try await pool.withConnection { connection throws(PostgresError) in
                // The second finds what the first has counted.
                Measures(
                    jobs: try await Queue.measures(on: connection, deadline: .seconds(2)),
                    fleet: try await Queue.fleetMeasures(on: connection, deadline: .seconds(2)))
            }
        } catch {
            log.debug("cannot count jobs for /metrics", [("error", "\(error)")])
            return nil
        }
    }
}
