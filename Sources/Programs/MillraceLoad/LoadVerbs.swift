import EngineLoad
import LoadKit
import MillraceCommand
import RoomLoad

/// Everything that `millrace-load` can do: its scenarios, and the verbs of `millrace`, for they start workers of this very program.
enum LoadVerbs {
    static let tree = CommandTree(
        commands: Verbs.commands.filter { !["load", "worker"].contains($0.path[0]) } + [.breakableWorker]
            + scenarios.map(\.onItsOwnGround),
        nouns: Verbs.nouns.merging(["load": "Measure, and compare with what was promised"]) { first, _ in first },
        settings: .all)

    private static let scenarios: [Command] = [
        .loadLatency,
        .loadScheduled, .loadWaiting,
        .loadSteady,
        .loadPinned,
        .loadDrain,
        .loadEnqueue,
        .loadBacklog,
        .loadQueues,
        .loadMixed,
        .loadSlots,
        .loadCancellations,
        .loadUndo, .loadVersions,
        .loadClaims,
        .loadLimits,
        .loadRate,
        .loadTenants,
        .loadHTTP,
        .loadConsole,
        .loadGatewayCalls, .loadGatewayIsolation, .loadGatewayOffline, .loadGatewaySlow, .loadGreedy,
        .loadSMTP,
        .loadResend,
        .loadTemplates,
        .loadSamples,
        .loadLedger,
        .loadUpgrade,
        .loadSupervisor, .loadMail,
        .loadQuests, .loadPeople, .loadGatewayStreams, .loadHostile, .loadCheckIns, .loadPush, .loadDocuments,
        .loadDisasters, .loadStalls, .loadRehearse, .loadChat, .loadAI, .loadRecovery,
    ]
}
