import Documents
import Foundation
import Pages
import Sandbox
import TestSupport
import Testing

/// Where the kernel refuses namespaces and Landlock, documents are still read, within the other limits, and a warning is logged.
@Suite(.serialized) struct FewerProtectionsTests {
    @Test func `a document is read with fewer protections, within the limits, and a warning says so`() async throws {
        let picture = try await scannedPNG(7)
        let warnings = Warnings()
        try await KernelProtections.fewer.withChildren { children in
            try await withDocuments(
                { shop, _ in
                    shop.children = children
                    shop.pageCPU = .seconds(1)
                }, log: warnings.log
            ) { bench in
                #expect(["failed timeout", "failed memory"].contains(try await bench.read(endlessForms).ended))
                #expect(try await bench.read(hello(page: "/UserUnit 100000")).ended == "failed too_large")
                let scan = try await bench.read(picture)
                #expect(scan.ended == "completed")
                #expect(try await bench.text(scan.id).contains("page number 7"))
                #expect(try await active(in: try await bench.output(scan.id, "pdf")) == [])
                #expect(try await bench.connection.int("select count(*) from millrace.history where outcome = 4") == 0)
            }
        }
        #expect(warnings.contains("layers of the sandbox", "sandbox.refused=24"))
    }

    @Test(arguments: KernelProtections.allCases)
    func `each child says which of its protections stand`(_ protections: KernelProtections) async throws {
        try await protections.withChildren { children in
            var own = workshop
            own.children = children
            let limits = own.limits(.probe)
            for stage in DocumentPrograms.Stage.allCases {
                var program = own.program(stage)
                if stage == .ocr { program.arguments = ["models=\(own.models)", "languages=eng"] }
                let child = try await SandboxedChild.start(program, limits: stage == .ocr ? own.limits(.ocr) : limits)
                #expect(child.refusedLayers == protections.refused, "\(stage)")
                await child.end()
            }
        }
    }
}
