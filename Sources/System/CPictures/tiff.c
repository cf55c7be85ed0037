// Flags that nobody could pass on to a package of theirs stand here.
#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CPictures.h"

#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

// The file is in memory, and libtiff reads it there.
struct source {
    const uint8_t *bytes;
    size_t count;
    size_t at;
};

static tmsize_t read_source(thandle_t handle, void *into, tmsize_t count) {
    struct source *source = handle;
    if (count < 0 || source->at >= source->count) return 0;
    size_t left = source->count - source->at;
    size_t some = (size_t)count < left ? (size_t)count : left;
    memcpy(into, source->bytes + source->at, some);
    source->at += some;
    return (tmsize_t)some;
}

static tmsize_t write_nothing(thandle_t handle, void *from, tmsize_t count) {
    (void)handle;
    (void)from;
    (void)count;
    return 0;
}

static toff_t seek_source(thandle_t handle, toff_t offset, int whence) {
    struct source *source = handle;
    toff_t start = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? source->at : source->count;
    if (offset > UINT64_MAX - start) return (toff_t)-1;
    source->at = start + offset > SIZE_MAX ? SIZE_MAX : (size_t)(start + offset);
    return source->at;
}

static int close_source(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t size_of_source(thandle_t handle) { return ((struct source *)handle)->count; }

static int map_source(thandle_t handle, void **base, toff_t *size) {
    struct source *source = handle;
    *base = (void *)(uintptr_t)source->bytes;
    *size = source->count;
    return 1;
}

static void unmap_source(thandle_t handle, void *base, toff_t size) {
    (void)handle;
    (void)base;
    (void)size;
}

static uint8_t grey_of(unsigned red, unsigned green, unsigned blue) { return (uint8_t)((3 * red + 5 * green + 2 * blue + 5) / 10); }

struct frame {
    TIFF *tiff;
    struct millrace_pixels *pixels;
    uint16_t bits, samples, photometric, compression;
};

static void put(struct millrace_pixels *pixels, uint8_t *at, unsigned red, unsigned green, unsigned blue) {
    if (pixels->components == 1) {
        *at = grey_of(red, green, blue);
    } else {
        at[0] = (uint8_t)red;
        at[1] = (uint8_t)green;
        at[2] = (uint8_t)blue;
    }
}

// A value of each sample in grey or in the colours of the palette.
static bool prepare_levels(const struct frame *frame, uint8_t levels[256][3]) {
    unsigned most = (1u << frame->bits) - 1;
    if (frame->photometric != PHOTOMETRIC_PALETTE) {
        for (unsigned value = 0; value <= most; value++) {
            unsigned level = frame->photometric == PHOTOMETRIC_MINISWHITE ? most - value : value;
            memset(levels[value], (int)(level * 255 / most), 3);
        }
        return true;
    }
    uint16_t *red, *green, *blue;
    if (!TIFFGetField(frame->tiff, TIFFTAG_COLORMAP, &red, &green, &blue)) return false;
    // Some writers fill a palette with bytes.
    int shift = 0;
    for (unsigned value = 0; value <= most; value++)
        if (red[value] > 255 || green[value] > 255 || blue[value] > 255) shift = 8;
    for (unsigned value = 0; value <= most; value++) {
        levels[value][0] = (uint8_t)(red[value] >> shift);
        levels[value][1] = (uint8_t)(green[value] >> shift);
        levels[value][2] = (uint8_t)(blue[value] >> shift);
    }
    return true;
}

// Row by row: libtiff's picture of four bytes a pixel would take thirty times as much memory for a fax.
static int read_rows(const struct frame *frame) {
    uint8_t levels[256][3];
    if (!prepare_levels(frame, levels)) return MILLRACE_NOT_DECODABLE;
    struct millrace_pixels *pixels = frame->pixels;
    tmsize_t size = TIFFScanlineSize(frame->tiff);
    if (size <= 0 || (uint64_t)size * 8 < (uint64_t)pixels->width * frame->bits) return MILLRACE_NOT_DECODABLE;
    uint8_t *row = malloc((size_t)size);
    if (!row) return MILLRACE_NO_MEMORY;
    unsigned mask = (1u << frame->bits) - 1;
    int result = MILLRACE_DECODED;
    for (uint32_t y = 0; y < pixels->height; y++) {
        if (TIFFReadScanline(frame->tiff, row, y, 0) < 0) {
            result = MILLRACE_NOT_DECODABLE;
            break;
        }
        uint8_t *at = pixels->bytes + (size_t)y * pixels->width * (size_t)pixels->components;
        for (uint32_t x = 0; x < pixels->width; x++, at += pixels->components) {
            size_t bit = (size_t)x * frame->bits;
            const uint8_t *level = levels[row[bit / 8] >> (8 - frame->bits - bit % 8) & mask];
            put(pixels, at, level[0], level[1], level[2]);
        }
    }
    free(row);
    return result;
}

// Everything else, by libtiff's own conversion: tiles, separate planes, 16 bits, inks, transparency. In bands as high as a strip or a tile.
static int read_bands(const struct frame *frame) {
    char message[1024];
    struct millrace_pixels *pixels = frame->pixels;
    TIFFRGBAImage image;
    if (!TIFFRGBAImageOK(frame->tiff, message)) return MILLRACE_NOT_SUPPORTED;
    if (!TIFFRGBAImageBegin(&image, frame->tiff, 1, message)) return MILLRACE_NOT_SUPPORTED;
    // As it is stored: the caller turns it.
    image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;
    uint32_t band = pixels->height;
    // The old form of JPEG in a TIFF is decoded in one piece.
    if (frame->compression != COMPRESSION_OJPEG)
        TIFFGetFieldDefaulted(frame->tiff, TIFFIsTiled(frame->tiff) ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &band);
    if (band == 0 || band > pixels->height) band = pixels->height;
    int result = MILLRACE_DECODED;
    uint32_t *raster = (uint64_t)band * pixels->width <= SIZE_MAX / 4 ? calloc((size_t)band * pixels->width, 4) : NULL;
    if (!raster) result = MILLRACE_NO_MEMORY;
    for (uint32_t y = 0; y < pixels->height && result == MILLRACE_DECODED; y += band) {
        uint32_t rows = band < pixels->height - y ? band : pixels->height - y;
        image.row_offset = (int)y;
        image.col_offset = 0;
        if (!TIFFRGBAImageGet(&image, raster, pixels->width, rows)) {
            result = MILLRACE_NOT_DECODABLE;
            break;
        }
        uint8_t *at = pixels->bytes + (size_t)y * pixels->width * (size_t)pixels->components;
        for (size_t i = 0; i < (size_t)rows * pixels->width; i++, at += pixels->components) {
            // The colours are multiplied by the opacity already.
            unsigned white = 255 - TIFFGetA(raster[i]);
            unsigned red = TIFFGetR(raster[i]) + white, green = TIFFGetG(raster[i]) + white, blue = TIFFGetB(raster[i]) + white;
            put(pixels, at, red < 255 ? red : 255, green < 255 ? green : 255, blue < 255 ? blue : 255);
        }
    }
    free(raster);
    TIFFRGBAImageEnd(&image);
    return result;
}

static int read_frame(struct frame *frame, bool keeps_color) {
    uint32_t width = 0, height = 0;
    uint16_t format = SAMPLEFORMAT_UINT, planes = PLANARCONFIG_CONTIG;
    TIFFGetField(frame->tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(frame->tiff, TIFFTAG_IMAGELENGTH, &height);
    if (width != frame->pixels->width || height != frame->pixels->height) return MILLRACE_NOT_DECODABLE;
    TIFFGetFieldDefaulted(frame->tiff, TIFFTAG_BITSPERSAMPLE, &frame->bits);
    TIFFGetFieldDefaulted(frame->tiff, TIFFTAG_SAMPLESPERPIXEL, &frame->samples);
    TIFFGetFieldDefaulted(frame->tiff, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(frame->tiff, TIFFTAG_PLANARCONFIG, &planes);
    TIFFGetFieldDefaulted(frame->tiff, TIFFTAG_COMPRESSION, &frame->compression);
    if (!TIFFGetField(frame->tiff, TIFFTAG_PHOTOMETRIC, &frame->photometric))
        frame->photometric = frame->samples < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB;
    bool is_grey = frame->photometric == PHOTOMETRIC_MINISBLACK || frame->photometric == PHOTOMETRIC_MINISWHITE;
    frame->pixels->components = keeps_color && !is_grey ? 3 : 1;
    frame->pixels->bytes = calloc((size_t)width * height, (size_t)frame->pixels->components);
    if (!frame->pixels->bytes) return MILLRACE_NO_MEMORY;
    bool is_simple = !TIFFIsTiled(frame->tiff) && frame->samples == 1 && (is_grey || frame->photometric == PHOTOMETRIC_PALETTE)
        && (frame->bits == 1 || frame->bits == 2 || frame->bits == 4 || frame->bits == 8)
        && (format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID) && frame->compression != COMPRESSION_OJPEG;
    return is_simple ? read_rows(frame) : read_bands(frame);
}

int millrace_tiff_read(
    const void *bytes, size_t count, uint64_t directory, uint32_t width, uint32_t height, bool keeps_color,
    struct millrace_pixels *pixels) {
    *pixels = (struct millrace_pixels){.width = width, .height = height, .components = 1};
    TIFFSetErrorHandler(NULL);
    TIFFSetWarningHandler(NULL);
    struct source source = {.bytes = bytes, .count = count};
    struct frame frame = {.pixels = pixels};
    frame.tiff = TIFFClientOpen(
        "document", "rh", &source, read_source, write_nothing, seek_source, close_source, size_of_source, map_source, unmap_source);
    if (!frame.tiff) return MILLRACE_NOT_DECODABLE;
    int result = TIFFSetSubDirectory(frame.tiff, directory) ? read_frame(&frame, keeps_color) : MILLRACE_NOT_DECODABLE;
    TIFFClose(frame.tiff);
    if (result != MILLRACE_DECODED) millrace_pixels_free(pixels);
    return result;
}

void millrace_pixels_free(struct millrace_pixels *pixels) {
    free(pixels->bytes);
    pixels->bytes = NULL;
}
