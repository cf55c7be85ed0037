// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "millrace-peer",
    dependencies: [.package(name: "millrace", path: Context.environment["PEER_MILLRACE"] ?? "../../../../..")],
    targets: [
        .executableTarget(name: "peer", dependencies: [.product(name: "Millrace", package: "millrace")])
    ]
)
