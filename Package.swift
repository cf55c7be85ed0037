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
    products: [],
    targets: [
        .systemLibrary(name: "CLinux"),
        .target(name: "Clusters", dependencies: ["CLinux"], swiftSettings: strict),
        .testTarget(name: "ClustersTests", dependencies: ["Clusters"], swiftSettings: strict),
    ],
)
