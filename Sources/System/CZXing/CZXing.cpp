#define ZX_USE_UTF8 1
#include "CZXing.h"

#include <ZXing/ReadBarcode.h>
#include <algorithm>
#include <string>

int millrace_codes_read(const uint8_t *pixels, int width, int height, int most, void (*each)(void *context, const struct millrace_code *code), void *context) {
    try {
        ZXing::DecodeHints hints;
        hints.setMaxNumberOfSymbols(uint8_t(std::clamp(most, 1, 255)));
        auto found = ZXing::ReadBarcodes(ZXing::ImageView(pixels, width, height, ZXing::ImageFormat::Lum), hints);
        int count = 0;
        for (const auto &one : found) {
            if (!one.isValid() || count == most) continue;
            std::string symbology = ZXing::ToString(one.format());
            std::string text = one.text();
            struct millrace_code code = {};
            code.symbology = symbology.c_str();
            code.text = text.data();
            code.count = text.size();
            for (int corner = 0; corner < 4; corner++) {
                code.x[corner] = one.position()[corner].x;
                code.y[corner] = one.position()[corner].y;
            }
            each(context, &code);
            count++;
        }
        return count;
    } catch (...) {
        return -1;
    }
}
