// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "strand-peer",
    dependencies: [
        .package(url: "https://github.com/thoven87/strand.git", branch: "main"),
        .package(url: "https://github.com/vapor/postgres-nio.git", from: "1.30.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
    ],
    targets: [
        .executableTarget(
            name: "peer",
            dependencies: [
                .product(name: "Strand", package: "strand"),
                .product(name: "PostgresNIO", package: "postgres-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
            ])
    ]
)
