package import RoomKit
import RoomSchemas

extension Room {
    /// Families, their daily quests, moods and hobbies.
    package static let quests = Room(
        RoomSchemas.quests, settings: Setting.quests,
        nouns: [
            "families": "Look at families, make them, move them",
            "quests": "Look at quests, roll families over midnight, and check the results",
        ],
        verbs: [
            .familiesList, .familiesShow, .familiesCreate, .familiesZone, .familiesJoin, .familiesInvite,
            .familiesInvitations, .familiesLeave,
            .questsToday, .questsRollover, .questsHistory, .questsVerify,
        ], status: .quests
    ) { context in
        guard context.settings.runsQuests else { return RoomParts() }
        try await context.applyQuestRules()
        return RoomParts(handlers: [context.questHandler()])
    }
}
