#ifndef MILLRACE_CZXING_H
#define MILLRACE_CZXING_H

#include <stddef.h>
#include <stdint.h>

// zxing-cpp's interface in C: its exceptions stay inside.

#ifdef __cplusplus
extern "C" {
#endif

struct millrace_code {
    const char *_Nonnull symbology;  ///< as zxing names it, such as QRCode or EAN-13
    const char *_Nonnull text;  ///< UTF-8, not ended by a zero
    size_t count;
    int x[4], y[4];  ///< its corners in pixels
};

/// Reads the codes in a grey picture without gaps, at most `most`; returns their number, or -1.
int millrace_codes_read(const uint8_t *_Nonnull pixels, int width, int height, int most, void (*_Nonnull each)(void *_Nullable context, const struct millrace_code *_Nonnull code), void *_Nullable context);

#ifdef __cplusplus
}
#endif
#endif
