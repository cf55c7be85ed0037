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
    platforms: [.iOS(.v16), .macOS(.v13)],  // for MillraceApp; everything else runs on Linux
    products: [
        .library(name: "Millrace", targets: ["Millrace"]),
        .library(name: "MillraceMail", targets: ["MillraceMail"]),
        .library(name: "MillraceWorker", targets: ["MillraceWorker"]),
        .library(name: "MillraceProgram", targets: ["MillraceProgram"]),
        .plugin(name: "EmbedSQL", targets: ["EmbedSQL"]),
        .library(name: "MillraceApp", targets: ["MillraceApp"]),
        .library(name: "MillraceSwiftLog", targets: ["MillraceSwiftLog"]),
        .library(name: "MillraceSwiftMetrics", targets: ["MillraceSwiftMetrics"]),
        .library(name: "MillraceServiceLifecycle", targets: ["MillraceServiceLifecycle"]),
        .library(name: "MillracePostgresNIO", targets: ["MillracePostgresNIO"]),
        .library(name: "MillraceTracing", targets: ["MillraceTracing"]),
        .library(name: "MillraceSwiftConfiguration", targets: ["MillraceSwiftConfiguration"]),
        .executable(name: "millrace", targets: ["MillraceMain"]),
        .executable(name: "millrace-load", targets: ["MillraceLoad"]),
        .executable(name: "millrace-probe", targets: ["ProbeChild"]),
        .executable(name: "millrace-raster", targets: ["RasterChild"]),
        .executable(name: "millrace-picture", targets: ["PictureChild"]),
        .executable(name: "millrace-ocr", targets: ["OCRChild"]),
        .executable(name: "millrace-assemble", targets: ["AssembleChild"]),
        .executable(name: "millrace-heic", targets: ["HEICChild"]),
        .executable(name: "millrace-report", targets: ["ReportChild"]),
        .executable(name: "millrace-codes", targets: ["CodesChild"]),
        .executable(name: "documents-bench", targets: ["DocumentsBench"]),
    ],
    // Without a trait no outside package is used, and none is fetched.
    traits: [
        .trait(name: "SwiftLog", description: "The product MillraceSwiftLog: a worker's log in a Logger of swift-log."),
        .trait(
            name: "SwiftMetrics",
            description: "The product MillraceSwiftMetrics: a worker's metrics in the MetricsSystem of swift-metrics."),
        .trait(
            name: "ServiceLifecycle",
            description: "The product MillraceServiceLifecycle: a worker in a ServiceGroup of swift-service-lifecycle."),
        .trait(
            name: "PostgresNIO",
            description: "The product MillracePostgresNIO: jobs enqueued in a transaction of a PostgresConnection."),
        .trait(
            name: "Tracing",
            description: "The product MillraceTracing: a worker's spans in the tracer of swift-distributed-tracing."),
        .trait(
            name: "SwiftConfiguration",
            description: "The product MillraceSwiftConfiguration: settings from a ConfigReader of swift-configuration."),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.5.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
        .package(url: "https://github.com/vapor/postgres-nio.git", from: "1.22.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.2.0"),
        .package(url: "https://github.com/apple/swift-configuration.git", from: "1.0.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CPostgres", path: "Sources/System/CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(
            name: "CCrypto", path: "Sources/System/CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CMicrohttpd", path: "Sources/System/CMicrohttpd", pkgConfig: "libmicrohttpd",
            providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(
            name: "CCurl", path: "Sources/System/CCurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CZlib", path: "Sources/System/CZlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CIdn2", path: "Sources/System/CIdn2", providers: [.apt(["libidn2-dev"])]),
        .systemLibrary(name: "CResolver", path: "Sources/System/CResolver"),
        .systemLibrary(name: "CLinux", path: "Sources/System/CLinux"),
        .systemLibrary(name: "CTerminal", path: "Sources/System/CTerminal"),
        .systemLibrary(
            name: "CQPDF", path: "Sources/System/CQPDF", pkgConfig: "libqpdf", providers: [.apt(["libqpdf-dev"])]),
        .target(name: "CYardstick", dependencies: ["CCurl", "CPostgres"], path: "Sources/Programs/CYardstick"),

        .target(name: "Threads", dependencies: ["CLinux"], path: "Sources/System/Threads", swiftSettings: strict),
        .target(name: "Encodings", path: "Sources/System/Encodings", swiftSettings: strict),
        .target(name: "JSON", dependencies: ["Encodings"], path: "Sources/System/JSON", swiftSettings: strict),
        .target(
            name: "Subprocesses", dependencies: ["CLinux"], path: "Sources/System/Subprocesses", swiftSettings: strict),
        .target(name: "Telemetry", dependencies: ["JSON"], path: "Sources/System/Telemetry", swiftSettings: strict),
        .target(
            name: "Traces", dependencies: ["Encodings"], path: "Sources/System/Traces", swiftSettings: strict),
        .target(name: "Calendars", path: "Sources/System/Calendars", swiftSettings: strict),
        .target(name: "Faults", path: "Sources/System/Faults", swiftSettings: strict),
        .target(
            name: "Digests", dependencies: ["CCrypto"], path: "Sources/System/Digests", swiftSettings: strict),
        .target(
            name: "Compression", dependencies: ["CZlib"], path: "Sources/System/Compression", swiftSettings: strict),
        .target(
            name: "HostNames", dependencies: ["CIdn2", "CResolver", "Threads"], path: "Sources/Adapters/HostNames",
            swiftSettings: strict),
        .executableTarget(name: "EmbedTool", path: "Sources/Programs/EmbedTool", swiftSettings: strict),
        .plugin(
            name: "EmbedSQL", capability: .buildTool(), dependencies: ["EmbedTool"], path: "Sources/Programs/EmbedSQL"),
        .target(
            name: "Schema", path: "sql/core", exclude: ["adoption"], swiftSettings: strict, plugins: ["EmbedSQL"]),
        .target(
            name: "RoomSchemas", dependencies: ["Schema"], path: "sql",
            exclude: [
                "README.md", "core/RoomSchema.swift", "core/Schema.swift", "core/base", "core/migrations",
                "core/operating", "core/providers", "core/queue", "locks.md", "rooms.md", "states.md", "storage.md",
            ], swiftSettings: strict, plugins: ["EmbedSQL"]),

        .target(name: "CCage", path: "Sources/System/CCage", linkerSettings: [.linkedLibrary("seccomp")]),
        .target(name: "ChildProtocol", path: "Sources/Adapters/ChildProtocol", swiftSettings: strict),
        .target(
            name: "ChildSandbox", dependencies: ["CCage", "ChildProtocol"], path: "Sources/Adapters/ChildSandbox",
            swiftSettings: strict),
        .target(
            name: "Sandbox", dependencies: ["CLinux", "ChildProtocol", "Subprocesses", "Telemetry", "Threads"],
            path: "Sources/Adapters/Sandbox", swiftSettings: strict),

        .target(
            name: "Postgres", dependencies: ["CPostgres", "Threads"], path: "Sources/Adapters/Postgres",
            swiftSettings: strict),
        .target(
            name: "Clusters", dependencies: ["CLinux", "Encodings", "Subprocesses", "Threads"],
            path: "Sources/Adapters/Clusters", swiftSettings: strict),
        .target(
            name: "Transfers", dependencies: ["CCurl", "CLinux", "Faults", "Threads"],
            path: "Sources/Adapters/Transfers", swiftSettings: strict),
        .target(
            name: "TraceExport", dependencies: ["Telemetry", "Threads", "Traces", "Transfers"],
            path: "Sources/Adapters/TraceExport", swiftSettings: strict),
        .target(
            name: "Encryption", dependencies: ["CCrypto", "Digests", "Encodings"], path: "Sources/System/Encryption",
            swiftSettings: strict),
        .target(
            name: "Signatures", dependencies: ["CCrypto", "Digests", "Encodings", "JSON"],
            path: "Sources/System/Signatures", swiftSettings: strict),
        .target(
            name: "Listeners",
            dependencies: ["CCrypto", "CMicrohttpd", "Digests", "Encodings", "Telemetry", "Threads"],
            path: "Sources/Adapters/Listeners", swiftSettings: strict),

        .target(
            name: "Blobs",
            dependencies: ["Digests", "Encodings", "Postgres", "Signatures", "Telemetry", "Threads", "Transfers"],
            path: "Sources/Adapters/Blobs",
            swiftSettings: strict),

        .target(
            name: "CTesseract", path: "Sources/System/CTesseract",
            linkerSettings: [.linkedLibrary("tesseract"), .linkedLibrary("lept")]),
        .systemLibrary(name: "CLeptonica", path: "Sources/System/CLeptonica"),
        .target(
            name: "CPictures", path: "Sources/System/CPictures",
            linkerSettings: [
                .linkedLibrary("tiff"), .linkedLibrary("png16"), .linkedLibrary("webp"), .linkedLibrary("openjp2"),
            ]),
        .target(
            name: "CColors", path: "Sources/System/CColors",
            linkerSettings: [.linkedLibrary("lcms2"), .linkedLibrary("jpeg"), .linkedLibrary("z")]),
        .target(name: "CJPEG", path: "Sources/System/CJPEG", linkerSettings: [.linkedLibrary("jpeg")]),
        .target(
            name: "CFriBidi", path: "Sources/System/CFriBidi", linkerSettings: [.linkedLibrary("fribidi")]),
        .systemLibrary(name: "CHEIF", path: "Sources/System/CHEIF"),
        .systemLibrary(
            name: "CPango", path: "Sources/System/CPango", pkgConfig: "pangocairo",
            providers: [.apt(["libpango1.0-dev"])]),
        .target(name: "CPoppler", path: "Sources/System/CPoppler", linkerSettings: [.linkedLibrary("poppler-cpp")]),
        .target(name: "CZXing", path: "Sources/System/CZXing", linkerSettings: [.linkedLibrary("ZXing")]),
        .target(name: "Pages", path: "Sources/Domains/Pages", swiftSettings: strict),
        .target(
            name: "Directions", dependencies: ["CFriBidi", "Pages"], path: "Sources/Programs/Children/Directions",
            swiftSettings: strict),
        .executableTarget(
            name: "CodesChild", dependencies: ["CZXing", "ChildSandbox", "ChildProtocol", "Pages"],
            path: "Sources/Programs/Children/Codes", swiftSettings: strict),
        .executableTarget(
            name: "RasterChild", dependencies: ["CPoppler", "ChildSandbox", "ChildProtocol", "Directions", "Pages"],
            path: "Sources/Programs/Children/Raster",
            exclude: ["LICENSE.md"], swiftSettings: strict),
        .executableTarget(
            name: "HEICChild", dependencies: ["CColors", "CHEIF", "ChildSandbox", "ChildProtocol", "Pages"],
            path: "Sources/Programs/Children/HEIC",
            swiftSettings: strict),
        .executableTarget(
            name: "ReportChild", dependencies: ["CPango", "ChildSandbox", "ChildProtocol", "Pages"],
            path: "Sources/Programs/Children/Report",
            swiftSettings: strict),
        .executableTarget(
            name: "PictureChild",
            dependencies: ["CColors", "CLeptonica", "CPictures", "ChildSandbox", "ChildProtocol", "Pages"],
            path: "Sources/Programs/Children/Picture", swiftSettings: strict),
        .executableTarget(
            name: "AssembleChild",
            dependencies: [
                "CJPEG", "CLinux", "CQPDF", "ChildSandbox", "ChildProtocol", "Compression", "Directions", "Pages",
            ],
            path: "Sources/Programs/Children/Assemble", swiftSettings: strict),
        .executableTarget(
            name: "OCRChild", dependencies: ["CLinux", "CTesseract", "ChildSandbox", "ChildProtocol", "Pages"],
            path: "Sources/Programs/Children/OCR",
            swiftSettings: strict),
        .executableTarget(
            name: "ProbeChild", dependencies: ["CQPDF", "ChildSandbox", "ChildProtocol", "Pages"],
            path: "Sources/Programs/Children/Probe",
            swiftSettings: strict),

        .target(name: "MillraceJobs", dependencies: ["Traces"], path: "Sources/Engine/Jobs", swiftSettings: strict),

        .target(
            name: "MillraceQueues", dependencies: ["Digests", "MillraceJobs", "Postgres", "Schema", "Traces"],
            path: "Sources/Engine/Queues", swiftSettings: strict),

        .target(
            name: "Supervision", dependencies: ["Faults", "Postgres", "Telemetry", "Threads", "Traces"],
            path: "Sources/Engine/Supervision", swiftSettings: strict),

        .target(
            name: "Templates", dependencies: ["Encodings", "JSON", "Postgres", "Threads"],
            path: "Sources/Engine/Templates",
            resources: [.embedInCode("Resources")],
            swiftSettings: strict),

        .target(
            name: "Workers",
            dependencies: [
                "Calendars", "ChildProtocol", "Digests", "Encodings", "Encryption", "JSON", "MillraceJobs", "Postgres",
                "MillraceQueues",
                "Subprocesses", "Telemetry",
                "Threads", "Traces",
            ],
            path: "Sources/Engine/Workers",
            swiftSettings: strict),

        .target(
            name: "SettingsKit",
            dependencies: [
                "Calendars", "CTerminal", "Encryption", "MillraceJobs", "Listeners", "Signatures", "Supervision",
                "Telemetry",
                "Templates", "Traces",
            ], path: "Sources/Kits/SettingsKit", swiftSettings: strict),

        .target(
            name: "BlobKit",
            dependencies: ["Blobs", "CLinux", "JSON", "Listeners", "Postgres", "SettingsKit", "Telemetry"],
            path: "Sources/Kits/BlobKit", swiftSettings: strict),

        .target(
            name: "CommandKit",
            dependencies: [
                "Calendars", "CLinux", "Clusters", "Encryption", "JSON", "Postgres", "MillraceQueues", "SettingsKit",
                "Subprocesses", "Threads",
            ], path: "Sources/Kits/CommandKit", swiftSettings: strict),

        .target(
            name: "PageKit", dependencies: ["JSON", "Listeners"], path: "Sources/Kits/PageKit", swiftSettings: strict),

        .target(
            name: "RoomKit",
            dependencies: [
                "CommandKit", "Encryption", "MillraceJobs", "JSON", "Listeners", "PageKit", "Postgres", "Schema",
                "SettingsKit", "Supervision", "Telemetry", "Traces", "Workers",
            ],
            path: "Sources/Kits/RoomKit", swiftSettings: strict),

        .target(
            name: "StatusKit",
            dependencies: ["Faults", "JSON", "Postgres", "MillraceQueues", "RoomKit", "Supervision"],
            path: "Sources/Kits/StatusKit", swiftSettings: strict),

        .target(
            name: "Mail",
            dependencies: [
                "BlobKit", "Blobs", "CommandKit", "Encodings", "Faults", "HostNames", "MillraceJobs", "JSON",
                "Listeners",
                "PageKit", "Postgres", "MillraceQueues", "RoomKit", "RoomSchemas", "SettingsKit", "Signatures",
                "Supervision",
                "Telemetry", "Templates", "Threads", "Traces", "Transfers", "Workers",
            ], path: "Sources/Domains/Mail", swiftSettings: strict),

        .target(
            name: "Quests",
            dependencies: [
                "Calendars", "CommandKit", "MillraceJobs", "JSON", "Postgres", "RoomKit", "RoomSchemas", "SettingsKit",
                "Telemetry", "Workers",
            ], path: "Sources/Domains/Quests",
            swiftSettings: strict),

        .target(
            name: "Chat", dependencies: ["CommandKit", "Postgres", "RoomKit", "RoomSchemas"],
            path: "Sources/Domains/Chat", swiftSettings: strict),

        .target(
            name: "Subscriptions",
            dependencies: [
                "CommandKit", "MillraceJobs", "JSON", "Listeners", "Postgres", "RoomKit", "RoomSchemas", "SettingsKit",
                "Signatures", "Telemetry", "Workers",
            ], path: "Sources/Domains/Subscriptions",
            swiftSettings: strict),

        .target(
            name: "People",
            dependencies: [
                "BlobKit", "Blobs", "CommandKit", "JSON", "Postgres", "RoomKit", "RoomSchemas", "SettingsKit",
            ],
            path: "Sources/Domains/People", swiftSettings: strict),

        .target(
            name: "CheckIns",
            dependencies: [
                "CommandKit", "Faults", "JSON", "Listeners", "PageKit", "Postgres", "RoomKit", "RoomSchemas",
                "SettingsKit", "Signatures", "Supervision", "Telemetry", "Transfers",
            ], path: "Sources/Domains/CheckIns",
            swiftSettings: strict),

        .target(
            name: "CloudEvents", dependencies: ["Encodings", "JSON"], path: "Sources/Domains/CloudEvents",
            swiftSettings: strict),

        .target(
            name: "Webhooks",
            dependencies: [
                "CloudEvents", "CommandKit", "Digests", "Encodings", "Encryption", "Faults", "Postgres", "RoomKit",
                "RoomSchemas", "SettingsKit", "Signatures", "Supervision", "Telemetry", "Threads", "Traces",
                "Transfers",
            ], path: "Sources/Domains/Webhooks", swiftSettings: strict),

        .target(
            name: "Notices",
            dependencies: [
                "CommandKit", "Encodings", "Encryption", "Faults", "MillraceJobs", "JSON", "PageKit", "Postgres",
                "RoomKit", "RoomSchemas", "SettingsKit", "Signatures", "Supervision", "Telemetry", "Templates",
                "Threads", "Transfers",
            ], path: "Sources/Domains/Notices",
            swiftSettings: strict),

        .target(
            name: "AI",
            dependencies: [
                "CommandKit", "Faults", "MillraceJobs", "JSON", "Postgres", "RoomKit", "RoomSchemas", "SettingsKit",
                "Supervision", "Telemetry", "Templates", "Threads", "Transfers", "Workers",
            ], path: "Sources/Domains/AI", swiftSettings: strict),

        .target(
            name: "Documents",
            dependencies: [
                "BlobKit", "Blobs", "CommandKit", "Compression", "Digests", "Encodings", "MillraceJobs", "Pages",
                "Postgres", "RoomKit", "RoomSchemas", "Sandbox", "SettingsKit", "Supervision", "Telemetry",
                "Threads", "Transfers", "Workers",
            ], path: "Sources/Domains/Documents", swiftSettings: strict),

        .target(
            name: "Millrace",
            dependencies: [
                "Calendars", "MillraceJobs", "Postgres", "MillraceQueues", "Encryption", "Telemetry", "Threads",
                "Traces", "Workers",
            ],
            path: "Sources/Faces/Millrace",
            swiftSettings: strict),

        .target(
            name: "MillraceSwiftLog",
            dependencies: [
                "Millrace", .product(name: "Logging", package: "swift-log", condition: .when(traits: ["SwiftLog"])),
            ], path: "Sources/Faces/Bridges/SwiftLog", swiftSettings: strict),
        .target(
            name: "MillraceSwiftMetrics",
            dependencies: [
                "Millrace",
                .product(name: "Metrics", package: "swift-metrics", condition: .when(traits: ["SwiftMetrics"])),
            ], path: "Sources/Faces/Bridges/SwiftMetrics", swiftSettings: strict),
        .target(
            name: "MillraceServiceLifecycle",
            dependencies: [
                "Millrace",
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle",
                    condition: .when(traits: ["ServiceLifecycle"])),
            ], path: "Sources/Faces/Bridges/ServiceLifecycle", swiftSettings: strict),
        .target(
            name: "MillracePostgresNIO",
            dependencies: [
                "Millrace",
                .product(name: "PostgresNIO", package: "postgres-nio", condition: .when(traits: ["PostgresNIO"])),
            ], path: "Sources/Faces/Bridges/PostgresNIO", swiftSettings: strict),
        .target(
            name: "MillraceTracing",
            dependencies: [
                "Millrace",
                .product(
                    name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"])),
            ], path: "Sources/Faces/Bridges/Tracing", swiftSettings: strict),
        .target(
            name: "MillraceSwiftConfiguration",
            dependencies: [
                "Millrace",
                .product(
                    name: "Configuration", package: "swift-configuration",
                    condition: .when(traits: ["SwiftConfiguration"])),
            ], path: "Sources/Faces/Bridges/SwiftConfiguration", swiftSettings: strict),

        .target(
            name: "MillraceMail",
            dependencies: [
                "Blobs", "Faults", "MillraceJobs", "Mail", "Millrace", "Postgres", "MillraceQueues", "RoomSchemas",
                "Signatures",
                "Supervision", "Templates", "Workers",
            ], path: "Sources/Faces/MillraceMail", swiftSettings: strict),

        .target(
            name: "Console",
            dependencies: [
                "Calendars", "Compression", "Encryption", "JSON", "Listeners", "PageKit", "Postgres", "SettingsKit",
                "Signatures", "Telemetry", "Templates", "Threads",
            ], path: "Sources/Faces/Console", exclude: ["DESIGN.md"], resources: [.embedInCode("Resources")],
            swiftSettings: strict),

        .target(
            name: "Gateway",
            dependencies: [
                "Compression", "Digests", "Encodings", "Faults", "JSON", "Listeners", "Postgres", "RoomKit",
                "SettingsKit", "Signatures", "Supervision", "Telemetry", "Threads", "Traces",
            ], path: "Sources/Faces/Gateway", swiftSettings: strict),

        .target(
            name: "Approvals",
            dependencies: [
                "JSON", "Listeners", "MillraceQueues", "PageKit", "Postgres", "SettingsKit", "Signatures", "Telemetry",
            ], path: "Sources/Faces/Approvals", swiftSettings: strict),

        .target(
            name: "Health",
            dependencies: [
                "JSON", "Listeners", "MillraceQueues", "RoomKit", "SettingsKit", "Supervision", "Traces", "Workers",
            ], path: "Sources/Faces/Health", swiftSettings: strict),

        // For apps: Foundation alone, and nothing of the server.
        .target(name: "MillraceApp", path: "Sources/Faces/MillraceApp", swiftSettings: strict),

        .target(
            name: "Composition",
            dependencies: [
                "AI", "Approvals", "BlobKit", "Blobs", "Chat", "CheckIns", "CLinux", "CommandKit", "Console", "Digests",
                "Documents",
                "Encodings", "Encryption", "Faults", "Gateway", "Health", "MillraceJobs", "JSON", "Listeners", "Mail",
                "MillraceMail",
                "Notices", "PageKit", "Pages", "People", "Postgres", "Quests", "MillraceQueues", "RoomKit",
                "RoomSchemas",
                "Sandbox",
                "Schema", "SettingsKit", "Signatures", "StatusKit", "Subscriptions", "Supervision", "Telemetry",
                "Templates", "Threads", "TraceExport", "Traces", "Transfers", "Webhooks", "Workers",
            ], path: "Sources/Programs/Composition", swiftSettings: strict),

        .target(
            name: "MillraceWorker",
            dependencies: [
                "Composition", "Encryption", "Millrace", "PageKit", "Postgres", "MillraceQueues", "RoomKit", "Schema",
                "Telemetry", "Threads", "Workers",
            ], path: "Sources/Programs/MillraceWorker", swiftSettings: strict),

        .target(
            name: "MillraceCommand",
            dependencies: [
                "AI", "Blobs", "Calendars", "Chat", "CheckIns", "ChildProtocol", "CLinux", "CloudEvents", "Clusters",
                "CommandKit", "Composition", "Compression", "Console", "Documents", "Encryption", "Faults",
                "Gateway", "MillraceJobs", "JSON", "Listeners", "Mail", "MillraceMail", "Notices", "Pages", "Postgres",
                "Quests", "MillraceQueues", "RoomKit", "Sandbox", "Schema", "Signatures", "Subprocesses",
                "Subscriptions",
                "Supervision", "Telemetry", "Templates", "Threads", "Traces", "Transfers", "Webhooks", "Workers",
            ], path: "Sources/Programs/MillraceCommand", resources: [.embedInCode("Resources")], swiftSettings: strict),
        .target(
            name: "MillraceProgram", dependencies: ["MillraceCommand", "MillraceWorker"],
            path: "Sources/Programs/MillraceProgram", swiftSettings: strict),
        .executableTarget(
            name: "MillraceMain", dependencies: ["MillraceCommand"], path: "Sources/Programs/MillraceMain",
            swiftSettings: strict),
        // What the load program's scenarios share; the engine's scenarios, which need no room; those of the rooms; and the program.
        .target(
            name: "LoadKit",
            dependencies: [
                "Clusters", "CommandKit", "CYardstick", "MillraceQueues", "Postgres", "RoomSchemas", "Telemetry",
                "Threads",
                "Workers",
            ], path: "Sources/Programs/LoadKit", swiftSettings: strict),
        .target(
            name: "EngineLoad",
            dependencies: [
                "Clusters", "CommandKit", "CYardstick", "Encryption", "Faults", "LoadKit", "MillraceJobs",
                "MillraceQueues",
                "Postgres", "Subprocesses", "Supervision", "Telemetry", "Templates", "Threads", "Transfers", "Workers",
            ], path: "Sources/Programs/EngineLoad", swiftSettings: strict),
        .target(
            name: "RoomLoad",
            dependencies: [
                "Blobs", "CheckIns", "CLinux", "Clusters", "CommandKit", "Composition", "Compression", "Console",
                "CYardstick", "Documents", "Faults", "JSON", "Listeners", "LoadKit", "Mail", "MillraceMail",
                "MillraceQueues", "Notices", "Pages", "Postgres", "Quests", "Sandbox", "Signatures", "Subprocesses",
                "Supervision", "Telemetry", "Templates", "Threads", "Transfers", "Workers",
            ], path: "Sources/Programs/RoomLoad", swiftSettings: strict),
        .executableTarget(
            name: "MillraceLoad",
            dependencies: [
                "Clusters", "CommandKit", "Encryption", "EngineLoad", "JSON", "LoadKit", "Millrace", "MillraceCommand",
                "MillraceJobs", "MillraceQueues", "Postgres", "RoomLoad", "RoomSchemas", "Schema", "Telemetry",
                "Workers",
            ], path: "Sources/Programs/MillraceLoad", swiftSettings: strict),

        .executableTarget(
            name: "DocumentsBench", dependencies: ["Documents", "Pages", "Sandbox"], path: "Tests/DocumentsBench",
            swiftSettings: strict),

        .target(
            name: "TestSupport",
            dependencies: [
                "CLinux", "Clusters", "Faults", "Postgres", "MillraceQueues", "RoomSchemas", "Schema", "Supervision",
                "Telemetry", "Threads",
            ],
            path: "Tests/TestSupport",
            swiftSettings: strict),
        .target(
            name: "Fakes", dependencies: ["CCrypto", "JSON", "Signatures", "Threads"], path: "Tests/Fakes",
            swiftSettings: strict),
        .executableTarget(
            name: "FakeResendServer", dependencies: ["Fakes"], path: "Tests/FakeResendServer", swiftSettings: strict),
        .executableTarget(
            name: "FakeModelServer", dependencies: ["Fakes", "JSON"], path: "Tests/FakeModelServer",
            swiftSettings: strict),
        .testTarget(name: "DigestsTests", dependencies: ["Digests", "Encodings"], swiftSettings: strict),
        .testTarget(name: "ThreadsTests", dependencies: ["TestSupport", "Threads"], swiftSettings: strict),
        .testTarget(
            name: "TracesTests",
            dependencies: ["Encodings", "Fakes", "Telemetry", "TestSupport", "TraceExport", "Traces"],
            swiftSettings: strict),
        .testTarget(
            name: "CalendarsTests", dependencies: ["Calendars", "Postgres", "TestSupport"], exclude: ["Reference"],
            swiftSettings: strict),
        .testTarget(
            name: "PostgresTests", dependencies: ["Clusters", "Postgres", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "ClustersTests", dependencies: ["Clusters", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "TransfersTests", dependencies: ["CCurl", "Fakes", "Faults", "Transfers", "TestSupport", "Threads"],
            swiftSettings: strict),
        .testTarget(name: "ChildProtocolTests", dependencies: ["ChildProtocol"], swiftSettings: strict),
        .executableTarget(
            name: "Prisoner", dependencies: ["CCage", "ChildSandbox", "ChildProtocol"], path: "Tests/Prisoner",
            swiftSettings: strict),
        .testTarget(
            name: "SandboxTests", dependencies: ["CLinux", "Prisoner", "Sandbox", "TestSupport", "Threads"],
            swiftSettings: strict),
        .testTarget(name: "PagesTests", dependencies: ["Pages"], swiftSettings: strict),
        .testTarget(
            name: "DocumentsTests",
            dependencies: [
                "AssembleChild", "Blobs", "CZlib", "CodesChild", "Documents", "HEICChild", "OCRChild", "Pages",
                "PictureChild",
                "Postgres", "Prisoner", "ProbeChild", "RasterChild", "ReportChild", "Sandbox", "Telemetry",
                "TestSupport", "Workers",
            ], swiftSettings: strict),
        .testTarget(name: "EncryptionTests", dependencies: ["Encryption"], swiftSettings: strict),
        .testTarget(
            name: "ListenersTests", dependencies: ["Listeners", "Telemetry", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "BlobsTests", dependencies: ["Blobs", "Fakes", "Transfers", "Postgres", "Telemetry", "TestSupport"],
            swiftSettings: strict),
        .testTarget(name: "FaultsTests", dependencies: ["Faults"], swiftSettings: strict),
        .testTarget(name: "JobsTests", dependencies: ["MillraceJobs", "Traces"], swiftSettings: strict),
        .testTarget(
            name: "QueuesTests", dependencies: ["Postgres", "MillraceQueues", "RoomSchemas", "Schema", "TestSupport"],
            exclude: ["Shipped"],
            swiftSettings: strict),
        .testTarget(
            name: "SupervisionTests",
            dependencies: [
                "Clusters", "Faults", "Postgres", "MillraceQueues", "Supervision", "Telemetry", "TestSupport",
                "Traces",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "SignaturesTests", dependencies: ["Encodings", "Fakes", "JSON", "Signatures", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MailTests",
            dependencies: [
                "Blobs", "Fakes", "Faults", "HostNames", "Mail", "Postgres", "MillraceQueues", "Signatures",
                "Supervision",
                "Telemetry", "Templates", "TestSupport", "Transfers",
            ], swiftSettings: strict),
        .testTarget(
            name: "TemplatesTests", dependencies: ["Postgres", "MillraceQueues", "Templates", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "DoorsTests", dependencies: ["Clusters", "Postgres", "MillraceQueues", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "QuestsTests", dependencies: ["Calendars", "Postgres", "Quests", "TestSupport"], swiftSettings: strict
        ),
        .testTarget(name: "ChatTests", dependencies: ["Postgres", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "LessonsTests", dependencies: ["Postgres", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "SubscriptionsTests", dependencies: ["JSON", "Postgres", "Subscriptions", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "AITests",
            dependencies: [
                "AI", "Fakes", "Faults", "JSON", "MillraceJobs", "Postgres", "Supervision", "Telemetry", "TestSupport",
                "Transfers", "Workers",
            ], swiftSettings: strict),
        .testTarget(name: "CloudEventsTests", dependencies: ["CloudEvents"], swiftSettings: strict),
        .testTarget(
            name: "WebhooksTests",
            dependencies: [
                "CloudEvents", "Fakes", "Transfers", "Postgres", "MillraceQueues", "Encryption", "Signatures",
                "Supervision",
                "Telemetry", "TestSupport", "Threads", "Webhooks",
            ], swiftSettings: strict),
        .testTarget(
            name: "CheckInsTests",
            dependencies: ["CheckIns", "Clusters", "Postgres", "MillraceQueues", "Telemetry", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "NoticesTests",
            dependencies: [
                "Fakes", "Faults", "Transfers", "Notices", "Postgres", "Signatures", "Supervision", "Telemetry",
                "TestSupport", "Threads",
            ], swiftSettings: strict),
        .testTarget(
            name: "WorkersTests",
            dependencies: ["Calendars", "MillraceJobs", "MillraceQueues", "TestSupport", "Workers"],
            swiftSettings: strict),
        .testTarget(
            name: "CorporaTests",
            dependencies: [
                "Calendars", "Gateway", "JSON", "Listeners", "MillraceCommand", "Postgres", "Signatures", "Telemetry",
                "Templates", "Threads", "TestSupport",
            ], exclude: ["Fuzz.swift"], swiftSettings: strict),
        // Optimised, for it explores hundreds of thousands of states.
        .testTarget(
            name: "ModelTests", dependencies: ["MillraceQueues", "Threads", "Workers"],
            swiftSettings: strict + [.unsafeFlags(["-O"])]),
        .testTarget(
            name: "MillraceMailTests", dependencies: ["Millrace", "MillraceMail", "Postgres", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "ConsoleTests",
            dependencies: [
                "CommandKit", "Composition", "Console", "Listeners", "Postgres", "MillraceQueues", "Signatures",
                "Telemetry",
                "Templates",
                "TestSupport", "Threads",
            ], swiftSettings: strict),
        .testTarget(
            name: "GatewayTests",
            dependencies: [
                "BlobKit", "Blobs", "Clusters", "Composition", "Digests", "Encodings", "Fakes", "Faults", "Gateway",
                "JSON", "Listeners",
                "Postgres", "MillraceQueues",
                "Signatures", "Supervision", "Telemetry", "TestSupport", "Threads",
            ], swiftSettings: strict),
        .testTarget(
            name: "MillraceAppTests",
            dependencies: [
                "AppExample", "Blobs", "Composition", "Fakes", "Gateway", "Listeners", "MillraceApp", "Postgres",
                "MillraceQueues", "Signatures", "Supervision", "TestSupport", "Threads",
            ],
            swiftSettings: strict),
        // The examples have packages of their own; here they are built with everything else.
        .executableTarget(
            name: "QueueWorkerExample", dependencies: ["Millrace"],
            path: "deploy/examples/queue/Sources/queue-worker"),
        .executableTarget(
            name: "ShopWorkerExample", dependencies: ["MillraceWorker"],
            path: "deploy/examples/shop/Sources/shop-worker"),
        .executableTarget(
            name: "AppExample", dependencies: ["MillraceApp"], path: "deploy/examples/app/Sources/app"),
        .executableTarget(
            name: "WorkflowsExample", dependencies: ["Millrace"], path: "deploy/examples/workflows",
            exclude: ["README.md"], swiftSettings: strict),
        .testTarget(
            name: "MillraceWorkerTests",
            dependencies: [
                "Fakes", "MillraceWorker", "Postgres", "QueueWorkerExample", "ShopWorkerExample", "TestSupport",
                "WorkflowsExample",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "MillraceTests",
            dependencies: ["CPostgres", "Clusters", "Fakes", "Millrace", "Postgres", "MillraceQueues", "TestSupport"],
            swiftSettings: strict),
        .testTarget(name: "SettingsKitTests", dependencies: ["SettingsKit"], swiftSettings: strict),
        .testTarget(name: "CommandKitTests", dependencies: ["CommandKit"], swiftSettings: strict),
        .testTarget(
            name: "MillraceCommandTests",
            dependencies: [
                "AI", "Approvals", "Calendars", "CheckIns", "Clusters", "Composition", "Digests", "Documents",
                "Encodings", "Encryption", "Faults", "Gateway", "Health", "MillraceJobs", "Listeners", "Mail",
                "MillraceCommand", "MillraceLoad", "Notices",
                "BlobKit", "Blobs", "PageKit", "Postgres", "MillraceQueues", "RoomSchemas",
                "MillraceWorker", "Schema", "Signatures", "Subscriptions", "Supervision", "Telemetry", "TestSupport",
                "Workers",
            ], exclude: ["Recorded"],
            swiftSettings: strict),
        .testTarget(
            name: "MillraceLoadTests",
            dependencies: [
                "CommandKit", "EngineLoad", "LoadKit", "Postgres", "RoomLoad", "Telemetry", "TestSupport",
            ], swiftSettings: strict),
        .testTarget(
            name: "SystemTests",
            dependencies: [
                "Clusters", "Encodings", "Fakes", "Faults", "Health", "MillraceJobs", "Listeners", "LoadKit",
                "MillraceCommand", "MillraceLoad", "RoomLoad",
                "MillraceMain", "Postgres", "MillraceQueues", "RoomSchemas", "Signatures", "Supervision", "Telemetry",
                "TestSupport", "Workers",
            ],
            swiftSettings: strict),
    ],
)

// deploy/fuzz builds this instead: a main of libFuzzer's that feeds the corpora's entry points. The tools of the build have mains of their
// own, so the sanitizer is not for all targets.
if Context.environment["MILLRACE_FUZZ"] != nil {
    package.targets.removeAll { $0.isTest || $0.name == "TestSupport" }
    package.products = [.executable(name: "millrace-fuzz", targets: ["Fuzz"])]
    for target in package.targets where target.type == .regular {
        target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-sanitize=fuzzer"])]
    }
    package.targets.append(
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "Calendars", "Gateway", "JSON", "Listeners", "MillraceCommand", "Postgres", "Signatures", "Telemetry",
                "Templates",
            ], path: "Tests/CorporaTests", exclude: ["CorporaTests.swift"],
            swiftSettings: strict + [.unsafeFlags(["-sanitize=fuzzer", "-parse-as-library"])],
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer"])]))
}
