#ifndef MILLRACE_CPICTURES_H
#define MILLRACE_CPICTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What libtiff, libpng, libwebp and openjpeg decode, as plain rows of pixels. Nothing is turned or mirrored here: the caller alone looks at the orientation.

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

/// Decodes a picture of a WebP: its chunks as they stand in the file. `pixels` says which size is wanted, at most that of the picture.
int millrace_webp_read(
    const void *_Nonnull bytes, size_t count, uint32_t width, uint32_t height, bool keeps_color, struct millrace_pixels *_Nonnull pixels);

/// Decodes a JPEG 2000: a codestream, or a file of boxes. Of its resolutions, that is taken which is the smallest of at least `scale` and of
/// no more samples than `most_samples`, if there is one; `pixels` gets its size.
int millrace_jp2_read(
    const void *_Nonnull bytes, size_t count, uint32_t width, uint32_t height, double scale, uint64_t most_samples, bool keeps_color,
    struct millrace_pixels *_Nonnull pixels);

void millrace_pixels_free(struct millrace_pixels *_Nonnull pixels);

#endif
