// swift-tools-version: 6.2
import PackageDescription

// A room of your own: its tables, functions, jobs, commands and pages, the program `millrace` with that room, and tests.
let package = Package(
    name: "library",
    dependencies: [.package(name: "millrace", path: "../../..")],
    targets: [
        .target(
            name: "Shelf", dependencies: [.product(name: "MillraceWorker", package: "millrace")],
            plugins: [.plugin(name: "EmbedSQL", package: "millrace")]),
        .executableTarget(
            name: "library", dependencies: ["Shelf", .product(name: "MillraceProgram", package: "millrace")]),
        .testTarget(
            name: "ShelfTests", dependencies: ["Shelf", .product(name: "MillraceWorker", package: "millrace")]),
    ]
)
