#ifndef MILLRACE_CCOLORS_H
#define MILLRACE_CCOLORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Colours of pictures by Little CMS. Swift cannot call it: what a picture is in is named by its macros.

/// Turns red, green and blue in the colours of an ICC profile into those of sRGB, in place. False: the profile is none of such colours, or broken.
bool millrace_colors_to_srgb(const void *_Nonnull profile, size_t count, uint8_t *_Nonnull bytes, size_t pixels);

/// Turns four inks in the colours of an ICC profile into sRGB: `bytes` has three for each pixel. `is_inverted`: 255 is no ink.
bool millrace_inks_to_srgb(
    const void *_Nonnull profile, size_t count, const uint8_t *_Nonnull inks, bool is_inverted, uint8_t *_Nonnull bytes, size_t pixels);

/// Decodes a JPEG of four inks, which stay as the file has them; `is_inverted` as above. False: it cannot be decoded, or is none.
bool millrace_inks_of_jpeg(
    const void *_Nonnull bytes, size_t count, uint32_t width, uint32_t height, uint8_t *_Nonnull inks, bool *_Nonnull is_inverted);

/// Unpacks a profile that a PNG holds (zlib). The result has `unpacked` bytes and is to be freed; NULL: it is broken, or too large.
uint8_t *_Nullable millrace_profile_unpack(const void *_Nonnull bytes, size_t count, size_t *_Nonnull unpacked);

#endif
