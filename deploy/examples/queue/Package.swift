// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "shop",
    dependencies: [.package(name: "millrace", path: "../../..")],
    targets: [
        .executableTarget(
            name: "queue-worker", dependencies: [.product(name: "Millrace", package: "millrace")])
    ]
)
