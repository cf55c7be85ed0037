#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CPictures.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

int millrace_png_read(
    const void *bytes, size_t count, uint32_t width, uint32_t height, bool keeps_color, struct millrace_pixels *pixels) {
    *pixels = (struct millrace_pixels){.width = width, .height = height, .components = 1};
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, bytes, count)) return MILLRACE_NOT_DECODABLE;
    int result = MILLRACE_NOT_DECODABLE;
    if (image.width == width && image.height == height) {
        bool is_color = keeps_color && (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
        image.format = is_color ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
        pixels->components = is_color ? 3 : 1;
        pixels->bytes = malloc((size_t)width * height * (size_t)pixels->components);
        png_color white = {255, 255, 255};
        if (!pixels->bytes)
            result = MILLRACE_NO_MEMORY;
        else if (png_image_finish_read(&image, &white, pixels->bytes, 0, NULL))
            result = MILLRACE_DECODED;
    }
    png_image_free(&image);
    if (result != MILLRACE_DECODED) millrace_pixels_free(pixels);
    return result;
}
