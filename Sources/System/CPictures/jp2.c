#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CPictures.h"

#include <openjpeg-2.5/openjpeg.h>
#include <stdlib.h>
#include <string.h>

// The file is in memory, and openjpeg reads it there.
struct stream {
    const uint8_t *bytes;
    size_t count;
    size_t at;
};

static OPJ_SIZE_T read_stream(void *into, OPJ_SIZE_T count, void *handle) {
    struct stream *stream = handle;
    size_t left = stream->count - stream->at;
    if (left == 0) return (OPJ_SIZE_T)-1;
    size_t some = count < left ? count : left;
    memcpy(into, stream->bytes + stream->at, some);
    stream->at += some;
    return some;
}

static OPJ_OFF_T skip_stream(OPJ_OFF_T count, void *handle) {
    struct stream *stream = handle;
    if (count < 0) return -1;
    size_t left = stream->count - stream->at;
    if ((uint64_t)count > left) {
        stream->at = stream->count;
        return left > 0 ? (OPJ_OFF_T)left : -1;
    }
    stream->at += (size_t)count;
    return count;
}

static OPJ_BOOL seek_stream(OPJ_OFF_T at, void *handle) {
    struct stream *stream = handle;
    if (at < 0 || (uint64_t)at > stream->count) return OPJ_FALSE;
    stream->at = (size_t)at;
    return OPJ_TRUE;
}

static void say_nothing(const char *message, void *data) {
    (void)message;
    (void)data;
}

// How often the sides are halved: not below `scale`, but for more samples than there may be.
static uint32_t reduction(opj_codec_t *codec, const opj_image_t *image, double scale, uint64_t most_samples) {
    opj_codestream_info_v2_t *info = opj_get_cstr_info(codec);
    if (!info) return 0;
    uint32_t most = 32;
    for (uint32_t i = 0; i < info->nbcomps; i++) {
        uint32_t resolutions = info->m_default_tile_info.tccp_info ? info->m_default_tile_info.tccp_info[i].numresolutions : 1;
        if (resolutions == 0) resolutions = 1;
        if (resolutions - 1 < most) most = resolutions - 1;
    }
    opj_destroy_cstr_info(&info);
    uint64_t samples = (uint64_t)(image->x1 - image->x0) * (image->y1 - image->y0) * image->numcomps;
    uint32_t reduce = 0;
    while (reduce < most && (scale <= 0.5 || samples > most_samples)) {
        reduce++;
        scale *= 2;
        samples /= 4;
    }
    return reduce;
}

// A sample of the component as a byte; the component may be coarser than the picture.
static unsigned level(const opj_image_comp_t *part, uint32_t width, uint32_t height, uint32_t x, uint32_t y) {
    uint64_t column = part->w == width ? x : (uint64_t)x * part->w / width;
    uint64_t row = part->h == height ? y : (uint64_t)y * part->h / height;
    int64_t value = part->data[row * part->w + column];
    int64_t most = ((int64_t)1 << part->prec) - 1;
    if (part->sgnd) value += (int64_t)1 << (part->prec - 1);
    if (value < 0) value = 0;
    if (value > most) value = most;
    return part->prec == 8 ? (unsigned)value : (unsigned)(value * 255 / most);
}

static unsigned clamped(int value) { return value < 0 ? 0 : value > 255 ? 255 : (unsigned)value; }

static void put(uint8_t *at, int components, unsigned red, unsigned green, unsigned blue) {
    if (components == 1) {
        *at = (uint8_t)((3 * red + 5 * green + 2 * blue + 5) / 10);
    } else {
        at[0] = (uint8_t)red;
        at[1] = (uint8_t)green;
        at[2] = (uint8_t)blue;
    }
}

static bool is_sound(const opj_image_t *image) {
    if (image->numcomps == 0) return false;
    for (uint32_t i = 0; i < image->numcomps; i++) {
        const opj_image_comp_t *part = &image->comps[i];
        if (!part->data || part->w == 0 || part->h == 0 || part->prec == 0 || part->prec > 31) return false;
    }
    return true;
}

