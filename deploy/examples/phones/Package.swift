// swift-tools-version: 6.2
import PackageDescription

// Two apps, each with the phones of two people, and a phone that sends scans, as command-line programs. They use the product MillraceApp alone.
let package = Package(
    name: "phones",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "millrace", path: "../../..")],
    targets: [
        .target(name: "Phones", dependencies: [.product(name: "MillraceApp", package: "millrace")]),
        .executableTarget(
            name: "peachy", dependencies: ["Phones", .product(name: "MillraceApp", package: "millrace")]),
        .executableTarget(
            name: "lifesignal", dependencies: ["Phones", .product(name: "MillraceApp", package: "millrace")]),
        .executableTarget(
            name: "scans", dependencies: ["Phones", .product(name: "MillraceApp", package: "millrace")]),
    ]
)
