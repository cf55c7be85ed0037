import Documents
import Foundation
import Pages
import Sandbox
import Testing

/// Pictures that are cut, absurd or made to hurt: each is read or refused with its reason, soon, in little memory, and without a crash.
@Suite struct OddPictureTests {
    private enum End {
        case read
        case refused(Reason)
        /// What a damaged file shows is its own affair.
        case either
    }

    private typealias Case = (name: String, file: [UInt8], end: End)

    private func with(_ file: [UInt8], at place: Int, _ bytes: [UInt8]) -> [UInt8] {
        var file = file
        file.replaceSubrange(place..<place + bytes.count, with: bytes)
        return file
    }

    private var gifs: [Case] {
        let whole = GIFForm().made(of: bar)
        let data = 13 + 384 + 10
        return [
            ("a GIF's first bytes", Array(whole.prefix(6)), .refused(.malformed)),
            ("a GIF without its colours", Array(whole.prefix(100)), .refused(.malformed)),
            ("a GIF without a frame", Array(whole.prefix(13 + 384)) + [0x3b], .refused(.malformed)),
            ("half a GIF", Array(whole.prefix(whole.count / 2)), .read),
            ("a GIF without an end", Array(whole.dropLast(2)), .read),
            ("a GIF whose frame has no size", with(whole, at: data - 5, [0, 0, 0, 0]), .refused(.malformed)),
            ("a GIF of four gigapixels", with(whole, at: 6, [255, 255, 255, 255]), .refused(.tooManyPixels)),
            (
                "a GIF whose frame is four gigapixels", with(whole, at: data - 5, [255, 255, 255, 255]),
                .refused(.tooManyPixels)
            ),
            ("a GIF whose frame is far away", with(whole, at: data - 9, [0xf0, 0x7f, 0, 0]), .read),
            ("a GIF with codes of no bits", with(whole, at: data, [0]), .refused(.malformed)),
            ("a GIF with codes of many bits", with(whole, at: data, [200]), .refused(.malformed)),
            ("a GIF with codes of two bits", with(whole, at: data, [2]), .either),
            (
                "a GIF of codes that are not there yet", with(whole, at: data + 2, [UInt8](repeating: 255, count: 200)),
                .either
            ),
            ("a GIF with a block of nothing", with(whole, at: data + 1, [0]), .refused(.malformed)),
            ("a GIF without colours", with(whole, at: 10, [0]), .refused(.malformed)),
            (
                "a GIF with endless extensions",
                Array(whole.prefix(13 + 384)) + [0x21, 0xfe] + [UInt8](repeating: 1, count: 60_000),
                .refused(.malformed)
            ),
            ("a GIF that moves for long", GIFForm(frames: 300).made(of: bar), .read),
        ]
    }

