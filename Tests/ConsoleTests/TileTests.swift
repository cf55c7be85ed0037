import Templates
import Testing

@testable import Console

/// What the tile of waiting jobs says of its number.
@Suite struct TileTests {
    @Test(arguments: [
        (#"[{"ready": 40, "cap": 1000}, {"ready": 12, "cap": 1000}]"#, "52"),
        (#"[{"ready": 1000, "cap": 1000}, {"ready": 12, "cap": 1000}]"#, "more than 1,012"),
        (#"[{"ready": 1000, "cap": 1000, "estimated": 200000}, {"ready": 12, "cap": 1000}]"#, "about 200,012"),
        (
            #"[{"ready": 1000, "cap": 1000, "estimated": 200000}, {"ready": 1000, "cap": 1000}]"#,
            "more than 201,000"
        ),
    ])
    func `a count that stopped is never said as if it were all`(queues: String, tile: String) throws {
        guard case .list(let queues) = try TemplateValue(json: queues) else { return }
        #expect(QueuePages.totalReady(queues) == tile)
    }
}
