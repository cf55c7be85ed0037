import MillraceQueues
import TestSupport

/// Roles of one test's own, for roles are the whole cluster's.
struct RoleNames {
    let owner = TestCluster.name("owner")
    let client = TestCluster.name("client")
    let worker = TestCluster.name("worker")
    let admin = TestCluster.name("admin")
    let viewer = TestCluster.name("viewer")
    let `operator` = TestCluster.name("operator")
    let gateway = TestCluster.name("gateway")
    let attacker = TestCluster.name("attacker")
    let stranger = TestCluster.name("stranger")
    var all: [String] { [owner, client, worker, admin, viewer, `operator`, gateway, attacker, stranger] }
    func migrator(testClock: Bool = false) -> Migrator {
        Migrator.ofAllRooms(
            roles: [
                ("client", client), ("worker", worker), ("admin", admin), ("viewer", viewer), ("operator", `operator`),
                ("gateway", gateway),
            ], testClock: testClock)
    }
}
