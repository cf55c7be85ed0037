#ifndef MILLRACE_CTESSERACT_H
#define MILLRACE_CTESSERACT_H

#include <leptonica/allheaders.h>
#include <tesseract/capi.h>

#endif
