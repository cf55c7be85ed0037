import MillraceQueues
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// What `doctor` says of replication.
@Suite struct DoctorReplicationTests {
    private typealias Facts = ReplicationFacts

    @Test func `without synchronous standbys it says what a failover may lose, and no more`() {
        #expect(Doctor.judge(Facts()) == .ok("none: what is answered is on this server alone"))
        let said = Doctor.judge(Facts(standbys: 2))
        #expect(said.word == "ok" && said.sentence.contains("may lose what was answered in the last moments"))
        #expect(Doctor.judge(Facts(isStandby: true, synchronousNames: "*", synchronous: 0)).word == "ok")
    }

    @Test func `standbys that nobody waits for are a problem`() {
        for value in ["off", "local"] {
            let said = Doctor.judge(
                Facts(synchronousCommit: value, synchronousNames: "db2", standbys: 2, synchronous: 1))
            #expect(said.word == "problem" && said.sentence.contains(value))
        }
        let role = Facts(synchronousNames: "db2", standbys: 2, synchronous: 1, notWaiting: ["importer"])
        #expect(Doctor.judge(role).word == "warning" && Doctor.judge(role).sentence.contains("importer"))
    }

    @Test func `commits that wait for a standby that is away are a problem, and none to spare is a warning`() {
        #expect(Doctor.judge(Facts(synchronousNames: "db2", standbys: 0, synchronous: 0)).word == "problem")
        #expect(
            Doctor.judge(Facts(synchronousNames: "ANY 2 (db2, db3)", standbys: 2, synchronous: 1)).word == "problem")
        #expect(
            Doctor.judge(Facts(synchronousNames: "2 (db2, db3)", standbys: 2, synchronous: 2)).word == "warning")
        #expect(Doctor.judge(Facts(synchronousNames: "db2", standbys: 1, synchronous: 1)).word == "warning")
        let said = Doctor.judge(Facts(synchronousNames: "db2", standbys: 2, synchronous: 1))
        #expect(said.word == "ok" && said.sentence.hasPrefix("synchronous, to 1 of 2 standbys"))
        // A role without the right to see how standbys follow.
        #expect(
            Doctor.judge(Facts(synchronousNames: "*", standbys: 2, synchronous: nil)).sentence.contains("pg_monitor"))
        #expect(
            Doctor.judge(
                Facts(synchronousCommit: "remote_write", synchronousNames: "*", standbys: 2, synchronous: 1)
            ).word == "warning")
    }

    @Test func `a table of ours that a failover empties is a problem, unless it is meant to be empty`() {
        #expect(Doctor.judge(unlogged: []).word == "ok")
        #expect(Doctor.judge(unlogged: ["gateway_bucket"]).word == "ok")
        #expect(Doctor.judge(unlogged: ["gateway_bucket", "job"]).sentence == "job: empty after a crash or a failover")
    }

    @Test func `the facts are those of the server`() async throws {
        try await withDatabase { database in
            let connection = try await Connection.open(ConnectionOptions(location: database.url))
            let facts = try await Queue.replicationFacts(on: connection)
            #expect(!facts.isStandby && facts.standbys == 0 && facts.synchronous == 0 && facts.notWaiting.isEmpty)
            #expect(Doctor.judge(unlogged: facts.unlogged).word == "ok")
            try await database.change("alter table millrace.watermark set unlogged")
            #expect(try await Queue.replicationFacts(on: connection).unlogged.contains("watermark"))
            await connection.close()
        }
    }
}
