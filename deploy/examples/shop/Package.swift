// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "shop",
    dependencies: [.package(name: "millrace", path: "../../..")],
    targets: [
        .executableTarget(
            name: "shop-worker", dependencies: [.product(name: "MillraceWorker", package: "millrace")])
    ]
)
