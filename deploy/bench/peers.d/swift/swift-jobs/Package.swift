// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "swift-jobs-peer",
    dependencies: [
        .package(url: "https://github.com/hummingbird-project/swift-jobs.git", from: "1.3.0"),
        .package(url: "https://github.com/hummingbird-project/swift-jobs-postgres.git", from: "1.3.0"),
        .package(url: "https://github.com/hummingbird-project/postgres-migrations.git", from: "1.0.0"),
        .package(url: "https://github.com/vapor/postgres-nio.git", from: "1.30.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
    ],
    targets: [
        .executableTarget(
            name: "peer",
            dependencies: [
                .product(name: "Jobs", package: "swift-jobs"),
                .product(name: "JobsPostgres", package: "swift-jobs-postgres"),
                .product(name: "PostgresMigrations", package: "postgres-migrations"),
                .product(name: "PostgresNIO", package: "postgres-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
            ])
    ]
)
