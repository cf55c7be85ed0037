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
        .library(name: "Millrace", targets: ["Millrace"]),
        .executable(name: "millrace", targets: ["MillraceCommand"]),
    ],
    targets: [
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CMicrohttpd", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CTerminal"),
        .target(name: "CYardstick", dependencies: ["CCurl", "CPostgres"]),

        .target(name: "Threads", dependencies: ["CLinux"], swiftSettings: strict),
        .target(name: "Telemetry", swiftSettings: strict),
        .target(name: "Calendars", swiftSettings: strict),
        .target(name: "Faults", swiftSettings: strict),
        .target(
            name: "Schema", path: "sql", exclude: ["storage.md"],
            resources: [.embedInCode("migrations"), .embedInCode("functions")], swiftSettings: strict),

        .target(name: "Postgres", dependencies: ["CPostgres", "Threads"], swiftSettings: strict),
        .target(name: "Clusters", dependencies: ["CLinux"], swiftSettings: strict),
        .target(name: "HTTP", dependencies: ["CCurl", "CLinux", "Threads"], swiftSettings: strict),
        .target(name: "Seals", dependencies: ["CCrypto"], swiftSettings: strict),
        .target(
            name: "Listeners", dependencies: ["CCrypto", "CMicrohttpd", "Telemetry", "Threads"], swiftSettings: strict),

        .target(name: "Blobs", dependencies: ["CCrypto", "Postgres", "Threads"], swiftSettings: strict),

        .target(name: "Jobs", swiftSettings: strict),

        .target(name: "Queues", dependencies: ["Jobs", "Postgres", "Schema"], swiftSettings: strict),

        .target(
            name: "Supervision", dependencies: ["Faults", "Postgres", "Telemetry", "Threads"], swiftSettings: strict),

        .target(
            name: "Workers",
            dependencies: ["Calendars", "Jobs", "Postgres", "Queues", "Seals", "Telemetry", "Threads"],
            swiftSettings: strict),

        .target(
            name: "Millrace",
            dependencies: ["Calendars", "Jobs", "Postgres", "Queues", "Seals", "Telemetry", "Threads", "Workers"],
            swiftSettings: strict),

        .executableTarget(
            name: "MillraceCommand",
            dependencies: [
                "Blobs", "CLinux", "CTerminal", "CYardstick", "Calendars", "Clusters", "Faults", "HTTP", "Jobs",
                "Listeners", "Postgres", "Queues", "Schema", "Seals", "Supervision", "Telemetry", "Threads", "Workers",
            ], swiftSettings: strict),

        .target(
            name: "TestSupport", dependencies: ["Clusters", "Postgres", "Queues"], path: "Tests/TestSupport",
            swiftSettings: strict),
        .target(name: "Fakes", dependencies: ["Threads"], path: "Tests/Fakes", swiftSettings: strict),
        .testTarget(name: "ThreadsTests", dependencies: ["Threads"], swiftSettings: strict),
        .testTarget(
            name: "CalendarsTests", dependencies: ["Calendars", "Postgres", "TestSupport"], exclude: ["Reference"],
            swiftSettings: strict),
        .testTarget(
            name: "PostgresTests", dependencies: ["Clusters", "Postgres", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "ClustersTests", dependencies: ["Clusters"], swiftSettings: strict),
        .testTarget(
            name: "HTTPTests", dependencies: ["Fakes", "HTTP", "TestSupport", "Threads"], swiftSettings: strict),
        .testTarget(name: "SealsTests", dependencies: ["Seals"], swiftSettings: strict),
        .testTarget(
            name: "ListenersTests", dependencies: ["Listeners", "Telemetry", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "BlobsTests", dependencies: ["Blobs", "Postgres", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "FaultsTests", dependencies: ["Faults"], swiftSettings: strict),
        .testTarget(name: "JobsTests", dependencies: ["Jobs"], swiftSettings: strict),
        .testTarget(
            name: "QueuesTests", dependencies: ["Postgres", "Queues", "Schema", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "SupervisionTests",
            dependencies: ["Clusters", "Faults", "Postgres", "Queues", "Supervision", "Telemetry", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "WorkersTests", dependencies: ["Calendars", "Jobs", "Queues", "Workers"], swiftSettings: strict),
        .testTarget(
            name: "CorporaTests", dependencies: ["Calendars", "MillraceCommand"], swiftSettings: strict),
        .testTarget(name: "ModelTests", dependencies: ["Queues", "Threads", "Workers"], swiftSettings: strict),
        .testTarget(
            name: "MillraceTests", dependencies: ["Millrace", "Postgres", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "MillraceCommandTests",
            dependencies: [
                "Calendars", "Clusters", "Jobs", "MillraceCommand", "Postgres", "Queues", "Seals", "Supervision",
                "Telemetry", "TestSupport", "Workers",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "SystemTests",
            dependencies: [
                "Clusters", "Fakes", "Faults", "Jobs", "MillraceCommand", "Postgres", "Queues", "Supervision",
                "Telemetry",
                "TestSupport", "Workers",
            ],
            swiftSettings: strict),
    ],
)

// deploy/fuzz builds this instead: the command without its main, and a main of libFuzzer's that feeds the corpora's entry points.
if Context.environment["MILLRACE_FUZZ"] != nil {
    package.targets.removeAll { $0.isTest || $0.name == "TestSupport" }
    if let at = package.targets.firstIndex(where: { $0.name == "MillraceCommand" }) {
        package.targets[at] = .target(
            name: "MillraceCommand", dependencies: package.targets[at].dependencies, exclude: ["Application.swift"],
            swiftSettings: strict)
    }
    package.products = [.executable(name: "millrace-fuzz", targets: ["Fuzz"])]
    package.targets.append(
        .executableTarget(
            name: "Fuzz", dependencies: ["Calendars", "MillraceCommand"], path: "Tests",
            sources: ["Fuzz/Fuzz.swift", "CorporaTests/Target.swift", "CorporaTests/Target+Command.swift"],
            swiftSettings: strict))
}
