// swift-tools-version: 6.2
import PackageDescription

// A Hummingbird server and a worker in one ServiceGroup. deploy/checks/traits builds and tests it, for it needs outside packages.
let package = Package(
    name: "shop",
    dependencies: [
        .package(
            name: "millrace", path: Context.environment["BESIDE_MILLRACE"] ?? "../../../..",
            traits: ["ServiceLifecycle", "SwiftLog"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.20.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.14.0"),
    ],
    targets: [
        .target(
            name: "Shop",
            dependencies: [
                .product(name: "Millrace", package: "millrace"),
                .product(name: "MillraceServiceLifecycle", package: "millrace"),
                .product(name: "MillraceSwiftLog", package: "millrace"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: [.treatAllWarnings(as: .error)]),
        .executableTarget(name: "shop-server", dependencies: ["Shop"], swiftSettings: [.treatAllWarnings(as: .error)]),
        .testTarget(
            name: "ShopTests",
            dependencies: ["Shop", .product(name: "HummingbirdTesting", package: "hummingbird")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
    ]
)
