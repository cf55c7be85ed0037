// swift-tools-version: 6.2
import PackageDescription

// A worker of your own: one kind of job, a worker executable, and tests with the test bench.
let package = Package(
    name: "receipts",
    dependencies: [.package(name: "millrace", path: "../../..")],
    targets: [
        .target(name: "ReceiptJobs", dependencies: [.product(name: "Millrace", package: "millrace")]),
        .executableTarget(
            name: "receipts", dependencies: ["ReceiptJobs", .product(name: "Millrace", package: "millrace")]),
        .testTarget(
            name: "ReceiptsTests", dependencies: ["ReceiptJobs", .product(name: "Millrace", package: "millrace")]),
    ]
)
