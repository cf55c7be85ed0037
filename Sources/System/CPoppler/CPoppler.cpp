/* SPDX-License-Identifier: GPL-3.0-or-later; see include/CPoppler.h. */
#include "CPoppler.h"

#include <iconv.h>
#include <memory>
#include <new>
#include <poppler/cpp/poppler-document.h>
#include <poppler/cpp/poppler-global.h>
#include <poppler/cpp/poppler-image.h>
#include <poppler/cpp/poppler-page-renderer.h>
#include <poppler/cpp/poppler-page.h>
#include <string>

struct millrace_document {
    std::unique_ptr<poppler::document> document;
};

static void say_nothing(const std::string &, void *) {}

void millrace_document_prepare(void) {
    // Held, so that the conversion stays loaded.
    static iconv_t held = iconv_open("UTF-16", "UTF-8");
    (void)held;
    (void)poppler::ustring::from_utf8("x");
}

millrace_document_ref millrace_document_open(const void *bytes, size_t count, const char *password, bool *locked) {
    *locked = false;
    try {
        poppler::set_debug_error_function(say_nothing, nullptr);
        if (count > 0x7fffffff) return nullptr;
        std::string word = password ? password : "";
        std::unique_ptr<poppler::document> document(
            poppler::document::load_from_raw_data(static_cast<const char *>(bytes), static_cast<int>(count), word, word));
        if (!document) return nullptr;
        if (document->is_locked()) {
            *locked = true;
            return nullptr;
        }
        return new millrace_document{std::move(document)};
    } catch (const std::bad_alloc &) {
        throw;  // ends the program, which says what it died of
    } catch (...) {
        return nullptr;
    }
}

int millrace_document_pages(millrace_document_ref document) { return document->document->pages(); }

bool millrace_document_draw(millrace_document_ref document, int index, double dpi, struct millrace_picture *picture) {
    *picture = {};
    std::unique_ptr<poppler::page> page(document->document->create_page(index));
    if (!page) return false;
    poppler::page_renderer renderer;
    renderer.set_image_format(poppler::image::format_gray8);
    renderer.set_render_hint(poppler::page_renderer::antialiasing, true);
    renderer.set_render_hint(poppler::page_renderer::text_antialiasing, true);
    auto image = std::make_unique<poppler::image>(renderer.render_page(page.get(), dpi, dpi));
    if (!image->is_valid() || image->format() != poppler::image::format_gray8) return false;
    picture->width = image->width();
    picture->height = image->height();
    picture->stride = image->bytes_per_row();
    picture->pixels = reinterpret_cast<const uint8_t *>(image->const_data());
    picture->owner = image.release();
    return true;
}

void millrace_picture_free(struct millrace_picture *picture) {
    delete static_cast<poppler::image *>(picture->owner);
    *picture = {};
}

int millrace_document_words(millrace_document_ref document, int index, int most, void (*each)(void *, const struct millrace_word *), void *context) {
    std::unique_ptr<poppler::page> page(document->document->create_page(index));
    if (!page) return -1;
    int count = 0;
    for (const auto &box : page->text_list()) {
        if (count == most) break;
        const auto bytes = box.text().to_utf8();
        const std::string text(bytes.begin(), bytes.end());
        const auto place = box.bbox();
        const struct millrace_word word = {text.c_str(), place.left(), place.top(), place.right(), place.bottom(), box.rotation()};
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
