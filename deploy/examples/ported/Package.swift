// swift-tools-version: 6.2
import PackageDescription

// What the first pages of swift-jobs, vapor/queues and Strand do, done with Millrace: deploy/guides/words.md tells the words apart.
let package = Package(
    name: "ported",
    dependencies: [.package(name: "millrace", path: "../../..")],
    targets: [
        .target(name: "Ported", dependencies: [.product(name: "Millrace", package: "millrace")]),
        .executableTarget(
            name: "ported-worker", dependencies: ["Ported", .product(name: "Millrace", package: "millrace")]),
        .testTarget(name: "PortedTests", dependencies: ["Ported", .product(name: "Millrace", package: "millrace")]),
    ]
)
