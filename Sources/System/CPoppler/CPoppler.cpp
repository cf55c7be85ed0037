/* SPDX-License-Identifier: GPL-3.0-or-later; see include/CPoppler.h. */
#include "CPoppler.h"

#include <cstdio>
#include <cstring>
#include <iconv.h>
#include <memory>
#include <new>
#include <poppler/cpp/poppler-document.h>
#include <poppler/cpp/poppler-global.h>
#include <poppler/cpp/poppler-image.h>
#include <poppler/cpp/poppler-page-renderer.h>
#include <poppler/cpp/poppler-page.h>
#include <string>
#include <string_view>
#include <vector>

struct millrace_document {
    std::string repaired;  // what the document is read from, where it was given a trailer
    std::unique_ptr<poppler::document> document;
};

static struct millrace_complaints complaints;

// The name in quotes that ends before `end`, if a message has both.
static void note_collection(const std::string &message, const char *before, const char *start) {
    if (message.find(before) == std::string::npos) return;
    auto at = message.rfind(start);
    if (at == std::string::npos) return;
    at += std::strlen(start);
    auto end = message.find('\'', at);
    if (end == std::string::npos || end - at >= sizeof complaints.collection) return;
    std::memcpy(complaints.collection, message.data() + at, end - at);
    complaints.collection[end - at] = 0;
}

// A document decides what is in these messages, so none is passed on.
static void hear(const std::string &message, void *) {
    if (complaints.errors < 1'000'000) complaints.errors++;
    note_collection(message, "Couldn't find '", "CMap file for '");
    note_collection(message, "Missing language pack for '", "language pack for '");
    note_collection(message, "Unknown CMap '", "character collection '");
    note_collection(message, "Unknown character collection '", "character collection '");
}

const struct millrace_complaints *millrace_document_complaints(void) { return &complaints; }

static std::unique_ptr<poppler::page> begin(millrace_document_ref document, int index) {
    complaints = {};
    return std::unique_ptr<poppler::page>(document->document->create_page(index));
}

void millrace_document_prepare(const char *data) {
    if (data) poppler::set_data_dir(data);
    // Held, so that the conversion stays loaded.
    static iconv_t held = iconv_open("UTF-16", "UTF-8");
    (void)held;
    (void)poppler::ustring::from_utf8("x");
}

// A file whose table of objects is a stream that cannot be read has no trailer, so nobody finds its root. This gives it one; empty: it is another
// kind of damage, or locked.
static std::string with_trailer(const char *bytes, size_t count) {
    const std::string_view file(bytes, count);
    if (count > 128u << 20 || file.find("trailer") != file.npos || file.find("/Encrypt") != file.npos) return {};
    const auto at = file.rfind("/Root ");
    if (at == file.npos) return {};
    int number = 0, generation = 0;
    if (std::sscanf(std::string(file.substr(at, 40)).c_str(), "/Root %9d %5d R", &number, &generation) != 2 || number < 1) return {};
    return std::string(file) + "\ntrailer\n<</Root " + std::to_string(number) + " " + std::to_string(generation) + " R>>\nstartxref\n0\n%%EOF\n";
}

millrace_document_ref millrace_document_open(const void *bytes, size_t count, const char *password, bool *locked) {
    *locked = false;
    try {
        poppler::set_debug_error_function(hear, nullptr);
        if (count > 0x7fffffff) return nullptr;
        std::string word = password ? password : "";
        std::unique_ptr<poppler::document> document(
            poppler::document::load_from_raw_data(static_cast<const char *>(bytes), static_cast<int>(count), word, word));
        std::string repaired;
        if (!document) {
            repaired = with_trailer(static_cast<const char *>(bytes), count);
            if (repaired.empty()) return nullptr;
            document.reset(poppler::document::load_from_raw_data(repaired.data(), static_cast<int>(repaired.size())));
        }
        if (!document) return nullptr;
        if (document->is_locked()) {
            *locked = true;
            return nullptr;
        }
        return new millrace_document{std::move(repaired), std::move(document)};
    } catch (const std::bad_alloc &) {
        throw;  // ends the program, which says what it died of
    } catch (...) {
        return nullptr;
    }
}

