#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CPictures.h"

#include <stdlib.h>
#include <webp/decode.h>

// What is transparent is white. In place: a pixel never takes more bytes than before.
static void lay_over_white(uint8_t *bytes, size_t count, int components) {
    uint8_t *into = bytes;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = bytes + 4 * i;
        unsigned opacity = at[3], white = 255 * (255 - opacity);
        unsigned red = (at[0] * opacity + white) / 255, green = (at[1] * opacity + white) / 255, blue = (at[2] * opacity + white) / 255;
        if (components == 1) {
            *into++ = (uint8_t)((3 * red + 5 * green + 2 * blue + 5) / 10);
        } else {
            *into++ = (uint8_t)red;
            *into++ = (uint8_t)green;
            *into++ = (uint8_t)blue;
        }
    }
}

int millrace_webp_read(
    const void *bytes, size_t count, uint32_t width, uint32_t height, bool keeps_color, struct millrace_pixels *pixels) {
    pixels->components = keeps_color ? 3 : 1;
    pixels->bytes = NULL;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return MILLRACE_NOT_SUPPORTED;
    if (WebPGetFeatures(bytes, count, &config.input) != VP8_STATUS_OK) return MILLRACE_NOT_DECODABLE;
    if (config.input.width != (int)width || config.input.height != (int)height) return MILLRACE_NOT_DECODABLE;
    if (config.input.has_animation) return MILLRACE_NOT_SUPPORTED;
    uint32_t wide = pixels->width, high = pixels->height;
    if (wide == 0 || high == 0 || wide > width || high > height) return MILLRACE_NOT_DECODABLE;
    if (wide != width || high != height) {
        config.options.use_scaling = 1;
        config.options.scaled_width = (int)wide;
        config.options.scaled_height = (int)high;
    }
    size_t size = (size_t)wide * high * 4;
    pixels->bytes = calloc(size, 1);  // rows that are missing stay transparent
    if (!pixels->bytes) return MILLRACE_NO_MEMORY;
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels->bytes;
    config.output.u.RGBA.stride = (int)(wide * 4);
    config.output.u.RGBA.size = size;
    VP8StatusCode status = WebPDecode(bytes, count, &config);
    WebPFreeDecBuffer(&config.output);
    // What has been decoded of a file that is cut short is seen.
    int result = status == VP8_STATUS_OK || status == VP8_STATUS_NOT_ENOUGH_DATA ? MILLRACE_DECODED
        : status == VP8_STATUS_OUT_OF_MEMORY                                     ? MILLRACE_NO_MEMORY
                                                                                 : MILLRACE_NOT_DECODABLE;
    if (result == MILLRACE_DECODED)
        lay_over_white(pixels->bytes, (size_t)wide * high, pixels->components);
    else
        millrace_pixels_free(pixels);
    return result;
}
