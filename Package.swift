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
        .library(name: "MillraceMail", targets: ["MillraceMail"]),
        .library(name: "MillraceWorker", targets: ["MillraceWorker"]),
        .executable(name: "millrace", targets: ["MillraceCommand"]),
        .executable(name: "millrace-probe", targets: ["ProbeChild"]),
        .executable(name: "millrace-raster", targets: ["RasterChild"]),
        .executable(name: "millrace-picture", targets: ["PictureChild"]),
        .executable(name: "millrace-ocr", targets: ["OCRChild"]),
        .executable(name: "millrace-assemble", targets: ["AssembleChild"]),
        .executable(name: "millrace-heic", targets: ["HEICChild"]),
        .executable(name: "millrace-report", targets: ["ReportChild"]),
        .executable(name: "documents-bench", targets: ["DocumentsBench"]),
    ],
    targets: [
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CMicrohttpd", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CIdn2", providers: [.apt(["libidn2-dev"])]),
        .systemLibrary(name: "CResolver"),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CTerminal"),
        .systemLibrary(name: "CQPDF", pkgConfig: "libqpdf", providers: [.apt(["libqpdf-dev"])]),
        .target(name: "CYardstick", dependencies: ["CCurl", "CPostgres"]),

        .target(name: "Threads", dependencies: ["CLinux"], swiftSettings: strict),
        .target(name: "Telemetry", swiftSettings: strict),
        .target(name: "Calendars", swiftSettings: strict),
        .target(name: "Faults", swiftSettings: strict),
        .executableTarget(name: "EmbedTool", swiftSettings: strict),
        .plugin(name: "EmbedSQL", capability: .buildTool(), dependencies: ["EmbedTool"], path: "Sources/EmbedSQL"),
        .target(
            name: "Schema", path: "sql", exclude: ["storage.md", "migrations", "functions"], swiftSettings: strict,
            plugins: ["EmbedSQL"]),

        .target(name: "CCage", linkerSettings: [.linkedLibrary("seccomp")]),
        .target(name: "Frames", swiftSettings: strict),
        .target(name: "Cage", dependencies: ["CCage", "Frames"], swiftSettings: strict),
        .target(
            name: "Sandbox", dependencies: ["CLinux", "Frames", "Telemetry", "Threads"], swiftSettings: strict),

        .target(name: "Postgres", dependencies: ["CPostgres", "Threads"], swiftSettings: strict),
        .target(name: "Clusters", dependencies: ["CLinux"], swiftSettings: strict),
        .target(name: "HTTP", dependencies: ["CCurl", "CLinux", "Faults", "Threads"], swiftSettings: strict),
        .target(name: "Seals", dependencies: ["CCrypto"], swiftSettings: strict),
        .target(name: "Signatures", dependencies: ["CCrypto"], swiftSettings: strict),
        .target(
            name: "Listeners", dependencies: ["CCrypto", "CMicrohttpd", "Telemetry", "Threads"], swiftSettings: strict),

        .target(
            name: "Blobs", dependencies: ["CCrypto", "HTTP", "Postgres", "Signatures", "Telemetry", "Threads"],
            swiftSettings: strict),

        .target(
            name: "CTesseract", linkerSettings: [.linkedLibrary("tesseract"), .linkedLibrary("lept")]),
        .systemLibrary(name: "CLeptonica"),
        .systemLibrary(name: "CHEIF"),
        .systemLibrary(name: "CPango", pkgConfig: "pangocairo", providers: [.apt(["libpango1.0-dev"])]),
        .target(name: "CPoppler", linkerSettings: [.linkedLibrary("poppler-cpp")]),
        .target(name: "Pages", swiftSettings: strict),
        .executableTarget(
            name: "RasterChild", dependencies: ["CPoppler", "Cage", "Frames", "Pages"], path: "Sources/Children/Raster",
            exclude: ["LICENSE.md"], swiftSettings: strict),
        .executableTarget(
            name: "HEICChild", dependencies: ["CHEIF", "Cage", "Frames", "Pages"], path: "Sources/Children/HEIC",
            swiftSettings: strict),
        .executableTarget(
            name: "ReportChild", dependencies: ["CPango", "Cage", "Frames", "Pages"], path: "Sources/Children/Report",
            swiftSettings: strict),
        .executableTarget(
            name: "PictureChild", dependencies: ["CLeptonica", "Cage", "Frames", "Pages"],
            path: "Sources/Children/Picture", swiftSettings: strict),
        .executableTarget(
            name: "AssembleChild", dependencies: ["CLinux", "CQPDF", "Cage", "Frames", "Pages"],
            path: "Sources/Children/Assemble", swiftSettings: strict),
        .executableTarget(
            name: "OCRChild", dependencies: ["CTesseract", "Cage", "Frames", "Pages"], path: "Sources/Children/OCR",
            swiftSettings: strict),
        .executableTarget(
            name: "ProbeChild", dependencies: ["CQPDF", "Cage", "Frames", "Pages"], path: "Sources/Children/Probe",
            swiftSettings: strict),

        .target(name: "Jobs", swiftSettings: strict),

        .target(name: "Queues", dependencies: ["Jobs", "Postgres", "Schema"], swiftSettings: strict),

        .target(
            name: "Supervision", dependencies: ["Faults", "Postgres", "Telemetry", "Threads"], swiftSettings: strict),

        .target(
            name: "Templates", dependencies: ["Postgres", "Threads"], resources: [.embedInCode("Resources")],
            swiftSettings: strict),

        .target(
            name: "Mail",
            dependencies: [
                "Blobs", "CIdn2", "CResolver", "Faults", "HTTP", "Jobs", "Postgres", "Queues", "Signatures",
                "Supervision", "Telemetry", "Threads",
            ], swiftSettings: strict),

        .target(name: "Quests", dependencies: ["Calendars", "Postgres"], swiftSettings: strict),

        .target(name: "CheckIns", dependencies: ["Postgres", "Telemetry"], swiftSettings: strict),

        .target(name: "CloudEvents", swiftSettings: strict),

        .target(
            name: "Webhooks",
            dependencies: [
                "CloudEvents", "Faults", "HTTP", "Postgres", "Seals", "Signatures", "Supervision", "Telemetry",
                "Threads",
            ], swiftSettings: strict),

        .target(
            name: "Notices",
            dependencies: ["Faults", "HTTP", "Postgres", "Seals", "Signatures", "Supervision", "Telemetry", "Threads"],
            swiftSettings: strict),

        .target(
            name: "Documents",
            dependencies: [
                "Blobs", "CCrypto", "CZlib", "Jobs", "Pages", "Postgres", "Sandbox", "Telemetry", "Threads",
            ], swiftSettings: strict),

        .target(
            name: "Workers",
            dependencies: ["Calendars", "Jobs", "Postgres", "Queues", "Seals", "Telemetry", "Threads"],
            swiftSettings: strict),

        .target(
            name: "Millrace",
            dependencies: ["Calendars", "Jobs", "Postgres", "Queues", "Seals", "Telemetry", "Threads", "Workers"],
            swiftSettings: strict),

        .target(
            name: "MillraceMail",
            dependencies: [
                "Blobs", "Faults", "Jobs", "Mail", "Millrace", "Postgres", "Signatures", "Supervision", "Templates",
                "Workers",
            ], swiftSettings: strict),

        .target(
            name: "Composition",
            dependencies: [
                "Blobs", "CLinux", "CTerminal", "Calendars", "CheckIns", "Documents", "Faults", "HTTP", "Jobs",
                "Listeners", "Mail", "MillraceMail", "Notices", "Pages", "Postgres", "Quests", "Queues", "Sandbox",
                "Seals", "Signatures", "Supervision", "Telemetry", "Templates", "Threads", "Webhooks", "Workers",
            ], swiftSettings: strict),

        .target(
            name: "MillraceWorker",
            dependencies: ["Composition", "Millrace", "Postgres", "Telemetry", "Threads", "Workers"],
            swiftSettings: strict),

        .executableTarget(
            name: "MillraceCommand",
            dependencies: [
                "Blobs", "Calendars", "CheckIns", "CLinux", "CloudEvents", "Clusters", "CYardstick", "CZlib",
                "Composition", "Documents", "Faults", "HTTP", "Jobs", "Mail", "MillraceMail", "Notices", "Pages",
                "Postgres", "Quests", "Queues", "Sandbox", "Schema", "Seals", "Signatures", "Supervision", "Telemetry",
                "Templates", "Threads", "Webhooks", "Workers",
            ], swiftSettings: strict),

        .executableTarget(
            name: "DocumentsBench", dependencies: ["Documents", "Pages", "Sandbox"], path: "Tests/DocumentsBench",
            swiftSettings: strict),

        .target(
            name: "TestSupport", dependencies: ["Clusters", "Postgres", "Queues", "Threads"], path: "Tests/TestSupport",
            swiftSettings: strict),
        .target(
            name: "Fakes", dependencies: ["CCrypto", "Signatures", "Threads"], path: "Tests/Fakes",
            swiftSettings: strict),
        .executableTarget(
            name: "FakeResendServer", dependencies: ["Fakes"], path: "Tests/FakeResendServer", swiftSettings: strict),
        .testTarget(name: "ThreadsTests", dependencies: ["Threads"], swiftSettings: strict),
        .testTarget(
            name: "CalendarsTests", dependencies: ["Calendars", "Postgres", "TestSupport"], exclude: ["Reference"],
            swiftSettings: strict),
        .testTarget(
            name: "PostgresTests", dependencies: ["Clusters", "Postgres", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "ClustersTests", dependencies: ["Clusters"], swiftSettings: strict),
        .testTarget(
            name: "HTTPTests", dependencies: ["Fakes", "HTTP", "TestSupport", "Threads"], swiftSettings: strict),
        .testTarget(name: "FramesTests", dependencies: ["Frames"], swiftSettings: strict),
        .executableTarget(
            name: "Prisoner", dependencies: ["CCage", "Cage", "Frames"], path: "Tests/Prisoner", swiftSettings: strict),
        .testTarget(
            name: "SandboxTests", dependencies: ["CLinux", "Prisoner", "Sandbox", "TestSupport", "Threads"],
            swiftSettings: strict),
        .testTarget(name: "PagesTests", dependencies: ["Pages"], swiftSettings: strict),
        .testTarget(
            name: "DocumentsTests",
            dependencies: [
                "AssembleChild", "Blobs", "CZlib", "Documents", "HEICChild", "OCRChild", "Pages", "PictureChild",
                "Postgres", "Prisoner", "ProbeChild", "RasterChild", "ReportChild", "Sandbox", "Telemetry",
                "TestSupport", "Workers",
            ], swiftSettings: strict),
        .testTarget(name: "SealsTests", dependencies: ["Seals"], swiftSettings: strict),
        .testTarget(
            name: "ListenersTests", dependencies: ["Listeners", "Telemetry", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "BlobsTests", dependencies: ["Blobs", "Fakes", "HTTP", "Postgres", "Telemetry", "TestSupport"],
            swiftSettings: strict),
        .testTarget(name: "FaultsTests", dependencies: ["Faults"], swiftSettings: strict),
        .testTarget(name: "JobsTests", dependencies: ["Jobs"], swiftSettings: strict),
        .testTarget(
            name: "QueuesTests", dependencies: ["Postgres", "Queues", "Schema", "TestSupport"], exclude: ["Shipped"],
            swiftSettings: strict),
        .testTarget(
            name: "SupervisionTests",
            dependencies: ["Clusters", "Faults", "Postgres", "Queues", "Supervision", "Telemetry", "TestSupport"],
            swiftSettings: strict),
        .testTarget(name: "SignaturesTests", dependencies: ["Signatures"], swiftSettings: strict),
        .testTarget(
            name: "MailTests",
            dependencies: [
                "Blobs", "Fakes", "Faults", "HTTP", "Mail", "Postgres", "Queues", "Signatures", "Supervision",
                "Telemetry", "Templates",
                "TestSupport",
            ], swiftSettings: strict),
        .testTarget(
            name: "TemplatesTests", dependencies: ["Postgres", "Queues", "Schema", "Templates", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "DoorsTests", dependencies: ["Clusters", "Postgres", "Queues", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "QuestsTests", dependencies: ["Calendars", "Postgres", "Quests", "TestSupport"], swiftSettings: strict
        ),
        .testTarget(name: "CloudEventsTests", dependencies: ["CloudEvents"], swiftSettings: strict),
        .testTarget(
            name: "WebhooksTests",
            dependencies: [
                "CloudEvents", "Fakes", "HTTP", "Postgres", "Queues", "Seals", "Signatures", "Supervision",
                "Telemetry", "TestSupport", "Threads", "Webhooks",
            ], swiftSettings: strict),
        .testTarget(
            name: "CheckInsTests",
            dependencies: ["CheckIns", "Clusters", "Postgres", "Queues", "Telemetry", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "NoticesTests",
            dependencies: [
                "Fakes", "Faults", "HTTP", "Notices", "Postgres", "Signatures", "Supervision", "Telemetry",
                "TestSupport", "Threads",
            ], swiftSettings: strict),
        .testTarget(
            name: "WorkersTests", dependencies: ["Calendars", "Jobs", "Queues", "Workers"], swiftSettings: strict),
        .testTarget(
            name: "CorporaTests", dependencies: ["Calendars", "MillraceCommand", "Templates"], swiftSettings: strict),
        .testTarget(name: "ModelTests", dependencies: ["Queues", "Threads", "Workers"], swiftSettings: strict),
        .testTarget(
            name: "MillraceMailTests", dependencies: ["Millrace", "MillraceMail", "Postgres", "TestSupport"],
            swiftSettings: strict),
        // The examples have packages of their own; here they are built with everything else.
        .executableTarget(
            name: "ShopWorkerExample", dependencies: ["MillraceWorker"],
            path: "deploy/examples/shop/Sources/shop-worker"),
        .testTarget(
            name: "MillraceWorkerTests",
            dependencies: ["MillraceWorker", "Postgres", "ShopWorkerExample", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MillraceTests",
            dependencies: ["CPostgres", "Clusters", "Fakes", "Millrace", "Postgres", "Queues", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MillraceCommandTests",
            dependencies: [
                "Calendars", "CheckIns", "Clusters", "Faults", "Jobs", "Listeners", "Mail", "MillraceCommand",
                "Notices", "Postgres", "Queues",
                "Seals",
                "Signatures", "Supervision",
                "Telemetry", "TestSupport", "Workers",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "SystemTests",
            dependencies: [
                "Clusters", "Fakes", "Faults", "Jobs", "Listeners", "MillraceCommand", "Postgres", "Queues",
                "Supervision",
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
            name: "Fuzz", dependencies: ["Calendars", "MillraceCommand", "Templates"], path: "Tests",
            sources: [
                "Fuzz/Fuzz.swift", "CorporaTests/Target.swift", "CorporaTests/Target+Command.swift",
                "CorporaTests/Target+Template.swift",
            ],
            swiftSettings: strict))
}
