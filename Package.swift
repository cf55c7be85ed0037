// swift-tools-version: 6.2
import PackageDescription

// Targets stand in the order of the house: a room may depend only on rooms above its own line.
let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
    name: "millrace",
    products: [
        .executable(name: "millrace", targets: ["MillraceCommand"])
    ],
    targets: [
        .systemLibrary(name: "CTerminal", path: "Sources/CTerminal"),
        .executableTarget(
            name: "MillraceCommand", dependencies: ["CTerminal"], path: "Sources/MillraceCommand", swiftSettings: strict
        ),
        .testTarget(name: "MillraceCommandTests", dependencies: ["MillraceCommand"], swiftSettings: strict),
    ],
)