int millrace_document_pages(millrace_document_ref document) { return document->document->pages(); }

bool millrace_document_page(millrace_document_ref document, int index, struct millrace_page *about) {
    const auto page = begin(document, index);
    if (!page) return false;
    const auto area = page->page_rect(poppler::crop_box);
    *about = {area.left(), area.top(), area.width(), area.height(), 0};
    switch (page->orientation()) {
    case poppler::page::landscape: about->rotation = 90; break;
    case poppler::page::upside_down: about->rotation = 180; break;
    case poppler::page::seascape: about->rotation = 270; break;
    default: break;
    }
    return true;
}

bool millrace_document_draw(millrace_document_ref document, int index, double dpi, bool keeps_color, struct millrace_picture *picture) {
    *picture = {};
    const auto page = begin(document, index);
    if (!page) return false;
    poppler::page_renderer renderer;
    const auto format = keeps_color ? poppler::image::format_rgb24 : poppler::image::format_gray8;
    renderer.set_image_format(format);
    renderer.set_render_hint(poppler::page_renderer::antialiasing, true);
    renderer.set_render_hint(poppler::page_renderer::text_antialiasing, true);
    auto image = std::make_unique<poppler::image>(renderer.render_page(page.get(), dpi, dpi));
    if (!image->is_valid() || image->format() != format) return false;
    picture->width = image->width();
    picture->height = image->height();
    picture->stride = image->bytes_per_row();
    picture->components = keeps_color ? 3 : 1;
    picture->pixels = reinterpret_cast<const uint8_t *>(image->const_data());
    picture->owner = image.release();
    return true;
}

void millrace_picture_free(struct millrace_picture *picture) {
    delete static_cast<poppler::image *>(picture->owner);
    *picture = {};
}

// Whether it has a byte with which characters from U+0580 to U+08FF, or from U+F000 on, begin in UTF-8.
static bool may_run_left(const std::string &text) {
    for (const char byte : text) {
        const auto value = static_cast<unsigned char>(byte);
        if ((value >= 0xd6 && value <= 0xe0) || value >= 0xef) return true;
    }
    return false;
}

int millrace_document_words(millrace_document_ref document, int index, int most, void (*each)(void *, const struct millrace_word *), void *context) {
    const auto page = begin(document, index);
    if (!page) return -1;
    int count = 0;
    for (const auto &box : page->text_list()) {
        if (count == most) break;
        const auto bytes = box.text().to_utf8();
        const std::string text(bytes.begin(), bytes.end());
        const auto place = box.bbox();
        size_t letters = 0;
        for (const char byte : text) letters += (byte & 0xc0) != 0x80;
        // Each letter has a box of its own, also those that are not in the text.
        const auto next = box.char_bbox(letters);
        const bool is_cut = next.width() > 0 && next.height() > 0;
        std::vector<double> widths;
        if (may_run_left(text)) {
            for (size_t at = 0; at < letters; at++) widths.push_back(box.char_bbox(at).width());
        }
        const struct millrace_word word = {
            text.c_str(), is_cut, place.left(), place.top(), place.right(), place.bottom(), box.rotation(),
            box.has_space_after(), widths.empty() ? nullptr : widths.data(), letters};
        each(context, &word);
        count++;
    }
    return count;
}

bool millrace_document_text(millrace_document_ref document, int index, size_t most, void (*take)(void *, const char *, size_t), void *context) {
    std::unique_ptr<poppler::page> page(document->document->create_page(index));
    if (!page) return true;
    const auto text = page->text(poppler::rectf(), poppler::page::non_raw_non_physical_layout);
    if (text.size() > most) return false;
    const auto bytes = text.to_utf8();
    take(context, bytes.data(), bytes.size());
    return true;
}
