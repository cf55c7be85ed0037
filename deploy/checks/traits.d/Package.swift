// swift-tools-version: 6.2
import PackageDescription

// A server's package that has Millrace beside the packages of a trait. deploy/checks/traits says which, and where Millrace is.
let environment = Context.environment
let traits = Set((environment["BESIDE_TRAITS"] ?? "").split(separator: ",").map(String.init))

/// A dependency of a trait: the product of ours, and the products of others that the tests use themselves.
let products: [(trait: String, own: String, others: [Target.Dependency], packages: [Package.Dependency])] = [
    (
        "SwiftLog", "MillraceSwiftLog", [.product(name: "Logging", package: "swift-log")],
        [.package(url: "https://github.com/apple/swift-log.git", from: "1.14.0")]
    ),
    (
        "SwiftMetrics", "MillraceSwiftMetrics",
        [
            .product(name: "Metrics", package: "swift-metrics"),
            .product(name: "MetricsTestKit", package: "swift-metrics"),
        ],
        [.package(url: "https://github.com/apple/swift-metrics.git", from: "2.5.0")]
    ),
    (
        "ServiceLifecycle", "MillraceServiceLifecycle",
        [
            .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            .product(name: "Logging", package: "swift-log"),
        ],
        [
            .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
            .package(url: "https://github.com/apple/swift-log.git", from: "1.14.0"),
        ]
    ),
    (
        "PostgresNIO", "MillracePostgresNIO",
        [.product(name: "PostgresNIO", package: "postgres-nio"), .product(name: "Logging", package: "swift-log")],
        [
            .package(url: "https://github.com/vapor/postgres-nio.git", from: "1.22.0"),
            .package(url: "https://github.com/apple/swift-log.git", from: "1.14.0"),
        ]
    ),
    (
        "Tracing", "MillraceTracing", [.product(name: "Tracing", package: "swift-distributed-tracing")],
        [.package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.2.0")]
    ),
    (
        "SwiftConfiguration", "MillraceSwiftConfiguration",
        [.product(name: "Configuration", package: "swift-configuration")],
        [.package(url: "https://github.com/apple/swift-configuration.git", from: "1.0.0")]
    ),
]
let chosen = products.filter { traits.contains($0.trait) }

var packages: [Package.Dependency] = []
var named: Set<String> = []
for dependency in chosen.flatMap(\.packages) where named.insert("\(dependency.kind)").inserted {
    packages.append(dependency)
}
var uses: [Target.Dependency] = []
for use in chosen.flatMap(\.others) where named.insert("\(use)").inserted { uses.append(use) }

let package = Package(
    name: "beside",
    dependencies: [
        .package(
            name: "millrace", path: environment["BESIDE_MILLRACE"] ?? "../../..",
            traits: Set(traits.map { .init(name: $0) }))
    ] + packages,
    targets: [
        .testTarget(
            name: "BesideTests",
            dependencies: [.product(name: "Millrace", package: "millrace")]
                + chosen.map { .product(name: $0.own, package: "millrace") } + uses,
            swiftSettings: [.treatAllWarnings(as: .error)] + traits.map { .define($0) })
    ]
)
