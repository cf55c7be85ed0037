#include "CFriBidi.h"

#include <fribidi/fribidi.h>
#include <stdlib.h>

bool millrace_bidi_levels(const uint32_t *text, int count, bool is_right_to_left, int8_t *levels) {
    if (count <= 0) return true;
    FriBidiCharType *types = calloc((size_t)count, sizeof *types);
    FriBidiBracketType *brackets = calloc((size_t)count, sizeof *brackets);
    FriBidiParType direction = is_right_to_left ? FRIBIDI_PAR_RTL : FRIBIDI_PAR_LTR;
    FriBidiLevel found = 0;
    if (types && brackets) {
        fribidi_get_bidi_types(text, count, types);
        fribidi_get_bracket_types(text, count, types, brackets);
        found = fribidi_get_par_embedding_levels_ex(types, brackets, count, &direction, levels);
    }
    free(types);
    free(brackets);
    return found > 0;
}
