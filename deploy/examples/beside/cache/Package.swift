// swift-tools-version: 6.2
import PackageDescription

// What an app shows without a network, in SQLite by GRDB. deploy/checks/traits builds and tests it, for it needs an outside package.
let package = Package(
    name: "document-cache",
    platforms: [.iOS(.v16), .macOS(.v13)],
    dependencies: [
        .package(name: "millrace", path: Context.environment["BESIDE_MILLRACE"] ?? "../../../.."),
        .package(url: "https://github.com/groue/GRDB.swift.git", from: "7.6.0"),
    ],
    targets: [
        .target(
            name: "DocumentCache",
            dependencies: [
                .product(name: "MillraceApp", package: "millrace"), .product(name: "GRDB", package: "GRDB.swift"),
            ], swiftSettings: [.treatAllWarnings(as: .error)]),
        .testTarget(
            name: "DocumentCacheTests", dependencies: ["DocumentCache"], swiftSettings: [.treatAllWarnings(as: .error)],
            // Debian's SQLite has no snapshots, which GRDB names and nothing here uses; Apple's has them.
            linkerSettings: [
                .unsafeFlags(["-Xlinker", "--unresolved-symbols=ignore-all"], .when(platforms: [.linux]))
            ]),
    ]
)
