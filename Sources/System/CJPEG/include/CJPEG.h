#ifndef MILLRACE_CJPEG_H
#define MILLRACE_CJPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Packs rows of grey (1) or red, green and blue (3) without gaps as a JPEG, by libjpeg. The result is to be freed.
bool millrace_jpeg_pack(
    const uint8_t *_Nonnull pixels, uint32_t width, uint32_t height, int components, int quality, uint8_t *_Nullable *_Nonnull bytes,
    size_t *_Nonnull count);

#endif