static int convert(const opj_image_t *image, bool keeps_color, struct millrace_pixels *pixels) {
    if (!is_sound(image)) return MILLRACE_NOT_DECODABLE;
    uint32_t width = image->comps[0].w, height = image->comps[0].h;
    for (uint32_t i = 1; i < image->numcomps; i++) {
        if (image->comps[i].w > width) width = image->comps[i].w;
        if (image->comps[i].h > height) height = image->comps[i].h;
    }
    // The colours come first. Behind them may stand an opacity.
    uint32_t colors = 0;
    const opj_image_comp_t *opacity = NULL;
    while (colors < image->numcomps && !image->comps[colors].alpha) colors++;
    if (colors < image->numcomps) opacity = &image->comps[colors];
    if (colors == 0) {
        colors = image->numcomps;
        opacity = NULL;
    }
    bool is_ink = image->color_space == OPJ_CLRSPC_CMYK && colors >= 4;
    bool is_light = image->color_space == OPJ_CLRSPC_SYCC || image->color_space == OPJ_CLRSPC_EYCC;
    if (colors == 2) colors = 1;
    pixels->width = width;
    pixels->height = height;
    pixels->components = keeps_color && colors >= 3 ? 3 : 1;
    pixels->bytes = malloc((size_t)width * height * (size_t)pixels->components);
    if (!pixels->bytes) return MILLRACE_NO_MEMORY;
    uint8_t *at = pixels->bytes;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++, at += pixels->components) {
            unsigned one = level(&image->comps[0], width, height, x, y), two = one, three = one;
            if (colors >= 3) {
                two = level(&image->comps[1], width, height, x, y);
                three = level(&image->comps[2], width, height, x, y);
            }
            if (is_ink) {
                unsigned left = 255 - level(&image->comps[3], width, height, x, y);
                one = (255 - one) * left / 255, two = (255 - two) * left / 255, three = (255 - three) * left / 255;
            } else if (is_light && colors >= 3) {
                int light = (int)one, blue = (int)two - 128, red = (int)three - 128;
                one = clamped(light + 1402 * red / 1000);
                two = clamped(light - (344 * blue + 714 * red) / 1000);
                three = clamped(light + 1772 * blue / 1000);
            }
            if (opacity) {
                unsigned share = level(opacity, width, height, x, y), white = 255 * (255 - share);
                one = (one * share + white) / 255, two = (two * share + white) / 255, three = (three * share + white) / 255;
            }
            put(at, pixels->components, one, two, three);
        }
    }
    return MILLRACE_DECODED;
}

int millrace_jp2_read(
    const void *bytes, size_t count, uint32_t width, uint32_t height, double scale, uint64_t most_samples, bool keeps_color,
    struct millrace_pixels *pixels) {
    *pixels = (struct millrace_pixels){0};
    bool is_alone = count >= 4 && memcmp(bytes, "\xff\x4f\xff\x51", 4) == 0;
    struct stream source = {.bytes = bytes, .count = count};
    opj_codec_t *codec = opj_create_decompress(is_alone ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_create(1 << 16, OPJ_TRUE);
    opj_image_t *image = NULL;
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    int result = codec && stream ? MILLRACE_NOT_DECODABLE : MILLRACE_NO_MEMORY;
    if (codec && stream) {
        opj_set_info_handler(codec, say_nothing, NULL);
        opj_set_warning_handler(codec, say_nothing, NULL);
        opj_set_error_handler(codec, say_nothing, NULL);
        opj_stream_set_user_data(stream, &source, NULL);
        opj_stream_set_user_data_length(stream, count);
        opj_stream_set_read_function(stream, read_stream);
        opj_stream_set_skip_function(stream, skip_stream);
        opj_stream_set_seek_function(stream, seek_stream);
        // What has been decoded of a file that is cut short is seen.
        if (opj_setup_decoder(codec, &parameters) && opj_decoder_set_strict_mode(codec, OPJ_FALSE)
            && opj_read_header(stream, codec, &image) && image->x1 - image->x0 == width && image->y1 - image->y0 == height
            && opj_set_decoded_resolution_factor(codec, reduction(codec, image, scale, most_samples))
            && opj_decode(codec, stream, image))
            result = convert(image, keeps_color, pixels);
    }
    opj_image_destroy(image);
    if (stream) opj_stream_destroy(stream);
    if (codec) opj_destroy_codec(codec);
    if (result != MILLRACE_DECODED) millrace_pixels_free(pixels);
    return result;
}
