// swift-tools-version: 6.2
import PackageDescription

// What an app does, as a command-line program: the product MillraceApp alone, which is Foundation and nothing of the server.
let package = Package(
    name: "app",
    dependencies: [.package(name: "millrace", path: "../../..")],
    targets: [
        .executableTarget(name: "app", dependencies: [.product(name: "MillraceApp", package: "millrace")])
    ]
)
