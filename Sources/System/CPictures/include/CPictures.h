#ifndef MILLRACE_CPICTURES_H
#define MILLRACE_CPICTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What libtiff and libpng decode, as plain rows of pixels. Nothing is turned or mirrored here: the caller alone looks at the orientation.

/// Rows without gaps, from the first row that the file stores; what is transparent is white.
struct millrace_pixels {
    uint32_t width;
    uint32_t height;
    int components;  ///< bytes a pixel: 1 is grey, 3 is red, green and blue
    uint8_t *_Nullable bytes;
};

enum millrace_decoding {
    MILLRACE_DECODED = 0,
    MILLRACE_NOT_DECODABLE = 1,
    MILLRACE_NOT_SUPPORTED = 2,
    MILLRACE_NO_MEMORY = 3,
};

/// Decodes the frame whose directory begins at `directory`. It must have `width` and `height`, which the caller has judged.
int millrace_tiff_read(
    const void *_Nonnull bytes, size_t count, uint64_t directory, uint32_t width, uint32_t height, bool keeps_color,
    struct millrace_pixels *_Nonnull pixels);

/// Decodes a PNG, and lays it over white.
int millrace_png_read(
    const void *_Nonnull bytes, size_t count, uint32_t width, uint32_t height, bool keeps_color, struct millrace_pixels *_Nonnull pixels);

void millrace_pixels_free(struct millrace_pixels *_Nonnull pixels);

#endif
