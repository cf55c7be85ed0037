#include "CJPEG.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

struct handler {
    struct jpeg_error_mgr base;
    jmp_buf back;
};

static void give_up(j_common_ptr info) { longjmp(((struct handler *)info->err)->back, 1); }
static void keep_silent(j_common_ptr info) { (void)info; }

bool millrace_jpeg_pack(
    const uint8_t *pixels, uint32_t width, uint32_t height, int components, int quality, uint8_t **bytes, size_t *count) {
    struct jpeg_compress_struct jpeg;
    struct handler handler;
    unsigned char *out = NULL;
    unsigned long size = 0;
    if (width == 0 || height == 0 || width > 65500 || height > 65500) return false;
    jpeg.err = jpeg_std_error(&handler.base);
    handler.base.error_exit = give_up;
    handler.base.output_message = keep_silent;
    jpeg_create_compress(&jpeg);
    if (setjmp(handler.back)) {
        jpeg_destroy_compress(&jpeg);
        return false;
    }
    jpeg_mem_dest(&jpeg, &out, &size);
    jpeg.image_width = width;
    jpeg.image_height = height;
    jpeg.input_components = components;
    jpeg.in_color_space = components == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg.optimize_coding = TRUE;
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < height) {
        JSAMPROW row = (JSAMPROW)(pixels + (size_t)jpeg.next_scanline * width * (size_t)components);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    *bytes = out;
    *count = size;
    return true;
}