    private var bitmaps: [Case] {
        let whole = BMPForm().made(of: bar)
        let runs = BMPForm(bits: 8, packing: 1).made(of: bar)
        let colors = BMPForm(bits: 8).made(of: bar)
        return [
            ("a BMP's first bytes", Array(whole.prefix(20)), .refused(.malformed)),
            ("two letters", Array("BM is a car.".utf8), .refused(.unsupported)),
            ("a BMP without pixels", Array(whole.prefix(54)), .refused(.malformed)),
            ("half a BMP", Array(whole.prefix(whole.count / 2)), .read),
            ("a BMP without a width", with(whole, at: 18, [0, 0, 0, 0]), .refused(.malformed)),
            ("a BMP whose width is below nothing", with(whole, at: 18, [0, 0, 0, 0x80]), .refused(.malformed)),
            ("a BMP of the least height", with(whole, at: 22, [0, 0, 0, 0x80]), .refused(.tooManyPixels)),
            (
                "a BMP of many gigapixels", with(whole, at: 18, [255, 255, 255, 127, 255, 255, 255, 127]),
                .refused(.tooManyPixels)
            ),
            ("a BMP with pixels of 7 bits", with(whole, at: 28, [7, 0]), .refused(.malformed)),
            ("a BMP with a JPEG in it", with(whole, at: 30, [4, 0, 0, 0]), .refused(.unsupported)),
            ("a BMP of an unknown packing", with(whole, at: 30, [99, 0, 0, 0]), .refused(.unsupported)),
            ("a BMP of runs in colours of 24 bits", with(whole, at: 30, [1, 0, 0, 0]), .refused(.malformed)),
            ("a BMP whose pixels are far away", with(whole, at: 10, [255, 255, 255, 127]), .refused(.malformed)),
            ("a BMP whose pixels are its header", with(whole, at: 10, [0, 0, 0, 0]), .read),
            ("a BMP of too many colours", with(colors, at: 46, [255, 255, 255, 255]), .read),
            ("a BMP of one colour", with(colors, at: 46, [1, 0, 0, 0]), .read),
            ("a BMP whose run is longer than its row", with(runs, at: 54 + 1024, [255, 9, 255, 9, 255, 9]), .read),
            ("a BMP of jumps", with(runs, at: 54 + 1024, [0, 2, 255, 255, 0, 2, 255, 255]), .read),
            ("a BMP of cut pixels as they are", Array(runs.prefix(54 + 1024)) + [0, 200, 1, 2, 3], .read),
            (
                "a BMP of fields without bits",
                with(BMPForm(bits: 32, packing: 3).made(of: bar), at: 54, [UInt8](repeating: 0, count: 16)), .read
            ),
            (
                "a BMP of fields out of its pixels",
                with(BMPForm(bits: 32, packing: 3).made(of: bar), at: 28, [16, 0]), .refused(.malformed)
            ),
        ]
    }

    private var webPictures: [Case] {
        let whole = WebPForm().made(of: bar)
        let moving = WebPForm(place: (10, 6, 120, 80)).made(of: bar)
        let turned = WebPForm(orientation: 6).made(of: bar)
        return [
            ("a WebP's first bytes", Array(whole.prefix(12)), .refused(.malformed)),
            ("a WebP without a size", Array(whole.prefix(22)), .refused(.malformed)),
            ("half a WebP", Array(whole.prefix(whole.count / 2)), .either),
            ("a WebP that says too much of its length", with(whole, at: 4, [255, 255, 255, 255]), .read),
            ("a WebP whose picture is longer than it", with(whole, at: 16, [255, 255, 255, 127]), .either),
            ("a WebP of 268 megapixels", with(whole, at: 21, [255, 255, 255, 15]), .refused(.tooManyPixels)),
            (
                "a WebP of another size than it says",
                with(turned, at: 24, littleEndian(4000, 3) + littleEndian(3000, 3)), .refused(.malformed)
            ),
            (
                "a WebP of many terapixels", with(turned, at: 24, [255, 255, 255, 255, 255, 255]),
                .refused(.tooManyPixels)
            ),
            ("a WebP whose frame is outside", with(moving, at: 30 + 14 + 8, [255, 255, 0]), .refused(.malformed)),
            ("a WebP of junk", Array(whole.prefix(30)) + [UInt8](repeating: 0xa5, count: 500), .either),
            ("a WebP with an EXIF of nothing", Array(turned.dropLast(30)), .read),
            (
                "a WebP of ten thousand empty chunks", Array(whole.prefix(12)) + [UInt8](repeating: 0, count: 90_000),
                .refused(.malformed)
            ),
        ]
    }

