/* SPDX-License-Identifier: GPL-3.0-or-later
   This target links poppler, which is GPL: it and the program it is linked into, millrace-raster, are under the GPL too. Nothing else is. */
#ifndef MILLRACE_CPOPPLER_H
#define MILLRACE_CPOPPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// poppler's C++ interface in C: its exceptions stay inside, and the caller owns what it gets.

#ifdef __cplusplus
extern "C" {
#endif

typedef struct millrace_document *millrace_document_ref;

struct millrace_picture {
    int width;
    int height;
    int stride;
    int components;  ///< bytes a pixel: 1 is grey, 3 is red, green and blue
    const uint8_t *_Nullable pixels;
    void *_Nullable owner;
};

struct millrace_word {
    const char *_Nonnull text;  ///< UTF-8
    bool is_cut;  ///< poppler hands over only what stands before a U+0000
    double left, top, right, bottom;  ///< in points, from the upper left corner of the page as it is shown
    int rotation;  ///< in quarters of a turn
    bool has_space_after;
    const double *_Nullable widths;  ///< of its characters, in points, if it has some of a script that is written to the left
    size_t letters;
};

struct millrace_page {
    double left, bottom, width, height;  ///< the shown area in points, before it is turned
    int rotation;  ///< clockwise, in degrees
};

/// What poppler complained about since the last page was begun.
struct millrace_complaints {
    int errors;
    char collection[64];  ///< a collection of characters for which a table was not found; empty: none
};

/// What poppler would otherwise look for when it needs it, and files can not be opened any more. `data` is another folder of poppler-data.
void millrace_document_prepare(const char *_Nullable data);
const struct millrace_complaints *_Nonnull millrace_document_complaints(void);

/// NULL if it can not be opened; `locked` says whether for want of its password. The bytes must outlive it.
millrace_document_ref _Nullable millrace_document_open(const void *_Nonnull bytes, size_t count, const char *_Nullable password, bool *_Nonnull locked);
int millrace_document_pages(millrace_document_ref _Nonnull document);

bool millrace_document_page(millrace_document_ref _Nonnull document, int page, struct millrace_page *_Nonnull about);

/// Draws a page, in grey or in colours; false if it can not. `page` is from 0.
bool millrace_document_draw(millrace_document_ref _Nonnull document, int page, double dpi, bool keeps_color, struct millrace_picture *_Nonnull picture);
void millrace_picture_free(struct millrace_picture *_Nonnull picture);

/// The page's words in the order of reading, at most `most`; returns their number, or -1.
int millrace_document_words(millrace_document_ref _Nonnull document, int page, int most, void (*_Nonnull each)(void *_Nullable context, const struct millrace_word *_Nonnull word), void *_Nullable context);

/// Its text as pdftotext has it, handed over once; false if it has too much.
bool millrace_document_text(millrace_document_ref _Nonnull document, int page, size_t most, void (*_Nonnull take)(void *_Nullable context, const char *_Nonnull text, size_t count), void *_Nullable context);

#ifdef __cplusplus
}
#endif
#endif
