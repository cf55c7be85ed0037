#include <cairo-pdf.h>
#include <pango/pangocairo.h>