    private var codestreams: [Case] {
        let size = 8
        return [
            ("a JP2's first bytes", Array(jp2Sample.prefix(12)), .refused(.malformed)),
            ("a JP2 without a codestream", Array(jp2Sample.prefix(85)), .refused(.malformed)),
            ("a codestream's first bytes", Array(j2kSample.prefix(20)), .refused(.malformed)),
            ("a codestream cut short", Array(j2kSample.dropLast(60)), .either),
            ("a codestream without data", Array(j2kSample.prefix(110)), .either),
            ("a codestream of gigapixels", with(j2kSample, at: size, [0, 2, 0, 0, 0, 2, 0, 0]), .refused(.malformed)),
            (
                "one of gigapixels in a tile",
                with(
                    j2kSample, at: size,
                    [0, 2, 0, 0, 0, 2, 0, 0] + [UInt8](repeating: 0, count: 8) + [0, 2, 0, 0, 0, 2, 0, 0]),
                .refused(.tooManyPixels)
            ),
            ("one whose size is below nothing", with(j2kSample, at: size + 8, [0, 0, 255, 0]), .refused(.malformed)),
            ("one of tiles without a size", with(j2kSample, at: size + 16, [0, 0, 0, 0]), .refused(.malformed)),
            ("one of 16,384 components", with(j2kSample, at: 40, [64, 0]), .refused(.unsupported)),
            ("one of no component", with(j2kSample, at: 40, [0, 0]), .refused(.unsupported)),
            ("one of samples of 38 bits", with(j2kSample, at: 42, [37]), .either),
            ("one whose samples are of no size", with(j2kSample, at: 43, [0, 0]), .refused(.malformed)),
            (
                "one of a megapixel in tiles of a few",
                with(
                    j2kSample, at: size,
                    [0, 0, 4, 0, 0, 0, 4, 0] + [UInt8](repeating: 0, count: 8) + [0, 0, 0, 8, 0, 0, 0, 8]), .either
            ),
        ]
    }

    private var boxes: [Case] {
        let long = [UInt8](repeating: 255, count: 4)
        return [
            ("an AVIF's first bytes", Array(avifSample.prefix(32)), .refused(.malformed)),
            ("half an AVIF", Array(avifSample.prefix(200)), .refused(.malformed)),
            ("an AVIF without its data", Array(avifSample.dropLast(20)), .refused(.malformed)),
            (
                "an AVIF of exapixels", replaced(avifSample, "ispe", [0, 0, 0, 0] + long + long),
                .refused(.tooManyPixels)
            ),
            (
                "an AVIF of no width", replaced(avifSample, "ispe", [UInt8](repeating: 0, count: 12)),
                .refused(.malformed)
            ),
            (
                "an AVIF of another size than it says",
                replaced(avifSample, "ispe", [0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0]), .either
            ),
            ("an AVIF of another configuration", replaced(avifSample, "av1C", long), .either),
            ("an AVIF of another item", replaced(avifSample, "pitm", [0, 0, 0, 0, 0, 99]), .refused(.malformed)),
            ("an AVIF in the place of an HEIC", with(avifSample, at: 8, Array("heic".utf8)), .either),
        ]
    }

    @Test func `each is read or refused with its reason, soon and in little memory`() async throws {
        let all = gifs + bitmaps + webPictures + codestreams + boxes
        #expect(all.count >= 60)
        for (name, file, end) in all {
            var usage = Usage()
            let ended = try await withFile(file) { file in
                await outcome {
                    let probed = try await workshop.probe(file)
                    let drawn = try await workshop.raster(file, probed.value, page: 1)
                    usage = drawn.adding(probed.usage)
                }
            }
            if case .failure(let failure) = ended {
                usage = failure.usage
                #expect(!failure.mayGoWell && ![.internal, .crash].contains(failure.reason), "\(name): \(failure)")
            }
            switch (end, ended) {
            case (.read, .success), (.either, _): break
            case (.refused(let reason), .failure(let failure)): #expect(failure.reason == reason, "\(name): \(failure)")
            default: #expect("\(name): \(ended)" == "as it should end")
            }
            #expect(usage.peak < 300 << 20, "\(name): \(usage)")
            #expect(usage.cpu < .seconds(2), "\(name): \(usage)")
        }
    }

    @Test func `what is no picture is refused by what it is`() async throws {
        for (start, name) in [
            ("PK\u{3}\u{4}word/document.xml", "an office file"),
            ("From: a@b.org\r\nTo: c@d.org\r\n\r\nHello", "an e-mail"),
            ("Received: from mx.example.org", "an e-mail"), ("{\\rtf1 Hello}", "RTF"),
            ("<!DOCTYPE html><p>", "a web page"),
            ("Hello", "files of this kind"),
        ] {
            let ended = try await withFile(Array(start.utf8)) { file in
                await outcome { try await workshop.probe(file) }
            }
            guard case .failure(let failure) = ended else {
                Issue.record("\(name) was taken")
                continue
            }
            #expect(failure.reason == .unsupported && failure.sentence.contains(name), "\(failure)")
            #expect(failure.sentence.contains(FileFormat.names), "\(failure)")
        }
    }
}
