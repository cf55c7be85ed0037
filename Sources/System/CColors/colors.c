#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CColors.h"

#include <lcms2.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <zlib.h>

static void keep_silent(cmsContext context, cmsUInt32Number code, const char *text) {
    (void)context;
    (void)code;
    (void)text;
}

static bool convert(
    const void *profile, size_t count, cmsColorSpaceSignature space, cmsUInt32Number format, const uint8_t *from, uint8_t *into, size_t pixels) {
    if (count > 16 << 20) return false;
    cmsContext context = cmsCreateContext(NULL, NULL);
    if (!context) return false;
    cmsSetLogErrorHandlerTHR(context, keep_silent);
    bool is_done = false;
    cmsHPROFILE source = cmsOpenProfileFromMemTHR(context, profile, (cmsUInt32Number)count);
    cmsHPROFILE target = cmsCreate_sRGBProfileTHR(context);
    if (source && target && cmsGetColorSpace(source) == space) {
        cmsHTRANSFORM transform = cmsCreateTransformTHR(context, source, format, target, TYPE_RGB_8, INTENT_PERCEPTUAL, 0);
        if (transform) {
            // In parts, because it counts in 32 bits.
            size_t step = 1 << 20, components = space == cmsSigRgbData ? 3 : 4;
            for (size_t at = 0; at < pixels; at += step) {
                size_t some = pixels - at < step ? pixels - at : step;
                cmsDoTransform(transform, from + at * components, into + at * 3, (cmsUInt32Number)some);
            }
            cmsDeleteTransform(transform);
            is_done = true;
        }
    }
    if (source) cmsCloseProfile(source);
    if (target) cmsCloseProfile(target);
    cmsDeleteContext(context);
    return is_done;
}

bool millrace_colors_to_srgb(const void *profile, size_t count, uint8_t *bytes, size_t pixels) {
    return convert(profile, count, cmsSigRgbData, TYPE_RGB_8, bytes, bytes, pixels);
}

bool millrace_inks_to_srgb(const void *profile, size_t count, const uint8_t *inks, bool is_inverted, uint8_t *bytes, size_t pixels) {
    return convert(profile, count, cmsSigCmykData, is_inverted ? TYPE_CMYK_8_REV : TYPE_CMYK_8, inks, bytes, pixels);
}

struct handler {
    struct jpeg_error_mgr base;
    jmp_buf back;
};

static void give_up(j_common_ptr info) { longjmp(((struct handler *)info->err)->back, 1); }
static void say_nothing(j_common_ptr info) { (void)info; }

bool millrace_inks_of_jpeg(const void *bytes, size_t count, uint32_t width, uint32_t height, uint8_t *inks, bool *is_inverted) {
    struct jpeg_decompress_struct jpeg;
    struct handler handler;
    jpeg.err = jpeg_std_error(&handler.base);
    handler.base.error_exit = give_up;
    handler.base.output_message = say_nothing;
    jpeg_create_decompress(&jpeg);
    if (setjmp(handler.back)) {
        jpeg_destroy_decompress(&jpeg);
        return false;
    }
    jpeg_mem_src(&jpeg, (const unsigned char *)bytes, (unsigned long)count);
    jpeg_read_header(&jpeg, TRUE);
    bool is_read = jpeg.image_width == width && jpeg.image_height == height && jpeg.num_components == 4;
    if (is_read) {
        jpeg.out_color_space = JCS_CMYK;
        jpeg_start_decompress(&jpeg);
        while (jpeg.output_scanline < height) {
            JSAMPROW row = inks + (size_t)jpeg.output_scanline * width * 4;
            jpeg_read_scanlines(&jpeg, &row, 1);
        }
        // Adobe's programs write inks the other way around.
        *is_inverted = jpeg.saw_Adobe_marker;
    }
    jpeg_destroy_decompress(&jpeg);
    return is_read;
}

uint8_t *millrace_profile_unpack(const void *bytes, size_t count, size_t *unpacked) {
    // A profile is rarely larger than one megabyte.
    for (size_t room = 1 << 16; room <= 16 << 20; room *= 4) {
        uint8_t *out = malloc(room);
        if (!out) return NULL;
        uLongf size = room;
        int result = uncompress(out, &size, bytes, (uLong)count);
        if (result == Z_OK) {
            *unpacked = size;
            return out;
        }
        free(out);
        if (result != Z_BUF_ERROR) return NULL;
    }
    return NULL;
}
